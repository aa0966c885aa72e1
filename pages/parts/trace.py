"""Where one is in a rollout: the step or message of the address, what the list is narrowed to, what is looked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import streamlit as st

from core.rollout import Rollout
from core.workspace import Workspace
from core.workspace.reading import Found, Line, Reading, Which
from pages.parts import address, safe, session

VIEW, FIND, WHICH, TOOL, MESSAGES = (
    "trace_view",
    "trace_find",
    "trace_which",
    "trace_tool",
    "trace_unfold",
)
"""Keys of the widgets that the address holds."""
FIRST = "first"
"""In the address: the first step of the list, whichever that is."""
WHICHES: dict[Which, str] = {"all": "all steps", "failed": "failed", "recovered": "recovered"}


@dataclass
class Trace:
    """What the parts of the page have to know."""

    ws: Workspace
    rollout: Rollout
    """Without its trajectory."""
    reading: Reading
    siblings: Sequence[str]
    """Ids of the rollouts of its group, in order."""
    find: str = ""
    found: Found = field(default_factory=Found)
    lines: Sequence[Line] = ()
    """Those that fit the filter."""
    view: str = "steps"

    @property
    def place(self) -> int:
        """Number of the step, or message, that is looked at; 0 where there is none."""
        if self.view == "steps":
            asked = _number("step", len(self.reading.lines))
            return asked or (self.lines[0].number if self.lines else 0)
        return _number("message", self.reading.messages)

    def hits(self, kind: str) -> dict[int, int]:
        """How often what is looked for is in each step or message."""
        counts: dict[int, int] = {}
        for one in self.found.places:
            if one.kind == kind:
                counts[one.number] = counts.get(one.number, 0) + one.count
        return counts

    def beside(self, to: int) -> str:
        """Id of the rollout before (-1) or after (1) this one in its group; empty where there is none."""
        at = self.siblings.index(self.rollout.id) + to if self.rollout.id in self.siblings else -1
        return self.siblings[at] if 0 <= at < len(self.siblings) else ""

    def move(self, by: int) -> int:
        """The step of the list, or message, before or after the present one; 0 where there is none."""
        numbers = [line.number for line in self.lines]
        if self.view != "steps":
            numbers = list(range(1, self.reading.messages + 1))
        if by > 0:
            return next((n for n in numbers if n > self.place), 0)
        return next((n for n in reversed(numbers) if n < self.place), 0)

    def error(self) -> int:
        """The next failed step; after the last one the first; 0 where none failed."""
        failed = self.reading.failed
        return next((n for n in failed if n > self.place), failed[0] if failed else 0)


@st.cache_resource(show_spinner=False, max_entries=4, ttl=600)
def _opened(_ws: Workspace, folder: str, rollout_id: str, mark: str) -> Reading:
    """A trajectory, opened once for many steps through it; its mark changes when it is redacted or made anew."""
    return Reading(_ws.store.trajectories.get(rollout_id))


def opened(ws: Workspace, rollout_id: str) -> Reading:
    """
    Raises:
        NotFoundError: there is no such rollout.
    """
    return _opened(ws, str(ws.folder), rollout_id, ws.store.trajectories.mark(rollout_id))


def _number(name: str, most: int) -> int:
    given = session.asked(name)
    return min(int(given), most) if given.isdecimal() and len(given) < 10 and int(given) > 0 else 0


def filters(trace: Trace) -> None:
    """Draw what narrows the list, and keep in the trace what it is set to."""
    both = bool(trace.reading.lines and trace.reading.messages)
    trace.view = "steps" if trace.reading.lines else "messages"
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="trace_filters"):
        if both:
            asked = "messages" if session.asked("message") and not session.asked("step") else "steps"
            trace.view = (
                st.segmented_control(
                    "View",
                    ["steps", "messages"],
                    default=asked,
                    required=True,
                    key=VIEW,
                    format_func=str.capitalize,
                    bind="query-params",
                )
                or "steps"
            )
        if trace.view == "steps" and trace.reading.lines:
            which = st.segmented_control(
                "Which",
                list(WHICHES),
                default="all",
                required=True,
                key=WHICH,
                format_func=WHICHES.__getitem__,
                bind="query-params",
                on_change=_from_the_first,
            )
            tools = ["", *sorted({line.tool for line in trace.reading.lines})[:200]]
            tool = st.selectbox(
                "Tool",
                tools,
                key=TOOL,
                format_func=lambda t: t or "any",
                bind="query-params",
                on_change=_from_the_first,
                width=170,
            )
            trace.lines = trace.reading.only(which or "all", tool)
        trace.find = st.text_input(
            "Find in this rollout",
            address.handed("rollouts_text")[:200] if not session.asked(FIND) else "",
            key=FIND,
            bind="query-params",
            max_chars=200,
            placeholder="any text",
            icon=":material/search:",
            width=220,
        ).strip()
        if trace.find:
            trace.found = trace.reading.find(trace.find)
            _found(trace)


def _from_the_first() -> None:
    """Another list is read from its first step."""
    st.query_params.pop("step", None)


def _found(trace: Trace) -> None:
    found, kind = trace.found, trace.view.removesuffix("s")
    places = len({(p.kind, p.number) for p in found.places})
    more = "" if found.complete else ", and there is more that was not looked at"
    hits = "1 match" if found.total == 1 else f"{found.total:,} matches"
    said = f"{hits} in {places:,} place{'' if places == 1 else 's'}{more}." if found.total else "No match."
    elsewhere = [p for p in found.places if p.kind != kind]
    if found.total and elsewhere and len(elsewhere) == len(found.places):
        said += f" All of them in {'the answer' if elsewhere[0].kind == 'answer' else f'its {elsewhere[0].kind}s'}."
    numbers = sorted(trace.hits(kind))
    following = next((n for n in numbers if n > trace.place), numbers[0] if numbers else 0)
    safe.html('<span class="w-note w-found" role="status">{said}</span>', said=said)
    st.button(
        "Next match",
        key="trace_next_match",
        type="tertiary",
        shortcut="m",
        disabled=not following,
        on_click=go,
        args=(kind, following),
    )


def go(kind: str, number: int) -> None:
    """Look at a step or message; the address says which."""
    if number:
        st.query_params[kind] = str(number)


def switch(rollout_id: str) -> None:
    """Look at another rollout of the group; the filter stays."""
    anew = {name: FIRST for name in ("step", "message") if name in st.query_params}
    st.query_params.update({"id": rollout_id, **anew})  # at once: each change is an entry of the history
