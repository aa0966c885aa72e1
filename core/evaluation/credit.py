"""What a measured effect earns a lesson (DESIGN 2.7): one credit for each evaluation, with the rollouts it rests on.

A number that selected a proposal is too good on average and earns nothing; its estimate on fresh tasks does. What was
measured of a proposal counts for the lesson it became only where that was added with the very text that was tried.
"""

from __future__ import annotations

from core.credit import Credit
from core.experience import Add, Proposal
from core.proof import Effect, Evaluation, Measured


def worse(effect: Effect) -> bool:
    """Whether the whole interval lies below 0."""
    return effect.high is not None and effect.high < 0


def better(effect: Effect) -> bool:
    """Whether the whole interval lies above 0."""
    return effect.low is not None and effect.low > 0


def credit_of(one: Measured, experience_id: str) -> Credit:
    """The credit of a lesson for one measurement: better or worse where the whole interval lies on one side of 0."""
    rollouts = one.effect.tasks * one.samples
    return Credit(
        experience_id=experience_id,
        source=one.evaluation_id,
        followers=rollouts,
        others=rollouts,
        better=True if better(one.effect) else False if worse(one.effect) else None,
    )


def credit_of_trial(one: Measured, proposal: Proposal, evaluation: Evaluation) -> Credit | None:
    """What the trial of a proposal earns the lesson that it became; None where it became none, or was edited since."""
    if one.selected or proposal.status != "published" or proposal.experience_id is None:
        return None
    if not isinstance(proposal.effective, Add) or not tried_as_it_is(proposal, evaluation):
        return None
    return credit_of(one, proposal.experience_id)


def tried_as_it_is(proposal: Proposal, evaluation: Evaluation) -> bool:
    """Whether what an evaluation tried of a proposal is what it says now: it was not edited since."""
    tried = [
        op for arm in evaluation.config.arms if arm.proposal_ids == (proposal.id,) for op in arm.operations
    ]
    return tried == [proposal.effective]
