"""Stage 3: the drafts of one batch, of whichever extractor, reconciled (DESIGN 2.6).

1. An operation on an experience that is not live is quarantined.
2. Drafts that say the same after normalisation are joined, their evidence united; so is an add that a live
   experience of its domain already says (each domain may hold the same text).
3. Of several operations on one experience, the one from the group with the higher mean |r_i - mean| stays; the
   others are superseded: kept, shown, restorable.
4. A text of more than `MAX_WORDS` words gets one compression call; one that stays too long is kept as it was,
   and the reviewer must edit it.
5. One call for all near-duplicates of the batch, none where there are none. What the reply does not name stays
   as it was, and what it drops is superseded, never gone.

Steps 1 to 3 are `reconcile`, which calls no model. Nothing vanishes: operations in = drafts + joined +
superseded + quarantined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from core.errors import AnswerError, InputError
from core.experience import (
    MAX_WORDS,
    Add,
    Evidence,
    Experience,
    Quarantined,
    check_text,
    targets_of,
)
from core.extraction import replies
from core.extraction.draft import Draft, Joined, Outcome
from core.extraction.summarise import prompt_room
from core.injection import estimate_tokens
from core.ports import ChatModel, Completion, Sampling
from core.record import Record, canonical_json
from core.words import count_words, normalise

REPLY_TOKENS = 3_000
COMPRESS_TOKENS = 1_000
Alike = Callable[[str, str], bool]
ALIKE = 0.5
"""Share of common words (Jaccard) from which two texts are shown to the model as near-duplicates."""

_TEXT_OR_NULL = {"type": ["string", "null"]}
SCHEMA = canonical_json(
    replies.schema(
        {
            "actions": {
                "type": "array",
                "items": replies.schema(
                    {
                        "action": {"type": "string", "enum": ["merge", "drop"]},
                        "drafts": {"type": "array", "items": {"type": "string"}},
                        "keep": _TEXT_OR_NULL,
                        "text": _TEXT_OR_NULL,
                        "reason": {"type": "string"},
                    }
                ),
            }
        }
    )
)
COMPRESS_SCHEMA = canonical_json(replies.schema({"text": {"type": "string"}}))


class Superseded(Record):
    """A draft that lost to another one: not proposed, but kept where the reviewer can restore it."""

    draft: Draft
    reason: str


class Consolidated(Outcome):
    """What is left to propose, and where everything else went."""

    superseded: tuple[Superseded, ...] = ()
    operations_in: int = 0
    """Counted at the door: the drafts handed in, and the actions of the reply that were refused."""
    calls: dict[str, int] = Field(default_factory=dict)
    """Model calls by stage: compress, consolidate, retry; "cached" of them cost nothing."""

    @property
    def counts(self) -> dict[str, int]:
        """The sum that must come out: operations in, and where they went."""
        return {
            "operations in": self.operations_in,
            "proposed": len(self.drafts),
            "joined": len(self.joined),
            "superseded": len(self.superseded),
            "quarantined": len(self.quarantined),
        }

    @property
    def adds_up(self) -> bool:
        """Whether operations in = proposed + joined + superseded + quarantined."""
        total, *parts = self.counts.values()
        return total == sum(parts)


@dataclass
class _Table:
    """The drafts while they are being reconciled; every removal has to say where the draft goes."""

    drafts: list[Draft]
    live: Mapping[str, Experience]
    operations_in: int = 0
    joined: list[Joined] = field(default_factory=list)
    superseded: list[Superseded] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)

    def join(self, draft: Draft, into: str, reason: str) -> None:
        self.joined.append(
            Joined(
                text=draft.text or "",
                into=into,
                reason=reason,
                evidence=draft.evidence,
                raw_reply=draft.raw_reply,
                group_ids=draft.group_ids,
            )
        )

    def result(self) -> Consolidated:
        return Consolidated(
            drafts=tuple(self.drafts),
            joined=tuple(self.joined),
            superseded=tuple(self.superseded),
            quarantined=tuple(self.quarantined),
            notes=tuple(self.notes),
            operations_in=self.operations_in,
            calls=dict(sorted(self.calls.items())),
        )


def reconcile(
    drafts: Sequence[Draft],
    library: Sequence[Experience],
    strengths: Mapping[str, float] | None = None,
    *,
    run_id: str | None = None,
) -> Consolidated:
    """Steps 1 to 3: what needs no model.

    Args:
        drafts: of one batch, in an order that decides between equals: the earlier one stays.
        library: the version that the drafts are based on.
        strengths: mean |r_i - mean| of each group (`core.advantage.mean_deviation`), by group id; 0 where unknown.
        run_id: is written to what is quarantined.
    """
    return _reconciled(drafts, library, strengths or {}, run_id).result()


async def consolidate(
    drafts: Sequence[Draft],
    library: Sequence[Experience],
    model: ChatModel | None = None,
    *,
    strengths: Mapping[str, float] | None = None,
    run_id: str | None = None,
    seed: int = 0,
    alike: Alike | None = None,
) -> Consolidated:
    """All five steps; without a model, steps 1 to 3, and what is too long is noted.

    A reply that failed leaves the drafts as they are, and a note says so.

    Args:
        drafts: see `reconcile`.
        library: see `reconcile`.
        model: who compresses and consolidates.
        strengths: see `reconcile`.
        run_id: see `reconcile`.
        seed: of the sampling.
        alike: whether two texts may say the same; it only decides what the model is asked about.

    Raises:
        ModelUnavailableError, BudgetError, InputError: see `replies.ask`.
    """
    table = _reconciled(drafts, library, strengths or {}, run_id)
    if model is not None:
        await _compress(table, model, seed)
        _join_equals(table)
    _note_too_long(table)
    if model is not None:
        await _merge_near_duplicates(table, model, seed, run_id, alike or share_words)
        _join_equals(table)
    return table.result()


def _reconciled(
    drafts: Sequence[Draft], library: Sequence[Experience], strengths: Mapping[str, float], run_id: str | None
) -> _Table:
    live = {e.id: e for e in library if e.status == "live"}
    table = _Table(list(drafts), live, operations_in=len(drafts))
    _quarantine_unknown(table, run_id)
    _join_equals(table)
    _settle_conflicts(table, strengths)
    _join_adds_to_changes(table)
    return table


# ---- steps 1 to 3 ---------------------------------------------------------------------------------------


def _quarantine_unknown(table: _Table, run_id: str | None) -> None:
    kept: list[Draft] = []
    for draft in table.drafts:
        unknown = [i for i in targets_of(draft.operation) if i not in table.live]
        if unknown:
            text = "" if draft.text is None else f": {draft.text}"
            reason = f"the {draft.operation.op} names {', '.join(unknown)}, which is not live{text}"
            raw = draft.raw_reply or draft.canonical()
            table.quarantined.append(
                Quarantined(reason=reason, raw=raw, run_id=run_id, group_ids=groups_of(draft))
            )
        else:
            kept.append(draft)
    table.drafts = kept


def _join_equals(table: _Table) -> None:
    said: dict[tuple[str | None, str], str] = {
        (normalise(e.text), e.domain): e.id for e in reversed([*table.live.values()])
    }
    kept: dict[tuple[Any, ...], Draft] = {}
    for draft in table.drafts:
        form = normalise(draft.text) if draft.text is not None else None
        targets = targets_of(draft.operation)
        own = draft.operation.domain if isinstance(draft.operation, Add) else ""
        if isinstance(draft.operation, Add) and (known := said.get((form, own))) is not None:
            reason = f"the library says it already, in the domain {own}"
            table.join(
                draft, known, _both(reason, draft.rationale, ". ")
            )  # which holds what it was shortened from
            continue
        if draft.operation.op == "modify" and form == normalise(table.live[targets[0]].text):
            table.join(draft, targets[0], _both("it would change nothing", draft.rationale, ". "))
            continue
        key = (draft.operation.op, tuple(sorted(targets)), form, own)
        if key in kept:
            table.join(draft, kept[key].text or targets[0], "another draft says the same")
            kept[key] = unite(kept[key], draft)
        else:
            kept[key] = draft
    table.drafts = list(kept.values())


def _settle_conflicts(table: _Table, strengths: Mapping[str, float]) -> None:
    def strength(i: int) -> float:
        return max((strengths.get(g, 0.0) for g in groups_of(table.drafts[i])), default=0.0)

    taken: dict[str, int] = {}
    lost: set[int] = set()
    for i in sorted(
        range(len(table.drafts)), key=lambda i: -strength(i)
    ):  # stable: the earlier of equals first
        targets = targets_of(table.drafts[i].operation)
        rival = next((taken[t] for t in targets if t in taken), None)
        if rival is None:
            taken |= dict.fromkeys(targets, i)
            continue
        lost.add(i)
        clash = next(t for t in targets if t in taken)
        winner = table.drafts[rival].operation.op
        reason = (
            f"a {winner} of {clash} from a group with a wider spread of rewards was preferred"
            f" (mean distance from the mean {strength(rival):.3g} against {strength(i):.3g})"
        )
        table.superseded.append(Superseded(draft=table.drafts[i], reason=reason))
    table.drafts = [d for i, d in enumerate(table.drafts) if i not in lost]


def _join_adds_to_changes(table: _Table) -> None:
    """An add that a modify or merge of this batch will say anyway, in its domain, needs no second experience."""
    changes = {
        (normalise(d.text), _domain(d, table)): i
        for i, d in enumerate(table.drafts)
        if d.operation.op != "add" and d.text is not None
    }
    kept = dict(enumerate(table.drafts))
    for i, draft in enumerate(table.drafts):
        if (
            isinstance(draft.operation, Add)
            and (into := changes.get((normalise(draft.operation.text), draft.operation.domain))) is not None
        ):
            table.join(
                draft, kept[into].text or "", f"a {kept[into].operation.op} of this batch says the same"
            )
            kept[into] = unite(kept[into], draft)
            del kept[i]
    table.drafts = list(kept.values())


def groups_of(draft: Draft) -> tuple[str, ...]:
    """The groups behind a draft, each once."""
    return tuple(dict.fromkeys((*draft.group_ids, *draft.evidence.group_ids)))


def unite(draft: Draft, other: Draft) -> Draft:
    """The first draft with the evidence of both; its operation, extractor and raw reply stay its own."""
    a, b = draft.evidence, other.evidence
    findings = {f.feature: f for f in (*b.findings, *a.findings)}
    order = dict.fromkeys(f.feature for f in (*a.findings, *b.findings))
    evidence = Evidence(
        findings=tuple(findings[feature] for feature in order),
        group_ids=tuple(dict.fromkeys((*a.group_ids, *b.group_ids))),
        rollout_ids=tuple(dict.fromkeys((*a.rollout_ids, *b.rollout_ids))),
        sentence=_both(a.sentence, b.sentence, "; "),
        features_tried=max(a.features_tried, b.features_tried),
        permutations=max(a.permutations, b.permutations),
    )
    return draft.model_copy(
        update={
            "evidence": evidence,
            "rationale": _both(draft.rationale, other.rationale, "\n"),
            "confidence": max(draft.confidence, other.confidence),
            "group_ids": tuple(dict.fromkeys((*draft.group_ids, *other.group_ids))),
        }
    )


def _both(a: str, b: str, between: str) -> str:
    return a if b in a else b if not a else f"{a}{between}{b}"


# ---- step 4: length -------------------------------------------------------------------------------------


def _too_long(draft: Draft) -> bool:
    return draft.text is not None and count_words(draft.text) > MAX_WORDS


def _note_too_long(table: _Table) -> None:
    for draft in table.drafts:
        if _too_long(draft):
            words = count_words(draft.text or "")
            table.notes.append(f"A draft has {words} words and must be edited before approval: {draft.text}")


async def _compress(table: _Table, model: ChatModel, seed: int) -> None:
    async def one(i: int) -> None:
        table.drafts[i] = await _compressed(table.drafts[i], model, seed, table.calls)

    await replies.all_of([one(i) for i, draft in enumerate(table.drafts) if _too_long(draft)])


async def _compressed(draft: Draft, model: ChatModel, seed: int, calls: Counter[str]) -> Draft:
    text = draft.text or ""

    def read(reply: Completion) -> tuple[str, str]:
        value = replies.read_json(reply, ("text",))
        found = replies.lowered(value).get("text") if isinstance(value, Mapping) else None
        if not isinstance(found, str):
            raise AnswerError('the object holds no "text"', reply.text)
        return _usable(found), ""

    messages = replies.prompt(
        "compress", max_words=str(MAX_WORDS), words=str(count_words(text)), lesson=replies.fence(text)
    )
    sampling = _sampling(model, COMPRESS_TOKENS, seed, COMPRESS_SCHEMA)
    answer = await replies.ask(model, messages, sampling, read, stage="compress", calls=calls, retry=False)
    if answer.value is None:
        return _remarked(draft, f"(It could not be shortened: {answer.error})")
    if count_words(answer.value) > MAX_WORDS:
        return _remarked(draft, f"(It could not be shortened: {count_words(answer.value)} words were left.)")
    short = draft.model_copy(
        update={
            "operation": draft.operation.model_copy(update={"text": answer.value}),
            "raw_reply": _both(draft.raw_reply, answer.raw, "\n\n--- shortened ---\n\n"),
        }
    )
    return _remarked(short, f"(Shortened from {count_words(text)} words: {text})")


def _usable(text: str) -> str:
    """The text, if an experience could hold it.

    Raises:
        InputError: it could not.
    """
    try:
        return check_text(text.strip())
    except ValueError as e:
        raise InputError(str(e)) from e


def _remarked(draft: Draft, remark: str) -> Draft:
    return draft.model_copy(update={"rationale": _both(draft.rationale, remark, " ")})


def _sampling(model: ChatModel, tokens: int, seed: int, schema: str) -> Sampling:
    return Sampling(
        temperature=0.0,
        top_p=1.0,
        max_tokens=replies.reply_tokens(model.context_length, tokens),
        seed=seed,
        json_schema=schema,
    )


# ---- step 5: near-duplicates ----------------------------------------------------------------------------


def share_words(a: str, b: str) -> bool:
    """Whether at least half of the words of two texts are common to both.

    >>> share_words("Answer with one word only.", "Answer with only one lowercase word")
    True
    """
    first, second = ({w.strip(".,;:!?\"'`()") for w in normalise(t).split()} - {""} for t in (a, b))
    return len(first & second) >= ALIKE * len(first | second) > 0


def _domain(draft: Draft, table: _Table) -> str:
    operation = draft.operation
    if isinstance(operation, Add):
        return operation.domain
    return table.live[targets_of(operation)[0]].domain


def _near_duplicates(table: _Table, alike: Alike) -> list[int]:
    """Places of the drafts that have a near-duplicate of their own domain in the batch."""
    by_domain: dict[str, list[int]] = {}
    for i, draft in enumerate(table.drafts):
        if draft.text is not None:
            by_domain.setdefault(_domain(draft, table), []).append(i)
    found: set[int] = set()
    for places in by_domain.values():
        for n, i in enumerate(places):
            for j in places[n + 1 :]:
                if alike(table.drafts[i].text or "", table.drafts[j].text or ""):
                    found |= {i, j}
    return sorted(found)


async def _merge_near_duplicates(
    table: _Table, model: ChatModel, seed: int, run_id: str | None, alike: Alike
) -> None:
    places = _near_duplicates(table, alike)
    if not places:
        return
    shown, messages = _prompt(table, places, model)
    if len(shown) < len(places):
        table.notes.append(f"{len(places) - len(shown)} near-duplicates did not fit the model's context.")
    if len(shown) < 2:
        return
    sampling = _sampling(model, REPLY_TOKENS, seed, SCHEMA)
    answer = await replies.ask(
        model, messages, sampling, _read_actions, stage="consolidate", calls=table.calls
    )
    if answer.value is None:
        table.notes.append(f"The consolidation call failed, the drafts are left as they were: {answer.error}")
        if answer.replied:
            _refuse(table, f"the consolidation reply could not be read: {answer.error}", answer.raw, run_id)
        return
    _Actions(table, dict(shown), answer.raw, run_id).carry_out(answer.value)


def _prompt(
    table: _Table, places: Sequence[int], model: ChatModel
) -> tuple[list[tuple[str, int]], list[Any]]:
    room = prompt_room(model, REPLY_TOKENS)
    shown: list[tuple[str, int]] = []
    lines: list[str] = []
    for number, i in enumerate(places, start=1):
        line = f"[D{number}] {_described(table.drafts[i], table)}"
        tried = _filled([*lines, line], [*(label for label, _ in shown), f"D{number}"])
        if sum(estimate_tokens(m.content) for m in tried) > room:
            break
        lines.append(line)
        shown.append((f"D{number}", i))
    return shown, _filled(lines, [label for label, _ in shown])


def _filled(lines: Sequence[str], labels: Sequence[str]) -> list[Any]:
    return replies.prompt(
        "consolidate",
        max_words=str(MAX_WORDS),
        drafts=replies.fence("\n".join(lines)),
        labels=", ".join(labels),
    )


def _described(draft: Draft, table: _Table) -> str:
    operation = draft.operation
    what = " ".join([operation.op, *targets_of(operation)])
    groups = len(groups_of(draft))
    return f"({what}, domain {_domain(draft, table)}, from {groups} groups) {draft.text}"


def _read_actions(reply: Completion) -> tuple[list[Any], str]:
    value = replies.read_json(reply, ("actions",))
    if isinstance(value, list):
        return value, ""
    entry = replies.lowered(value)
    if "actions" in entry:
        return replies.listed(entry["actions"]), ""
    if "action" in entry:
        return [value], ""
    raise AnswerError('the object holds no "actions"', reply.text)


def _refuse(table: _Table, reason: str, raw: str, run_id: str | None) -> None:
    """Quarantine something of the reply that came in beside the drafts."""
    table.operations_in += 1
    table.quarantined.append(Quarantined(reason=reason, raw=raw, run_id=run_id))


@dataclass
class _Actions:
    """Carries out the actions of one reply; each draft is touched once at the most."""

    table: _Table
    labels: Mapping[str, int]
    raw: str
    run_id: str | None

    def carry_out(self, actions: Sequence[Any]) -> None:
        before = list(self.table.drafts)
        after: dict[int, Draft] = dict(enumerate(before))
        touched: set[int] = set()
        for number, action in enumerate(actions, start=1):
            try:
                self._one(action, before, after, touched)
            except InputError as e:
                _refuse(self.table, f"consolidation action {number}: {e}", self.raw, self.run_id)
        self.table.drafts = list(after.values())

    def _one(self, action: Any, before: list[Draft], after: dict[int, Draft], touched: set[int]) -> None:
        if not isinstance(action, Mapping):
            raise InputError("an action must be an object")
        entry = replies.lowered(action)
        name = replies.plain(replies.first_of(entry, "action", "op")).strip("[]`*. ").casefold()
        named = [
            self._place(label)
            for label in replies.labels_in(replies.first_of(entry, "drafts", "draft", "ids"))
        ]
        if busy := touched & set(named):
            raise InputError(f"draft {self._label(min(busy))} was named by an earlier action")
        reason = replies.plain(entry.get("reason"))
        if name == "merge":
            self._merge(named, entry, reason, before, after)
        elif name == "drop":
            keep = [self._place(label) for label in replies.labels_in(entry.get("keep"))]
            touched |= set(self._drop([i for i in named if i not in keep], keep, reason, before, after))
        else:
            raise InputError(f"unknown action {name[:80]!r}")
        touched |= set(named)

    def _place(self, label: str) -> int:
        found = self.labels.get(label.upper())
        if found is None:
            raise InputError(f"there is no draft {label[:80]!r}")
        return found

    def _label(self, place: int) -> str:
        return next(label for label, i in self.labels.items() if i == place)

    def _merge(
        self,
        places: list[int],
        entry: Mapping[str, Any],
        reason: str,
        before: list[Draft],
        after: dict[int, Draft],
    ) -> None:
        places = sorted(set(places))
        if len(places) < 2:
            raise InputError(f"a merge needs at least two drafts, and this one names {len(places)}")
        text = entry.get("text")
        if not isinstance(text, str):
            raise InputError("the merge has no text")
        text = _usable(text)
        if (words := count_words(text)) > MAX_WORDS:
            raise InputError(f"the merged text has {words} words, at most {MAX_WORDS} are allowed")
        if len({_domain(before[i], self.table) for i in places}) > 1:
            raise InputError("the drafts belong to different domains")
        changes = [i for i in places if not isinstance(before[i].operation, Add)]
        if len(changes) > 1:
            raise InputError("the drafts change different experiences")
        base = changes[0] if changes else places[0]
        after[base] = self._merged(base, places, text, reason, before)
        for i in places:
            if i != base:
                self.table.join(before[i], text, f"merged by the model: {reason}")
                del after[i]

    def _merged(self, base: int, places: list[int], text: str, reason: str, before: list[Draft]) -> Draft:
        united = before[base]
        for i in places:
            united = unite(united, before[i]) if i != base else united
        sources = " | ".join(before[i].text or "" for i in places)
        merged = united.model_copy(
            update={
                "operation": united.operation.model_copy(update={"text": text}),
                "extractor": "llm",
                "raw_reply": _both(united.raw_reply, self.raw, "\n\n--- merged ---\n\n"),
            }
        )
        return _remarked(merged, f"(Merged from: {sources}){' ' + reason if reason else ''}")

    def _drop(
        self, places: list[int], keep: list[int], reason: str, before: list[Draft], after: dict[int, Draft]
    ) -> list[int]:
        if len(keep) != 1 or keep[0] not in after:
            raise InputError('a drop must name the one draft that stays instead, in "keep"')
        if not places:
            raise InputError("a drop must name a draft other than the one that stays")
        if len({_domain(before[i], self.table) for i in (*places, *keep)}) > 1:
            raise InputError("the drafts belong to different domains")
        for i in places:
            said = f"the model kept another draft instead: {before[keep[0]].text}"
            self.table.superseded.append(
                Superseded(draft=before[i], reason=f"{said} ({reason})" if reason else said)
            )
            del after[i]
        return keep
