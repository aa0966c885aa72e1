"""Stage 3 without a model: what can be settled by rule (DESIGN 2.6, rules 1 to 3).

1. An operation on an experience that is not live is quarantined.
2. Drafts that say the same after normalisation are joined, their evidence united; so is an add that a live
   experience of its domain already says (each domain may hold the same text).
3. Of several operations on one experience, the one from the group with the higher mean |r_i - mean| stays; the
   others are superseded: kept, shown, restorable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from core.experience import Add, Evidence, Experience, Quarantined, targets_of
from core.extraction.draft import Draft, Joined, Outcome, Superseded
from core.words import normalise


class Consolidated(Outcome):
    """What is left to propose, and where everything else went."""

    superseded: tuple[Superseded, ...] = ()
    operations_in: int = 0
    """Counted at the door: the drafts handed in, and the actions of the reply that were refused."""
    calls: dict[str, int] = Field(default_factory=dict)
    """Model calls by stage: compress, consolidate, retry; "cached" of them cost nothing."""
    raw_reply: str = ""
    """Of the consolidation, as it came."""

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
class Table:
    """The drafts while they are being reconciled; every removal has to say where the draft goes."""

    drafts: list[Draft]
    live: Mapping[str, Experience]
    operations_in: int = 0
    joined: list[Joined] = field(default_factory=list)
    superseded: list[Superseded] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    raw_reply: str = ""

    def domain(self, draft: Draft) -> str:
        """The domain that a draft belongs to: its own, or that of what it changes."""
        operation = draft.operation
        if isinstance(operation, Add):
            return operation.domain
        return self.live[targets_of(operation)[0]].domain

    def join(self, draft: Draft, into: str, reason: str) -> None:
        """Say where a draft went; taking it out of `drafts` is the caller's."""
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

    def refuse(self, reason: str, raw: str, run_id: str | None) -> None:
        """Quarantine something of a reply that came in beside the drafts."""
        self.operations_in += 1
        self.quarantined.append(Quarantined(reason=reason, raw=raw, run_id=run_id))

    def result(self) -> Consolidated:
        return Consolidated(
            drafts=tuple(self.drafts),
            joined=tuple(self.joined),
            superseded=tuple(self.superseded),
            quarantined=tuple(self.quarantined),
            notes=tuple(self.notes),
            operations_in=self.operations_in,
            calls=dict(sorted(self.calls.items())),
            raw_reply=self.raw_reply,
        )


def reconcile(
    drafts: Sequence[Draft],
    library: Sequence[Experience],
    strengths: Mapping[str, float] | None = None,
    *,
    run_id: str | None = None,
) -> Consolidated:
    """What can be settled without a model.

    Args:
        drafts: of one batch, in an order that decides between equals: the earlier one stays.
        library: the version that the drafts are based on.
        strengths: mean |r_i - mean| of each group (`core.advantage.mean_deviation`), by group id; 0 where unknown.
        run_id: is written to what is quarantined.
    """
    return reconciled(drafts, library, strengths or {}, run_id).result()


def reconciled(
    drafts: Sequence[Draft], library: Sequence[Experience], strengths: Mapping[str, float], run_id: str | None
) -> Table:
    """The drafts after the rules of this module, for who goes on with them."""
    live = {e.id: e for e in library if e.status == "live"}
    table = Table(list(drafts), live, operations_in=len(drafts))
    _quarantine_unknown(table, run_id)
    join_equals(table)
    _settle_conflicts(table, strengths)
    _join_adds_to_changes(table)
    return table


def _quarantine_unknown(table: Table, run_id: str | None) -> None:
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


def join_equals(table: Table) -> None:
    """Rule 2."""
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
                draft, known, both(reason, draft.rationale, ". ")
            )  # which holds what it was shortened from
            continue
        if draft.operation.op == "modify" and form == normalise(table.live[targets[0]].text):
            table.join(draft, targets[0], both("it would change nothing", draft.rationale, ". "))
            continue
        key = (draft.operation.op, tuple(sorted(targets)), form, own)
        if key in kept:
            table.join(draft, kept[key].text or targets[0], "another draft says the same")
            kept[key] = unite(kept[key], draft)
        else:
            kept[key] = draft
    table.drafts = list(kept.values())


def _settle_conflicts(table: Table, strengths: Mapping[str, float]) -> None:
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


def _join_adds_to_changes(table: Table) -> None:
    """An add that a modify or merge of this batch will say anyway, in its domain, needs no second experience."""
    changes = {
        (normalise(d.text), table.domain(d)): i
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
        sentence=both(a.sentence, b.sentence, "; "),
        features_tried=max(a.features_tried, b.features_tried),
        permutations=max(a.permutations, b.permutations),
    )
    return draft.model_copy(
        update={
            "evidence": evidence,
            "rationale": both(draft.rationale, other.rationale, "\n"),
            "confidence": max(draft.confidence, other.confidence),
            "group_ids": tuple(dict.fromkeys((*draft.group_ids, *other.group_ids))),
        }
    )


def both(a: str, b: str, between: str) -> str:
    """Both texts, unless one holds the other."""
    return a if b in a else b if not a else f"{a}{between}{b}"
