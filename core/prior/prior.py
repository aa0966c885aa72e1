"""A token prior, and what it adds to the logits of an endpoint."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Literal, NamedTuple

from pydantic import ConfigDict, Field

from core.experience import GENERAL
from core.record import Record, content_hash

SCALES = (0.5, 2.0)
"""The useful range of the global scale s."""


class TokenizerName(Record):
    """Whose token ids they are: a prior is refused by every other tokenizer."""

    name: str = Field(max_length=200)
    """For people."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Of the vocabulary (`vocabulary_hash`)."""


def vocabulary_hash(pieces: Mapping[int, str]) -> str:
    """SHA-256 of a vocabulary, as tokenizer.json and GGUF files spell it; 64 hex digits.

    Args:
        pieces: token by its id.
    """
    return content_hash([[i, pieces[i]] for i in sorted(pieces)])


class PriorRules(Record):
    """How tokens are chosen."""

    model_config = ConfigDict(allow_inf_nan=False)

    k: int = Field(default=16, ge=1, le=1000)
    """Most tokens of one factor (16: DESIGN section 5)."""
    support: int = Field(default=5, ge=1)
    """Replies that must have a token."""
    scale: float = Field(default=1.0, ge=SCALES[0], le=SCALES[1])
    """The global scale s."""
    cap: float = Field(default=3.0, gt=0, le=100)
    """Most that is added to the logit of one token, either sign (measured: 2 helps, 4 overshoots)."""


class PriorToken(Record):
    """One token of a factor, with what it was chosen for."""

    id: int = Field(ge=0)
    piece: str
    """Its text."""
    sign: Literal[1, -1]
    """1: promoted; -1: demoted."""
    log_odds: float
    """Of being in a reply with A > 0 against one with A < 0, within groups."""
    z: float
    winners_with: int
    winners: int
    losers_with: int
    losers: int
    groups: int
    """In how many groups it is in some replies and not in others."""


class Factor(Record):
    """One expert: the tokens that replies to tasks of a domain are better off with, or without."""

    domain: str
    """Of the tasks that it is applied to; `general`: all."""
    source: str = ""
    """The experience that it was derived for; empty where it stands for all groups of its domain."""
    tokens: tuple[PriorToken, ...]
    alpha: float
    """The one scale of the 1-bit form: mean |log odds|."""
    wins: int = Field(ge=0)
    """Groups in which winners had more of it than losers, counted on tasks that its tokens were not chosen on."""
    contrasts: int = Field(ge=0)
    """Groups in which winners and losers differed in it."""
    groups: int
    replies: int
    masked: int
    """Tokens that would have been chosen, but are part of a right answer."""

    @property
    def q(self) -> float:
        """Chance that it favours the better reply, (wins + 1) / (n + 2)."""
        return (self.wins + 1) / (self.contrasts + 2)

    @property
    def eta(self) -> float:
        """Weight: log(q / (1 - q)), and 0 where q is at most 1/2: such a factor is dropped."""
        return max(0.0, math.log(self.q / (1 - self.q)))


class Prior(Record):
    """A token prior as it is kept: what it adds to the logits follows from it and from the limits of an endpoint."""

    id: str = ""
    """`PR-0001`."""
    tokenizer: TokenizerName
    model: str
    """That made the rollouts."""
    rules: PriorRules = PriorRules()
    run_ids: tuple[str, ...] = ()
    version: int | None = None
    """The library version whose runs they are."""
    factors: tuple[Factor, ...]
    left_out: int = 0
    """Groups that were not of the split train: these teach nothing."""
    derived_by: str = ""
    created_at: str = ""


class Limits(NamedTuple):
    """What an endpoint takes."""

    range: float
    """Largest |bias|."""
    entries: int


class Bias(NamedTuple):
    """What is added to the logits, within the limits of an endpoint."""

    values: dict[int, float]
    left_out: int
    """Tokens that had no room, those with the least bias."""
    clipped: int
    """Tokens whose bias was more than the cap or the endpoint's range."""


def bias_map(prior: Prior, limits: Limits, *, domain: str | None = None, scale: float | None = None) -> Bias:
    """What a prior adds to the logits: s * sum_m eta_m * sign * alpha_m, capped for each token.

    Args:
        prior: whose factors are summed.
        limits: of the endpoint.
        domain: of the task: its factors and the general ones; None takes all.
        scale: the global scale s, from 0.5 to 2; None = the prior's own.
    """
    total: dict[int, float] = defaultdict(float)
    for factor in prior.factors:
        if domain is None or factor.domain in (domain, GENERAL):
            for token in factor.tokens:
                total[token.id] += factor.eta * token.sign * factor.alpha
    s = prior.rules.scale if scale is None else scale
    wanted = {i: round(s * v, 4) for i, v in sorted(total.items())}
    wanted = {i: v for i, v in wanted.items() if v}
    most = min(prior.rules.cap, limits.range)
    room = sorted(wanted, key=lambda i: (-abs(wanted[i]), i))[: limits.entries if most else 0]
    values = {i: max(-most, min(most, wanted[i])) for i in sorted(room)}
    return Bias(values, len(wanted) - len(values), sum(abs(wanted[i]) > most for i in room))
