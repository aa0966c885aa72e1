"""One operation as a model words it, read strictly: what does not fit is refused and never becomes another operation.

Names of operations come in any case, ids in brackets, as injected labels or as they are. A delete needs an id only, a
merge at least two live ids and a text; an id that was not shown is refused, alone, with one sentence that says why.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from core.errors import InputError
from core.experience import KINDS, Add, Delete, Kind, Merge, Modify
from core.extraction import replies

_OPERATIONS = {
    **dict.fromkeys(("add", "create", "new", "insert"), "add"),
    **dict.fromkeys(("modify", "update", "edit", "change", "replace", "revise"), "modify"),
    **dict.fromkeys(("delete", "remove"), "delete"),
    **dict.fromkeys(("merge", "combine"), "merge"),
}


@dataclass(frozen=True)
class Known:
    """What the operations of one reply may refer to."""

    ids: frozenset[str]
    """The live experiences that the model was shown."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Which experience stood behind an injected label: {"G0": "E-0007"}."""
    domain: str = "general"
    """Domain of the task: what is added belongs to it."""

    def resolve(self, name: str) -> str:
        """The id that is meant.

        Raises:
            InputError: none; an unknown id never becomes an add.
        """
        if name in self.ids:
            return name
        folded = {e.casefold(): e for e in sorted(self.ids)}
        label = self.labels.get(name.upper(), "")
        for candidate in (folded.get(name.casefold(), ""), label):
            if candidate in self.ids:
                return candidate
        raise InputError(f"it names {replies.plain(name)[:80]!r}, which is no live experience that was shown")


def read_operation(item: Any, known: Known) -> tuple[Add | Modify | Delete | Merge, str]:
    """One operation of a reply, and its rationale.

    Raises:
        InputError: it does not fit; one sentence says why.
    """
    if not isinstance(item, Mapping):
        raise InputError("an operation must be an object")
    entry = replies.lowered(item)
    said = replies.plain(replies.first_of(entry, "op", "operation", "action", "type"))
    op = _OPERATIONS.get(said.strip("[]`*. ").casefold())
    if op is None:
        raise InputError(f"unknown operation {said[:80]!r}" if said else "the operation has no name")
    ids = _ids_of(entry, op, known)
    kind, remark = _kind_of(entry)
    rationale = " ".join(
        filter(None, (replies.plain(replies.first_of(entry, "rationale", "reason", "why")), remark))
    )
    if op == "delete":
        return Delete(experience_id=ids[0]), rationale
    text = replies.first_of(entry, "text", "content", "new_text", "experience", "lesson")
    if text is not None and not isinstance(text, str):
        raise InputError(f"the text of the {op} is no text")
    if text is None or text.strip().casefold() in replies.NOTHING:
        raise InputError(f"the {op} has no text")
    try:
        return _built(op, ids, text.strip(), kind, known.domain), rationale
    except ValidationError as e:
        reason = e.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        raise InputError(f"the {op} cannot be stored: {reason}") from e


def _built(op: str, ids: list[str], text: str, kind: Kind | None, domain: str) -> Add | Modify | Merge:
    if op == "add":
        return Add(text=text, kind=kind or "strategy", domain=domain)
    if op == "modify":
        return Modify(experience_id=ids[0], text=text, kind=kind)
    return Merge(experience_ids=tuple(ids), text=text)


def _ids_of(entry: Mapping[str, Any], op: str, known: Known) -> list[str]:
    keys = ("id", "ids", "experience_id", "experience_ids", "target", "targets", "target_id", "merged_ids")
    names = list(dict.fromkeys(name for key in keys for name in replies.labels_in(entry.get(key))))
    if op == "add":  # an id made up for the new lesson is ours to give; a live one means something else
        if clash := [name for name in names if name in known.ids or name in known.labels]:
            raise InputError(f"an add names the live experience {clash[0]!r}: perhaps modify was meant")
        return []
    ids = list(dict.fromkeys(known.resolve(name) for name in names))
    if op == "merge" and len(ids) < 2:
        raise InputError(f"a merge needs at least two live experiences, and this one names {len(ids)}")
    if op != "merge" and len(ids) != 1:
        raise InputError(f"a {op} needs the id of one experience, and this one names {len(ids)}")
    return ids


def _kind_of(entry: Mapping[str, Any]) -> tuple[Kind | None, str]:
    said = replies.plain(replies.first_of(entry, "kind", "category"))
    form = re.sub(r"[\s-]+", "_", said.strip().casefold())
    for kind in KINDS:
        if kind == form:
            return kind, ""
    return None, f"(The model called its kind {said[:40]!r}, which is none of ours.)" if said else ""
