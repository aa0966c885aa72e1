"""The extractor that asks a model: stages 1 and 2 of each group as it comes, then stage 3 for the batch."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from pydantic import Field

from core.experience import Experience
from core.extraction.consolidate import Consolidated, Near, consolidate
from core.extraction.contrast import Contrast, Nearest, SemanticAdvantage, contrast
from core.extraction.draft import Draft
from core.extraction.summarise import Summary, Unsummarised, summarise
from core.ports import ChatModel, Progress, silent
from core.rollout import Group, Task

ATTEMPT_STRIDE = 100_003
"""How far apart the seeds of two attempts at the same group lie."""


class Taught(Contrast):
    """What one group taught, with its summaries; it holds no trajectory, so that a long run stays small."""

    summaries: tuple[Summary, ...] = ()
    unsummarised: tuple[Unsummarised, ...] = ()
    calls: dict[str, int] = Field(default_factory=dict)
    """Model calls by stage: summarise, contrast, retry; "cached" of them cost nothing."""


class Learned(Consolidated):
    """What the three stages made of a batch of groups."""

    taught: tuple[Taught, ...] = ()
    """In the order of the group ids, whichever was finished first."""

    @property
    def advantages(self) -> dict[str, SemanticAdvantage]:
        """S_i by rollout id."""
        return {a.rollout_id: a for t in self.taught for a in t.advantages}

    @property
    def learned(self) -> tuple[str, ...]:
        """Ids of the groups that were contrasted; some may have taught nothing new."""
        return tuple(t.group_id for t in self.taught if not t.error)

    @property
    def failed(self) -> dict[str, str]:
        """Why a group could not be contrasted, by group id."""
        return {t.group_id: t.error for t in self.taught if t.error}


class Teacher:
    """Draws lessons from groups with the help of a model.

    `teach` may be called for many groups at once, each as soon as its rollouts are in; only `consolidate` waits for
    all of a batch. What goes wrong in one group is data: it ends in `Taught.error`, and the others go on. What stops
    every call is raised, and the same call again goes on from the replies in the cache.

    Args:
        library: the version that the rollouts were made with.
        model: who is asked; decides itself how many calls run at once.
        run_id: is written to what is quarantined.
        seed: of all sampling.
        withhold_answer: keep the right answers from the model (self-contrast).
        near: finds texts that may say the same: decides what the model is asked about, never what is merged.
            None compares their words.
        nearest: (query, experiences, k) -> the k of them that matter most for the query, best first: chooses from
            a library that is too large to be shown whole. None compares their words.
        progress: is told of summaries, groups and the consolidation; the totals grow as groups come in.
    """

    def __init__(
        self,
        library: Sequence[Experience],
        model: ChatModel,
        *,
        run_id: str,
        seed: int = 0,
        withhold_answer: bool = False,
        near: Near | None = None,
        nearest: Nearest | None = None,
        progress: Progress = silent,
    ) -> None:
        self._library = tuple(library)
        self._model = model
        self._run_id = run_id
        self._seed = seed
        self._withhold_answer = withhold_answer
        self._near = near
        self._nearest = nearest
        self._progress = progress
        self._begun: Counter[str] = Counter()
        self._ended: Counter[str] = Counter()

    async def teach(self, task: Task, group: Group, *, attempt: int = 0) -> Taught:
        """Stages 1 and 2 of one informative group: at most G summaries and one contrast, retries apart.

        A bad reply is never raised: `Taught.error` says why the group could not be contrasted.

        Args:
            task: what was tried.
            group: its rollouts.
            attempt: a higher number asks for fresh replies, where those in the cache could not be used.

        Raises:
            ValueError: the group is not informative: it must not cost a call (DESIGN 3.10).
            ModelUnavailableError, BudgetError, InputError, StoppedError: no call can be made at all.
        """
        if group.status != "informative":
            raise ValueError(f"group {group.id} is {group.status}: only an informative one teaches")
        self._begun.update(summaries=sum(r.outcome == "scored" for r in group.rollouts), groups=1)
        calls = Counter[str]()
        seed = self._seed + attempt * ATTEMPT_STRIDE
        summaries = await summarise(
            task,
            group,
            self._library,
            self._model,
            seed=seed,
            withhold_answer=self._withhold_answer,
            calls=calls,
            done=lambda: self._tell("Summarising rollouts", "summaries"),
        )
        found = await contrast(
            task,
            group,
            summaries,
            self._library,
            self._model,
            seed=seed,
            withhold_answer=self._withhold_answer,
            nearest=self._nearest,
            calls=calls,
        )
        self._tell("Contrasting groups", "groups")
        return Taught(
            **dict(found),
            summaries=tuple(s for s in summaries if isinstance(s, Summary)),
            unsummarised=tuple(s for s in summaries if isinstance(s, Unsummarised)),
            calls=dict(sorted(calls.items())),
        )

    async def consolidate(
        self, taught: Sequence[Taught], *, beside: Sequence[Draft] = (), strengths: Mapping[str, float]
    ) -> Learned:
        """Stage 3 of a batch: at most one call, compressions and retries apart; none with nothing to reconcile.

        Args:
            taught: of all informative groups of the batch, in any order; without any there is no call (DESIGN 3.10).
            beside: drafts of another extractor for the same batch: they are consolidated with the model's own, come
                first, and are counted in `operations_in`.
            strengths: mean |r_i - mean| of each group by its id (`core.advantage.mean_deviation`).

        Raises:
            ModelUnavailableError, BudgetError, InputError, StoppedError: no call can be made at all.
        """
        taught = sorted(taught, key=lambda t: _natural(t.group_id))
        self._progress("Consolidating", 0, 1)
        result = await consolidate(
            [*beside, *(draft for t in taught for draft in t.drafts)],
            self._library,
            self._model if taught else None,
            strengths=strengths,
            run_id=self._run_id,
            seed=self._seed,
            near=self._near,
        )
        self._progress("Consolidating", 1, 1)
        calls = Counter(result.calls)
        for t in taught:
            calls.update(t.calls)
        set_aside = [q.model_copy(update={"run_id": self._run_id}) for t in taught for q in t.quarantined]
        return Learned(
            **dict(result)
            | {
                "quarantined": (*set_aside, *result.quarantined),
                "notes": (*(note for t in taught for note in t.notes), *result.notes),
                "operations_in": result.operations_in + sum(t.operations_in - len(t.drafts) for t in taught),
                "calls": dict(sorted(calls.items())),
            },
            taught=tuple(taught),
        )

    def _tell(self, what: str, which: str) -> None:
        self._ended[which] += 1
        self._progress(what, self._ended[which], self._begun[which])


def _natural(group_id: str) -> list[tuple[int, str]]:
    """Sorts numbers in ids by their value: g2 before g10."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", group_id)]
