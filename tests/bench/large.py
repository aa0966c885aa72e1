"""A workspace with a long history: what the pages are measured on.

    python -m tests.bench.large            makes it and its tenth, or says where they are already
    python -m tests.bench.large --check    lets the doctor look at both, too

All of it goes through the store, a transaction a run or a version: what the doctor would not find sound cannot come of
it. It is made once a content stamp, in the system's folder for temporary files; who measures takes a copy, since
approving changes it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from core.credit import Credit
from core.experience import (
    KINDS,
    Add,
    Delete,
    Evidence,
    Experience,
    Finding,
    Merge,
    Modify,
    Operation,
    Proposal,
    targets_of,
)
from core.library import Library
from core.llm.ledger import Entry
from core.rollout import Extraction, Group, Message, Rollout, Score, Split, Step, Task, Trajectory, Usage
from core.settings import RewardConfig, RunConfig, VerifierSpec
from core.settling import settle
from core.store.integrity import known_migrations
from core.workspace import Workspace

DOMAINS = tuple(
    f"{area} {part}" for area in ("sums", "tables", "letters", "files", "dates") for part in range(1, 5)
)
PEOPLE = ("ann", "bert", "chandra", "dilek")
SITUATIONS = (
    "a total is asked for",
    "two sources disagree",
    "a path is given",
    "the unit is missing",
    "a name repeats",
)
THINGS = (
    "header",
    "second column",
    "last row",
    "file list",
    "date",
    "unit",
    "footnote",
    "sign",
    "total",
    "key",
)
VERBS = ("read", "check", "copy", "count", "compare", "list", "round", "quote", "sort", "open")
REASONS = (
    "most wrong answers came from there",
    "others guessed it",
    "it is often cut off",
    "it changes the result",
)
REWARDS: tuple[tuple[float | None, ...], ...] = (
    (1, 1, 0, 0.5, 0),
    (1, 0.5, 0.5, 0, 0),
    (1, 1, 1, 1, 1),
    (0, 0, 0, 0, 0),
    (1, 1, 1, 0.5, 1),
    (0.5, None, 0, 0.5, 1),
    (None, None, None, None, None),
    (0, 0, 1, 0, 0),
)
"""Rewards of a group's rollouts; None where one broke off."""
AGENT_EVERY = 5
"""Every so many-th run is of agents."""
FIRST = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Size:
    """How much of everything."""

    runs: int = 40
    groups: int = 500
    """Of each run; five rollouts each."""
    tasks: int = 5_000
    versions: int = 500
    experiences: int = 10_000
    waiting: int = 1_000
    """Proposals that nobody decided on."""
    staged: int = 12
    events: int = 20_000

    @property
    def rollouts(self) -> int:
        return self.runs * self.groups * len(REWARDS[0])


LARGE = Size()
TENTH = replace(LARGE, groups=LARGE.groups // 10)
"""A tenth of the rollouts, and as much of everything else: tells what grows with rollouts."""


def made(size: Size) -> Path:
    """Folder of the workspace of a size, made if it is not there yet; not to be changed: see `copied`."""
    stamp = hashlib.sha256()
    stamp.update(Path(__file__).read_bytes())
    stamp.update(json.dumps([asdict(size), known_migrations()]).encode())
    folder = Path(tempfile.gettempdir()) / f"winnow-bench-{stamp.hexdigest()[:12]}"
    if not folder.exists():
        unfinished = Path(tempfile.mkdtemp(prefix="winnow-bench-"))
        fill(unfinished / "ws", size)
        (unfinished / "ws").rename(folder)
        shutil.rmtree(unfinished)
    return folder


def copied(size: Size, target: Path) -> Path:
    """A copy of that workspace, for a measurement that changes it."""
    shutil.copytree(made(size), target)
    return target


def fill(folder: Path, size: Size) -> Workspace:
    """Write the whole history, in the order in which it would have happened."""
    history = _History(Workspace(folder, _Clock()), size)
    history.write()
    return history.workspace


class _Clock:
    """A second more each time that it is asked, so that equal sizes make equal workspaces."""

    def __init__(self) -> None:
        self._now = FIRST

    def __call__(self) -> str:
        self._now += timedelta(seconds=1)
        return self._now.strftime("%Y-%m-%dT%H:%M:%SZ")


class _History:
    def __init__(self, workspace: Workspace, size: Size) -> None:
        self.workspace, self.size = workspace, size
        self.store = workspace.store
        self.rng = random.Random(7)
        self.tasks: list[Task] = []
        self.library = Library()
        self.number = 0
        """Of the newest experience."""

    def write(self) -> None:
        size = self.size
        self._write_tasks()
        for run in range(1, size.runs + 1):
            for version in range(self.library.version + 1, size.versions * run // size.runs + 1):
                self._publish(version, f"R{run - 1}" if run > 1 else None)
            self._run(run)
        self._propose()
        self._log()

    def _write_tasks(self) -> None:
        splits: tuple[Split, ...] = (*("train",) * 8, "trial", "final")
        for i in range(self.size.tasks):
            domain = DOMAINS[i % len(DOMAINS)]
            task = Task(
                id=f"{domain.replace(' ', '-')}-{i:05d}",
                question=f"Task {i}: {_lesson(self.rng)} What is {i} + {7 * i % 1000}? Answer with the number only.",
                answer=str(i + 7 * i % 1000),
                domain=domain,
                split=splits[i // len(DOMAINS) % len(splits)],
                verifier=VerifierSpec(kind="numeric"),
            )
            self.tasks.append(task)
        self.store.tasks.add(self.tasks, list(range(1, self.size.tasks + 1)), "tasks.jsonl", "ann")

    # -- versions ----------------------------------------------------------------------------------------------

    def _publish(self, number: int, run_id: str | None) -> None:
        """A version: new lessons, some of which went through the review, one sharper text, one taken out."""
        share = self.size.experiences * number // self.size.versions - len(self.library)
        alive = [e.id for e in self.library]
        modified, deleted = self.rng.sample(alive, 2) if len(alive) > 2 else (None, None)
        operations: list[Operation] = [self._add() for _ in range(3)]
        if modified and deleted:
            operations += [
                Modify(experience_id=modified, text=_lesson(self.rng)),
                Delete(experience_id=deleted),
            ]
        author = PEOPLE[number % len(PEOPLE)]
        with self.store.writing():
            ids = self._proposed(operations, run_id)
            states = dict(self.library.experiences)
            touched = [self._apply(states, *pair) for pair in zip(operations, ids, strict=True)]
            for _ in range(share - 3 + bool(deleted)):
                self._apply(states, self._add(), None)
            after = Library.of(states.values(), number)
            self.store.versions.save(
                self.library,
                after,
                parent=number - 1,
                author=author,
                message=f"What {run_id} taught" if run_id else "First lessons",
                event="version.published",
            )
            for proposal_id, experience_id in zip(ids, touched, strict=True):
                self._take(proposal_id, experience_id, number, author)
        if number in (self.size.versions // 2, self.size.versions - 5):
            self.store.labels.set(
                "production" if number > self.size.versions // 2 else "stable", number, author
            )
        self.library = after

    def _add(self) -> Add:
        return Add(text=_lesson(self.rng), kind=self.rng.choice(KINDS), domain=self.rng.choice(DOMAINS))

    def _apply(self, states: dict[str, Experience], operation: Operation, proposal_id: str | None) -> str:
        by = {"proposal_id": proposal_id}
        match operation:
            case Add():
                self.number += 1
                uses = self.rng.randrange(60)
                made = Experience(
                    id=f"E-{self.number:04d}",
                    text=operation.text,
                    kind=operation.kind,
                    domain=operation.domain,
                    confidence=round(self.rng.uniform(0.1, 0.9), 2),
                    uses=uses,
                    wins=self.rng.randrange(uses + 1),
                    learned_on="stub-model",
                    proposal_id=proposal_id,
                )
            case Modify():
                made = states[operation.experience_id].model_copy(update={"text": operation.text} | by)
            case Delete():
                made = states[operation.experience_id].model_copy(update={"status": "deleted"} | by)
            case _:
                raise ValueError(operation.op)
        states[made.id] = made
        return made.id

    def _take(self, proposal_id: str, experience_id: str, version: int, actor: str) -> None:
        proposals = self.store.proposals
        waiting = proposals.get(proposal_id)
        decided = {"status": "approved", "decided_by": actor, "decided_at": self.store.events.clock()}
        approved = proposals.decide(
            waiting.model_copy(update=decided), waiting.revision, actor, "proposal.approved"
        )
        done = {"status": "published", "published_in": version, "experience_id": experience_id}
        proposals.decide(
            approved.model_copy(update=done), approved.revision, actor, "proposal.published", version=version
        )

    # -- proposals ---------------------------------------------------------------------------------------------

    def _proposed(self, operations: list[Operation], run_id: str | None) -> list[str]:
        """Proposals with evidence from a run."""
        now = self.library.experiences
        given = [
            Proposal(
                id="",
                operation=operation,
                extractor="llm" if self.rng.random() < 0.5 else "evidence",
                rationale="Seen in most of the better answers.",
                run_id=run_id,
                evidence=self._evidence(run_id),
                base_version=self.library.version,
                base_texts={i: now[i].text for i in targets_of(operation)},
                learned_on="stub-model" if run_id else "",
            )
            for operation in operations
        ]
        return self.store.proposals.add(given, "winnow")

    def _evidence(self, run_id: str | None) -> Evidence:
        if run_id is None:
            return Evidence()
        groups = self.rng.sample(range(1, self.size.groups + 1), min(6, self.size.groups))
        with_it, without = self.rng.randrange(12, 30), self.rng.randrange(2, 10)
        p = self.rng.uniform(0.001, 0.2)
        label = f"{self.rng.choice(VERBS)} the {self.rng.choice(THINGS)} first"
        found = Finding(
            feature=label.replace(" ", "_"),
            label=label,
            winners_with=with_it,
            winners=36,
            losers_with=without,
            losers=40,
            odds_ratio=12.5,
            p=p / 4,
            p_corrected=p,
            groups=9,
        )
        return Evidence(
            findings=(found,),
            group_ids=tuple(f"{run_id}-{g:04d}" for g in groups),
            rollout_ids=tuple(f"{run_id}-{g:04d}-{i}" for g in groups for i in (0, 4)),
            sentence=f"{with_it} of 36 winners {label}, {without} of 40 losers",
            features_tried=212,
            permutations=2000,
        )

    def _propose(self) -> None:
        """What waits for a decision, and what is staged."""
        alive = [e.id for e in self.library]
        free = iter(self.rng.sample(alive, min(len(alive), 2 * self.size.waiting)))
        for i in range(0, self.size.waiting, 10):
            operations: list[Operation] = [self._add() for _ in range(4)]
            operations += [Modify(experience_id=next(free), text=_lesson(self.rng)) for _ in range(3)]
            operations += [Delete(experience_id=next(free))]
            operations += [Merge(experience_ids=(next(free), next(free)), text=_lesson(self.rng))]
            operations += [
                Add(text=" ".join(_lesson(self.rng) for _ in range(3)), domain=DOMAINS[0])
            ]  # too long
            self._proposed(operations[: self.size.waiting - i], f"R{1 + i // 10 % self.size.runs}")
        for proposal_id in self._proposed([self._add() for _ in range(self.size.staged)], "R1"):
            self.workspace.review.approve(proposal_id, "ann")

    # -- runs --------------------------------------------------------------------------------------------------

    def _run(self, number: int) -> None:
        size, runs = self.size, self.store.runs
        given = [t for t in self.tasks if t.split == "train"]
        start = (number - 1) * size.groups % len(given)
        tasks = [given[(start + i) % len(given)] for i in range(size.groups)]
        agent = number % AGENT_EVERY == 0
        with self.store.writing():
            run_id = runs.create(
                RunConfig(group_size=len(REWARDS[0]), seed=number),
                tasks,
                [i // 50 for i in range(size.groups)],
                request=f"request {number}",
                kind="recorded" if agent else "sampled",
                library_version=self.library.version,
                model="stub-model",
                note="agents.jsonl" if agent else "",
                actor=PEOPLE[number % len(PEOPLE)],
            )
            for place, task in zip(self.store.groups.waiting(run_id), tasks, strict=True):
                self.store.groups.save(self._group(run_id, place.id, task, agent))
            self._finish(run_id)

    def _finish(self, run_id: str) -> None:
        used = Usage(calls=500, prompt_tokens=60_000, completion_tokens=9_000, cost_usd=0.12)
        entry = Entry(run_id=run_id, endpoint="stub", stage="rollout", usage=used)
        self.store.spending.book([entry] * 20)
        self.store.runs.save_extraction(run_id, Extraction(suggested=9, proposed=6, joined=2, quarantined=1))
        self.store.runs.set_status(run_id, "done", "winnow")
        job = self.store.jobs.add("run", run_id, {}, "ann")
        ended = {"state": "done", "finished_at": self.store.jobs.clock(), "attempts": 1}
        self.store.jobs.save(job.model_copy(update=ended))
        lessons = [e.id for e in self.library]
        followed = self.rng.sample(lessons, min(100, len(lessons)))
        self.store.credits.record(
            Credit(experience_id=e, source=f"{run_id}-{i + 1:04d}", followers=3, others=2, better=i % 3 != 0)
            for i, e in enumerate(followed[: self.size.groups])
        )

    def _group(self, run_id: str, group_id: str, task: Task, agent: bool) -> Group:
        rewards = self.rng.choice(REWARDS)
        lessons = (
            {f"G{i}": f"E-{self.rng.randint(1, self.number):04d}" for i in range(5)} if self.number else {}
        )
        rollouts = tuple(
            self._rollout(group_id, task, i, value, agent, lessons) for i, value in enumerate(rewards)
        )
        group = Group(id=group_id, run_id=run_id, task_id=task.id, rollouts=rollouts)
        return settle(group, RewardConfig())

    def _rollout(
        self, group_id: str, task: Task, i: int, value: float | None, agent: bool, lessons: dict[str, str]
    ) -> Rollout:
        answer = f"{_lesson(self.rng)} Answer: {task.answer if value == 1 else self.rng.randrange(9999)}"
        said = (
            Message(role="system", content="Lessons from earlier attempts. Follow the ones that apply."),
            Message(role="user", content=task.question),
            Message(role="assistant", content=answer),
        )
        return Rollout(
            id=f"{group_id}-{i}",
            group_id=group_id,
            task_id=task.id,
            replicate=i,
            trajectory=Trajectory(
                messages=said,
                answer=answer,
                finish_reason="stop",
                steps=tuple(self._steps()) if agent else (),
            ),
            scores={} if value is None else {"numeric": Score(value=value)},
            usage=Usage(calls=1, prompt_tokens=120, completion_tokens=18, cost_usd=0.0002),
            error="the endpoint answered 503 three times" if value is None else None,
            injected=lessons,
            model="stub-model",
            duration_s=0.8,
            semantic=""
            if value is None
            else f"It did so because it {self.rng.choice(VERBS)} the total first.",
        )

    def _steps(self) -> Iterator[Step]:
        for n in range(8):
            failed = self.rng.random() < 0.2
            yield Step(
                tool=f"{VERBS[n % 4]}_json",
                parameters={"path": f"reports/{n}.json"},
                output="" if failed else '{"total": 1841}',
                success=not failed,
                error="KeyError: 'total'" if failed else None,
                duration_s=0.4,
            )

    # -- the log -----------------------------------------------------------------------------------------------

    def _log(self) -> None:
        """Lines until there are as many as wanted: a long life of pauses."""
        with self.store.writing():
            there = self.store.events.newest(1)[0].id
            for i in range(there, self.size.events):
                kind = ("job.paused", "job.resumed")[i % 2]
                job = 1 + i % self.size.runs
                self.store.events.append(PEOPLE[i % len(PEOPLE)], kind, f"J{job}", run=f"R{job}")


def _lesson(rng: random.Random) -> str:
    """About 20 words, which hardly ever come twice."""
    first, second = rng.sample(VERBS, 2)
    return (
        f"When {rng.choice(SITUATIONS)}, {first} the {rng.choice(THINGS)} of part {rng.randrange(1000)} before you"
        f" {second} the {rng.choice(THINGS)}: {rng.choice(REASONS)}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="let the doctor look at both")
    options = parser.parse_args()
    for size in (TENTH, LARGE):
        began = time.monotonic()
        folder = made(size)
        room = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / 1e6
        took = time.monotonic() - began
        sys.stdout.write(f"{size.rollouts:,} rollouts: {folder} ({room:.0f} MB, {took:.0f} s)\n")
        if options.check:
            began = time.monotonic()
            for finding in checked(folder):
                sys.stdout.write(f"  {finding}\n")
            sys.stdout.write(f"  the doctor took {time.monotonic() - began:.0f} s\n")


def checked(folder: Path) -> list[str]:
    """What the doctor finds wrong with a workspace's database; nothing of it is as it should be."""
    from core.store.checks import check_content, check_file
    from core.workspace.workspace import DATABASE

    found, usable = check_file(folder / DATABASE)
    if usable:
        found += check_content(Workspace(folder).store, folder / DATABASE)
    return [f"{finding.where}: {finding.what}" for finding in found]


if __name__ == "__main__":
    main()
