"""Alpha spending: where the boundaries of a plan of looks lie, and what is left of chance behind them.

Under no effect the statistic of the looks moves like a Brownian motion: at the fraction t of all tasks B(t) = z sqrt(t)
has variance t. Whoever looks stops where z passes a boundary. The boundaries come from the recursion of Armitage,
McPherson and Rowe 1969 ("Repeated Significance Tests on Accumulating Data", Journal of the Royal Statistical Society
A 132): the density of B among the paths that went on is integrated from look to look.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from core.effect.distributions import NORMAL

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

NODES = 300
"""Of the Gauss-Legendre rule at each look: right to six digits with up to 200 looks."""

FURTHEST = 9.0
"""In z: the density beyond is left out, and no boundary lies further out."""


def spending(level: float, fraction: float) -> float:
    """What may be spent of a one-sided level up to a fraction of all tasks, in (0, 1]: 2 - 2 Phi(z / sqrt(t)).

    z is the normal quantile of 1 - level / 2. Resembles O'Brien and Fleming 1979, who spend little early; Lan and
    DeMets 1983, "Discrete Sequential Boundaries for Clinical Trials", Biometrika 70.
    """
    return 2 - 2 * NORMAL.cdf(NORMAL.inv_cdf(1 - level / 2) / math.sqrt(fraction))


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """The paths that crossed nothing so far."""

    fraction: float
    """Of all tasks, at their last look."""
    places: Floats
    """Values of B there; shape [nodes]."""
    weights: Floats
    """The chance of being near each place; sums to the chance of having gone on."""

    @classmethod
    def all(cls) -> Paths:
        """Before the first look."""
        import numpy as np

        return cls(0.0, np.zeros(1), np.ones(1))

    def beyond(self, fraction: float, z: float) -> float:
        """The chance to have gone on so far and to have z or more at a later fraction."""
        import numpy as np

        away = (z * math.sqrt(fraction) - self.places) / math.sqrt(2 * (fraction - self.fraction))
        return float(self.weights @ np.array([math.erfc(x) / 2 for x in away.tolist()]))

    def boundary(self, fraction: float, chance: float) -> float:
        """The z that is reached at a later fraction with this chance."""
        low, high = -FURTHEST, FURTHEST
        for _ in range(50):
            middle = (low + high) / 2
            if self.beyond(fraction, middle) > chance:
                low = middle
            else:
                high = middle
        return high

    def below(self, fraction: float, z: float) -> Paths:
        """Those that stay below z at a later fraction."""
        import numpy as np

        nodes, rule = _rule()
        half = (z + FURTHEST) * math.sqrt(fraction) / 2
        places = (z * math.sqrt(fraction) - half) + half * nodes
        step = fraction - self.fraction
        density = np.exp(-((places[:, None] - self.places) ** 2) / (2 * step)) / math.sqrt(2 * math.pi * step)
        return Paths(fraction, places, (density @ self.weights) * rule * half)


@cache
def _rule() -> tuple[Floats, Floats]:
    """Places and weights on [-1, 1]; finding them takes longer than using them."""
    import numpy as np

    return np.polynomial.legendre.leggauss(NODES)
