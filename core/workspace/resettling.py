"""Groups that are settled again after they were stored: by a rescoring, a user's word on an outcome, an import."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from core.ports import Embedder
from core.rollout import Group, Run
from core.settings import RewardConfig
from core.settling import settle
from core.store import Store
from core.workspace.exploring import Exploring, explored


class Resettling:
    """Settles stored groups of one workspace again."""

    def __init__(self, store: Store, embedder: Callable[[], Embedder]) -> None:
        """
        Args:
            store: of the workspace.
            embedder: makes the one of the epistemic reward, when it is needed.
        """
        self._store = store
        self._exploring = Exploring(store, embedder)

    def settled(self, group: Group, reward: RewardConfig, waited_s: float) -> Group:
        """The group with its rewards as they are made now; nothing is written but embeddings.

        Args:
            group: its rollouts whole.
            reward: how rewards are made.
            waited_s: seconds for which a user could have rejected an outcome.

        Raises:
            InputError: a score or a reward is no finite number.
            ModelUnavailableError: the epistemic reward is wanted, and the embedder cannot be had.
        """
        after = settle(group, reward, waited_s=waited_s)
        if "epistemic" not in reward.by_component:
            return after
        return settle(explored(after, self._exploring), reward, waited_s=waited_s)

    def prepare(self, answers: Sequence[str], reward: RewardConfig) -> None:
        """Embed answers where the reward needs it, lest `settled` asks a model inside a transaction.

        Raises:
            ModelUnavailableError: the embedder cannot be had.
        """
        if answers and "epistemic" in reward.by_component:
            self._exploring.prepare(answers)

    def waited_s(self, run: Run) -> float:
        """Seconds for which a user could have rejected an outcome: since the run was finished, or imported."""
        if run.finished_at is None:
            return 0.0
        now = datetime.fromisoformat(self._store.events.clock())
        return (now - datetime.fromisoformat(run.finished_at)).total_seconds()
