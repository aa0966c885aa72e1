"""How far a version of the library moves the model, task by task, from token log-probabilities (DESIGN 2.9).

Replies are drawn at temperature 1 without top_p, top_k and min_p, from the model without the library (pi_0) and from
the model with it (pi_E); each is then scored under the other one, by forcing its tokens with a grammar. So every
number is of the raw policy at temperature 1, not of the one that runs are sampled with.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import Field

from core.errors import InputError
from core.executor import LocalExecutor, all_home
from core.injection import Injection
from core.library import Library
from core.objective import (
    CLIP,
    MOST_LOG_RATIO,
    clipped_surrogate,
    importance_ratio,
    kl_k1,
    kl_k3,
    log_ratio,
    mean_of,
)
from core.ports import Completion, Progress, Sampling, silent
from core.record import Record
from core.rollout import Group, Message, Rollout, Task, Trajectory
from core.runner import messages_for
from core.settings import EMBEDDED, Endpoint, RewardConfig, RunConfig
from core.settling import settle
from core.store import Store
from core.workspace.models import Models, WorkspaceLedger, connection
from core.workspace.nearest import Nearest
from core.workspace.priors import tokenizer_of
from core.workspace.prompts import Prompts
from core.workspace.scoring import Scoring

if TYPE_CHECKING:
    from core.llm import OpenAIChat

METHOD = (
    "Raw log-probabilities at temperature 1, in nats, of replies drawn at temperature 1 without top_p, top_k and min_p:"
    ' not of the policy that runs are sampled with. KL by k1 and k3 (Schulman 2020, "Approximating KL Divergence") on'
    " replies made with the library; ratios and the clipped surrogate (the GRPO loss, negated, without its KL term) on"
    " replies made without it."
)
RAW = {"top_k": 0, "min_p": 0.0}
"""Fields of a request to llama.cpp that leave its policy as it is."""
SHOWN = 200
"""Characters of a question that are told."""

Unscored = Literal["not told whole", "empty", "failed", "scored as other tokens"]


class PolicyConfig(Record):
    """What is measured."""

    version: int | None = Field(default=None, ge=0)
    """Of the library; None = the newest."""
    endpoint: str = EMBEDDED
    split: Literal["train", "trial"] = "train"
    domains: tuple[str, ...] = ()
    """Only tasks of these domains; empty = all."""
    tasks: int = Field(default=20, ge=1, le=1000)
    """At most so many, drawn with the seed."""
    samples: int = Field(default=4, ge=1, le=64)
    """Replies to each task from each of the two policies."""
    max_tokens: int = Field(default=32, ge=1, le=4096)
    """Of a reply: what comes after is not measured."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    clip: float = Field(default=CLIP, gt=0, lt=1)


class TaskMove(Record):
    """How far the library moves the policy on one task."""

    task_id: str
    question: str
    domain: str
    injected: int
    """Lessons in the prompt; with none, both policies are the same and nothing is asked."""
    drawn: int = 0
    """Replies made with the library that were scored."""
    tokens: float = 0.0
    """Mean over these."""
    kl_k1: float | None = None
    """Estimate of KL(pi_E || pi_0) in nats a reply."""
    kl_k3: float | None = None
    based: int = 0
    """Replies made without the library that were scored with it."""
    ratios: tuple[float, ...] = ()
    """Of these: pi_E(y|x) / pi_0(y|x)."""
    log_ratio: float | None = None
    """Mean over these, in nats: below 0 where the library makes them less likely."""
    surrogate: float | None = None
    """None where their rewards do not differ: no advantage."""
    clipped: float | None = None


class Policy(Record):
    """How far a version moves the model, over tasks."""

    config: PolicyConfig
    model: str
    moves: tuple[TaskMove, ...]
    measured: int = 0
    """Tasks with at least one scored reply made with the library."""
    not_injected: int = 0
    """Tasks that get no lesson: not moved at all, and not part of the means."""
    kl_k1: float | None = None
    """Mean over tasks, in nats a reply."""
    kl_k1_se: float | None = None
    """Its standard error over tasks."""
    kl_k3: float | None = None
    kl_k3_se: float | None = None
    kl_token: float | None = None
    """k3 in nats a token."""
    log_ratio: float | None = None
    surrogate: float | None = None
    surrogate_tasks: int = 0
    """Tasks whose replies differ in reward: the surrogate is their mean."""
    clipped: float | None = None
    unscored: dict[str, int] = Field(default_factory=dict)
    """Replies that are not part of the numbers, by reason."""
    method: str = METHOD


class _Reply(NamedTuple):
    """One reply with the log-probabilities of its tokens under the policy that made it."""

    text: str
    ids: tuple[int, ...]
    """The end of the reply included, where it came to one."""
    logprobs: tuple[float, ...]
    ended: bool


class Policies:
    """Measures how far versions move the model of one workspace's endpoints."""

    def __init__(self, store: Store, models: Models) -> None:
        self._store = store
        self._models = models

    def why_not(self, endpoint: str = EMBEDDED) -> str:
        """Why this cannot be measured at an endpoint, in one sentence; empty where it can.

        Raises:
            NotFoundError: there is no such endpoint.
        """
        at = self._models.get(endpoint)
        if at.logprobs and at.grammar:
            return ""
        lacks = "gives no log-probabilities of tokens" if not at.logprobs else "cannot score a given text"
        return f"Not available: endpoint {endpoint} {lacks}."

    def measure(self, config: PolicyConfig, progress: Progress = silent) -> Policy:
        """Draw, score, and compute. Calls that were made before are not made again.

        Raises:
            InputError: it is not available at this endpoint, or no task is meant.
            NotFoundError: there is no such endpoint or version.
            ModelUnavailableError: the endpoint cannot be used.
        """
        if why := self.why_not(config.endpoint):
            raise InputError(why)
        library = self._store.versions.library(config.version)
        config = config.model_copy(update={"version": library.version})
        tasks = self._tasks(config)
        endpoint = self._models.get(config.endpoint)
        raw = endpoint.model_copy(update={"extra": endpoint.extra | RAW})
        return asyncio.run(self._measure(config, library, tasks, raw, progress))

    def _tasks(self, config: PolicyConfig) -> list[Task]:
        found = self._store.tasks.select(config.split, config.domains)
        if not found:
            raise InputError(f"There is no task of the split {config.split} to measure on.")
        random.Random(config.seed).shuffle(found)
        return found[: config.tasks]

    async def _measure(
        self, config: PolicyConfig, library: Library, tasks: Sequence[Task], raw: Endpoint, progress: Progress
    ) -> Policy:
        from core.llm import Access, Terms

        run = RunConfig(endpoint=raw.name, max_tokens=config.max_tokens)
        executor = LocalExecutor()
        terms = Terms(ledger=WorkspaceLedger(self._store))
        try:
            async with Access(lambda _: raw, terms, connection) as access:
                prompts = Prompts(library, raw, run, Nearest(self._store, self._models, access))
                scoring = Scoring(run, self._store, self._models, access, executor)
                pair = _Pair(config, raw, access.chat(raw.name, "objective"), scoring)
                moves = []
                for task in tasks:
                    moves.append(await pair.move(task, prompts(task).injection))
                    progress("tasks", len(moves), len(tasks))
        finally:
            executor.close()
        return summary(config, raw.model, moves, pair.unscored)


class _Pair:
    """The two policies: the same model without and with what is injected."""

    def __init__(self, config: PolicyConfig, endpoint: Endpoint, chat: OpenAIChat, scoring: Scoring) -> None:
        self._config = config
        self._endpoint = endpoint
        self._chat = chat
        self._scoring = scoring
        self.unscored: Counter[Unscored] = Counter()

    async def move(self, task: Task, injection: Injection) -> TaskMove:
        """Draw from both policies, and score each reply under the other one."""
        known = TaskMove(
            task_id=task.id,
            question=task.question[:SHOWN],
            domain=task.domain,
            injected=len(injection.labels),
        )
        if not injection.labels:
            return known
        bare, told = messages_for(task, Injection()), messages_for(task, injection)
        based, drawn = await self._draw(bare), await self._draw(told)
        under_told = await all_home(self._score(told, reply) for reply in based)
        under_bare = await all_home(self._score(bare, reply) for reply in drawn)
        kept = [(r, p) for r, p in zip(drawn, under_bare, strict=True) if p]
        back = [(r, p) for r, p in zip(based, under_told, strict=True) if p]
        update: dict[str, object] = {"drawn": len(kept), "based": len(back)}
        if kept:
            update |= {
                "tokens": sum(len(r.ids) for r, _ in kept) / len(kept),
                "kl_k1": sum(kl_k1(r.logprobs, p) for r, p in kept) / len(kept),
                "kl_k3": sum(kl_k3(r.logprobs, p) for r, p in kept) / len(kept),
            }
        if back:
            update |= await self._surrogate(task, back)
        return known.model_copy(update=update)

    async def _surrogate(
        self, task: Task, back: Sequence[tuple[_Reply, Sequence[float]]]
    ) -> dict[str, object]:
        ratios = [importance_ratio(p, r.logprobs) for r, p in back]
        logs = [max(-MOST_LOG_RATIO, min(MOST_LOG_RATIO, log_ratio(p, r.logprobs))) for r, p in back]
        update: dict[str, object] = {"ratios": tuple(ratios), "log_ratio": sum(logs) / len(logs)}
        rollouts = []
        for i, (reply, _) in enumerate(back):
            trajectory = Trajectory(answer=reply.text)
            scores = await self._scoring.score(task, trajectory)
            rollouts.append(
                Rollout(
                    id=f"-{i}",
                    group_id="-",
                    task_id=task.id,
                    replicate=i,
                    trajectory=trajectory,
                    scores=scores,
                    model=self._endpoint.model,
                )
            )
        group = settle(Group(id="-", run_id="-", task_id=task.id, rollouts=tuple(rollouts)), RewardConfig())
        if group.status != "informative":
            return update
        rated = [
            (rho, r.advantage)
            for rho, r in zip(ratios, group.rollouts, strict=True)
            if r.advantage is not None
        ]
        found = clipped_surrogate([rho for rho, _ in rated], [a for _, a in rated], self._config.clip)
        return update | {"surrogate": found.value, "clipped": found.clipped}

    async def _draw(self, messages: Sequence[Message]) -> list[_Reply]:
        asked = Sampling(
            temperature=1.0,
            top_p=1.0,
            max_tokens=self._config.max_tokens,
            seed=self._config.seed,
            logprobs=True,
        )
        replies = await self._chat.complete(messages, asked, range(self._config.samples))
        return [found for reply in replies if (found := self._usable(reply))]

    async def _score(self, messages: Sequence[Message], reply: _Reply) -> tuple[float, ...]:
        """The log-probabilities of a reply's tokens after a prompt; empty where that cannot be had."""
        forced = reply.ids[:-1] if reply.ended else reply.ids
        asked = Sampling(temperature=0.0, top_p=1.0, max_tokens=len(reply.ids), logprobs=True, forced=forced)
        (answer,) = await self._chat.complete(messages, asked)
        if isinstance(answer, str):
            self.unscored["failed"] += 1
        elif tuple(t.id for t in answer.tokens) != reply.ids:
            self.unscored["scored as other tokens"] += 1
        else:
            return tuple(t.logprob for t in answer.tokens)
        return ()

    def _usable(self, reply: Completion | str) -> _Reply | None:
        """A reply all of whose tokens were told: llama.cpp leaves out those that are a part of a character."""
        if isinstance(reply, str):
            self.unscored["failed"] += 1
            return None
        ids, ended = tuple(t.id for t in reply.tokens), reply.finish_reason == "stop"
        said = ids[:-1] if ended else ids
        if not said:
            self.unscored["empty" if not reply.text else "not told whole"] += 1
            return None
        if not reply.text.isascii() and not self._whole(said, reply.text):
            self.unscored["not told whole"] += 1
            return None
        return _Reply(reply.text, ids, tuple(t.logprob for t in reply.tokens), ended)

    def _whole(self, ids: Sequence[int], text: str) -> bool:
        try:
            return tokenizer_of(self._endpoint).decode(ids) == text
        except InputError:  # its tokenizer is not known here: better one reply less than one in part
            return False


def summary(
    config: PolicyConfig, model: str, moves: Sequence[TaskMove], unscored: Counter[Unscored]
) -> Policy:
    """The means over tasks; each task counts once, however many of its replies were scored."""
    measured = [m for m in moves if m.drawn]
    k1 = mean_of([m.kl_k1 for m in measured if m.kl_k1 is not None])
    k3 = mean_of([m.kl_k3 for m in measured if m.kl_k3 is not None])
    token = mean_of([m.kl_k3 / m.tokens for m in measured if m.kl_k3 is not None and m.tokens])
    logs = mean_of([m.log_ratio for m in moves if m.log_ratio is not None])
    surrogate = mean_of([m.surrogate for m in moves if m.surrogate is not None])
    clipped = mean_of([m.clipped for m in moves if m.clipped is not None])
    return Policy(
        config=config,
        model=model,
        moves=tuple(moves),
        measured=len(measured),
        not_injected=sum(not m.injected for m in moves),
        kl_k1=k1 and k1.mean,
        kl_k1_se=k1 and k1.se,
        kl_k3=k3 and k3.mean,
        kl_k3_se=k3 and k3.se,
        kl_token=token and token.mean,
        log_ratio=logs and logs.mean,
        surrogate=surrogate and surrogate.mean,
        surrogate_tasks=sum(m.surrogate is not None for m in moves),
        clipped=clipped and clipped.mean,
        unscored=dict(sorted(unscored.items())),
    )
