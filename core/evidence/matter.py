"""Matter: what is kept of a task once its groups are counted: how it asks, never what the answer is."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from core.evidence.instructions import Instruction, is_instruction, read_instruction, without_material
from core.rollout import Task

MAX_TOKENS = 60
"""Words at either end of a question that a pattern is looked for in."""

_NUMERIC = re.compile(r"[-+]?[\d.,]+")
_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*|[-+*/=×÷]")


@dataclass(frozen=True, slots=True)
class Matter:
    """How one task asks."""

    task_id: str
    domain: str
    instruction: Instruction
    sentences: tuple[tuple[str, ...], ...]
    """Words of its sentences that are no instruction and no material, numbers as "#"; of long ones the ends."""
    digest: int
    """Of the question: differs where questions do."""
    opening: str
    """The first word of the question."""
    numeric: bool | None
    """Whether the answer is a number; None where none is given."""
    wordy: bool
    """Whether the answer has several words."""

    @classmethod
    def of(cls, task: Task) -> Matter:
        parts = re.split(r"(?<=[.?!:])\s+|\n", without_material(task.question))
        told = [_tokens(part) for part in parts if part.strip() and not is_instruction(part)]
        answer = (task.answer or "").strip()
        return cls(
            task_id=task.id,
            domain=task.domain,
            instruction=read_instruction(task.question),
            sentences=_ends([words for words in told if words]),
            digest=zlib.crc32(task.question.encode(errors="replace")),
            opening=next(iter(_tokens(task.question[:200])), ""),
            numeric=_NUMERIC.fullmatch(answer) is not None if answer else None,
            wordy=len(answer.split(maxsplit=1)) > 1,
        )


def _tokens(text: str) -> tuple[str, ...]:
    return tuple("#" if w[0].isdigit() else w for w in _TOKEN.findall(text.lower()))


def _ends(sentences: list[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """The sentences within the first and the last `MAX_TOKENS` words, so that a long text costs no room."""
    kept, before, total = [], 0, sum(map(len, sentences))
    for words in sentences:
        first = words[: max(0, MAX_TOKENS - before)]
        last = words[len(first) :][-max(0, MAX_TOKENS - (total - before - len(words))) :]
        if total - before - len(words) >= MAX_TOKENS:
            last = ()
        kept += [part for part in (first, last) if part] if len(first) + len(last) < len(words) else [words]
        before += len(words)
    return tuple(kept)
