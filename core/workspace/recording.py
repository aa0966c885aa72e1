"""The second half of an import of recorded rollouts: from attempts in a spool to groups of a run.

1. Each portion of groups is settled and saved in one transaction: whoever reads sees whole groups only.
2. Attempts of a group that is here already go into it, and it is settled anew with the reward of its run. One that
   went on keeps its rollout's id, and with it what people said of it; what a model said of it is said anew. All other
   groups go into the run that holds what the files brought before, else into a new one.
3. What is saved is known by the content of its attempts: an import that was killed goes on with what is missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from core.errors import InputError
from core.executor import LocalExecutor
from core.importers.attempt import Attempt
from core.importers.going_on import goes_on
from core.importers.report import SHOWN, ImportOptions
from core.ports import Progress
from core.reward import NAMED, RECORDED
from core.rollout import Group, Rollout, Run, Score, Task
from core.settings import RewardConfig, RunConfig
from core.store import Store
from core.store.database import Row
from core.store.recorded import RecordedAttempt
from core.store.spool import Spool
from core.verifiers import Outside, make_verifier
from core.workspace.grading import Regrade, recorded, regrade_of, regraded, to_verify
from core.workspace.placing import task_coming, task_here
from core.workspace.resettling import Resettling

JUDGED_AT_ONCE = 8
"""Recorded rollouts that are verified at once."""
PORTION, PORTION_SIZE = 200, 20_000_000
"""Groups, and characters of their attempts, that are saved in one transaction."""
SAVING = "saving"
"""Fact of a spool: its groups are being saved."""


class Came(NamedTuple):
    """One attempt on its way in, with the row that tells of it."""

    row: Row
    attempt: Attempt
    scores: dict[str, Score]


@dataclass
class Into:
    """Where new groups go, and who brings them."""

    run_id: str | None
    """None = a run of their own, which is made with the first of them."""
    source: str
    actor: str
    make: Callable[[], str]
    """Makes that run."""


@dataclass
class _Due:
    """One group on its way in."""

    key: str
    task: Task
    task_key: str
    group_id: str | None
    """Of the group that is here already."""
    run_id: str | None
    """The run of that group."""
    fresh: bool = False
    """Whether it is made now."""
    came: list[Came] = field(default_factory=list)
    went_on: dict[str, Came] = field(default_factory=dict)
    """Rollout -> its attempt, which went on since."""
    regraded: dict[str, Regrade] = field(default_factory=dict)
    """By rollout that is known."""
    known: list[tuple[int, str]] = field(default_factory=list)
    """(place in the spool, rollout) of attempts that another import brought since the files were read."""


@dataclass
class Recording:
    """Brings what a spool holds into a workspace."""

    store: Store
    spool: Spool
    options: ImportOptions
    outside: Outside
    resettling: Resettling
    holding: Callable[[str], None]
    """Holds a run until the import is done."""
    runs: dict[str, Run] = field(default_factory=dict)
    """Those that are held, each as it was when it was taken."""
    moved: list[str] = field(default_factory=list)
    regraded: int = 0
    _verdicts: dict[int, Score] = field(default_factory=dict)
    """Of attempts of this portion, by their place in the spool."""
    _again: bool = False
    """Whether this import was interrupted while it saved."""

    @property
    def regrades(self) -> bool:
        """Whether known attempts get the reward that the user chose now."""
        return self.options.says_reward

    def hold(self, run_ids: Iterable[str]) -> None:
        """Hold runs, so that nobody samples, rescores or imports into them until this one is done.

        In one order, so that no two imports wait for each other.

        Raises:
            BusyError: another process works on one, and goes on doing so.
        """
        for run_id in sorted(set(run_ids) - self.runs.keys(), key=lambda run_id: (len(run_id), run_id)):
            self.holding(run_id)
            self.runs[run_id] = self.store.runs.brief(run_id)

    def save(self, into: Into, progress: Progress) -> None:
        """Save all groups that get something new.

        Raises:
            InputError: a task cannot be taken in, or a reward is no finite number.
            BusyError: another process works on a run of one of them.
            ModelUnavailableError: the reward of a run needs the embedder, which cannot be had.
        """
        self._again = bool(self.spool.fact(SAVING))
        self.spool.set_fact(SAVING, True)
        self.spool.commit()
        total = self.spool.count_due(self.regrades)
        done = 0
        progress("groups", done, total)
        for portion in self._portions():
            self._save(portion, into)
            done += len(portion)
            progress("groups", done, total)

    def _portions(self) -> Iterator[list[Row]]:
        portion, size = list[Row](), 0
        for row in self.spool.due_groups(self.regrades):
            portion.append(row)
            size += row["size"]
            if len(portion) >= PORTION or size >= PORTION_SIZE:
                yield portion
                portion, size = [], 0
        if portion:
            yield portion

    def _save(self, portion: Sequence[Row], into: Into) -> None:
        self._verdicts.clear()
        due = [self._due(row) for row in portion]  # verifying may take long: before the write lock is held
        self.hold(d.run_id for d in due if d.run_id is not None)
        self._prepare(due, into)
        with self.store.writing():
            due = [self._as_now(d, row) for d, row in zip(due, portion, strict=True)]
            tasks = {d.task.id: d.task for d in due if d.came}
            added = self.store.tasks.add(list(tasks.values()), [0] * len(tasks), into.source, into.actor)
            if added.refused:
                raise InputError(f"{into.source}: {added.refused[0].reason}.")
            self.moved += added.moved[: SHOWN - len(self.moved)]
            fresh = [d for d in due if d.group_id is None and d.came]
            run_id = self._run(into) if fresh else into.run_id
            ids = self.store.runs.append(run_id, [d.task for d in fresh]) if run_id and fresh else []
            for d, group_id in zip(fresh, ids, strict=True):
                d.group_id, d.run_id, d.fresh = group_id, run_id, True
            saved = [(d, self._group(d, into)) for d in due]
        into.run_id = run_id
        for d, group in saved:
            informative = group is not None and group.status == "informative"
            self.spool.group_done(d.key, informative=informative, grown=not d.fresh)
            saved_now = group.rollouts[len(group.rollouts) - len(d.came) :] if group else ()
            self.spool.became((one.row["seq"], r.outcome) for one, r in zip(d.came, saved_now, strict=True))
            self.spool.verify(one.row["seq"] for one in d.came if one.row["seq"] in self._verdicts)
            self.spool.known_by_now(d.known)
        self.spool.commit()

    def _run(self, into: Into) -> str:
        """The run that new groups go into, in an open transaction."""
        run_id = into.run_id or into.make()
        self.hold([run_id])
        return run_id

    def _prepare(self, due: Sequence[_Due], into: Into) -> None:
        """Do what asks a model before the write lock is held."""
        for d in due:
            if run_id := d.run_id or into.run_id:
                new = [*d.came, *d.went_on.values()]
                answers = [one.attempt.trajectory.answer for one in new]
                self.resettling.prepare(answers, self.runs[run_id].config.reward)

    def _as_now(self, due: _Due, row: Row) -> _Due:
        """What is due of a group, in an open transaction: another import may have been faster."""
        same = self.store.recorded.group_of(due.key) == due.group_id
        return due if same and not any(self._there(one.row) for one in due.came) else self._due(row)

    def _there(self, row: Row) -> str | None:
        """The rollout that an attempt is by now: by its content, or in another state by its own id."""
        recorded = self.store.recorded
        there = row["rollout_id"] or recorded.rollout_of(row["identity"])
        if there is None and row["own_id"] is not None:
            there = recorded.rollout_of_id(row["own_id"])
        return there

    def _due(self, row: Row) -> _Due:
        recorded = self.store.recorded
        group_id = recorded.group_of(row["key"])
        due = _Due(
            key=row["key"],
            task=(
                task_coming(self.store, self.spool, self.options, row["task"])
                if group_id is None
                else task_here(self.store, group_id)
            ),
            task_key=row["task"],
            group_id=group_id,
            run_id=recorded.run_of(row["key"]),
        )
        for each in self.spool.attempts(row["key"]):
            there = self._there(each)
            if there is None:
                due.came.append(self._came(each))
                continue
            if each["fate"] == "new" and not self._saved_before(each, there):
                due.known.append((each["seq"], there))
            saved = recorded.rollout_of(each["identity"])
            if saved is None and (each["went_on"] or each["rollout_id"] is None):
                due.went_on[there] = self._came(each)
            elif regrade := regrade_of(each, self.regrades):
                due.regraded[there] = regrade
        due.came = self._judged(due.task, due.came)
        due.went_on = dict(zip(due.went_on, self._judged(due.task, list(due.went_on.values())), strict=True))
        return due

    def _came(self, row: Row) -> Came:
        attempt = Attempt.model_validate_json(self.spool.body(row["seq"]))
        return Came(row, attempt, dict(attempt.verdicts))

    def _saved_before(self, row: Row, rollout_id: str) -> bool:
        """Whether this very import saved an attempt before it was interrupted."""
        return (
            self._again and self.store.recorded.rollout_of_place(row["read_as"], row["place"]) == rollout_id
        )

    def _judged(self, task: Task, came: list[Came]) -> list[Came]:
        """With the verdicts of the task's verifier on those that came without reward and scores, where it has one."""
        seqs = set(to_verify([one.row for one in came], self.options))
        if not seqs or task.verifier.kind == "none":
            return came
        todo = [one for one in came if one.row["seq"] in seqs - self._verdicts.keys()]
        self._verdicts |= asyncio.run(_verdicts(task, todo, self.outside)) if todo else {}
        return [
            one._replace(scores={task.verifier.kind: self._verdicts[seq]})
            if (seq := one.row["seq"]) in seqs
            else one
            for one in came
        ]

    def _group(self, due: _Due, into: Into) -> Group | None:
        """Save one group, in an open transaction; None where nothing of it is to be saved."""
        if due.group_id is None or due.run_id is None:
            return None
        run = self.runs.get(due.run_id) or self.store.runs.brief(due.run_id)
        if due.fresh:
            group = Group(id=due.group_id, run_id=run.id, task_id=due.task.id)
        else:
            group = self.store.groups.get(due.group_id)
        there, config = group.rollouts, run.config.reward
        graded = tuple(regraded(r, due.regraded.get(r.id), config) for r in there)
        self.regraded += sum(a is not b for a, b in zip(there, graded, strict=True))
        gone_on = tuple(self._gone_on(r, due, into, config) for r in graded)
        if not due.came and gone_on == there:
            return group
        numbers = _numbers(due.came, {r.replicate for r in there})
        new = tuple(
            _rollout(group.id, due.task.id, number, one, config)
            for one, number in zip(due.came, numbers, strict=True)
        )
        # nobody could have rejected what comes only now
        waited_s = 0.0 if new or due.went_on else self.resettling.waited_s(run)
        grown = group.model_copy(update={"rollouts": gone_on + new})
        settled = self.resettling.settled(grown, config, waited_s)
        same = [a.id for a, b in zip(graded, gone_on, strict=True) if a is b]
        self.store.groups.save(settled, kept=same)
        self.store.recorded.keep_task(due.task_key, due.task.id)
        self.store.recorded.keep_group(due.key, group.id)
        for one, rollout in zip(due.came, new, strict=True):
            self.store.recorded.keep(_kept(one, rollout.id, due.key, into.source))
        return settled

    def _gone_on(self, rollout: Rollout, due: _Due, into: Into, config: RewardConfig) -> Rollout:
        """The rollout as its attempt is now: it went on, or was tried again; itself where another import was faster."""
        one = due.went_on.get(rollout.id)
        if one is None:
            return rollout
        retried = rollout.error is not None and one.attempt.error is None
        if not retried and not goes_on(rollout.trajectory, one.attempt.trajectory):
            return rollout
        later = _later(rollout, one, config)
        steps, messages = len(later.trajectory.steps), len(later.trajectory.messages)
        self.store.events.append(
            into.actor,
            "rollout.went_on",
            rollout.id,
            source=into.source,
            retried=retried,
            messages=[len(rollout.trajectory.messages), messages],
            steps=[len(rollout.trajectory.steps), steps],
        )
        self.store.recorded.replace(_kept(one, rollout.id, due.key, into.source))
        return later


async def _verdicts(task: Task, came: Sequence[Came], outside: Outside) -> dict[int, Score]:
    verifier = make_verifier(task.verifier, outside)

    async def judge(one: Came) -> tuple[int, Score]:
        return one.row["seq"], await verifier.score(task, one.attempt.trajectory)

    return {seq: score async for seq, score in LocalExecutor().stream(judge, came, at_once=JUDGED_AT_ONCE)}


def _numbers(came: Sequence[Came], taken: set[int]) -> list[int]:
    """The number of each attempt in its group: the file's own where it is free, else the first free one."""
    numbers: dict[int, int] = {}
    for place, one in enumerate(came):
        if (own := one.row["repeat"]) is not None and 0 <= own < 10**9 and own not in taken:
            numbers[place] = own
            taken.add(own)
    following = 0
    for place in range(len(came)):
        if place not in numbers:
            while following in taken:
                following += 1
            numbers[place] = following
            taken.add(following)
    return [numbers[place] for place in range(len(came))]


def _rollout(group_id: str, task_id: str, number: int, one: Came, config: RewardConfig) -> Rollout:
    attempt = one.attempt
    return Rollout(
        id=f"{group_id}-{number}",
        group_id=group_id,
        task_id=task_id,
        replicate=number,
        trajectory=attempt.trajectory,
        scores=one.scores,
        components=recorded(one.row["reward"], bool(one.row["said"]), config),
        usage=attempt.usage,
        error=attempt.error,
        model=attempt.model,
        duration_s=attempt.duration_s,
    )


def _later(rollout: Rollout, one: Came, config: RewardConfig) -> Rollout:
    """A rollout whose attempt went on: its id, its number, and what people said of it stay."""
    now = _rollout(rollout.group_id, rollout.task_id, rollout.replicate, one, config)
    before = {name: value for name, value in rollout.components.items() if name in (RECORDED, NAMED)}
    stays = {
        "id": rollout.id,
        "accepted": rollout.accepted,
        "components": now.components or before,
        "injected": rollout.injected,
    }
    return now.model_copy(update=stays)


def _kept(one: Came, rollout_id: str, group_key: str, source: str) -> RecordedAttempt:
    return RecordedAttempt(
        identity=one.row["identity"],
        rollout_id=rollout_id,
        group_key=group_key,
        scope=one.row["scope"],
        repeat=one.row["repeat"],
        own_id=one.row["own_id"],
        scores={name: seen.value for name, seen in one.attempt.scores.items()},
        metadata=one.attempt.metadata | ({"agent": one.attempt.agent} if one.attempt.agent else {}),
        source=source,
        file=one.row["read_as"],
        place=one.attempt.place,
    )


def saved_run(store: Store, request: str, source: str, models: str, actor: str) -> str:
    """A new run for recorded rollouts, under way; its groups are added one by one. Inside an open transaction."""
    run_id = store.runs.create(
        RunConfig(),
        [],
        [],
        request=request,
        kind="recorded",
        library_version=0,
        model=models,
        note=source,
        actor=actor,
    )
    store.runs.set_status(run_id, "running", actor)
    return run_id
