"""Which experiences are injected for a task (DESIGN 2.7).

1. Only live experiences of the task's own domain and of `general` are candidates, however small the library
   is: the lessons of another domain harm a small model, and without them all tasks of one domain share one
   prefix, byte for byte, which is what the prompt cache lives on.
2. At most `WHOLE_LIBRARY` candidates that fit the budget are injected whole, in the order of their ids. No
   embedding is asked for.
3. Otherwise they are ranked by (1 - l) * cosine + l * confidence, and taken from the top: at most `TOP_K`, at
   most `CAPS` of a kind (strategies are not capped), and whoever still fits the budget (a shorter one further
   down may). The Python loader that is shipped follows the same rule.
4. What is left out is returned, each with its reason.
5. The text of an error belongs to the query where the task is to mend one. It is the same for all rollouts of a
   group: they would not be comparable if each were given other lessons, so an agent is given none anew after an
   error of its own, and a task that is sampled anew is given those that it was given before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from core.experience import GENERAL, Experience, Kind
from core.injection import Injection, estimate_tokens, render
from core.record import Record
from core.similarity import cosine as cosine_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WHOLE_LIBRARY = 50
"""Up to so many candidates are injected whole (DESIGN 2.4)."""

TOP_K = 5
CONFIDENCE_WEIGHT = 0.2
"""l in the score of rule 3."""

CAPS: Mapping[Kind, int] = MappingProxyType({"convention": 2, "tool_selection": 2, "failure_pattern": 1})

Embed = Callable[[Sequence[str]], "NDArray[np.float32]"]
"""Texts in, unit vectors out, shape [len(texts), dimension]. Caching is the affair of who passes it."""

Why = Literal["not live", "other domain", "over budget", "kind cap", "beyond top K"]


class LeftOut(Record):
    """One experience that was not injected, and why."""

    experience_id: str
    why: Why
    score: float | None = None
    """Its score of rule 3, where it was ranked."""


class Selection(Record):
    """What to inject for a task, and what fell out on the way."""

    experiences: tuple[Experience, ...] = ()
    """In the order of injection."""
    left_out: tuple[LeftOut, ...] = ()
    mode: Literal["whole", "retrieved"] = "whole"
    tokens: int = 0
    """Tokens of the injected text, as counted by the counter that was passed in."""
    budget_tokens: int = 0
    scores: dict[str, float] = Field(default_factory=dict)
    """Score of each chosen experience, where they were ranked."""

    @property
    def injection(self) -> Injection:
        """The text to inject and its labels."""
        return render(self.experiences)

    @property
    def reasons(self) -> dict[str, int]:
        """How many were left out for which reason."""
        return dict(Counter(each.why for each in self.left_out))


def select(
    experiences: Sequence[Experience],
    query: str,
    *,
    domain: str,
    budget_tokens: int,
    embed: Embed | None = None,
    error_text: str = "",
    count_tokens: Callable[[str], int] = estimate_tokens,
    top_k: int = TOP_K,
) -> Selection:
    """Choose what to inject for one task, by the four rules of this module.

    Args:
        experiences: the library, in any order.
        query: the task's question.
        domain: the task's domain.
        budget_tokens: tokens that the injected text may take (`Endpoint.injection_budget`).
        embed: called only when candidates must be ranked; without it they are ranked by confidence alone.
        error_text: of a failure that is to be mended; it is appended to the query.
        count_tokens: the model's tokenizer, where it is known.
        top_k: how many ranked experiences are taken at most.
    """
    left_out: list[LeftOut] = []
    candidates: list[Experience] = []
    for experience in sorted(experiences, key=_id_order):
        if experience.status != "live":
            left_out.append(_left_out(experience.id, "not live"))
        elif experience.domain not in (domain, GENERAL):
            left_out.append(_left_out(experience.id, "other domain"))
        else:
            candidates.append(experience)
    if len(candidates) <= WHOLE_LIBRARY:
        tokens = _tokens(candidates, count_tokens)
        if tokens <= budget_tokens:
            return Selection(
                experiences=tuple(candidates),
                left_out=tuple(left_out),
                tokens=tokens,
                budget_tokens=budget_tokens,
            )
    scores = _scores(candidates, f"{query}\n{error_text}" if error_text else query, embed)
    chosen, passed_over = _take_from_top(candidates, scores, budget_tokens, count_tokens, top_k)
    return Selection(
        experiences=tuple(chosen),
        left_out=(*left_out, *passed_over),
        mode="retrieved",
        tokens=_tokens(chosen, count_tokens),
        budget_tokens=budget_tokens,
        scores={e.id: scores[e.id] for e in chosen},
    )


def learned_elsewhere(experiences: Sequence[Experience], domains: Collection[str], model: str) -> str:
    """Says that lessons for some domains were learned on another model than the one that will read them.

    Empty where they were not. A lesson of a person belongs to no model, and one of a group of several models to each.

    >>> told = Experience(id="E-0001", text="Read the file first.", learned_on="small-1")
    >>> learned_elsewhere([told], ["sums"], "large-2")
    '1 of 1 lessons was learned on another model than large-2: small-1 (1). They may help less there, or harm.'
    """
    meant = [e for e in experiences if e.status == "live" and e.domain in (*domains, GENERAL)]
    others = Counter(e.learned_on for e in meant if e.learned_on and model not in e.learned_on.split(", "))
    if not others:
        return ""
    n = others.total()
    named = ", ".join(
        f"{name} ({k})" for name, k in sorted(others.items(), key=lambda one: (-one[1], one[0]))
    )
    return (
        f"{n} of {len(meant)} lessons {'was' if n == 1 else 'were'} learned on another model than {model}: {named}. "
        "They may help less there, or harm."
    )


@lru_cache(maxsize=32_768)  # of a large library it is the same thousands, task after task
def _left_out(experience_id: str, why: Why, score: float | None = None) -> LeftOut:
    return LeftOut(experience_id=experience_id, why=why, score=score)


def _id_order(experience: Experience) -> tuple[int, str]:
    return len(experience.id), experience.id  # E-10000 comes after E-9999


def _tokens(experiences: Sequence[Experience], count_tokens: Callable[[str], int]) -> int:
    return count_tokens(render(experiences).text) if experiences else 0


def _scores(candidates: Sequence[Experience], query: str, embed: Embed | None) -> dict[str, float]:
    """Score of each candidate, rounded so that the last bits of a matrix product cannot reorder them."""
    cosines = [0.0] * len(candidates)
    if embed is not None:
        # Apart: the texts are the same for the next task, and whoever embeds may remember them.
        asked, known = embed([query]), embed([e.text for e in candidates])
        cosines = [float(c) for c in cosine_of(asked, known)[0]]
    return {
        e.id: round((1 - CONFIDENCE_WEIGHT) * cosine + CONFIDENCE_WEIGHT * e.confidence, 5)
        for e, cosine in zip(candidates, cosines, strict=True)
    }


def _take_from_top(
    candidates: Sequence[Experience],
    scores: Mapping[str, float],
    budget_tokens: int,
    count_tokens: Callable[[str], int],
    top_k: int,
) -> tuple[list[Experience], list[LeftOut]]:
    chosen: list[Experience] = []
    passed_over: list[LeftOut] = []
    kinds: Counter[Kind] = Counter()
    taken = 0  # tokens of what is chosen
    for experience in sorted(candidates, key=lambda e: -scores[e.id]):  # of equals, the lower id stays first
        why: Why | None = None
        if len(chosen) >= top_k:
            why = "beyond top K"
        elif kinds[experience.kind] >= CAPS.get(experience.kind, top_k):
            why = "kind cap"
        elif count_tokens is estimate_tokens and taken + estimate_tokens(experience.text) > budget_tokens:
            why = "over budget"  # the estimate is a sum over lines: no need to render a library of thousands
        elif (together := _tokens([*chosen, experience], count_tokens)) > budget_tokens:
            why = "over budget"
        else:
            taken = together
        if why is None:
            chosen.append(experience)
            kinds[experience.kind] += 1
        else:
            passed_over.append(_left_out(experience.id, why, scores[experience.id]))
    return chosen, passed_over
