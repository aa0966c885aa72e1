"""What is injected for a task of a run: the selection of `core.memory` under the endpoint's budget."""

from __future__ import annotations

from core.injection import estimate_tokens
from core.library import Library
from core.memory import select
from core.rollout import Task
from core.runner import Prompt
from core.settings import Endpoint, RunConfig
from core.workspace.nearest import Nearest

CHAT_TEMPLATE_TOKENS = 32
"""What a chat template may add to a prompt."""


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
        return Prompt(selection.injection, {out.experience_id: out.why for out in selection.left_out})

    def _budget(self, task: Task) -> int:
        """The endpoint's injection budget, or less where the question and the reply need the room."""
        free = self._endpoint.context_length - self._config.max_tokens - CHAT_TEMPLATE_TOKENS
        system = task.metadata.get("system")
        taken = estimate_tokens(task.question) + (estimate_tokens(system) if isinstance(system, str) else 0)
        return max(0, min(self._endpoint.injection_budget, free - taken))
