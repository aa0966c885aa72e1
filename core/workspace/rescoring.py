"""Rewards made anew, from stored parts or with another verifier; and what a user said of an outcome.

Trajectories are never touched, and no rollout is sampled. What is judged is judged before anything is written; then
the whole run is written in one transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext

from pydantic import Field

from core.errors import InputError
from core.executor import LocalExecutor
from core.ports import Embedder, Progress, Verifier, silent
from core.record import Record
from core.reward import NAMED, RECORDED, SILENCE_S, unnamed
from core.rollout import Group, Rollout, Run, Score, Tally, Task, Trajectory
from core.settings import RewardConfig, VerifierSpec
from core.store import Store
from core.verifiers import make_verifier
from core.workspace.resettling import Resettling

MOVED = "The rewards of this run were made anew after its proposals were drawn; `winnow review list` says behind which."
AT_ONCE = 8
"""Rollouts of a group that are judged at once."""

Maker = Callable[[VerifierSpec], Verifier]
"""Builds the verifier of a spec."""

Judging = Callable[[Run], AbstractAsyncContextManager[Maker]]
"""Opens what verifiers need (an endpoint for a judge, a sandbox for tests) for as long as a run is rescored."""


class Rescored(Record):
    """What rescoring a run changed, or would change."""

    run_id: str
    reward: RewardConfig
    """How its rewards are made now."""
    dry_run: bool = False
    groups: int
    """Those with rollouts; groups that wait to be sampled are not touched."""
    newly_informative: tuple[str, ...] = ()
    no_longer_informative: tuple[str, ...] = ()
    status_changed: int = 0
    """Groups whose status is another one now, the two above included."""
    rewards_changed: int = 0
    """Rollouts."""
    judged: dict[str, int] = Field(default_factory=dict)
    """Rollouts that a verifier was asked about, by the name of the score."""
    undecided: dict[str, int] = Field(default_factory=dict)
    """Those of them where it could not tell."""
    before: Tally
    after: Tally
    notes: tuple[str, ...] = ()


class Accepted(Record):
    """What came of accepting or rejecting outcomes."""

    rollout_ids: tuple[str, ...]
    accepted: bool | None
    settled: tuple[str, ...] = ()
    """Groups that were settled anew, since the reward of their run counts acceptance."""
    status_changed: tuple[str, ...] = ()


class Rescoring:
    """Settling the groups of one workspace anew."""

    def __init__(
        self,
        store: Store,
        holding: Callable[[str], AbstractContextManager[None]],
        embedder: Callable[[], Embedder],
        judging: Judging,
    ) -> None:
        """
        Args:
            store: of the workspace.
            holding: holds the lock of a run: nobody may sample while its rewards are made anew.
            embedder: makes the one of the epistemic reward, when it is needed.
            judging: opens what verifiers need; used only where one is to score.
        """
        self._store = store
        self._holding = holding
        self._judging = judging
        self._resettling = Resettling(store, embedder)

    def rescore(
        self,
        run_id: str,
        actor: str,
        reward: RewardConfig | None = None,
        *,
        anew: Sequence[str] = (),
        dry_run: bool = False,
        progress: Progress = silent,
    ) -> Rescored:
        """Make the rewards and advantages of a run anew.

        Args:
            run_id: which run; recorded ones too.
            actor: who wants it.
            reward: how rewards are made from now on; None = as they were, from what is known now.
            anew: names of `reward.verifiers` whose scores are computed; a score of that name is replaced, all others
                stay.
            dry_run: tell what would change, and write nothing (embeddings and paid replies are kept all the same).
            progress: told of every group.

        Raises:
            NotFoundError: there is no such run.
            InputError: nothing of it was sampled yet, or the reward names a score that nobody gave.
            BusyError: another process works on it.
            ModelError: a judge's endpoint, or the embedder, cannot be used. Nothing was changed.
        """
        with self._holding(run_id):
            run = self._store.runs.get(run_id)
            wanted = run.config.reward if reward is None else reward
            group_ids = self._store.scores.group_ids(run_id)
            if not group_ids:
                raise InputError(f"{run_id} has no rollouts yet; there is nothing to rescore.")
            pairs = asyncio.run(self._made_anew(run, group_ids, wanted, anew, progress))
            found = self._report(run, wanted, pairs, anew, dry_run)
            if not dry_run:
                self._save(run, wanted, pairs, found, actor)
            return found

    def accept(self, rollout_ids: Sequence[str], accepted: bool | None, actor: str) -> Accepted:
        """Say of outcomes that a user accepted or rejected them, or take that back (None); all or nothing.

        Raises:
            NotFoundError: there is no such rollout; nothing was changed.
            InputError: a rollout broke off, so that there is no outcome; nothing was changed.
        """
        event = {True: "rollout.accepted", False: "rollout.rejected", None: "rollout.cleared"}[accepted]
        settled, changed = [], []
        with self._store.writing():
            group_ids = []
            for rollout_id in dict.fromkeys(rollout_ids):
                group_ids.append(self._store.scores.set_accepted(rollout_id, accepted))
                if (
                    accepted is not None
                    and self._store.groups.rollout(rollout_id, trajectory=False).error is not None
                ):
                    raise InputError(f"{rollout_id} broke off; there is no outcome to accept or to reject.")
                self._store.events.append(actor, event, rollout_id)
            for group_id in dict.fromkeys(group_ids):
                before = self._store.groups.get(group_id)
                run = self._store.runs.get(before.run_id)
                if "accepted" not in run.config.reward.by_component:
                    continue
                waited_s = self._resettling.waited_s(run)
                after = self._resettling.settled(before, run.config.reward, waited_s)
                self._store.scores.resettle(after)
                settled.append(group_id)
                changed += [group_id] if after.status != before.status else []
        return Accepted(
            rollout_ids=tuple(dict.fromkeys(rollout_ids)),
            accepted=accepted,
            settled=tuple(settled),
            status_changed=tuple(changed),
        )

    # --- parts ---

    async def _made_anew(
        self,
        run: Run,
        group_ids: Sequence[str],
        reward: RewardConfig,
        anew: Sequence[str],
        progress: Progress,
    ) -> list[tuple[Group, Group]]:
        """Every group as it was and as it is now, both without their trajectories."""
        waited_s, pairs = self._resettling.waited_s(run), []
        specs = {name: reward.verifiers[name] for name in anew}
        async with self._judging(run) if specs else nullcontext(make_verifier) as maker:
            for done, group_id in enumerate(group_ids):
                progress("rescoring", done, len(group_ids))
                before = self._store.groups.get(group_id)
                weighed = unnamed(before.rollouts, run.config.reward, reward, anew)
                judged = before.model_copy(update={"rollouts": weighed})
                if specs:
                    judged = await self._judged(judged, specs, maker)
                after = self._resettling.settled(judged, reward, waited_s)
                pairs.append((_slim(before), _slim(after)))
        progress("rescoring", len(group_ids), len(group_ids))
        _known(reward, [after for _, after in pairs])
        return pairs

    async def _judged(self, group: Group, specs: Mapping[str, VerifierSpec], maker: Maker) -> Group:
        """A group with the scores of these verifiers; rollouts that broke off are not judged."""
        task = self._task(group.task_id)
        verifiers = {name: maker(spec) for name, spec in specs.items()}

        async def judge(rollout: Rollout) -> tuple[str, dict[str, Score]]:
            return rollout.id, {n: await v.score(task, rollout.trajectory) for n, v in verifiers.items()}

        ended = [r for r in group.rollouts if r.error is None]
        scores = dict([pair async for pair in LocalExecutor().stream(judge, ended, at_once=AT_ONCE)])
        rollouts = [r.model_copy(update={"scores": r.scores | scores.get(r.id, {})}) for r in group.rollouts]
        return group.model_copy(update={"rollouts": tuple(rollouts)})

    def _task(self, task_id: str) -> Task:
        found = self._store.tasks.find(task_id)
        if found is None:
            raise AssertionError("groups refer to tasks by a foreign key")
        return found

    def _report(
        self,
        run: Run,
        reward: RewardConfig,
        pairs: Sequence[tuple[Group, Group]],
        anew: Sequence[str],
        dry_run: bool,
    ) -> Rescored:
        moved = [
            (b, a)
            for before, after in pairs
            for b, a in zip(before.rollouts, after.rollouts, strict=True)
            if b.reward != a.reward
        ]
        judged = {n: [r.scores[n] for _, g in pairs for r in g.rollouts if r.error is None] for n in anew}
        notes = [MOVED] if moved and run.extraction.proposed else []
        notes += _beside(reward, [r for _, after in pairs for r in after.rollouts])
        waited_s = self._resettling.waited_s(run)
        if reward.silence_accepts and "accepted" in reward.by_component and waited_s < SILENCE_S:
            notes.append(f"Silence counts as acceptance {SILENCE_S:g} s after a run is finished: not yet.")
        return Rescored(
            run_id=run.id,
            reward=reward,
            dry_run=dry_run,
            groups=len(pairs),
            newly_informative=tuple(a.id for b, a in pairs if b.status != "informative" == a.status),
            no_longer_informative=tuple(a.id for b, a in pairs if a.status != "informative" == b.status),
            status_changed=sum(b.status != a.status for b, a in pairs),
            rewards_changed=len(moved),
            judged={name: len(scores) for name, scores in judged.items()},
            undecided={n: count for n, s in judged.items() if (count := sum(v.value is None for v in s))},
            before=run.tally,
            after=_tally(run.tally, pairs),
            notes=tuple(notes),
        )

    def _save(
        self,
        run: Run,
        reward: RewardConfig,
        pairs: Sequence[tuple[Group, Group]],
        found: Rescored,
        actor: str,
    ) -> None:
        with self._store.writing():
            for before, after in pairs:
                if before != after:
                    self._store.scores.resettle(after)
            self._store.scores.set_reward(run.id, reward)
            self._store.events.append(
                actor,
                "run.rescored",
                run.id,
                reward=reward.model_dump(mode="json"),
                status_changed=found.status_changed,
                newly_informative=len(found.newly_informative),
                no_longer_informative=len(found.no_longer_informative),
                rewards_changed=found.rewards_changed,
                judged=dict(found.judged),
            )


def _beside(reward: RewardConfig, rollouts: Sequence[Rollout]) -> list[str]:
    """That recorded rewards count beside the scores of verifiers, where they do."""
    weights = {name: reward.verifier_weights.get(name, 1.0) for name in (RECORDED, *sorted(reward.verifiers))}
    count = sum(r.components.get(RECORDED) is not None and NAMED not in r.components for r in rollouts)
    if not count or not weights[RECORDED] or not any(weights[name] for name in reward.verifiers):
        return []
    told = ", ".join(f"{weight:g} {name}" for name, weight in weights.items())
    whose = "1 rollout has a recorded reward" if count == 1 else f"{count:,} rollouts have a recorded reward"
    return [
        f"{whose}, and verifiers count beside it ({told}); with weight 0 of `recorded` they speak instead."
    ]


def _slim(group: Group) -> Group:
    """A group without its trajectories: a run may have ten thousand of them."""
    rollouts = tuple(r.model_copy(update={"trajectory": Trajectory()}) for r in group.rollouts)
    return group.model_copy(update={"rollouts": rollouts})


def _known(reward: RewardConfig, groups: Sequence[Group]) -> None:
    """Refuse a weight for a score that nobody gave: a slip of the pen would silently weigh nothing."""
    there = {name for g in groups for r in g.rollouts for name in (*r.scores, *r.components)}
    if strange := sorted(set(reward.verifier_weights) - there):
        raise InputError(f"No rollout has a score {strange[0]!r}; there are: {', '.join(sorted(there))}.")


def _tally(before: Tally, pairs: Sequence[tuple[Group, Group]]) -> Tally:
    counts, reasons = before.model_dump(exclude={"reasons"}), dict(before.reasons)
    for old, new in pairs:
        for group, one in ((old, -1), (new, 1)):
            counts[group.status] += one
            if group.reason:
                reasons[group.reason] = reasons.get(group.reason, 0) + one
    return Tally(**counts, reasons={reason: n for reason, n in reasons.items() if n})
