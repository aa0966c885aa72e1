"""Effect: whether one arm of an evaluation beats another, by how much, and how sure that is (DESIGN 2.10)."""

from core.effect.correction import benjamini_hochberg, holm
from core.effect.gate import GATE_LEVEL, gate
from core.effect.paired import Paired, paired
from core.effect.sampling import SUCCESS, mean_at_k, pass_at_k, pass_hat_k, successes
from core.effect.sequential import Boundary, Look, Sequential
from core.effect.size import Spread, power, sample_size
from core.effect.vote import Vote, best_of, majority

__all__ = [
    "GATE_LEVEL",
    "SUCCESS",
    "Boundary",
    "Look",
    "Paired",
    "Sequential",
    "Spread",
    "Vote",
    "benjamini_hochberg",
    "best_of",
    "gate",
    "holm",
    "majority",
    "mean_at_k",
    "paired",
    "pass_at_k",
    "pass_hat_k",
    "power",
    "sample_size",
    "successes",
]
