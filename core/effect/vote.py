"""Choosing one answer of a group at the same cost: majority vote, and the best by its reward."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from core.verifiers import normalise


@dataclass(frozen=True, slots=True)
class Vote:
    """The answer that most samples of a group gave."""

    answer: str | None
    """In the words of its first voter; of a tie, the one given first. None where nobody answered."""
    voters: tuple[int, ...]
    """Places of the samples that gave it."""
    tied: tuple[str, ...]
    """Answers with as many votes, `answer` left out, in the order in which they were given."""
    of: int
    """Samples that gave an answer at all."""
    reward: float | None
    """Expected, where the vote is drawn among the tied answers and their voters; None where none of them is scored."""


def majority(
    answers: Sequence[str | None],
    rewards: Sequence[float | None] | None = None,
    *,
    form: Callable[[str], str] = normalise,
) -> Vote:
    """Take the answer that most samples agree on; it needs no verifier.

    "Self-Consistency Improves Chain of Thought Reasoning in Language Models" (Wang et al. 2022).

    Args:
        answers: of one group, shape [G]; None or one whose form is empty abstains.
        rewards: of the same samples, to tell what the vote is worth; shape [G].
        form: what answers are compared in.
    """
    places: dict[str, list[int]] = {}
    for i, answer in enumerate(answers):
        if answer is not None and (key := form(answer)):
            places.setdefault(key, []).append(i)
    most = max(map(len, places.values()), default=0)
    winners = [voters for voters in places.values() if len(voters) == most]
    if not winners:
        return Vote(None, (), (), 0, None)
    means = [m for voters in winners if (m := _mean(voters, rewards)) is not None]
    return Vote(
        answer=answers[winners[0][0]],
        voters=tuple(winners[0]),
        tied=tuple(answers[voters[0]] or "" for voters in winners[1:]),
        of=sum(map(len, places.values())),
        reward=math.fsum(means) / len(means) if means else None,
    )


def _mean(voters: Sequence[int], rewards: Sequence[float | None] | None) -> float | None:
    if rewards is None:
        return None
    scored = [r for i in voters if (r := rewards[i]) is not None]
    return math.fsum(scored) / len(scored) if scored else None


def best_of(rewards: Sequence[float | None], k: int | None = None) -> float | None:
    """What the best of k samples is worth on average, chosen by its reward: it needs the verifier at run time.

    With k = 1 this is the mean, with rewards of 0 and 1 it is pass@k: the sample at place i in rising order is the
    best of k in C(i - 1, k - 1) of C(n, k) choices.

    Args:
        rewards: of one group, shape [G]; None = not scored, cannot be chosen.
        k: samples chosen from; all scored ones where not given.

    Raises:
        ValueError: k is less than 1 or more than the scored samples.
    """
    scored = sorted(r for r in rewards if r is not None)
    if not scored:
        return None
    n = len(scored)
    k = n if k is None else k
    if not 1 <= k <= n:
        raise ValueError(f"{n} scored samples say nothing about {k}: k lies between 1 and n")
    return math.fsum(r * math.comb(i, k - 1) for i, r in enumerate(scored)) / math.comb(n, k)
