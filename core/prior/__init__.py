"""Token priors: which tokens good replies have and bad ones have not, in a 1-bit form, as an addition to the logits.

A product of experts (Hinton 2002; ASO): pi(y) is proportional to pi_model(y) * prod_m phi_m(y)^eta_m, in log space
logits + s * sum_m eta_m * delta_m. Each factor m is one sign for each of its tokens and one scale
alpha_m = mean |delta|; its weight is eta_m = log(q_m / (1 - q_m)), 0 where q_m <= 1/2 (seeds; full ASO paper,
sections 3 to 5).

What is ours (Winnow, DESIGN 2.8): delta is the log odds of Mantel and Haenszel (1959), stratified by group, so that a
task that is easy lends its words to nobody; q = (wins + 1) / (n + 2) is counted on tasks that the tokens were not
chosen on; the sum is capped for each token; tokens of right answers are masked.
"""

from __future__ import annotations

from core.prior.answers import answers_of, says_something, spellings
from core.prior.choosing import Reply, choose, derive_factor, tell_apart
from core.prior.prior import (
    Bias,
    Factor,
    Limits,
    Prior,
    PriorRules,
    PriorToken,
    TokenizerName,
    bias_map,
    vocabulary_hash,
)

__all__ = [
    "Bias",
    "Factor",
    "Limits",
    "Prior",
    "PriorRules",
    "PriorToken",
    "Reply",
    "TokenizerName",
    "answers_of",
    "bias_map",
    "choose",
    "derive_factor",
    "says_something",
    "spellings",
    "tell_apart",
    "vocabulary_hash",
]
