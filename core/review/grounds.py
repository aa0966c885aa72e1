"""What a decision rests on besides the text: where a proposal is from, how much was counted, who says the same."""

from __future__ import annotations

from core.errors import NotFoundError
from core.experience import BASE_FIELDS, Merge, Proposal, targets_of, text_of
from core.library import Library
from core.record import Record
from core.review.near import NearOnes, near
from core.review.outdated import outdated, way_out
from core.store import Store
from core.store.proposals import Open
from core.words import normalise

LEAST_GROUPS = 2
"""One group alone can never be significant (DESIGN 2.5)."""

LEAST_SIDE = 5
"""Winners, and losers, that a count should rest on (DESIGN 5: support of at least 5)."""

NEAR_SHOWN = 5
EXAMPLES_SHOWN = 4


class Rival(Record):
    """Another proposal, undecided or staged, that changes the same, or says the same."""

    proposal_id: str
    status: str
    op: str
    text: str
    shared: tuple[str, ...]
    """Experiences that both change."""
    same: bool
    """Whether both say the same, in the same domain."""


class Example(Record):
    """A rollout that it was drawn from."""

    rollout_id: str
    reward: float | None
    advantage: float | None
    says: str
    """Its semantic advantage with the deciding step, else the steps that it took; empty where there is neither."""


class Grounds(Record):
    """All of it."""

    origin: str
    groups: int
    rollouts: int
    """Named as examples."""
    thin: str
    """Why little was counted for it; empty where enough was."""
    outdated: str = ""
    """That rewards behind it changed since it was drawn; empty where they did not."""
    way_out: str = ""
    """What can be done about that."""
    examples: tuple[Example, ...] = ()
    rivals: tuple[Rival, ...] = ()
    across: str = ""
    """Of a merge: that it takes lessons of several domains or kinds together; empty where it does not."""
    near: NearOnes = NearOnes()
    """Lessons that are near to its text, besides those that it changes."""


def grounds(store: Store, proposal: Proposal) -> Grounds:
    """Look up what a decision rests on; nothing is changed, and no model is asked."""
    found, text = proposal.evidence, text_of(proposal.effective)
    changed = outdated(store, [proposal]).get(proposal.id, "")
    return Grounds(
        origin=origin(proposal),
        groups=len(found.group_ids),
        rollouts=len(found.rollout_ids),
        thin=thin(proposal),
        outdated=changed,
        way_out=way_out(proposal) if changed else "",
        examples=tuple(_example(store, i) for i in found.rollout_ids[:EXAMPLES_SHOWN]),
        rivals=rivals(proposal, store.proposals.open()),
        across=across(proposal, store.versions.library()),
        near=near(store, text, without=targets_of(proposal.operation), k=NEAR_SHOWN) if text else NearOnes(),
    )


def origin(proposal: Proposal) -> str:
    """Where a proposal came from, in words."""
    match proposal.extractor:
        case "person":
            return "from the quarantine, by hand" if proposal.raw_reply else "by hand"
        case "correction":
            return f"a correction of {', '.join(proposal.evidence.rollout_ids[:1])}, by hand"
        case "pack":
            return "imported from another library"
        case "llm":
            return f"run {proposal.run_id}, by a model" if proposal.run_id else "by a model"
        case "evidence" if proposal.run_id:
            return f"run {proposal.run_id}, by what was counted"
        case _:
            return "an audit of the library"


def thin(proposal: Proposal) -> str:
    """Why little was counted for a proposal; empty where enough was, or where nothing is to be counted."""
    if proposal.run_id is None or proposal.extractor not in ("evidence", "llm"):
        return ""
    if not (findings := proposal.evidence.findings):
        return (
            "nothing was counted for it"
            if proposal.extractor == "evidence"
            else "a model's reading, not a count"
        )
    best = min(findings, key=lambda f: f.p_corrected)
    if best.groups < LEAST_GROUPS:
        return "counted in one group, in which nothing can be significant"
    if min(best.winners, best.losers) < LEAST_SIDE:
        return f"{best.winners} winners and {best.losers} losers are few"
    return ""


def across(proposal: Proposal, library: Library) -> str:
    """Says that a merge takes lessons of several domains or kinds together: the first one's hold for all of them."""
    if not isinstance(proposal.operation, Merge):
        return ""
    found = [library.experiences[i] for i in proposal.operation.experience_ids if i in library.experiences]
    said = []
    for name in BASE_FIELDS:
        values = [getattr(e, name) for e in found]
        if len(set(values)) > 1:
            others = ", ".join(
                f"{e.id} ({v})" for e, v in zip(found[1:], values[1:], strict=True) if v != values[0]
            )
            said.append(f"the {name} of {found[0].id}, {values[0]}, takes the place of that of {others}")
    return " and ".join(said)


def rivals(proposal: Proposal, others: list[Open]) -> tuple[Rival, ...]:
    """Which of the open proposals change the same, or say the same; the staged ones first."""
    targets, text = set(targets_of(proposal.operation)), text_of(proposal.effective)
    said = normalise(text) if text else ""
    domain = getattr(proposal.operation, "domain", None) or ""
    found = []
    for other in others:
        shared = tuple(sorted(targets & set(other.targets)))
        same = bool(said) and other.domain == domain and normalise(other.text) == said
        if other.id != proposal.id and (shared or same):
            found.append(
                Rival(
                    proposal_id=other.id,
                    status=other.status,
                    op=other.op,
                    text=other.text,
                    shared=shared,
                    same=same,
                )
            )
    return tuple(sorted(found, key=lambda r: r.status != "approved"))


def _example(store: Store, rollout_id: str) -> Example:
    try:
        found = store.trajectories.head(rollout_id)
    except NotFoundError:
        return Example(rollout_id=rollout_id, reward=None, advantage=None, says="(no longer kept)")
    return Example(
        rollout_id=rollout_id,
        reward=found.reward,
        advantage=found.advantage,
        says=found.semantic or _steps(store, rollout_id),
    )


def _steps(store: Store, rollout_id: str) -> str:
    """The steps that it took: the trajectory, which may be long, is opened for them alone."""
    steps = store.trajectories.get(rollout_id).steps
    return ", ".join(f"{n}. {s.told}" for n, s in enumerate(steps, 1))
