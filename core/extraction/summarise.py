"""Stage 1: every scored rollout of an informative group, summed up in a few words (DESIGN 2.3).

1. At most 32 words for a text trajectory, 64 for one with tools. A longer summary is asked for again; one that
   is still too long is shortened at a sentence end, visibly, and its reply is kept whole.
2. The sign comes from the measured advantage, never from the model.
3. Rollouts that read the same in the prompt share one call.
"""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Literal, NamedTuple

from core.errors import AnswerError
from core.executor import all_home
from core.experience import Experience
from core.extraction import replies
from core.extraction.asking import Answer, ask
from core.extraction.attempt import condense
from core.extraction.fitting import ANY, clip, fitted, prompt_room, surely_fit, tokens_of
from core.extraction.template import fence, prompt
from core.ports import ChatModel, Completion
from core.record import Record, canonical_json, content_hash
from core.rollout import Group, Message, Rollout, Task
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
        ModelUnavailableError, BudgetError, InputError, StoppedError: see `asking.ask`; the other calls are cancelled.
    """
    counter = Counter[str]() if calls is None else calls
    rollouts = [r for r in group.rollouts if r.outcome == "scored"]
    prompts = {r.id: cache(partial(_prompt, task, r, library, withhold_answer)) for r in rollouts}
    keys = {r.id: _key(r, prompts[r.id](prompt_room(model, REPLY_TOKENS))) for r in rollouts}
    first_of: dict[str, Rollout] = {}
    for r in rollouts:
        first_of.setdefault(keys[r.id], r)
    shared = Counter(keys.values())

    async def one(key: str, rollout: Rollout) -> Answer[_Said]:
        answer = await ask(
            model,
            prompts[rollout.id],
            _reader(rollout),
            stage="summarise",
            tokens=REPLY_TOKENS,
            schema=SCHEMA,
            seed=seed,
            calls=counter,
        )
        for _ in range(shared[key]):
            done()
        return answer

    found = await all_home(one(key, r) for key, r in first_of.items())
    answers = dict(zip(first_of, found, strict=True))
    return [_summary(r, answers[keys[r.id]]) for r in rollouts]


def _key(rollout: Rollout, messages: Sequence[Message]) -> str:
    return content_hash([[m.model_dump() for m in messages], rollout.injected])


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


def _summary(rollout: Rollout, answer: Answer[_Said]) -> Summary | Unsummarised:
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
    task: Task, rollout: Rollout, library: Sequence[Experience], withhold_answer: bool, room: int
) -> list[Message]:
    def filled(question: str, attempt: str) -> list[Message]:
        return prompt(
            "summarise",
            limit=str(limit_of(rollout)),
            domain=fence(task.domain),
            question=fence(question),
            answer=answer_shown(task, withhold_answer, room // 8),
            lessons=_lessons(rollout, library),
            attempt=fence(attempt),
            outcome=outcome_shown(rollout, withhold_answer),
        )

    whole = filled(task.question, condense(task, rollout, library, ANY))
    if surely_fit((m.content for m in whole), room):
        return whole
    question = fitted(task.question, room // 3)
    return filled(question, condense(task, rollout, library, room - tokens_of(filled(question, ""))))


def answer_shown(task: Task, withhold_answer: bool, tokens: int) -> str:
    """The right answer as the model gets to see it, or as much of its head and tail as fits."""
    if withhold_answer:
        return "(withheld)"
    return "(none is given)" if task.answer is None else fence(fitted(task.answer, tokens))


def outcome_shown(rollout: Rollout, withhold_answer: bool) -> str:
    """Reward and sign of an attempt, with the verifiers' reasons unless the answer is withheld."""
    words = {"better": "better than", "worse": "worse than", "par": "as well as"}[verdict_of(rollout)]
    reasons = [f"{name}: {score.reason}" for name, score in rollout.scores.items() if score.reason]
    sentence = f"reward {rollout.reward:.3g}; it did {words} its group."
    if withhold_answer or not reasons:
        return sentence
    return f"{sentence} The verifiers said:\n{fence(clip('; '.join(reasons), 400))}"


def _lessons(rollout: Rollout, library: Sequence[Experience]) -> str:
    texts = {e.id: e.text for e in library}
    lines = [f"[{g}] {texts.get(i, '(no longer in the library)')}" for g, i in rollout.injected.items()]
    return fence("\n".join(lines)) if lines else "(none)"
