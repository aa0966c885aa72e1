"""The maintenance audits: what may be wrong with a library, as operations that a person decides on (DESIGN 2.7).

1. unused: no use in the last 20 epochs; never a lesson that is younger than that, and none that a usage log has just
   told of.
2. confidence: c <= 0.10 after 5 uses.
3. redundant: two lessons of one domain with cosine >= 0.85, unless polarity, number or antonym set them against each
   other. Similarity only suggests (DESIGN 2.6.2).
4. capacity: more live lessons than the library may hold; `core.compression` says which go.

► A merge carries the exact text of the more confident lesson (of equals: more wins, more uses, the earlier id), which
is put first and so lives on; both texts are in the rationale. Approving it as it is *chooses* that text; who wants the
other one, or a new one, edits. No text is made up here.

► What an open proposal would delete or merge is left alone and counted as gone; what a reviewer refused to delete or
merge is not proposed again as long as its text is the one that was looked at. So a second audit changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from core.compression import EMBEDDED, Strategy, dropped, goal, in_order
from core.experience import PENDING, Delete, Experience, Merge, Proposal, targets_of
from core.record import Record
from core.settings import N_MAX
from core.similarity import near_duplicates

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Audit = Literal["unused", "confidence", "redundant", "capacity"]
AUDITS: tuple[Audit, ...] = get_args(Audit)

UNUSED_EPOCHS = 20
LOW_CONFIDENCE = 0.10
TRIED_USES = 5
REDUNDANT_COSINE = 0.85

ROUNDING = 1e-9
"""A confidence that was reached in steps of 10 % may miss a bound by its last bits."""

Embed = Callable[[Sequence[str]], "NDArray[np.float32]"]
"""Texts in, unit vectors out, shape [len(texts), dimension]."""

Opposed = Callable[[str, str], bool]
"""Whether two texts that sound alike say opposite things."""


@dataclass(frozen=True)
class Usage:
    """When lessons were used last, in epochs."""

    epoch: int = 0
    """The present one."""
    last: Mapping[str, int] = field(default_factory=dict)
    """Epoch of the last use by experience id; one that is absent was never used, unless it counts uses."""
    waiting: frozenset[str] = frozenset()
    """Experiences with uses elsewhere that no version counts yet: they are at work now."""


class Suggestion(Record):
    """What an audit suggests."""

    audits: tuple[Audit, ...]
    operation: Delete | Merge
    sentence: str
    """The numbers behind it."""
    rationale: str = ""


@dataclass(frozen=True)
class Known:
    """What was proposed before about deleting and merging."""

    touched: frozenset[str] = frozenset()
    """Live experiences that an open proposal deletes or merges."""
    going: frozenset[str] = frozenset()
    """Those of them that would not be live afterwards."""
    refused: frozenset[frozenset[str]] = frozenset()
    """Experiences that a reviewer would not merge (two or more) or delete (one), with the texts they still have."""

    @classmethod
    def of(cls, proposals: Iterable[Proposal], live: Sequence[Experience]) -> Known:
        """Read off the proposals of a library, of whatever status."""
        texts = {e.id: e.text for e in live}
        open_: list[Delete | Merge] = []
        refused: set[frozenset[str]] = set()
        for proposal in proposals:
            operation = proposal.operation
            if not isinstance(operation, Delete | Merge):
                continue
            if proposal.status in PENDING:
                open_.append(operation)
            elif proposal.status == "rejected" and proposal.base_texts.items() <= texts.items():
                refused.add(frozenset(targets_of(operation)))
        touched, going = _moved(open_)
        return cls(touched & texts.keys(), going & texts.keys(), frozenset(refused))

    def joined(self, suggestions: Sequence[Suggestion]) -> Known:
        """As if these were open proposals, too."""
        touched, going = _moved([s.operation for s in suggestions])
        return Known(self.touched | touched, self.going | going, self.refused)

    def free(self, live: Sequence[Experience]) -> list[Experience]:
        """Those that may still be proposed to be merged."""
        return [e for e in live if e.id not in self.touched]

    def deletable(self, live: Sequence[Experience]) -> list[Experience]:
        """Those that may still be proposed to be deleted."""
        return [e for e in self.free(live) if frozenset((e.id,)) not in self.refused]


@dataclass(frozen=True)
class Rules:
    """What is looked for."""

    audits: tuple[Audit, ...] = AUDITS
    strategy: Strategy = "hybrid"
    """Of the capacity audit."""
    to: int | None = None
    """Lessons that the capacity audit leaves; None takes the strategy's own number (`core.compression.goal`)."""
    n_max: int = N_MAX
    """Live lessons that the library may hold."""
    seed: int = 0


def audit(
    live: Sequence[Experience], known: Known, usage: Usage, rules: Rules, embed: Embed, opposed: Opposed
) -> list[Suggestion]:
    """What the audits suggest, in the order of this module, each lesson in one suggestion at most.

    Args:
        live: the live experiences, in any order.
        known: what was proposed before.
        usage: when lessons were used last.
        rules: which audits, and how.
        embed: is asked only where embeddings are needed.
        opposed: which texts must not be merged, however similar they are.
    """
    live = sorted(live, key=in_order)
    found = [
        *(unused(known.deletable(live), usage) if "unused" in rules.audits else ()),
        *(doubtful(known.deletable(live)) if "confidence" in rules.audits else ()),
    ]
    found = _united(found)
    if "redundant" in rules.audits:
        found += redundant(known.joined(found).free(live), known.refused, embed, opposed)
    if "capacity" in rules.audits:
        found += over_capacity(live, known.joined(found), usage.epoch, rules, embed)
    return found


def unused(experiences: Iterable[Experience], usage: Usage) -> list[Suggestion]:
    """Lessons without a use in the last 20 epochs that are at least as old.

    One that counts uses, but whose last use nobody knows, is left alone.
    """
    found = []
    for e in experiences:
        last = usage.last.get(e.id)
        if (
            e.id in usage.waiting
            or (last is None and e.uses)
            or usage.epoch - max(e.epoch, last or 0) < UNUSED_EPOCHS
        ):
            continue
        was = f"never used since epoch {e.epoch}" if last is None else f"last used in epoch {last}"
        found.append(_delete("unused", e, f"{was}, and it is epoch {usage.epoch}"))
    return found


def doubtful(experiences: Iterable[Experience]) -> list[Suggestion]:
    """Lessons that were tried and did not help: c <= 0.10 after 5 uses."""
    return [
        _delete("confidence", e, f"confidence {e.confidence:.2f} after {e.uses} uses, {e.wins} of them wins")
        for e in experiences
        if e.uses >= TRIED_USES and e.confidence <= LOW_CONFIDENCE + ROUNDING
    ]


def redundant(
    experiences: Sequence[Experience],
    refused: frozenset[frozenset[str]],
    embed: Embed,
    opposed: Opposed,
) -> list[Suggestion]:
    """Pairs of one domain that may say the same, the most similar first, each lesson in one pair at most."""
    if len(experiences) < 2:
        return []
    pairs: list[tuple[float, int, int]] = []
    vectors = embed([e.text for e in experiences])
    for places in _by_domain(experiences).values():
        pairs += [
            (-round(cosine, 5), places[i], places[j])
            for i, j, cosine in near_duplicates(vectors[places], REDUNDANT_COSINE)
        ]
    taken: set[int] = set()
    found = []
    for similarity, i, j in sorted(pairs):
        a, b = experiences[i], experiences[j]
        if taken & {i, j} or frozenset((a.id, b.id)) in refused or opposed(a.text, b.text):
            continue
        taken |= {i, j}
        found.append(_merge(a, b, -similarity))
    return found


def over_capacity(
    live: Sequence[Experience], known: Known, epoch: int, rules: Rules, embed: Embed
) -> list[Suggestion]:
    """What a full library can best do without; what is to go anyway is counted as gone."""
    stay = goal(rules.strategy, len(live), rules.to, rules.n_max)
    surplus = len(live) - len(known.going) - stay
    candidates = known.deletable(live)
    if surplus <= 0 or not candidates:
        return []
    needs = rules.strategy in EMBEDDED
    goes = dropped(
        rules.strategy,
        candidates,
        embed([e.text for e in candidates]) if needs else None,
        to=len(candidates) - surplus,
        epoch=epoch,
        seed=rules.seed,
    )
    by_id = {e.id: e for e in candidates}
    what = f"{rules.strategy} compression from {len(live)} lessons to {stay}"
    return [_delete("capacity", by_id[d.experience_id], f"{what}: {d.why}") for d in goes]


def _moved(operations: Sequence[Delete | Merge]) -> tuple[frozenset[str], frozenset[str]]:
    """Ids that the operations name, and those of them that are not live afterwards."""
    touched = {i for o in operations for i in targets_of(o)}
    stays = {o.experience_ids[0] for o in operations if isinstance(o, Merge)}
    deleted = {o.experience_id for o in operations if isinstance(o, Delete)}
    return frozenset(touched), frozenset(touched - (stays - deleted))


def _delete(audit_: Audit, experience: Experience, sentence: str) -> Suggestion:
    operation = Delete(experience_id=experience.id)
    return Suggestion(audits=(audit_,), operation=operation, sentence=sentence)


def _merge(a: Experience, b: Experience, cosine: float) -> Suggestion:
    keeper, other = sorted((a, b), key=lambda e: (-e.confidence, -e.wins, -e.uses, in_order(e)))
    return Suggestion(
        audits=("redundant",),
        operation=Merge(experience_ids=(keeper.id, other.id), text=keeper.text),
        sentence=f"cosine {cosine:.3f} between {keeper.id} (confidence {keeper.confidence:.2f})"
        f" and {other.id} (confidence {other.confidence:.2f}), domain {keeper.domain}",
        rationale=f"Choose one text or write one; as it stands, that of {keeper.id} stays.\n"
        f"{keeper.id}: {keeper.text}\n{other.id}: {other.text}",
    )


def _united(suggestions: Iterable[Suggestion]) -> list[Suggestion]:
    """One suggestion for each lesson, with the reasons of all audits."""
    found: dict[tuple[str, ...], Suggestion] = {}
    for s in suggestions:
        ids = targets_of(s.operation)
        first = found.get(ids)
        if first is None:
            found[ids] = s
        else:
            both = {"audits": (*first.audits, *s.audits), "sentence": f"{first.sentence}; {s.sentence}"}
            found[ids] = first.model_copy(update=both)
    return list(found.values())


def _by_domain(experiences: Sequence[Experience]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for i, experience in enumerate(experiences):
        places.setdefault(experience.domain, []).append(i)
    return places
