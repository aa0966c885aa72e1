"""The filter of a list of groups: widgets that the address holds, and the same filter read from an address.

A page about one group is handed the filter in its address: Previous and Next stay inside it, after a reload too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import streamlit as st

from core.figures import Grid, GroupFilter, RunName
from core.record import Record
from core.workspace import Workspace
from pages.parts import address, safe, words

ORDERS = {
    "order": "as they ran",
    "spread": "largest spread",
    "lowest mean": "lowest mean",
    "highest mean": "highest mean",
}
STATUSES = {"": "all", **{code: name for code, (name, _) in words.GROUP.items()}}
SPREADS = {"": "any", "none": "none", "some": "some", "large": "large"}
OUTCOMES = {
    "": "any",
    "all right": "all right",
    "all wrong": "all wrong",
    "all equal": "all equal",
    "mixed": "mixed",
    "errors": "with errors",
    "unscored": "with unscored",
}
CHOICES = {"status": STATUSES, "spread": SPREADS, "outcome": OUTCOMES}
"""Labels by code. The address of a bound widget holds the label: it is what is shown that must stay the same."""
KEYS = {
    "run_id": "group_run",
    "status": "group_status",
    "domain": "group_domain",
    "spread": "group_spread",
    "outcome": "group_outcome",
    "text": "group_text",
}
"""Fields of the filter by the key of their widget, which is their name in the address."""
ORDER, CELL = "group_order", "group_cell"
LONGEST = 200


class Listed(Record):
    """A filter with the order of its list."""

    which: GroupFilter
    order: str
    cell: str = ""
    """The cell of the density grid that was chosen: "0.4,0.5,0.05,0.05" = middle and size."""

    @property
    def address(self) -> dict[str, str]:
        """What the address of the list needs to mean this one."""
        given = {field: str(getattr(self.which, field)) for field in KEYS}
        found = {KEYS[field]: CHOICES.get(field, {}).get(code, code) for field, code in given.items() if code}
        found |= {ORDER: ORDERS[self.order] if self.order != "order" else "", CELL: self.cell}
        return {key: value for key, value in found.items() if value}

    @property
    def inside(self) -> dict[str, str]:
        """The same for the address of a page about one group of the list."""
        return address.inside(self.address)


def widgets(ws: Workspace, runs: Sequence[RunName]) -> Listed:
    """Draw the filter; what it is set to stands in the address."""
    names = {"": "All runs", **{r.id: r.id for r in runs}}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        run = st.selectbox(
            "Run",
            list(names),
            address.place(list(names.values()), "group_run"),
            key="group_run",
            format_func=names.__getitem__,
            bind="query-params",
            width=100,
        )
        status = _choice("Kind", STATUSES, "group_status", 125)
        outcome = _choice("Outcome", OUTCOMES, "group_outcome", 130)
        spread = _choice("Spread", SPREADS, "group_spread", 95)
        domains = {"": "all", **{d: d for d in ws.store.figures.domains(run)}}
        domain = _choice("Domain", domains, "group_domain", 130)
        order = _choice("Order", ORDERS, ORDER, 140)
        text = st.text_input(
            "Task",
            address.handed("group_text")[:LONGEST],
            key="group_text",
            bind="query-params",
            placeholder="words, or an id",
            max_chars=LONGEST,
            width=175,
        )
    given = dict(zip(KEYS, (run, status, domain, spread, outcome, text), strict=True))
    return _listed(given, order, str(st.query_params.get(CELL, address.handed(CELL))))


def _choice(label: str, options: dict[str, str], key: str, width: int) -> str:
    return st.selectbox(
        safe.label(label),
        list(options),
        address.place(list(options.values()), key),
        key=key,
        format_func=lambda code: options.get(code, code),
        bind="query-params",
        width=width,
    )


def from_address() -> Listed:
    """The list that this page's address says it is inside of; what it does not know it leaves out."""
    given = {field: address.handed(key)[:LONGEST] for field, key in KEYS.items()}
    for field, labels in CHOICES.items():
        given[field] = _code(labels, given[field], "")
    order = _code(ORDERS, address.handed(ORDER), "order")
    return _listed(given, order, address.handed(CELL))


def _code(labels: Mapping[str, str], label: str, otherwise: str) -> str:
    return next((code for code, shown in labels.items() if shown == label), otherwise)


def _listed(given: dict[str, str], order: str, cell: str) -> Listed:
    between = _between(cell)
    if between:
        given |= dict(zip(("mean_between", "spread_between"), between, strict=True))  # type: ignore[arg-type]
    return Listed(which=GroupFilter.model_validate(given), order=order, cell=cell if between else "")


def cell_of(grid: Grid, middle: tuple[float, float]) -> str:
    """A cell of the grid as it stands in an address."""
    return ",".join(f"{value:.6g}" for value in (*middle, grid.mean_step, grid.spread_step))


def _between(cell: str) -> tuple[tuple[float, float], tuple[float, float]] | None:
    with suppress(ValueError):
        x, y, across, up = (float(part) for part in cell.split(","))
        if all(abs(v) < 1e12 for v in (x, y, across, up)):
            return (x - across / 2, x + across / 2), (y - up / 2, y + up / 2)
    return None
