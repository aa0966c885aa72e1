"""The extractor that asks a model: stages 1 and 2 for each group as it comes, then stage 3 for the batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pydantic import Field

from core.advantage import mean_deviation
from core.experience import Experience
from core.extraction import replies
from core.extraction.consolidate import Consolidated, consolidate
from core.extraction.contrast import Contrast, SemanticAdvantage, contrast
from core.extraction.draft import Draft
from core.extraction.summarise import Summary, Unsummarised, summarise
from core.ports import ChatModel, Progress, silent
from core.rollout import Group, Task


class Learned(Consolidated):
    """What the three stages made of a batch of groups."""

    summaries: tuple[Summary, ...] = ()
    unsummarised: tuple[Unsummarised, ...] = ()
    advantages: dict[str, SemanticAdvantage] = Field(default_factory=dict)
    """S_i by rollout id."""
    learned: tuple[str, ...] = ()
    """Ids of the groups that were contrasted, in order; some may have taught nothing new."""
    failed: dict[str, str] = Field(default_factory=dict)
    """Why a group could not be contrasted, by group id."""
    uninformative: tuple[str, ...] = ()
    """Ids of the groups that cost no call: their own reason says why."""


class _Taught(NamedTuple):
    summaries: list[Summary | Unsummarised]
    contrast: Contrast


async def extract(
    groups: Sequence[tuple[Task, Group]],
    library: Sequence[Experience],
    model: ChatModel,
    *,
    run_id: str,
    seed: int = 0,
    progress: Progress = silent,
    beside: Sequence[Draft] = (),
    withhold_answer: bool = False,
    alike: Callable[[str, str], bool] | None = None,
) -> Learned:
    """Summarise, contrast, consolidate. A group goes on to its contrast as soon as its own summaries are in.

    Groups that are not informative cost no call; without an informative one there is none at all. What goes
    wrong in one group is data: it ends in `failed` with its reason, and the others go on. What stops every call
    is raised, and the same call again goes on from the replies in the cache.

    Args:
        groups: each group of the batch with its task; the result does not depend on which finishes first.
        library: the version that the rollouts were made with.
        model: who is asked; decides itself how many calls run at once.
        run_id: is written to what is quarantined.
        seed: of all sampling.
        progress: is told of summaries, groups and the consolidation.
        beside: drafts of another extractor for the same batch: they are consolidated with the model's own,
            come first, and are counted in `operations_in`.
        withhold_answer: keep the right answers from the model (self-contrast).
        alike: see `consolidate`.

    Raises:
        ModelUnavailableError: the endpoint cannot be used at all.
        BudgetError: the cap of the run would be passed.
        InputError: the key's variable is not set, or (TrustError) may not be read.
    """
    informative = [(task, group) for task, group in groups if group.status == "informative"]
    calls = Counter[str]()
    taught = await _taught(informative, library, model, calls, seed, progress, withhold_answer)
    contrasts = [t.contrast for t in taught]
    progress("Consolidating", 0, 1)
    result = await consolidate(
        [*beside, *(draft for c in contrasts for draft in c.drafts)],
        library,
        model if informative else None,
        strengths={g.id: mean_deviation([r.reward for r in g.rollouts]) for _, g in groups},
        run_id=run_id,
        seed=seed,
        alike=alike,
    )
    progress("Consolidating", 1, 1)
    calls.update(result.calls)
    summaries = [s for t in taught for s in t.summaries]
    set_aside = [q.model_copy(update={"run_id": run_id}) for c in contrasts for q in c.quarantined]
    return Learned(
        drafts=result.drafts,
        joined=result.joined,
        superseded=result.superseded,
        quarantined=(*set_aside, *result.quarantined),
        notes=(*(note for c in contrasts for note in c.notes), *result.notes),
        operations_in=result.operations_in + sum(c.operations_in - len(c.drafts) for c in contrasts),
        calls=dict(sorted(calls.items())),
        summaries=tuple(s for s in summaries if isinstance(s, Summary)),
        unsummarised=tuple(s for s in summaries if isinstance(s, Unsummarised)),
        advantages={a.rollout_id: a for c in contrasts for a in c.advantages},
        learned=tuple(c.group_id for c in contrasts if not c.error),
        failed={c.group_id: c.error for c in contrasts if c.error},
        uninformative=tuple(g.id for _, g in groups if g.status != "informative"),
    )


async def _taught(
    groups: Sequence[tuple[Task, Group]],
    library: Sequence[Experience],
    model: ChatModel,
    calls: Counter[str],
    seed: int,
    progress: Progress,
    withhold_answer: bool,
) -> list[_Taught]:
    summarised = contrasted = 0
    total = sum(r.outcome == "scored" for _, g in groups for r in g.rollouts)

    def one_more() -> None:
        nonlocal summarised
        summarised += 1
        progress("Summarising rollouts", summarised, total)

    async def one(task: Task, group: Group) -> _Taught:
        nonlocal contrasted
        summaries = await summarise(
            task,
            group,
            library,
            model,
            seed=seed,
            withhold_answer=withhold_answer,
            calls=calls,
            done=one_more,
        )
        found = await contrast(
            task, group, summaries, library, model, seed=seed, withhold_answer=withhold_answer, calls=calls
        )
        contrasted += 1
        progress("Contrasting groups", contrasted, len(groups))
        return _Taught(summaries, found)

    return await replies.all_of(one(task, group) for task, group in groups)
