"""What a run may take, said before it starts: calls, tokens and money, to be compared with the ledger after it.

1. Low: one epoch, and no group is informative; replies of one token. High: all epochs, every group is informative and
   every task is sampled anew as often as is allowed; replies of rollouts as long as they may be.
2. Retries, second tries after an unreadable reply, and compressions come on top; what is in the cache comes off.
3. Tokens of prompts are estimated by `core.injection.estimate_tokens`, which is rather too high: the low bound takes
   `LEAST_SHARE` of it. Replies of the LLM stages are taken to be of usual length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from core.experience import GENERAL
from core.extraction.contrast_prompt import MAX_OPERATIONS
from core.extraction.fitting import MARGIN, reply_tokens, tokens_of
from core.extraction.near_duplicates import REPLY_TOKENS as CONSOLIDATION_TOKENS
from core.extraction.template import placeholders, prompt
from core.injection import estimate_tokens, render
from core.library import Library
from core.memory import TOP_K, WHOLE_LIBRARY
from core.record import Record
from core.rollout import Task, Usage
from core.settings import Endpoint, RunConfig
from core.workspace.prompts import CHAT_TEMPLATE_TOKENS

LEAST_SHARE = 0.6
"""Of an estimate; English lessons were measured to take 1 / 1.4 of theirs."""
TOOL_TOKENS = 150
"""Of the description of one tool."""
STEP_TOKENS = 600
"""Of the output of one tool call, at the high end."""
SUMMARY_TOKENS = 160
"""Of the reply of Stage 1: 32 words, the deciding step and the cause, as JSON; twice as many with tools."""
ADVANTAGE_TOKENS = 60
"""Of one semantic advantage in the reply of Stage 2."""
OPERATION_TOKENS = 90
"""Of one operation: at most 3 for each group."""
JUDGE_PROMPT_TOKENS, JUDGE_REPLY_TOKENS = 400, 150
"""Of a judge's template with its rubric, and of its verdict."""


class Bounds(Record):
    """The least and the most."""

    low: Usage = Usage()
    high: Usage = Usage()

    def __add__(self, other: Bounds) -> Bounds:
        return Bounds(low=self.low + other.low, high=self.high + other.high)


class Estimate(Record):
    """What a run may take."""

    rollouts: Bounds = Bounds()
    judging: Bounds = Bounds()
    extraction: Bounds = Bounds()
    gate: Bounds = Bounds()
    """Of the gate `trial` (`core.workspace.gate_plan`)."""

    @property
    def total(self) -> Bounds:
        return self.rollouts + self.judging + self.extraction + self.gate


def estimate(
    tasks: Sequence[Task],
    config: RunConfig,
    endpoint: Endpoint,
    library: Library,
    *,
    extractor: Endpoint | None = None,
    judge: Endpoint | None = None,
) -> Estimate:
    """Say what a run may take; asks no model.

    Args:
        tasks: of one epoch.
        config: of the run.
        endpoint: of its rollouts.
        library: the version that is injected.
        extractor: of the LLM stages; None where there are none.
        judge: of the verifiers that ask a model; None where there are none.
    """
    sizes = _Sizes(config, endpoint, library)
    epochs_at_most = config.epochs * (1 + (config.resample.attempts if config.resample else 0))
    extraction = Bounds()
    if extractor is not None and config.split == "train":
        extraction = Bounds(high=_extraction(tasks, config, extractor, sizes))
    return Estimate(
        rollouts=_rollouts(tasks, config, endpoint, sizes, epochs_at_most),
        judging=_judging(tasks, config, judge, sizes, epochs_at_most) if judge is not None else Bounds(),
        extraction=extraction,
    )


def duration_s(found: Bounds, endpoint: Endpoint, seconds_a_call: float) -> tuple[float, float]:
    """About how long calls of an endpoint take, at least and at most, when as many as it allows are under way at once.

    Args:
        found: the calls and their tokens.
        endpoint: who is asked.
        seconds_a_call: as measured.
    """

    def of(usage: Usage) -> float:
        tokens = usage.prompt_tokens + usage.completion_tokens
        waits = [usage.calls * seconds_a_call / min(endpoint.concurrency, max(1, usage.calls))]
        if endpoint.requests_per_minute:
            waits.append(60 * usage.calls / endpoint.requests_per_minute)
        if endpoint.tokens_per_minute:
            waits.append(60 * tokens / endpoint.tokens_per_minute)
        return max(waits)

    return of(found.low), of(found.high)


class _Sizes:
    """Tokens of what prompts are made of."""

    def __init__(self, config: RunConfig, endpoint: Endpoint, library: Library) -> None:
        self._config = config
        self._endpoint = endpoint
        self._live = [e for e in library if e.status == "live"]
        self._lessons: dict[str, int] = {}
        self.library = library_tokens(library)
        self.tools = TOOL_TOKENS * len(config.agent.tools) if config.agent else 0

    def asked(self, task: Task) -> int:
        """The question, with the right answer where there is one."""
        return estimate_tokens(task.question) + estimate_tokens(task.answer or "")

    def prompt(self, task: Task) -> int:
        """The first prompt of a rollout."""
        system = task.metadata.get("system")
        own = estimate_tokens(task.question) + estimate_tokens(system if isinstance(system, str) else "")
        instructions = estimate_tokens(self._config.agent.instructions) if self._config.agent else 0
        return CHAT_TEMPLATE_TOKENS + own + instructions + self.tools + self._injected(task.domain)

    def turns(self, task: Task) -> list[int]:
        """The prompts of one rollout at the most: one, or an agent's that uses all its steps, one for each turn."""
        first, agent = self.prompt(task), self._config.agent
        if agent is None:
            return [first]
        room = self._endpoint.context_length - self._config.max_tokens
        turns = agent.max_steps + 1 + bool(agent.gates)  # a gate sends the answer back once
        grown = (first + k * (self._config.max_tokens + STEP_TOKENS) for k in range(turns))
        return [max(first, min(room, tokens)) for tokens in grown]

    def trajectory(self, task: Task) -> int:
        return self.turns(task)[-1] + self._config.max_tokens

    def _injected(self, domain: str) -> int:
        if domain not in self._lessons:
            own = [e for e in self._live if e.domain in (domain, GENERAL)]
            whole = estimate_tokens(render(own).text)
            best = sorted((estimate_tokens(e.text) + 5 for e in own), reverse=True)[:TOP_K]
            fits = len(own) <= WHOLE_LIBRARY and whole <= self._endpoint.injection_budget
            self._lessons[domain] = whole if fits else min(sum(best), self._endpoint.injection_budget)
        return self._lessons[domain]


def _rollouts(
    tasks: Sequence[Task], config: RunConfig, endpoint: Endpoint, sizes: _Sizes, epochs_at_most: int
) -> Bounds:
    group = config.group_size
    requests = 1 if endpoint.sends_n and config.agent is None else group
    turns = [sizes.turns(t) for t in tasks]
    low = sum(t[0] for t in turns) * requests
    replies = sum(len(t) for t in turns) * group * config.max_tokens
    return Bounds(
        low=_usage(endpoint, requests * len(tasks), int(LEAST_SHARE * low), group * len(tasks)),
        high=_usage(
            endpoint,
            epochs_at_most * requests * sum(len(t) for t in turns),
            epochs_at_most * requests * sum(sum(t) for t in turns),
            epochs_at_most * replies,
        ),
    )


def _judging(
    tasks: Sequence[Task], config: RunConfig, judge: Endpoint, sizes: _Sizes, epochs_at_most: int
) -> Bounds:
    added = sum(spec.kind == "judge" for spec in config.reward.verifiers.values())
    asked = [(t, config.group_size * (added + (t.verifier.kind == "judge"))) for t in tasks]
    calls = sum(n for _, n in asked)
    least = sum(n * (JUDGE_PROMPT_TOKENS + sizes.asked(t)) for t, n in asked)
    most = least + calls * config.max_tokens
    return Bounds(
        low=_usage(judge, calls, int(LEAST_SHARE * least), calls),
        high=_usage(
            judge, epochs_at_most * calls, epochs_at_most * most, epochs_at_most * calls * JUDGE_REPLY_TOKENS
        ),
    )


class Lengths(NamedTuple):
    """Tokens of what the LLM stages are shown of one group."""

    asked: int
    """The question, with the right answer where there is one."""
    attempts: Sequence[int]
    """Each attempt whole; what does not fit into a prompt is left out of it."""
    tools: bool
    """Whether the attempts used tools: their summaries are longer."""


def _extraction(tasks: Sequence[Task], config: RunConfig, extractor: Endpoint, sizes: _Sizes) -> Usage:
    """Every task informative once in every epoch."""
    groups = [
        Lengths(sizes.asked(task), [sizes.trajectory(task)] * config.group_size, config.agent is not None)
        for task in tasks
    ]
    once = extraction_usage(groups, config.batch_size, extractor, sizes.library)
    return _usage(
        extractor,
        config.epochs * once.calls,
        config.epochs * once.prompt_tokens,
        config.epochs * once.completion_tokens,
    )


def extraction_usage(
    groups: Sequence[Lengths], batch_size: int, extractor: Endpoint, library_tokens: int
) -> Usage:
    """What the LLM stages take: a summary of each attempt, a contrast of each group, a consolidation of each batch.

    Args:
        groups: informative ones.
        batch_size: groups of one batch.
        extractor: who is asked.
        library_tokens: of the library as it is shown (`library_tokens`).
    """
    context = extractor.context_length

    def within(tokens: int) -> int:
        return min(tokens, context - MARGIN)

    prompts = replies = calls = 0
    for group in groups:
        n, summary = len(group.attempts), SUMMARY_TOKENS * (2 if group.tools else 1)
        prompts += sum(within(_template("summarise") + group.asked + tokens) for tokens in group.attempts)
        prompts += within(_template("contrast") + group.asked + n * summary + library_tokens)
        replies += n * summary + n * ADVANTAGE_TOKENS + MAX_OPERATIONS * OPERATION_TOKENS
        calls += n + 1
    batches = [batch_size] * (len(groups) // batch_size)
    if rest := len(groups) % batch_size:
        batches.append(rest)
    for size in batches:
        drafts = MAX_OPERATIONS * size * OPERATION_TOKENS
        prompts += within(_template("consolidate") + drafts + library_tokens)
        replies += reply_tokens(context, min(drafts // 2, CONSOLIDATION_TOKENS))
    return _usage(extractor, calls + len(batches), prompts, replies)


def library_tokens(library: Library) -> int:
    """Tokens of a library as the LLM stages are shown it."""
    live = [e for e in library if e.status == "live"]
    return sum(estimate_tokens(e.text) + 20 for e in live[:WHOLE_LIBRARY])


def _template(name: str) -> int:
    return tokens_of(prompt(name, **dict.fromkeys(placeholders(name), "")))


def _usage(endpoint: Endpoint, calls: int, prompt_tokens: int, completion_tokens: int) -> Usage:
    return Usage(
        calls=calls,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        cost_usd=endpoint.cost(prompt_tokens, completion_tokens),
    )
