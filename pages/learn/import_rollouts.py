"""Import recorded rollouts: hand files in, see what would come in, change what was guessed, then import."""

import hashlib
from pathlib import Path

import streamlit as st

from core.workspace import alongside as commands
from core.workspace.intake import ImportReport
from pages.parts import alongside, frame, rollouts_asked, rollouts_report, safe, session, uploads, words
from pages.parts.uploads import Given

LARGEST_MB = 500
LOOKING_S, IMPORTING_S = 3_600.0, 12 * 3_600.0
OWN, FOUND, BEGUN, IMPORTING = (
    "w_rollouts_files",
    "w_rollouts_found",
    "w_rollouts_begun",
    "w_rollouts_importing",
)
PASTE = (
    '{"task_id": "sum-1", "messages": [{"role": "user", "content": "What is 2 + 2?"}, …], "reward": 1.0}\n'
)

ws = session.workspace()
frame.back("Runs", "pages/learn/runs.py")
frame.page(
    "Import rollouts",
    "What other tools recorded: evaluation logs, trainer dumps, agent sessions. Nothing is imported before you have "
    "seen what would come in.",
)


def under_way() -> None:
    """The import that this session began, until it has ended; then its run."""
    key = str(session.get(IMPORTING) or "")
    if not key:
        return
    frame.section("Importing", "you may leave this page: it goes on")
    now = alongside.watched(ws, key, "Importing")
    if now.state == "running":
        st.stop()
    session.forget(IMPORTING)
    if now.state == "done":
        done = ImportReport.read(now.answer)
        session.forget(FOUND, OWN)
        session.flash(came(done))
        frame.go("pages/learn/run.py", id=str(done.run_id))
    if now.state == "none":
        frame.note("It was stopped. What had come in stays; the same files go on from there.")


def came(done: ImportReport) -> str:
    """One sentence on what came in."""
    regraded = f" {words.plural(done.regraded, 'known attempt')} got another reward." if done.regraded else ""
    if not done.added and not done.went_on:
        return f"Nothing of {done.source} is new.{regraded}"
    aside = f" {words.plural(done.set_aside_total, 'record')} set aside." if done.set_aside_total else ""
    many = words.plural(done.added, "attempt")
    return f"{many} at {words.plural(done.tasks, 'task')} imported from {done.source}.{regraded}{aside}"


def given() -> list[Given]:
    """What was handed in, in one of three ways."""
    upload, folder, paste = st.tabs(["Files or archives", "A folder", "Paste"], key="rollouts_given")
    with upload:
        files = st.file_uploader(
            "Files in any of the formats below, or a zip of them",
            accept_multiple_files=True,
            key="rollouts_upload",
            max_upload_size=LARGEST_MB,
        )
    with folder:
        within = st.file_uploader(
            "A folder of logs, with all that is in it",
            accept_multiple_files="directory",
            key="rollouts_folder",
            max_upload_size=LARGEST_MB,
        )
    with paste:
        pasted = st.text_area(
            "Records, one JSON object a line, or CSV with a header",
            key="rollouts_paste",
            height=160,
            placeholder=PASTE,
            persist_state="session",
        )
    found = [uploads.of_upload(file) for file in (*(files or ()), *(within or ()))]
    return found or ([uploads.of_text("pasted rows", pasted)] if pasted.strip() else [])


def formats() -> None:
    """What can be read, to somebody who has handed in nothing yet."""
    frame.note(
        f"At most {LARGEST_MB} MB a file; in a terminal, winnow rollouts import PATH reads files of any size. "
        "Several files are read together, each beside its neighbours."
    )
    with st.expander("Formats, recognised by their content", icon=":material/description:", expanded=True):
        rows = [
            {"Format": f.title, "Reward": f.reward, "Numbered attempts": f.repeats, "Tool calls": f.steps}
            for f in ws.intake.formats()
        ]
        st.dataframe(rows, hide_index=True, key="rollouts_formats", lazy=False)


def looked(path: Path, asked: tuple[str, ...]) -> ImportReport | None:
    """What an import would bring; None while it is being looked at, and where it was stopped or cannot be read."""
    command = ("rollouts", "import", str(path), *asked)
    imports = ws.store.events.page(kind="rollouts.imported", limit=0)[1]
    key = f"{' '.join(command)} --dry-run {imports}"
    if (held := last_found()) and held[0] == key:
        return held[1]
    state = commands.standing(ws.folder, key).state
    if state == "none" and (session.get(BEGUN) != key or st.button("Look at the files", key="rollouts_look")):
        session.put(BEGUN, key)
        alongside.begin(ws, key, *command, "--dry-run", within_s=LOOKING_S)
    now = alongside.watched(ws, key, "Looking at the files")
    if now.state == "done":
        session.put(FOUND, (key, ImportReport.read(now.answer)))
        alongside.forget(ws, key)
        st.rerun()
    return None


def last_found() -> tuple[str, ImportReport] | None:
    """What the last look found, and what was looked at: the scores that can be chosen are its scores."""
    held = session.get(FOUND)
    return held if isinstance(held, tuple) else None


def button(report: ImportReport, path: Path, asked: tuple[str, ...]) -> None:
    """Import it, or say why there is nothing to import."""
    if report.nothing_new:
        safe.html('<div class="w-warn">{text}</div>', text="Nothing of it is new: it is all here already.")
        if report.run_id and st.button("Open its run", key="rollouts_open", type="primary"):
            frame.go("pages/learn/run.py", id=report.run_id)
        return
    new = words.plural(report.added, "attempt")
    name = (
        f"Import {new}" if report.added else f"Give {words.plural(report.regraded, 'attempt')} their rewards"
    )
    if st.button(safe.label(name), key="rollouts_now", type="primary", icon=":material/upload:"):
        command = ("rollouts", "import", str(path), *asked)
        key = f"importing {hashlib.sha256(' '.join(command).encode()).hexdigest()}"
        session.put(IMPORTING, key)
        alongside.begin(ws, key, *command, within_s=IMPORTING_S)


under_way()
if refusal := session.refusal("reviewer"):
    frame.note(refusal)
    st.stop()
files = given()
if not files:
    formats()
    st.stop()
ids = tuple(file.id for file in files)
if session.get(OWN) != ids:
    session.put(OWN, ids)
    session.forget(FOUND, BEGUN)
    rollouts_asked.forget()
path = uploads.kept(files)
top = st.container()
before = last_found()
asked = rollouts_asked.draw(ws, before[1] if before else None)
with top:
    if (report := looked(path, asked)) is None:
        st.stop()
    rollouts_report.sums(report)
    button(report, path, asked)
    rollouts_report.said(report)
rollouts_report.details(report)
