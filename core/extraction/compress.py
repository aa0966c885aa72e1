"""A draft of more than `MAX_WORDS` words gets one compression call (DESIGN 2.6, rule 4).

One that stays too long is kept as it was, and the reviewer must edit it before it can be approved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from core.errors import AnswerError, InputError
from core.executor import all_home
from core.experience import MAX_WORDS, check_text
from core.extraction import replies
from core.extraction.asking import ask
from core.extraction.draft import Draft
from core.extraction.fitting import fitted, tokens_of
from core.extraction.reconcile import Table, both
from core.extraction.template import fence, prompt
from core.ports import ChatModel, Completion
from core.record import canonical_json
from core.rollout import Message
from core.words import count_words

REPLY_TOKENS = 1_000
SCHEMA = canonical_json(replies.schema({"text": {"type": "string"}}))


def too_long(draft: Draft) -> bool:
    """Whether a draft says more than an experience may."""
    return draft.text is not None and count_words(draft.text) > MAX_WORDS


def note_too_long(table: Table) -> None:
    """Tell the reviewer what must be edited."""
    for draft in table.drafts:
        if too_long(draft):
            words = count_words(draft.text or "")
            table.notes.append(f"A draft has {words} words and must be edited before approval: {draft.text}")


async def compress(table: Table, model: ChatModel, seed: int) -> None:
    """One call for each draft that is too long, all at once."""

    async def one(i: int) -> None:
        table.drafts[i] = await _compressed(table.drafts[i], model, seed, table.calls)

    await all_home([one(i) for i, draft in enumerate(table.drafts) if too_long(draft)])


async def _compressed(draft: Draft, model: ChatModel, seed: int, calls: Counter[str]) -> Draft:
    text = draft.text or ""

    def read(reply: Completion) -> tuple[str, str]:
        value = replies.read_json(reply, ("text",))
        found = replies.lowered(value).get("text") if isinstance(value, Mapping) else None
        if not isinstance(found, str):
            raise AnswerError('the object holds no "text"', reply.text)
        return usable(found), ""

    def filled(lesson: str) -> list[Message]:
        return prompt(
            "compress", max_words=str(MAX_WORDS), words=str(count_words(text)), lesson=fence(lesson)
        )

    answer = await ask(
        model,
        lambda room: filled(fitted(text, room - tokens_of(filled("")))),
        read,
        stage="compress",
        tokens=REPLY_TOKENS,
        schema=SCHEMA,
        seed=seed,
        calls=calls,
        again=False,
    )
    if answer.value is None:
        return remarked(draft, f"(It could not be shortened: {answer.error})")
    if count_words(answer.value) > MAX_WORDS:
        return remarked(draft, f"(It could not be shortened: {count_words(answer.value)} words were left.)")
    short = draft.model_copy(
        update={
            "operation": draft.operation.model_copy(update={"text": answer.value}),
            "raw_reply": both(draft.raw_reply, answer.raw, "\n\n--- shortened ---\n\n"),
        }
    )
    return remarked(short, f"(Shortened from {count_words(text)} words: {text})")


def usable(text: str) -> str:
    """The text, if an experience could hold it.

    Raises:
        InputError: it could not.
    """
    try:
        return check_text(text.strip())
    except ValueError as e:
        raise InputError(str(e)) from e


def remarked(draft: Draft, remark: str) -> Draft:
    """The draft with a remark for the reviewer."""
    return draft.model_copy(update={"rationale": both(draft.rationale, remark, " ")})
