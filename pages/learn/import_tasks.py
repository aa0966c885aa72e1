"""Import tasks: upload or paste, see what would come in, then import."""

from functools import partial

import streamlit as st

from core.rollout import SPLITS
from core.settings import VerifierSpec
from pages.parts import frame, safe, session, tables
from pages.parts.guard import guard

FIELDS = ("question", "answer", "id", "domain", "split", "verifier", "choices")
EXAMPLE = '{"id": "sum-1", "question": "What is 2 + 2?", "answer": "4", "domain": "sums"}\n'

ws = session.workspace()
frame.back("Tasks", "pages/learn/tasks.py")
frame.page("Import tasks", "Nothing is imported before you have seen what would come in.")

upload, paste = st.tabs(["Upload a file", "Paste rows"])
with upload:
    file = st.file_uploader("JSONL, JSON, CSV or Parquet", key="import_file")
with paste:
    pasted = st.text_area(
        "Rows, one JSON object a line, or CSV with a header",
        key="import_paste",
        height=160,
        placeholder=EXAMPLE,
    )
data = file.getvalue() if file else pasted.encode()
name = file.name if file else "pasted rows"
if not data.strip():
    with st.expander("What a row looks like"):
        safe.exact(EXAMPLE)
        frame.note(
            "Only the question is needed. Columns are found by their usual names, and you can choose other ones. "
            "Rows without a split are divided into train, trial and final."
        )
    st.stop()

with st.expander("Options: unusual names, verifier, split, domain", icon=":material/tune:"):
    one, two = st.columns(2)
    question = one.text_input(
        "Column of the question, where its name is unusual",
        key="import_question",
        placeholder="found by its name",
    )
    domain = two.text_input("Domain where a row names none", key="import_domain", placeholder="general")
    one, two = st.columns(2)
    kind = one.selectbox(
        "Verifier where a row names none",
        ["", "text", "exact", "choice", "numeric"],
        key="import_verifier",
        format_func=lambda k: k or "guess from the answers",
    )
    split = two.selectbox(
        "Split",
        [None, *SPLITS],
        key="import_split",
        format_func=lambda s: s or "as the rows say, else divided",
    )

read = partial(
    ws.intake.read_tasks,
    data,
    name=name,
    verifier=VerifierSpec(kind=kind) if kind else None,
    domain=domain.strip() or None,
    split=split,
)
named = {"question": question.strip()} if question.strip() else {}
with guard(stop=True):
    found = read(mapping=named)

with st.expander("Columns", icon=":material/view_column:", expanded=not found.tasks):
    frame.note("Which column is which field of a task.")
    mapping: dict[str, str] = {}
    with st.container(horizontal=True):
        for field in FIELDS:
            guess = found.mapping.get(field)
            choices = ["", *dict.fromkeys([*found.columns, *([guess] if guess else [])])]
            chosen = st.selectbox(
                safe.label(field),
                choices,
                index=choices.index(guess) if guess else 0,
                width=200,
                format_func=lambda c: c or "none",
                key=f"map_{field}",
            )
            if chosen and chosen != guess:
                mapping[field] = chosen
if mapping:
    with guard(stop=True):
        found = read(mapping={**named, **mapping})

frame.stats(
    [
        (f"{len(found.tasks):,}", "valid tasks"),
        (f"{len(found.rejected):,}", "rows set aside"),
        (f"{len(found.duplicate_ids):,}", "repeated rows"),
        (f"{found.rows:,}", "rows in all"),
    ]
)
for said in found.notes:
    frame.note(said)
if found.duplicate_texts:
    frame.note(f"{len(found.duplicate_texts)} tasks ask the same as another one; they stay in its split.")


def import_now() -> None:
    done = ws.intake.add_tasks(found, name, session.me())
    kept = f", {len(done.set_aside)} rows kept aside" if done.set_aside else ""
    known = f", {done.known} were there already" if done.known else ""
    session.flash(f"{done.added} tasks imported from {name}{kept}{known}.")


if st.button(
    f"Import {len(found.tasks):d} valid tasks", key="import_now", type="primary", disabled=not found.tasks
):
    with guard(stop=True):
        import_now()
    st.switch_page("pages/learn/tasks.py")

if found.tasks:
    frame.section("Preview", "the first twenty")
    st.dataframe(
        [
            {
                "Question": safe.short(t.question, 300),
                "Answer": t.answer or "",
                "Verifier": t.verifier.kind,
                "Domain": t.domain,
                "Split": t.split,
                "Id": t.id,
            }
            for t in found.tasks[:20]
        ],
        hide_index=True,
        key="import_preview",
    )
if found.rejected:
    frame.section("Set aside", "each with its line and the reason; mend them and import again")
    tables.rejected(found.rejected, key="import_rejected")
