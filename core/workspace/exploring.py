"""Diversity and novelty of answers, from their embeddings and from what was answered before (DESIGN 2.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from core.epistemic import Halves, halves
from core.rollout import Group
from core.settling import HALVES
from core.store import Store
from core.store.groups import ANSWER_SHOWN

if TYPE_CHECKING:
    from core.ports import Embedder


class Exploring:
    """Tells how new the answers of a group are. Blocks: it embeds and reads; threads may share one."""

    def __init__(self, store: Store, embedder: Callable[[], Embedder]) -> None:
        """The embedder is made when it is first needed: loading one takes a second."""
        self._store = store
        self._embedder = cache(embedder)

    def __call__(self, group_id: str, answers: Sequence[str]) -> list[Halves]:
        """Diversity and novelty of the answers of the scored rollouts of a group, in their order.

        Answers count up to `ANSWER_SHOWN` characters, of which the embedder reads no more than its window anyway.

        Raises:
            ModelUnavailableError: the embedder cannot be had.
        """
        embedder = self._embedder()
        own = self._store.embeddings.embed([a[:ANSWER_SHOWN] for a in answers], embedder)
        earlier = self._store.embeddings.embed(self._store.scores.earlier_answers(group_id), embedder)
        return halves(own, earlier)

    def prepare(self, answers: Sequence[str]) -> None:
        """Embed answers beforehand, which may take long.

        Raises:
            ModelUnavailableError: the embedder cannot be had.
        """
        self._store.embeddings.embed([a[:ANSWER_SHOWN] for a in answers], self._embedder())


def explored(group: Group, exploring: Callable[[str, Sequence[str]], Sequence[Halves]]) -> Group:
    """A settled group with the halves of its epistemic reward, of which the unscored rollouts have none.

    Stored halves stand where every scored rollout has them: the total is made from stored parts, not from a model.
    """
    scored = [r for r in group.rollouts if r.extrinsic is not None]
    if all(r.components.get(half) is not None for r in scored for half in HALVES):
        return group
    found = exploring(group.id, [r.trajectory.answer for r in scored])
    known = {r.id: dict(zip(HALVES, pair, strict=True)) for r, pair in zip(scored, found, strict=True)}
    rollouts = tuple(
        r.model_copy(update={"components": r.components | known.get(r.id, dict.fromkeys(HALVES))})
        for r in group.rollouts
    )
    return group.model_copy(update={"rollouts": rollouts})
