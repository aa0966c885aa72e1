"""Import tasks: upload or paste, see what would come in, then import."""

import hashlib

import streamlit as st

from core.rollout import SPLITS, Split
from core.settings import VerifierSpec
from pages.parts import frame, import_report, mapping, safe, session, words
from pages.parts.guard import guard
from pages.parts.once import once

EXAMPLE = '{"id": "sum-1", "question": "What is 2 + 2?", "answer": "4", "domain": "sums"}\n'
VERIFIERS = {
    "": "guess from the answers",
    "text": "text: the same words",
    "exact": "exact: the same characters",
    "numeric": "numeric: the same number",
    "math": "math: the same value",
    "choice": "choice: one of several",
    "json_schema": "JSON schema",
    "judge": "a model judges",
}
OWN = "w_import_file"

ws = session.workspace()
frame.back("Tasks", "pages/learn/tasks.py")
frame.page("Import tasks", "Nothing is imported before you have seen what would come in.")


def given() -> tuple[bytes, str]:
    """The file that was uploaded, or the rows that were pasted, and what to call it."""
    upload, paste = st.tabs(["Upload a file", "Paste rows"])
    with upload:
        file = st.file_uploader("JSONL, JSON, CSV or Parquet", key="import_file")
    with paste:
        pasted = st.text_area(
            "Rows, one JSON object a line, or CSV with a header",
            key="import_paste",
            height=160,
            placeholder=EXAMPLE,
            persist_state="session",
        )
    return (file.getvalue(), file.name) if file else (pasted.encode("utf-8", "replace"), "pasted rows")


Wanted = tuple[VerifierSpec | None, str | None, Split | None, tuple[float, float, float], int]


def options() -> Wanted:
    """What rows get that say nothing themselves: verifier, domain, split, shares of the splits, and their seed."""
    with st.expander("Verifier, domain and split of rows that name none", icon=":material/tune:"):
        one, two, three = st.columns(3)
        kind = one.selectbox(
            "Verifier", list(VERIFIERS), key="import_verifier", format_func=VERIFIERS.__getitem__
        )
        domain = two.text_input("Domain", key="import_domain", placeholder="general", max_chars=100)
        split = three.selectbox(
            "Split",
            [None, *SPLITS],
            key="import_split",
            format_func=lambda s: f"all {s}, whatever they say" if s else "as rows say, else by shares",
        )
        places = st.columns(4)
        train, trial, final = (
            place.number_input(
                safe.label(f"% {split_name}"),
                0,
                100,
                start,
                key=f"import_share_{split_name}",
                disabled=bool(split),
            )
            for place, split_name, start in zip(places, SPLITS, (40, 30, 30), strict=False)
        )
        seed = places[3].number_input("Seed", 0, None, 0, key="import_seed", disabled=bool(split))
    spec = VerifierSpec(kind=kind) if kind else None
    return spec, domain.strip() or None, split, (train, trial, final), seed


data, name = given()
if not data.strip():
    with st.expander("What a row looks like", expanded=True):
        safe.exact(EXAMPLE)
        frame.note(
            "Only the question is needed. Columns are found by their usual names, and you can choose other ones. "
            "Rows without a split are divided into train, trial and final."
        )
    st.stop()

digest = hashlib.sha256(data).hexdigest()
if session.get(OWN) != digest:
    session.put(OWN, digest)
    session.forget(session.READ_FILE)
    mapping.forget()


with guard(stop=True), st.spinner("Reading the file …"):
    columns = once(session.READ_FILE, "columns", (digest, name), lambda: ws.intake.columns(data, name=name))
own = mapping.mapping(columns)
verifier, domain, split, shares, seed = wanted = options()
asked = (digest, name, tuple(own.items()), wanted, str(ws.folder), ws.store.tasks.stamp())
with guard(stop=True), st.spinner("Checking every row …"):
    found = once(
        session.READ_FILE,
        "tasks",
        asked,
        lambda: ws.intake.read_tasks(
            data,
            name=name,
            mapping=own,
            verifier=verifier,
            domain=domain,
            split=split,
            shares=shares,
            seed=seed,
        ),
    )
    against = once(
        session.READ_FILE,
        "against",
        asked,
        lambda: ws.store.tasks.against(found.tasks),
    )

frame.section("What would come in")
import_report.sums(found, against)
count = import_report.new_tasks(found, against)
answered = len(against.answered)
refusal = session.refusal("reviewer")


def import_now() -> None:
    bar = st.progress(0.0, text="Importing …")

    def progress(_what: str, now: int, total: int) -> None:
        bar.progress(now / max(1, total), text="Importing …")

    done = ws.intake.add_tasks(found, name, session.me(), progress)
    kept = f", {words.plural(len(done.set_aside), 'row')} set aside" if done.set_aside else ""
    known = f", {done.known:,} were there already" if done.known else ""
    known += f", {words.plural(len(done.answered), 'task')} got an answer" if done.answered else ""
    session.forget(session.READ_FILE, OWN)
    session.flash(f"{words.plural(done.added, 'task')} imported from {name}{kept}{known}.")


if st.button(
    safe.label(
        f"Import {words.plural(count, 'valid task')}"
        if count or not answered
        else f"Give {words.plural(answered, 'task')} an answer"
    ),
    key="import_now",
    type="primary",
    icon=":material/upload:",
    disabled=not (count or answered) or bool(refusal),
    help=frame.refused(refusal),
):
    with guard(stop=True):
        import_now()
    frame.go("pages/learn/tasks.py")
import_report.details(ws, found, against, data, name, columns.ending)
