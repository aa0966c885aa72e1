"""G rollouts of each task, scored: the model is asked, the verifier judges, the group is written down.

What fails stays data: a rollout that broke off is kept with its error and its siblings go on. Only what stops
every call (a bad key, a spent budget) ends the run; groups that were not finished wait for the next start.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from core.advantage import advantages, signal
from core.errors import WinnowError
from core.injection import Injection, system_prompt
from core.ports import ChatModel, Completion, Progress, Sampling, Verifier, silent
from core.reward import group_rewards
from core.rollout import Group, Message, Rollout, Score, Task, Trajectory
from core.settings import RunConfig


@dataclass(frozen=True)
class Assignment:
    """One group to be sampled."""

    group_id: str
    run_id: str
    task: Task
    batch: int = 0


@dataclass(frozen=True)
class Prompt:
    """What is injected for a task, and what was left out of the library, with the reason."""

    injection: Injection = field(default_factory=Injection)
    left_out: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Runner:
    """Samples groups with one model under one library version."""

    model: ChatModel
    config: RunConfig
    library_version: int
    prompt: Callable[[Task], Prompt]
    """What to inject for a task (`core.memory`)."""
    verifier: Callable[[Task], Verifier]
    in_flight: int = 2
    """Groups that are sampled at once."""

    async def sample(
        self, assignments: Sequence[Assignment], save: Callable[[Group], None], progress: Progress = silent
    ) -> None:
        """Sample groups and hand each one to `save` as soon as it is finished.

        Raises:
            ModelUnavailableError: the endpoint cannot be used; finished groups are saved, others are not.
            BudgetError: the next call would pass the cap; likewise.
        """
        queue = iter(assignments)
        done = 0
        progress("rollouts", 0, len(assignments))

        async def work(todo: Iterable[Assignment]) -> None:
            nonlocal done
            for assignment in todo:
                save(await self._group(assignment))
                done += 1
                progress("rollouts", done, len(assignments))

        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(min(self.in_flight, len(assignments))):
                    workers.create_task(work(queue))
        except* WinnowError as several:
            raise several.exceptions[0] from None

    async def _group(self, assignment: Assignment) -> Group:
        task, config = assignment.task, self.config
        prompt = self.prompt(task)
        messages = messages_for(task, prompt.injection)
        started = time.monotonic()
        replies = await self.model.complete(messages, sampling(config), range(config.group_size))
        took = time.monotonic() - started
        verifier = self.verifier(task)
        rollouts = [
            await self._rollout(assignment, i, messages, reply, prompt.injection, verifier, took)
            for i, reply in enumerate(replies)
        ]
        return finish(
            Group(
                id=assignment.group_id,
                run_id=assignment.run_id,
                task_id=task.id,
                batch=assignment.batch,
                library_version=self.library_version,
                not_injected=dict(prompt.left_out),
                rollouts=tuple(rollouts),
            )
        )

    async def _rollout(
        self,
        assignment: Assignment,
        replicate: int,
        messages: Sequence[Message],
        reply: Completion | str,
        injection: Injection,
        verifier: Verifier,
        took: float,
    ) -> Rollout:
        rollout = Rollout(
            id=f"{assignment.group_id}-{replicate}",
            group_id=assignment.group_id,
            task_id=assignment.task.id,
            replicate=replicate,
            trajectory=Trajectory(messages=tuple(messages)),
            injected=injection.labels,
            model=self.model.name,
            duration_s=took,
        )
        if isinstance(reply, str):
            return rollout.model_copy(update={"error": reply})
        trajectory = Trajectory(
            messages=(*messages, Message(role="assistant", content=reply.text)),
            answer=reply.text,
            finish_reason=reply.finish_reason,
        )
        return rollout.model_copy(
            update={
                "trajectory": trajectory,
                "scores": await verdict(assignment.task, trajectory, verifier),
                "usage": reply.usage,
                "duration_s": took if reply.duration_s is None else reply.duration_s,
            }
        )


def sampling(config: RunConfig) -> Sampling:
    """How the model is asked in a run."""
    return Sampling(
        temperature=config.temperature,
        top_p=config.top_p,
        max_tokens=config.max_tokens,
        stop=config.stop,
        seed=config.seed,
    )


def messages_for(task: Task, injection: Injection) -> tuple[Message, ...]:
    """The prompt of a task: the lessons in the system message (where they were measured to work), then the question."""
    base = task.metadata.get("system")
    system = system_prompt(injection, base if isinstance(base, str) else "")
    question = Message(role="user", content=task.question)
    return (Message(role="system", content=system), question) if system else (question,)


async def verdict(task: Task, trajectory: Trajectory, verifier: Verifier) -> dict[str, Score]:
    """The score of one attempt by the name of its verifier."""
    return {task.verifier.kind: await verifier.score(task, trajectory)}


def finish(group: Group, *, weights: Mapping[str, float] | None = None) -> Group:
    """Give a group its rewards, advantages and status, from the scores of its rollouts."""
    made = group_rewards([None if r.error is not None else r.scores for r in group.rollouts], weights)
    return settle(group.model_copy(update={"left_out": made.left_out}), made.values)


def settle(group: Group, rewards: Sequence[float | None]) -> Group:
    """Give a group these rewards, and the advantages and the status that follow; shape [G].

    A rollout that broke off has no reward, whatever was recorded: an error is not a wrong answer.
    """
    known = [
        None if r.error is not None else reward for r, reward in zip(group.rollouts, rewards, strict=True)
    ]
    found = signal(known, sum(r.error is not None for r in group.rollouts))
    rollouts = tuple(
        r.model_copy(
            update={
                "reward": reward,
                "extrinsic": reward,
                "components": {"verified": reward},
                "advantage": advantage,
            }
        )
        for r, reward, advantage in zip(group.rollouts, known, advantages(known), strict=True)
    )
    return group.model_copy(update={"rollouts": rollouts, "status": found.status, "reason": found.reason})
