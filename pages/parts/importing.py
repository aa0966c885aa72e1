"""Import: a library of others, or the usage log of a shipped one; first what it would do, then the doing of it."""

from __future__ import annotations

import hashlib

import streamlit as st

from core.errors import PackError, WinnowError
from core.experience import GENERAL
from core.workspace import Workspace
from core.workspace.arriving import Arrived, NewLesson, UsageArrived
from pages.parts import frame, paging, safe, session, words
from pages.parts.guard import red_line
from pages.parts.once import once
from pages.parts.safe import Markup, joined, markup

SHOWN = 20
LIBRARY, USAGE = "import_file", "usage_file"
ROUND = "w_import_round"
"""Counts the uploads that were taken in: the next one begins with an empty box."""
LARGEST_MB = 64
LOOKED = "w_import_looked"


def draw(ws: Workspace) -> None:
    left, right = st.columns(2, gap="large")
    with left:
        _library(ws)
    with right:
        _usage(ws)


# --- a library ---


def _library(ws: Workspace) -> None:
    frame.section(
        "A library", "a pack, a playbook, a table, JSON, or agent YAML; every lesson arrives as a proposal"
    )
    file = st.file_uploader(
        "File", key=_box(LIBRARY), max_upload_size=LARGEST_MB, label_visibility="collapsed"
    )
    forms = ws.shipping.readable()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        form = st.selectbox(
            "Read it as",
            ["", *forms],
            key="import_form",
            format_func=lambda f: f"{f}: {forms[f]}" if f else "what it says it is",
            width=300,
        )
        domain = st.text_input(
            "Domain, where none is named", key="import_domain", placeholder=GENERAL, max_chars=100, width=200
        )
    if file is None:
        frame.note(
            "Nothing of a file is trusted: confidence, uses and wins that it claims are shown, not taken over."
        )
        return
    data: bytes = file.getvalue()
    if not _verified(ws, data, file.name, form or ""):
        return
    try:
        found = _looked(ws, data, file.name, form or "", (domain or "").strip())
    except WinnowError as e:
        red_line(e)
        return
    _would(ws, found, form or "", (domain or "").strip())


def _looked(ws: Workspace, data: bytes, name: str, form: str, domain: str) -> Arrived:
    """What the file would do; looked at anew where something happened, not each time that the page is drawn."""
    return once(
        LOOKED,
        "library",
        (*_stamp(ws), hashlib.sha256(data).hexdigest(), name, form, domain),
        lambda: ws.shipping.arriving.library(
            data, name, session.me(), form=form or None, domain=domain or None, dry_run=True
        ),
    )


def _stamp(ws: Workspace) -> tuple[str, int]:
    """Another one whenever something happened in the workspace."""
    newest = ws.store.events.newest(1)
    return str(ws.folder), newest[0].id if newest else 0


def _verified(ws: Workspace, data: bytes, name: str, form: str) -> bool:
    """The report on a pack; whether it may be read on. Other forms have nothing to be verified by."""
    if form not in ("", "pack") or not data.startswith(b"PK"):
        return True
    try:
        check = once(LOOKED, "check", (hashlib.sha256(data).hexdigest(),), lambda: ws.shipping.verify(data))
    except PackError as e:
        red_line(e)
        frame.note("The pack is not sound, so nothing of it is read.")
        return False
    safe.html(
        '<div class="w-done">This pack is sound: sizes, checksums, schema, and nothing hidden in it.</div>'
    )
    frame.facts(
        [
            ("Pack", f"{check.name}, version {check.version}"),
            ("Lessons", f"{check.experiences:,}"),
            ("Provenance", check.provenance),
            ("Written by", f"Winnow {check.winnow}, format {check.schema_version}"),
            ("Files", ", ".join(f"{name} ({size:,})" for name, size in check.files.items())),
            ("SHA-256", check.sha256),
            *([("Not known here", ", ".join(check.unknown))] if check.unknown else []),
        ]
    )
    return True


def _would(ws: Workspace, found: Arrived, form: str, domain: str) -> None:
    if found.before:
        safe.html(
            '<div class="w-warn">{who} imported this very file on {when}; again, it would change nothing.</div>',
            who=found.before.actor,
            when=found.before.imported_at,
        )
        return
    near = sum(bool(n.near) for n in found.new)
    refused = sum(n.rejected is not None for n in found.new)
    frame.stats(
        [
            (f"{len(found.new):,}", "new"),
            (f"{len(found.joined):,}", "known already"),
            (f"{near:,}", "near to one"),
            (f"{refused:,}", "rejected before"),
            (f"{len(found.aside):,}", "set aside"),
        ]
    )
    for said in found.notes:
        frame.note(said)
    why = session.refusal("reviewer")
    if found.new or found.joined:
        st.button(
            safe.label(f"Send {len(found.new):,} to review" if found.new else "Note that they are known"),
            key="import_send",
            type="primary",
            icon=":material/send:",
            on_click=_send,
            args=(ws, found.sha256, form, domain),
            disabled=bool(why),
            help=frame.refused(why),
        )
    _listed(found)


def _listed(found: Arrived) -> None:
    if found.new:
        frame.section("New", f"{len(found.new):,}")
        first = paging.offset("import_new", len(found.new), SHOWN)
        safe.draw(joined(_new(n, found.near_by) for n in found.new[first : first + SHOWN]))
    if found.joined:
        with st.expander(f"Known already, {len(found.joined):d}"):
            safe.draw(
                joined(_line(j.place, j.text, f"says what {j.into} says") for j in found.joined[:SHOWN])
            )
    if found.aside:
        with st.expander(f"Set aside, {len(found.aside):d}", expanded=not found.new):
            safe.draw(joined(_line(a.place, a.raw, a.reason) for a in found.aside[:SHOWN]))


def _new(lesson: NewLesson, by: str) -> Markup:
    chips = []
    if lesson.too_long:
        chips.append(frame.chip(f"{lesson.words} words: to be shortened", "bad"))
    if lesson.near:
        chips.append(frame.chip(f"near {', '.join(lesson.near)} ({by})", "accent"))
    if lesson.opposed:
        chips.append(frame.chip(f"says the opposite of {', '.join(lesson.opposed)}", "bad"))
    if lesson.rejected:
        chips.append(frame.chip(f"{lesson.rejected} said so and was rejected", "bad"))
    return _line(lesson.their_id or lesson.place, lesson.text, "", joined(chips))


def _line(place: str, text: str, why: str, chips: Markup | None = None) -> Markup:
    return markup(
        '<div class="w-arrived"><span class="id">{place}</span><div><div class="w-exact bare" dir="auto">{text}</div>'
        '<div class="w-chips">{chips}<span class="w-note">{why}</span></div></div></div>',
        place=place,
        text=text[: safe.SHOWN],
        chips=chips or Markup(),
        why=why,
    )


def _send(ws: Workspace, sha256: str, form: str, domain: str) -> None:
    file = session.get(_box(LIBRARY))
    if why := session.refusal("reviewer"):
        session.flash(why, "bad")
        return
    data: bytes = getattr(file, "getvalue", bytes)()
    if hashlib.sha256(data).hexdigest() != sha256:
        session.flash("Another file was chosen meanwhile; nothing was imported. Look at it first.", "bad")
        return
    done: list[Arrived] = []
    if session.attempt(
        lambda: done.append(
            ws.shipping.arriving.library(
                data, str(getattr(file, "name", "")), session.me(), form=form or None, domain=domain or None
            )
        )
    ):
        _next_file()
        session.flash(f"{words.plural(len(done[0].new), 'lesson')} wait for review.")


# --- a usage log ---


def _usage(ws: Workspace) -> None:
    frame.section("A usage log", "of the Python loader: shipped lessons earn or lose confidence")
    file = st.file_uploader("Log", key=_box(USAGE), max_upload_size=LARGEST_MB, label_visibility="collapsed")
    if file is None:
        frame.note(
            "Attempts at one task are compared with each other. Each entry counts once, however often it comes."
        )
        return
    data: bytes = file.getvalue()
    try:
        found = once(
            LOOKED,
            "usage",
            (*_stamp(ws), hashlib.sha256(data).hexdigest(), file.name),
            lambda: ws.shipping.arriving.usage(data, file.name, session.me(), dry_run=True),
        )
    except WinnowError as e:
        red_line(e)
        return
    frame.stats(
        [
            (f"{found.new:,}", "new entries"),
            (f"{found.credited:,}", "tell of our lessons"),
            (f"{found.known:,}", "known already"),
            (f"{len(found.aside):,}", "set aside"),
        ]
    )
    if found.unknown:
        named = ", ".join(f"{i} × {n}" for i, n in list(found.unknown.items())[:8])
        frame.note(f"Not of this workspace, or with another text: {named}")
    why = session.refusal("reviewer")
    if found.new:
        st.button(
            f"Take in {found.new:d} entries",
            key="usage_send",
            type="primary",
            on_click=_take_in,
            args=(ws, hashlib.sha256(data).hexdigest()),
            disabled=bool(why),
            help=frame.refused(why),
        )
    if found.aside:
        with st.expander(f"Set aside, {len(found.aside):d}"):
            safe.draw(joined(_line(a.place, a.raw, a.reason) for a in found.aside[:SHOWN]))


def _take_in(ws: Workspace, sha256: str) -> None:
    file = session.get(_box(USAGE))
    if why := session.refusal("reviewer"):
        session.flash(why, "bad")
        return
    data: bytes = getattr(file, "getvalue", bytes)()
    if hashlib.sha256(data).hexdigest() != sha256:
        session.flash("Another file was chosen meanwhile; nothing was taken in.", "bad")
        return
    done: list[UsageArrived] = []
    if session.attempt(
        lambda: done.append(ws.shipping.arriving.usage(data, str(getattr(file, "name", "")), session.me()))
    ):
        _next_file()
        moved = ", ".join(
            f"{e.experience_id} {e.confidence:.2f} → {e.pending:.2f}" for e in done[0].earned[:8]
        )
        session.flash(
            f"{done[0].new:,} of the log's entries were taken in"
            + (f"; with the next version: {moved}." if moved else ".")
        )


def _box(key: str) -> str:
    return f"{key}_{session.get(ROUND, 0)}"


def _next_file() -> None:
    session.put(ROUND, int(str(session.get(ROUND, 0))) + 1)
    session.forget(LOOKED)
