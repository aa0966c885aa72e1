"""The arms of a new evaluation: a list that begins with no library against the newest version, and grows by hand."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from core.errors import InputError, WinnowError
from core.proof import Arm, ArmKind
from core.workspace import Workspace
from core.workspace.preparing import lessons_of
from pages.parts import frame, safe, session, words

ARMS = "w_eval_arms"
BIGGEST_TEXT = 200_000
"""Characters of lessons that are written into the page."""
BIGGEST_FILE_MB = 32
KINDS: dict[ArmKind, str] = {
    "none": "no library",
    "version": "a version",
    "random": "random library of the same size",
    "text": "hand-written lessons",
    "pack": "a pack",
    "majority": "majority vote",
    "best_of": "best of G (needs the verifier at run time)",
}
ABOUT: dict[ArmKind, str] = {
    "none": "Nothing is put into the prompt.",
    "version": "The lessons of one version of the library.",
    "random": "As many lessons of each domain, but those of other domains; where these are too few, the domain's own "
    "with their words shuffled: what any text in the prompt does.",
    "text": "One lesson on each line; a heading such as “# sums” names the domain of the lines below it.",
    "pack": "A pack, or a library in any form that can be imported.",
    "majority": "The most frequent answer of another arm's replies. An answer takes as many calls as rollouts.",
    "best_of": "The best reply of another arm, chosen by the verifier: it needs the verifier at run time, so it is a "
    "bound and no way of asking where answers are not known.",
}


def arms() -> list[Arm]:
    found = session.get(ARMS)
    return list(found) if isinstance(found, list) else []


def put(found: list[Arm]) -> None:
    session.put(ARMS, found)


def fresh(ws: Workspace, version: int | None = None) -> list[Arm]:
    """No library against the newest version, or against one that was asked for."""
    head = ws.store.versions.head()
    number = head if version is None else version
    none = Arm(name="none", kind="none")
    return [none, Arm(name=f"version {number}", kind="version", version=number)] if head else [none]


def draw(ws: Workspace) -> list[Arm]:
    """Draw the list, and what adds to it; gives the arms."""
    frame.section("Arms", "the first one is the baseline of all others")
    found = arms()
    for place, arm in enumerate(found):
        _row(place, arm)
    with st.popover("Add an arm", icon=":material/add:", key="arm_add"):
        _adding(ws)
    return found


def _row(place: int, arm: Arm) -> None:
    with st.container(
        horizontal=True,
        vertical_alignment="center",
        key=f"arm_row_{place}",
        horizontal_alignment="distribute",
    ):
        chip = frame.chip("baseline", "accent") if place == 0 else safe.Markup()
        safe.html(
            '<div class="w-arm"><span class="name">{name}</span>{chip}<span class="what">{what}</span></div>',
            name=arm.name,
            chip=chip,
            what=told(arm),
        )
        with st.container(horizontal=True, gap="xxsmall", width="content"):
            if place and arm.sampled:
                st.button(
                    "",
                    key=f"arm_first_{place}",
                    icon=":material/vertical_align_top:",
                    type="tertiary",
                    help="Make it the baseline",
                    on_click=_first,
                    args=(place,),
                )
            st.button(
                "",
                key=f"arm_out_{place}",
                icon=":material/close:",
                type="tertiary",
                help="Take it out",
                on_click=_out,
                args=(place,),
            )


def told(arm: Arm) -> str:
    """What an arm is made of, where its name does not say it."""
    what = {
        "none": "no library",
        "version": f"version {arm.version} of the library",
        "random": f"as many lessons as version {arm.version}, of other domains or shuffled",
        "text": f"{words.plural(len(arm.lessons), 'lesson')} written by hand",
        "pack": f"{words.plural(len(arm.lessons), 'lesson')} of a file",
        "without": f"version {arm.version} without {arm.experience_id}",
        "with": f"version {arm.version} with {', '.join(arm.proposal_ids)}",
        "majority": f"majority vote over the replies of {arm.of}",
        "best_of": f"best of the replies of {arm.of}; needs the verifier at run time",
    }[arm.kind]
    return f"{what}, with the token prior {arm.prior}" if arm.prior else what


def _first(place: int) -> None:
    found = arms()
    put([found[place], *found[:place], *found[place + 1 :]])


def _out(place: int) -> None:
    found = arms()
    gone = found.pop(place).name
    put([arm for arm in found if arm.of != gone])


# --- adding one ---


def _adding(ws: Workspace) -> None:
    kind = st.selectbox("What it is", list(KINDS), key="arm_kind", format_func=KINDS.__getitem__)
    safe.html('<p class="w-note">{about}</p>', about=ABOUT[kind])
    sampled = [arm.name for arm in arms() if arm.sampled]
    match kind:
        case "version" | "random":
            head = ws.store.versions.head()
            st.text_input(
                "Version or label",
                key="arm_version",
                placeholder=f"{head:d}, the newest",
                max_chars=64,
            )
        case "text":
            st.text_area(
                "Lessons, one on each line",
                key="arm_text",
                height=160,
                max_chars=BIGGEST_TEXT,
                placeholder="# sums\nAnswer with the number alone.",
            )
            st.file_uploader("Or a file", key="arm_text_file", max_upload_size=BIGGEST_FILE_MB)
        case "pack":
            st.file_uploader("Pack", key="arm_pack_file", max_upload_size=BIGGEST_FILE_MB)
        case "majority" | "best_of":
            st.selectbox("Of the replies of", sampled, key="arm_of")
    priors = [prior.id for prior in ws.priors.all()]
    if priors and kind not in ("majority", "best_of"):
        st.selectbox("Token prior on top", ["", *priors], key="arm_prior", format_func=lambda p: p or "none")
    st.text_input("Name", key="arm_name", placeholder="a name of its own, if you like", max_chars=100)
    st.button("Add", key="arm_add_now", type="primary", on_click=_add, args=(ws, kind))


def _add(ws: Workspace, kind: ArmKind) -> None:
    made: list[Arm] = []
    if session.attempt(lambda: made.append(_made(ws, kind))):
        put([*arms(), *made])
        session.forget("arm_name", "arm_text", "arm_version")


def _made(ws: Workspace, kind: ArmKind) -> Arm:
    """The arm that the fields describe.

    Raises:
        WinnowError: they do not describe one.
    """
    fields: dict[str, object] = {"kind": kind, "prior": str(session.get("arm_prior") or "") or None}
    usual = KINDS[kind]
    match kind:
        case "none":
            usual = "none"
        case "version" | "random":
            named = str(session.get("arm_version") or "").strip()
            number = ws.store.versions.resolve(named) if named else ws.store.versions.head()
            fields["version"] = number
            usual = f"{'random like' if kind == 'random' else 'version'} {number}"
        case "text" | "pack":
            name, data = _file(kind)
            fields["lessons"] = lessons_of(kind, data)
            usual = name
        case "majority" | "best_of":
            fields |= {"of": str(session.get("arm_of") or ""), "prior": None}
            usual = f"{'vote' if kind == 'majority' else 'best'} of {fields['of']}"
    if fields["prior"]:
        usual = f"{usual} + {fields['prior']}"
    name = str(session.get("arm_name") or "").strip() or usual
    if any(arm.name == name for arm in arms()):
        raise InputError(f"There is an arm {name!r} already: give this one another name.")
    return Arm.read({"name": name, **fields}, where="the arm")


def _file(kind: Literal["text", "pack"]) -> tuple[str, bytes]:
    """The name and the bytes of what was uploaded or written."""
    file = session.get(f"arm_{kind}_file")
    if file is not None:
        data: bytes = file.getvalue()  # type: ignore[attr-defined]
        return str(getattr(file, "name", kind))[:60], data
    text = str(session.get("arm_text") or "") if kind == "text" else ""
    if not text.strip():
        raise InputError(
            "Write the lessons, one on each line, or choose a file."
            if kind == "text"
            else "Choose the file of a pack."
        )
    return "hand-written", text.encode("utf-8", "replace")


def problem(e: WinnowError) -> str:
    """A sentence of the core, in which the page says what the command line would."""
    return str(e).replace(", as in NAME=ARM", "").removeprefix("eval: ")
