"""The epistemic reward u of an answer: half diversity, half novelty (DESIGN 2.2; the weight is the ASO paper's)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from core.similarity import cosine

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DECIMALS = 6
"""Of a half: single precision knows no more, and equal answers are exactly equal."""


class Halves(NamedTuple):
    """What u is the mean of, each in [0, 1]."""

    diversity: float | None
    """Mean over the other answers of the group of 1 - cosine; None where there is no other."""
    novelty: float
    """1 - the largest cosine to an earlier answer to the same task; 1 where there is none."""


def halves(answers: NDArray[np.float32], earlier: NDArray[np.float32]) -> list[Halves]:
    """Diversity and novelty of each answer of a group. Cosines below 0 count as 0.

    Args:
        answers: vectors of the scored rollouts of one group, shape [G, d]; those that broke off or could not be
            scored take no part.
        earlier: vectors of the answers that were stored for this task before the group began, shape [N, d].
    """
    import numpy as np

    alike = np.clip(cosine(answers, answers).astype(np.float64), 0, 1)
    others = len(answers) - 1
    np.fill_diagonal(alike, 0)
    known = np.clip(cosine(answers, earlier).astype(np.float64), 0, 1) if len(earlier) else None
    found = []
    for i in range(len(answers)):
        diversity = round(float(1 - alike[i].sum() / others), DECIMALS) if others else None
        novelty = 1.0 if known is None else round(float(1 - known[i].max()), DECIMALS)
        found.append(Halves(diversity, novelty))
    return found
