"""What a model wants done with the near-duplicates of a batch: read, checked and carried out, one action at a time.

merge: several drafts become one. drop: a draft gives way to another one, or to a live lesson. modify: drafts that add
become a change of the live lesson that they are like.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.errors import AnswerError, InputError
from core.experience import MAX_WORDS, Add, Experience, Merge, Modify, with_text
from core.extraction import replies
from core.extraction.compress import remarked, usable
from core.extraction.draft import Draft, Superseded
from core.extraction.reconcile import Table, both, unite
from core.extraction.wording import opposed
from core.ports import Completion
from core.words import count_words


def read_actions(reply: Completion) -> tuple[list[Any], str]:
    """The actions as they stand in the reply.

    Raises:
        AnswerError: there are none to be found.
    """
    value = replies.read_json(reply, ("actions",))
    if isinstance(value, list):
        return value, ""
    entry = replies.lowered(value)
    if "actions" in entry:
        return replies.listed(entry["actions"]), ""
    if "action" in entry:
        return [value], ""
    raise AnswerError('the object holds no "actions"', reply.text)


@dataclass
class Actions:
    """Carries out the actions of one reply; each draft, and each live experience, is touched once at the most."""

    table: Table
    labels: Mapping[str, int]
    live: Mapping[str, Experience]
    raw: str
    run_id: str | None
    after: dict[int, Draft] = field(default_factory=dict)
    """The drafts by their place, as the actions leave them."""
    touched: set[int | str] = field(default_factory=set)

    def carry_out(self, actions: Sequence[Any]) -> None:
        """Change the table; an action that does not fit is quarantined alone, and touches no draft."""
        self.after = dict(enumerate(self.table.drafts))
        for number, action in enumerate(actions, start=1):
            try:
                self._one(action)
            except InputError as e:
                self.table.refuse(f"consolidation action {number}: {e}", self.raw, self.run_id)
        self.table.drafts = list(self.after.values())

    def _one(self, action: Any) -> None:
        if not isinstance(action, Mapping):
            raise InputError("an action must be an object")
        entry = replies.lowered(action)
        name = replies.plain(replies.first_of(entry, "action", "op")).strip("[]`*. ").casefold()
        labels = replies.labels_in(replies.first_of(entry, "drafts", "draft", "ids"))
        named = list(dict.fromkeys(self._place(label) for label in labels))
        kept = (
            [] if name == "merge" else [self._kept(label) for label in replies.labels_in(entry.get("keep"))]
        )
        if busy := self.touched & {*named, *(k for k in kept if isinstance(k, str))}:
            raise InputError(f"{self._label(min(busy, key=str))} was named by an earlier action")
        reason = replies.plain(entry.get("reason"))
        if name == "merge":
            self._merge(sorted(named), entry, reason)
        elif name == "drop":
            self._drop([i for i in named if i not in kept], kept, reason)
        elif name == "modify":
            self._modify(sorted(named), kept, entry, reason)
        else:
            raise InputError(f"unknown action {name[:80]!r}")
        self.touched |= {*named, *(k for k in kept if isinstance(k, int) or name == "modify")}

    def _place(self, label: str) -> int:
        found = self.labels.get(label.upper())
        if found is None:
            raise InputError(f"there is no draft {label[:80]!r}")
        return found

    def _kept(self, label: str) -> int | str:
        found = next((i for i in self.live if i.casefold() == label.casefold()), None)
        return self._place(label) if found is None else found

    def _label(self, what: int | str) -> str:
        if isinstance(what, str):
            return f"lesson {what}"
        return "draft " + next(label for label, i in self.labels.items() if i == what)

    def _text(self, what: int | str) -> str:
        return self.live[what].text if isinstance(what, str) else self.table.drafts[what].text or ""

    def _merge(self, places: list[int], entry: Mapping[str, Any], reason: str) -> None:
        if len(places) < 2:
            raise InputError(f"a merge needs at least two drafts, and this one names {len(places)}")
        text = _new_text(entry, "merge")
        self._check_unity(places)
        changes = [i for i in places if not isinstance(self.table.drafts[i].operation, Add)]
        if len(changes) > 1:
            raise InputError("the drafts change different experiences")
        base = changes[0] if changes else places[0]
        operation = with_text(self.table.drafts[base].operation, text)
        self._unite(base, places, operation, f"Merged from: {self._texts(places)}", reason)

    def _modify(
        self, places: list[int], kept: list[int | str], entry: Mapping[str, Any], reason: str
    ) -> None:
        if len(kept) != 1 or not isinstance(kept[0], str):
            raise InputError('a modify must name the one live lesson that it changes, in "keep"')
        if not places or not all(isinstance(self.table.drafts[i].operation, Add) for i in places):
            raise InputError("a modify must name drafts that add a lesson")
        text = _new_text(entry, "modify")
        self._check_unity([*places, kept[0]])
        said = f"A change of {kept[0]} in place of: {self._texts(places)}"
        self._unite(places[0], places, Modify(experience_id=kept[0], text=text), said, reason)

    def _drop(self, places: list[int], kept: list[int | str], reason: str) -> None:
        if len(kept) != 1 or (isinstance(kept[0], int) and kept[0] not in self.after):
            raise InputError('a drop must name the one draft or lesson that stays instead, in "keep"')
        if not places:
            raise InputError("a drop must name a draft other than the one that stays")
        self._check_unity([*places, kept[0]])
        other = f"lesson {kept[0]}" if isinstance(kept[0], str) else "another draft"
        said = f"the model kept {other} instead: {self._text(kept[0])}"
        for i in places:
            lost = Superseded(draft=self.table.drafts[i], reason=f"{said} ({reason})" if reason else said)
            self.table.superseded.append(lost)
            del self.after[i]

    def _check_unity(self, which: Sequence[int | str]) -> None:
        """Refuse to unite what belongs to different domains, or says opposite things."""
        table = self.table
        domains = {
            self.live[i].domain if isinstance(i, str) else table.domain(table.drafts[i]) for i in which
        }
        if len(domains) > 1:
            raise InputError("the drafts belong to different domains")
        for n, a in enumerate(which):
            for b in which[n + 1 :]:
                if opposed(self._text(a), self._text(b)):
                    raise InputError(f"{self._label(a)} and {self._label(b)} say opposite things")

    def _texts(self, places: Sequence[int]) -> str:
        return " | ".join(map(self._text, places))

    def _unite(
        self, base: int, places: Sequence[int], operation: Add | Modify | Merge, said: str, reason: str
    ) -> None:
        """Put one draft with the evidence of all in the place of the base; the others are joined to it."""
        drafts = self.table.drafts
        united = drafts[base]
        for i in places:
            united = unite(united, drafts[i]) if i != base else united
        raw = both(united.raw_reply, self.raw, "\n\n--- consolidated ---\n\n")
        changed = {"operation": operation, "extractor": "llm", "raw_reply": raw}
        self.after[base] = remarked(
            united.model_copy(update=changed), f"({said}){' ' + reason if reason else ''}"
        )
        for i in places:
            if i != base:
                self.table.join(drafts[i], operation.text, f"united by the model: {reason}")
                del self.after[i]


def _new_text(entry: Mapping[str, Any], action: str) -> str:
    text = entry.get("text")
    if not isinstance(text, str):
        raise InputError(f"the {action} has no text")
    text = usable(text)
    if (words := count_words(text)) > MAX_WORDS:
        raise InputError(f"the text of the {action} has {words} words, at most {MAX_WORDS} are allowed")
    return text
