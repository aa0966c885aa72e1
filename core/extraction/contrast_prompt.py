"""What the model is shown of a group, so that it can contrast its rollouts.

Where the context is too small, the lines of the attempts are shortened alike, with visible marks, and the least
relevant experiences are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from core.experience import MAX_WORDS, Experience
from core.extraction.attempt import calls_shown
from core.extraction.fitting import ANY, clip, fits, fitted, largest, surely_fit, tokens_of
from core.extraction.summarise import Summary, answer_shown, outcome_shown
from core.extraction.template import fence, prompt
from core.injection import estimate_tokens
from core.rollout import Group, Message, Rollout, Task

MAX_OPERATIONS = 3
"""Most operations of one group (DESIGN 2.4)."""
LEAST_CHARACTERS = 60
"""What is shown of each line of an attempt at the least."""
MOST_CHARACTERS = 2_000
"""What is shown of it at most once the attempts have to be shortened."""


class ContrastPrompt(NamedTuple):
    """The prompt of one group for any room."""

    task: Task
    group: Group
    summaries: Sequence[Summary]
    candidates: Sequence[Experience]
    """What may be shown of the library, the most relevant first."""
    withhold_answer: bool

    def fitted(self, room: int) -> tuple[list[Message], list[Experience]]:
        """The messages, of at most so many tokens where that can be had, and the experiences that they show."""
        whole = self._with(room, fence(self.task.question), self.candidates, self._attempts(ANY))
        if surely_fit((m.content for m in whole), room):
            return whole, list(self.candidates)
        question = fence(fitted(self.task.question, room // 4))
        bare = tokens_of(self._with(room, question, (), ""))
        attempts = self._attempts(room - bare)
        left = room - bare - estimate_tokens(attempts)
        shown: list[Experience] = []
        for experience in self.candidates:
            left -= estimate_tokens(_line(experience)) + 1
            if left < 0:
                break
            shown.append(experience)
        return self._with(room, question, shown, attempts), shown

    def _with(
        self, room: int, question: str, experiences: Sequence[Experience], attempts: str
    ) -> list[Message]:
        return prompt(
            "contrast",
            max_operations=str(MAX_OPERATIONS),
            max_words=str(MAX_WORDS),
            domain=fence(self.task.domain),
            question=question,
            answer=answer_shown(self.task, self.withhold_answer, room // 8),
            library=_library_shown(experiences),
            attempts=attempts,
            labels=", ".join(f"R{i}" for i in range(1, len(self.summaries) + 1)),
        )

    def _attempts(self, tokens: int) -> str:
        """All of them; else their lines shortened alike; else of each its summary alone."""
        whole = self._all(ANY)
        if fits(whole, tokens):
            return whole
        brief = not fits(self._all(LEAST_CHARACTERS), tokens)
        least = 1 if brief else LEAST_CHARACTERS
        return largest(lambda n: self._all(least - 1 + n, brief), MOST_CHARACTERS, tokens)

    def _all(self, characters: int, brief: bool = False) -> str:
        rollouts = {r.id: r for r in self.group.rollouts}
        return "\n\n".join(
            _attempt(i, s, rollouts[s.rollout_id], self.withhold_answer or brief, characters, brief)
            for i, s in enumerate(self.summaries, start=1)
        )


def _line(experience: Experience) -> str:
    return f"[{experience.id}] ({experience.kind}, confidence {experience.confidence:.2f}) {experience.text}"


def _library_shown(experiences: Sequence[Experience]) -> str:
    return fence("\n".join(map(_line, experiences))) if experiences else "(empty: only add is possible)"


def _attempt(
    number: int, summary: Summary, rollout: Rollout, without_reasons: bool, characters: int, brief: bool
) -> str:
    lines = {"": summary.text}
    if not brief:
        lines |= {
            "Key decision: ": summary.key_decision,
            "Root cause: ": summary.root_cause,
            "Calls: ": calls_shown(rollout.trajectory),
            "Lessons followed: ": ", ".join(summary.used),
            "Lessons not followed: ": ", ".join(summary.ignored),
        }
    said = "\n".join(f"{what}{clip(text, characters)}" for what, text in lines.items() if text)
    return f"R{number}: {outcome_shown(rollout, without_reasons)}\nIts summary:\n{fence(said)}"
