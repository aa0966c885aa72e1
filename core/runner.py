"""G rollouts of one task, scored: the model or the agent is asked, the verifiers judge, the group is settled.

What fails stays data: a rollout that broke off is kept with its error and its siblings go on. Only what stops
every call (a bad key, a spent budget, a pause) is raised; a group that was not finished waits for the next start.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from core.executor import all_home
from core.injection import Injection, system_prompt
from core.ports import ChatModel, Completion, Sampling
from core.rollout import Group, Message, Rollout, Score, Task, Trajectory, Usage
from core.settings import RunConfig
from core.settling import settle

EPOCH_STRIDE = 10_007
"""How far apart the seeds of two epochs lie: the same task is asked anew, not answered from the cache."""


@dataclass(frozen=True)
class Assignment:
    """One group to be sampled."""

    group_id: str
    run_id: str
    task: Task
    epoch: int = 0
    batch: int = 0
    attempt: int = 0
    temperature: float | None = None
    """None = the run's own."""


@dataclass(frozen=True)
class Prompt:
    """What is injected for a task, and what was left out of the library, with the reason."""

    injection: Injection = field(default_factory=Injection)
    left_out: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Attempt:
    """What came of one attempt at a task."""

    trajectory: Trajectory
    usage: Usage = field(default_factory=Usage)
    error: str | None = None
    duration_s: float | None = None


class Agent(Protocol):
    """Makes one attempt with tools (`core.agent`)."""

    async def attempt(
        self, task: Task, messages: Sequence[Message], sampling: Sampling, replicate: int, attempt: int = 0
    ) -> Attempt:
        """Never raises for what goes wrong in one rollout; raises what stops every call."""


Scorer = Callable[[Task, Trajectory], Awaitable[dict[str, Score]]]
"""Gives the verdict of each verifier on one attempt, by its name."""

Explorer = Callable[[Group], Awaitable[Group]]
"""Gives a settled group the halves of its epistemic reward."""


@dataclass(frozen=True)
class Runner:
    """Samples groups with one model under one library version."""

    model: ChatModel
    config: RunConfig
    library_version: int
    prompt: Callable[[Task], Prompt]
    """What to inject for a task (`core.memory`)."""
    score: Scorer
    agent: Agent | None = None
    """Makes the attempts, where they use tools; else each is one reply of the model."""
    explore: Explorer | None = None
    """Where the reward has an epistemic part."""
    bias: Callable[[Task], Mapping[int, float]] | None = None
    """Where the run has a token prior: what it adds to the logits of replies to a task."""

    async def sample(self, assignment: Assignment) -> Group:
        """Sample, score and settle one group.

        Raises:
            ModelUnavailableError: the endpoint cannot be used; replies that came are in the cache.
            BudgetError: the next call would pass the cap; likewise.
            StoppedError: somebody wants the work to stop; likewise.
        """
        prompt = self.prompt(assignment.task)
        messages = messages_for(assignment.task, prompt.injection, self._instructions)
        attempts = await self._attempts(assignment, messages)
        rollouts = await all_home(
            self._rollout(assignment, i, messages, attempt, prompt.injection)
            for i, attempt in enumerate(attempts)
        )
        group = Group(
            id=assignment.group_id,
            run_id=assignment.run_id,
            task_id=assignment.task.id,
            epoch=assignment.epoch,
            batch=assignment.batch,
            attempt=assignment.attempt,
            temperature=assignment.temperature,
            library_version=self.library_version,
            not_injected=dict(prompt.left_out),
            rollouts=tuple(rollouts),
        )
        group = settle(group, self.config.reward)
        if self.explore is None:
            return group
        return settle(await self.explore(group), self.config.reward)

    @property
    def _instructions(self) -> str:
        return self.config.agent.instructions if self.config.agent else ""

    async def _attempts(self, assignment: Assignment, messages: Sequence[Message]) -> Sequence[Attempt]:
        asked, replicates = sampling(self.config, assignment), range(self.config.group_size)
        if self.bias is not None:
            asked = asked.model_copy(update={"logit_bias": dict(self.bias(assignment.task))})
        if self.agent is not None:
            attempt = self.agent.attempt
            tries = [
                attempt(assignment.task, messages, asked, i, attempt=assignment.attempt) for i in replicates
            ]
            return await all_home(tries)
        started = time.monotonic()
        replies = await self.model.complete(
            messages,
            asked,
            replicates,
            attempt=assignment.attempt,
            timeout_s=self.config.rollout_timeout_s,
        )
        took = time.monotonic() - started
        return [_attempt(messages, reply, took) for reply in replies]

    async def _rollout(
        self,
        assignment: Assignment,
        replicate: int,
        messages: Sequence[Message],
        attempt: Attempt,
        injection: Injection,
    ) -> Rollout:
        scores = {} if attempt.error else await self.score(assignment.task, attempt.trajectory)
        return Rollout(
            id=f"{assignment.group_id}-{replicate}",
            group_id=assignment.group_id,
            task_id=assignment.task.id,
            replicate=replicate,
            trajectory=attempt.trajectory,
            scores=scores,
            usage=attempt.usage,
            error=attempt.error,
            injected=injection.labels,
            model=self.model.name,
            duration_s=attempt.duration_s,
        )


def sampling(config: RunConfig, assignment: Assignment) -> Sampling:
    """How the model is asked for a group."""
    own = assignment.temperature
    return Sampling(
        temperature=config.temperature if own is None else own,
        top_p=config.top_p,
        max_tokens=config.max_tokens,
        stop=config.stop,
        seed=config.seed + EPOCH_STRIDE * assignment.epoch,
    )


def messages_for(task: Task, injection: Injection, instructions: str = "") -> tuple[Message, ...]:
    """The prompt of a task: the lessons in the system message (where they were measured to work), then the question."""
    base = task.metadata.get("system")
    parts = [instructions, base if isinstance(base, str) else ""]
    system = system_prompt(injection, "\n\n".join(part for part in parts if part))
    question = Message(role="user", content=task.question)
    return (Message(role="system", content=system), question) if system else (question,)


def _attempt(messages: Sequence[Message], reply: Completion | str, took: float) -> Attempt:
    if isinstance(reply, str):
        return Attempt(Trajectory(messages=tuple(messages)), error=reply, duration_s=took)
    trajectory = Trajectory(
        messages=(*messages, Message(role="assistant", content=reply.text)),
        answer=reply.text,
        finish_reason=reply.finish_reason,
    )
    return Attempt(trajectory, reply.usage, duration_s=took if reply.duration_s is None else reply.duration_s)
