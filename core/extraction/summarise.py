"""Stage 1: every scored rollout of an informative group, summed up in a few words (DESIGN 2.3).

1. At most 32 words for a text trajectory, 64 for one with tools. A longer summary is asked for again; one that
   is still too long is shortened at a sentence end, visibly, and its reply is kept whole.
2. The sign comes from the measured advantage, never from the model.
3. A trajectory that does not fit the context is condensed step by step, head and tail of each, with visible
   marks; it is never cut blindly and never dropped.
4. Rollouts that read the same in the prompt share one call.
"""

from __future__ import annotations

import bisect
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from core.errors import AnswerError
from core.experience import Experience
from core.extraction import replies
from core.injection import estimate_tokens, render
from core.ports import ChatModel, Completion, Sampling
from core.record import Record, canonical_json
from core.rollout import Group, Message, Rollout, Step, Task, Trajectory
from core.words import count_words

TEXT_WORDS = 32
"""Most words of the summary of a text trajectory (TF-GRPO, Stage 1)."""
TOOL_WORDS = 64
"""Most words of the summary of a trajectory with tool calls (Agent-GRPO, Stage 1)."""
REPLY_TOKENS = 1_000

Verdict = Literal["better", "worse", "par"]
"""How a rollout did against its group: the sign of its advantage."""

SCHEMA = canonical_json(
    replies.schema(
        {
            "summary": {"type": "string"},
            "key_decision": {"type": "string"},
            "root_cause": {"type": "string"},
            "used_experiences": {"type": "array", "items": {"type": "string"}},
            "domain": {"type": "string"},
        }
    )
)


class Summary(Record):
    """One rollout in a few words."""

    rollout_id: str
    text: str
    """At most `TEXT_WORDS` or `TOOL_WORDS` words."""
    verdict: Verdict
    key_decision: str = ""
    root_cause: str = ""
    used: tuple[str, ...] = ()
    """Ids of the injected experiences that it followed, as the model saw it."""
    ignored: tuple[str, ...] = ()
    """Ids of the injected experiences that it did not follow."""
    domain: str = ""
    """The model's own label; empty where it gave none."""
    shortened: bool = False
    """Whether the model's text was too long even when asked again, and ends at an earlier sentence here."""
    raw_reply: str = ""


class Unsummarised(Record):
    """A rollout that no usable summary was to be had for."""

    rollout_id: str
    reason: str
    raw_reply: str = ""


def verdict_of(rollout: Rollout) -> Verdict:
    """The sign of the advantage."""
    if rollout.advantage is None or abs(rollout.advantage) <= 1e-9:
        return "par"
    return "better" if rollout.advantage > 0 else "worse"


async def summarise(
    task: Task,
    group: Group,
    library: Sequence[Experience],
    model: ChatModel,
    *,
    seed: int = 0,
    withhold_answer: bool = False,
    calls: Counter[str] | None = None,
    done: Callable[[], None] = lambda: None,
) -> list[Summary | Unsummarised]:
    """Sum up the scored rollouts of one group, in their order; the others take no part.

    Args:
        task: what was tried.
        group: its rollouts, with rewards and advantages.
        library: the experiences that were injected are looked up here.
        model: who sums up; may answer many at once.
        seed: of the sampling.
        withhold_answer: keep the right answer and the verifiers' reasons from the model.
        calls: is counted up under "summarise" and "retry".
        done: is called after each rollout.

    Raises:
        ModelUnavailableError, BudgetError, InputError: see `replies.ask`; the other calls are cancelled.
    """
    counter = Counter[str]() if calls is None else calls
    rollouts = [r for r in group.rollouts if r.outcome == "scored"]
    prompts = {r.id: _prompt(task, r, library, model, withhold_answer) for r in rollouts}
    keys = {r.id: canonical_json([m.model_dump() for m in prompts[r.id]]) for r in rollouts}
    first_of: dict[str, Rollout] = {}
    for r in rollouts:
        first_of.setdefault(keys[r.id], r)
    sampling = Sampling(
        temperature=0.0,
        top_p=1.0,
        max_tokens=replies.reply_tokens(model.context_length, REPLY_TOKENS),
        seed=seed,
        json_schema=SCHEMA,
    )

    async def one(rollout: Rollout) -> replies.Answer[_Said]:
        answer = await replies.ask(
            model, prompts[rollout.id], sampling, _reader(rollout), stage="summarise", calls=counter
        )
        for key in keys.values():
            if key == keys[rollout.id]:
                done()
        return answer

    answers = dict(zip(first_of, await replies.all_of(map(one, first_of.values())), strict=True))
    return [_summary(r, answers[keys[r.id]]) for r in rollouts]


class _Said(NamedTuple):
    text: str
    key_decision: str
    root_cause: str
    used: tuple[str, ...]
    domain: str


def limit_of(rollout: Rollout) -> int:
    """Most words of its summary."""
    return TOOL_WORDS if rollout.trajectory.steps else TEXT_WORDS


def _reader(rollout: Rollout) -> Callable[[Completion], tuple[_Said, str]]:
    def read(reply: Completion) -> tuple[_Said, str]:
        value = replies.read_json(reply, ("summary",))
        if isinstance(value, list):
            value = next((item for item in value if isinstance(item, Mapping)), {})
        entry = replies.lowered(value)
        text = replies.plain(entry.get("summary"))
        if not text:
            raise AnswerError('the object holds no "summary"', reply.text)
        used = tuple(
            rollout.injected[label.upper()]
            for label in replies.labels_in(entry.get("used_experiences"))
            if label.upper() in rollout.injected
        )
        said = _Said(
            text,
            replies.plain(entry.get("key_decision")),
            replies.plain(entry.get("root_cause")),
            tuple(dict.fromkeys(used)),
            replies.plain(entry.get("domain")),
        )
        words, limit = count_words(text), limit_of(rollout)
        return said, f"the summary has {words} words, at most {limit} are allowed" if words > limit else ""

    return read


def _summary(rollout: Rollout, answer: replies.Answer[_Said]) -> Summary | Unsummarised:
    said, limit = answer.value, limit_of(rollout)
    if said is None:
        return Unsummarised(rollout_id=rollout.id, reason=answer.error, raw_reply=answer.raw)
    text = shorten(said.text, limit)
    return Summary(
        rollout_id=rollout.id,
        text=text,
        verdict=verdict_of(rollout),
        key_decision=shorten(said.key_decision, limit),
        root_cause=shorten(said.root_cause, limit),
        used=said.used,
        ignored=tuple(e for e in dict.fromkeys(rollout.injected.values()) if e not in said.used),
        domain=said.domain,
        shortened=text != said.text,
        raw_reply=answer.raw,
    )


def shorten(text: str, words: int) -> str:
    """The text itself where it is short enough, else its first sentences (or clauses, or words) and a mark.

    >>> shorten("Read the file first. Then it guessed the column and failed.", 6)
    'Read the file first. [...]'
    """
    if count_words(text) <= words:
        return text
    for boundary in (r"(?<=[.!?。！？])\s*", r"(?<=[,;:、，；])\s*", r"\s+", r""):
        ends = [m.start() for m in re.finditer(boundary, text) if m.start()]
        end = bisect.bisect_right(ends, words, key=lambda i: count_words(text[:i]))
        if end and count_words(text[: ends[end - 1]]) * 2 >= words:
            return text[: ends[end - 1]].rstrip() + " [...]"
    return "[...]"


# ---- the prompt -----------------------------------------------------------------------------------------


def _prompt(
    task: Task, rollout: Rollout, library: Sequence[Experience], model: ChatModel, withhold_answer: bool
) -> list[Message]:
    def filled(question: str, attempt: str) -> list[Message]:
        return replies.prompt(
            "summarise",
            limit=str(limit_of(rollout)),
            domain=replies.fence(task.domain),
            question=replies.fence(question),
            answer=answer_shown(task, withhold_answer),
            lessons=_lessons(rollout, library),
            attempt=replies.fence(attempt),
            outcome=outcome_shown(rollout, withhold_answer),
        )

    room = prompt_room(model, REPLY_TOKENS)
    question = fitted(task.question, room // 3)
    bare = sum(estimate_tokens(m.content) for m in filled(question, ""))
    return filled(question, condense(task, rollout, library, room - bare))


def prompt_room(model: ChatModel, wanted_reply: int) -> int:
    """Tokens that a prompt may have, so that the reply still fits the context."""
    return model.context_length - replies.reply_tokens(model.context_length, wanted_reply) - 32


def fitted(text: str, tokens: int) -> str:
    """The text, or as much of its head and tail as fits."""
    return text if _fits(text, tokens) else _largest(lambda n: replies.clip(text, n), len(text), tokens)


def answer_shown(task: Task, withhold_answer: bool) -> str:
    """The right answer as the model gets to see it."""
    if withhold_answer:
        return "(withheld)"
    return "(none is given)" if task.answer is None else replies.fence(task.answer)


def outcome_shown(rollout: Rollout, withhold_answer: bool) -> str:
    """Reward and sign of an attempt, with the verifiers' reasons unless the answer is withheld."""
    words = {"better": "better than", "worse": "worse than", "par": "as well as"}[verdict_of(rollout)]
    reasons = [f"{name}: {score.reason}" for name, score in rollout.scores.items() if score.reason]
    sentence = f"reward {rollout.reward:.3g}; it did {words} its group."
    if withhold_answer or not reasons:
        return sentence
    return f"{sentence} The verifiers said:\n{replies.fence(replies.clip('; '.join(reasons), 400))}"


def _lessons(rollout: Rollout, library: Sequence[Experience]) -> str:
    texts = {e.id: e.text for e in library}
    lines = [f"[{g}] {texts.get(i, '(no longer in the library)')}" for g, i in rollout.injected.items()]
    return replies.fence("\n".join(lines)) if lines else "(none)"


# ---- condensing a trajectory ----------------------------------------------------------------------------


class _Part(NamedTuple):
    head: str
    body: tuple[str, ...]
    step: Step | None = None

    def shown(self, characters: int) -> str:
        return "\n".join([self.head, *(replies.clip(text, characters) for text in self.body)])


LEAST_CHARACTERS = 60
"""What is shown of parameters, output and message at the least, before whole steps are left out and counted."""
ERROR_CHARACTERS = 300
"""What is shown of an error at the least: it says most about a failure."""


def condense(task: Task, rollout: Rollout, library: Sequence[Experience], tokens: int) -> str:
    """A trajectory as text of about `tokens` tokens at most.

    Whole where it fits. Else the middle of each step and message is left out, equally far for all; where that
    is not enough, whole steps of the middle are left out and counted, those that worked before those that
    failed. Each place is marked.
    """
    parts = _parts(task, rollout, library)
    longest = max((len(text) for p in parts for text in p.body), default=0)
    whole = _shown(parts, longest, set(range(len(parts))))
    if _fits(whole, tokens):
        return whole
    everything = set(range(len(parts)))
    if _fits(_shown(parts, LEAST_CHARACTERS, everything), tokens):
        shorter = _largest(lambda n: _shown(parts, n + LEAST_CHARACTERS - 1, everything), longest, tokens)
    else:
        order = sorted(everything, key=lambda i: _rank(i, parts))
        shorter = _largest(lambda n: _shown(parts, LEAST_CHARACTERS, set(order[:n])), len(parts), tokens)
    return fitted(shorter, tokens)


def _rank(i: int, parts: Sequence[_Part]) -> float:
    step = parts[i].step
    failed = step is not None and (step.success is False or step.error is not None)
    return min(i, len(parts) - 1 - i) / (3 if failed else 1)


def _parts(task: Task, rollout: Rollout, library: Sequence[Experience]) -> list[_Part]:
    trajectory = rollout.trajectory
    parts = [
        _Part(f"[{m.role}]", (content,))
        for m in trajectory.messages
        if (content := _worth_showing(m, task, rollout, library))
    ]
    parts += [_step_part(i, step) for i, step in enumerate(trajectory.steps, start=1)]
    return [*parts, _Part("[final answer]", (_answer(trajectory),))]


def _worth_showing(m: Message, task: Task, rollout: Rollout, library: Sequence[Experience]) -> str:
    """What of a message is not shown elsewhere in the prompt."""
    if m.role == "user" and m.content == task.question:
        return ""
    if m.role == "tool" and rollout.trajectory.steps:
        return ""
    if m.role == "assistant" and m.content == rollout.trajectory.answer:
        return ""
    if m.role == "system" and rollout.injected:
        by_id = {e.id: e for e in library}
        injected = render([by_id[i] for i in rollout.injected.values() if i in by_id])
        return m.content.removesuffix(injected.text).rstrip()
    return m.content


def _answer(trajectory: Trajectory) -> str:
    cut = "\n(cut off at the token limit)" if trajectory.finish_reason == "length" else ""
    return (trajectory.answer or "(empty)") + cut


def _step_part(number: int, step: Step) -> _Part:
    result = {True: "worked", False: "failed", None: "outcome not recorded"}[step.success]
    error = f": {replies.clip(step.error, ERROR_CHARACTERS)}" if step.error else ""
    parameters = json.dumps(step.parameters, ensure_ascii=False, default=str)
    body = [f"parameters: {replies.plain(parameters)}"]
    body += [f"output: {step.output}"] if step.output else []
    return _Part(f"[step {number}] {step.tool}: {result}{error}", tuple(body), step)


def _shown(parts: Sequence[_Part], characters: int, kept: set[int]) -> str:
    lines: list[str] = []
    gap: list[_Part] = []
    for i, part in enumerate(parts):
        if i not in kept:
            gap.append(part)
            continue
        lines += _gap_line(gap)
        gap = []
        lines.append(part.shown(characters))
    return "\n".join([*lines, *_gap_line(gap)])


def _gap_line(gap: Sequence[_Part]) -> list[str]:
    if not gap:
        return []
    steps = [p.step for p in gap if p.step is not None]
    tools = Counter(s.tool for s in steps).most_common(4)
    failed = sum(s.success is False for s in steps)
    said = ", ".join(f"{tool} x{n}" for tool, n in tools)
    detail = f": {said}; {failed} failed" if steps else ""
    return [f"[... {len(gap)} messages or steps left out{detail} ...]"]


def _fits(text: str, tokens: int) -> bool:
    # A token holds seldom more than 12 characters: a huge text need not be looked at in full.
    return len(text) <= max(0, tokens) * 12 and estimate_tokens(text) <= tokens


def _largest(made: Callable[[int], str], most: int, tokens: int) -> str:
    """made(n) for the largest n up to `most` that fits, found by halving; made(1) where none does."""
    low, high = 1, max(1, most)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _fits(made(middle), tokens) else (low, middle - 1)
    return made(low)
