"""What is injected for a task of a run: the selection of `core.memory` under the endpoint's budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from core.injection import estimate_tokens
from core.library import Library
from core.memory import LeftOut, select
from core.rollout import Task
from core.runner import Prompt
from core.settings import Endpoint, RunConfig
from core.workspace.nearest import Nearest

CHAT_TEMPLATE_TOKENS = 32
"""What a chat template may add to a prompt."""

NAMED = 20
"""Lessons that a group keeps by id where they were left out: those that came nearest. The others are counted."""


class Prompts:
    """Called with a task, gives its prompt. The embedder is loaded only where candidates must be ranked."""

    def __init__(self, library: Library, endpoint: Endpoint, config: RunConfig, nearest: Nearest) -> None:
        self._experiences = list(library)
        self._endpoint = endpoint
        self._config = config
        self._nearest = nearest

    def __call__(self, task: Task) -> Prompt:
        selection = select(
            self._experiences,
            task.question,
            domain=task.domain,
            budget_tokens=self._budget(task),
            embed=self._nearest.embed,
            error_text=error if isinstance(error := task.metadata.get("error"), str) else "",
        )
        return Prompt(selection.injection, kept(selection.left_out))

    def _budget(self, task: Task) -> int:
        """The endpoint's injection budget, or less where the question and the reply need the room."""
        free = self._endpoint.context_length - self._config.max_tokens - CHAT_TEMPLATE_TOKENS
        system = task.metadata.get("system")
        taken = estimate_tokens(task.question) + (estimate_tokens(system) if isinstance(system, str) else 0)
        return max(0, min(self._endpoint.injection_budget, free - taken))


def kept(left_out: Sequence[LeftOut]) -> dict[str, str]:
    """What a group keeps of the lessons that it was not given: the reasons of the nearest by id, the others by reason.

    A library of ten thousand would else be written down with each of its groups.

    >>> kept([LeftOut(experience_id=f"E-{i:04d}", why="other domain") for i in range(1, 41)])["other domain"]
    '20 more'
    """
    ranked = [out for out in left_out if out.score is not None]  # the best first
    nearest = [*ranked, *(out for out in left_out if out.score is None)]
    more = Counter(str(out.why) for out in nearest[NAMED:])
    named = {out.experience_id: str(out.why) for out in nearest[:NAMED]}
    return named | {why: f"{n:,} more" for why, n in more.items()}
