"""Completions that TRL's GRPO and RLOO trainers log: `completions/completions_00100.parquet`, one a row.

Columns: step, prompt, completion, one for each reward function (named after it), perhaps further ones, advantage.

1. The reward is what TRL makes of the columns: their weighted sum, without those that are null or NaN; nothing at all
   where all are. The weights are not in the file: they are 1 unless the mapping says `weights: {column: weight}`.
2. Reward columns are those of numbers between `completion` and `advantage`, unless the mapping says `reward: [column]`.
3. There is no task id and no repeat number: the rollouts of one group have the same prompt within one step, and stand
   one after the other. Another step is another policy.
4. `advantage` is kept, and compared: where the sum of the columns leads to other advantages, a remark says so.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from core.importers.attempt import Aside, Attempt, Brings, Found, Remark, Seen
from core.importers.dialects import conversation
from core.importers.getting import as_dict, as_int, as_json, as_list, as_number, as_said, as_seen, as_text
from core.importers.lines import set_aside
from core.importers.markup import messages_of, prompt_of
from core.importers.opened import Opened
from core.importers.parquet import column_types, rows_of
from core.rollout import Trajectory

EPSILON = 1e-4
"""What TRL adds to the standard deviation of a group."""

TOLERANCE = 1e-3
"""By how much an advantage may differ from the file's, which TRL computes in single precision."""

TOTAL = "total"
MAX_TEXT = 500
"""Characters of a further column that is kept beside the attempt."""

_OWN = ("step", "prompt", "completion", "advantage")


class Trl:
    """The format."""

    name = "trl"
    title = "TRL completions"
    brings = Brings(reward="yes", repeats="in order", steps="no")

    def recognises(self, opened: Opened) -> bool:
        return column_types(opened).keys() >= set(_OWN)

    def read(self, opened: Opened) -> Iterator[Found]:
        types = column_types(opened)
        columns = _reward_columns(types, opened.mapping)
        weights = {c: _weight(opened.mapping, c) for c in columns}
        comparison = _Comparison()
        for row in rows_of(opened):
            if isinstance(row, Aside):
                yield row
                continue
            found = _attempt(*row, weights)
            if isinstance(found, Attempt):
                comparison.take(found)
            yield found
        yield from comparison.remarks(columns)


def _reward_columns(types: Mapping[str, str], mapping: Mapping[str, Any]) -> list[str]:
    wanted = mapping.get("reward")
    if named := [c for c in ([wanted] if isinstance(wanted, str) else as_list(wanted)) if c in types]:
        return named
    columns = list(types)
    between = (
        columns[columns.index("completion") + 1 : columns.index("advantage")] if "completion" in types else []
    )
    return [
        c
        for c in between
        if types[c].startswith(("double", "float", "halffloat", "int", "uint", "bool", "null"))
    ]


def _weight(mapping: Mapping[str, Any], column: str) -> float:
    weight = as_number(as_dict(mapping.get("weights")).get(column))
    return 1.0 if weight is None else weight


def _attempt(number: int, row: dict[str, Any], weights: Mapping[str, float]) -> Attempt | Aside:
    place = f"row {number}"
    given, output = row.get("prompt"), row.get("completion")
    if not isinstance(given, str) or not given.strip():
        return set_aside(place, "there is no prompt", as_said(row))
    if not isinstance(output, str):
        return set_aside(place, "there is no completion", as_said(row))
    prompt = prompt_of(as_text(given))
    said = conversation(messages_of(prompt, as_text(output)))
    step = as_int(row.get("step"))
    scores, reward = _scores(row, weights)
    return Attempt(
        place=place,
        question=prompt.question,
        system=prompt.system,
        agent="" if step is None else f"step {step}",
        trajectory=Trajectory(messages=said.messages, steps=said.steps, answer=said.answer),
        scores=scores,
        reward=reward,
        orphans=said.orphans,
        metadata=_metadata(row, step, weights),
    )


def _scores(row: Mapping[str, Any], weights: Mapping[str, float]) -> tuple[dict[str, Seen], str | None]:
    """The columns as scores, their weighted sum, and which of these is the reward; None without a reward column."""
    scores = {column: as_seen(row.get(column)) for column in weights}
    if len(scores) == 1 and list(weights.values()) == [1.0]:
        return scores, next(iter(scores))
    if not scores:
        return {}, None
    name = TOTAL if TOTAL not in scores else f"{TOTAL} reward"
    parts = [seen.value * weights[column] for column, seen in scores.items() if seen.value is not None]
    total = as_number(math.fsum(parts)) if parts else None
    return {name: Seen(value=total), **scores}, name


def _metadata(row: Mapping[str, Any], step: int | None, weights: Mapping[str, float]) -> dict[str, JsonValue]:
    kept: dict[str, JsonValue] = {} if step is None else {"step": step}
    if (advantage := as_number(row.get("advantage"))) is not None:
        kept["advantage"] = advantage
    for name, value in row.items():
        if name not in _OWN and name not in weights and isinstance(value, str | bool | int | float):
            kept[as_text(name)] = as_json(value[:MAX_TEXT] if isinstance(value, str) else value)
    return kept


@dataclass
class _Comparison:
    """Compares the advantages of the file with those of its reward columns, group by group."""

    key: tuple[str, str, str] | None = None
    rewards: list[float | None] = field(default_factory=list)
    given: list[float | None] = field(default_factory=list)
    groups: int = 0
    differing: int = 0
    unscored: int = 0
    """Rows in which every column is null, but which the file counts as 0."""

    def take(self, attempt: Attempt) -> None:
        key = (attempt.system, attempt.question, attempt.agent)
        if key != self.key:
            self._end()
            self.key = key
        self.rewards.append(attempt.scores[attempt.reward].value if attempt.reward else None)
        self.given.append(as_number(attempt.metadata.get("advantage")))

    def _end(self) -> None:
        if len(self.rewards) > 1 and any(a is not None for a in self.given):
            self.groups += 1
            if not _agree(self.rewards, self.given):
                zeros = [0.0 if r is None else r for r in self.rewards]
                as_zero = None in self.rewards and _agree(zeros, self.given)
                self.unscored += as_zero
                self.differing += not as_zero
        self.rewards, self.given = [], []

    def remarks(self, columns: Sequence[str]) -> Iterator[Remark]:
        self._end()
        if not columns:
            yield Remark(
                text="No column of numbers stands between completion and advantage: nothing is graded."
            )
        elif self.differing:
            yield Remark(
                text=f"In {self.differing} of {self.groups} groups the file's own advantages are not those of the "
                f"sum of {', '.join(columns)} scaled within the group: the trainer gave them weights (the mapping can "
                f"say them, weights: {{{columns[0]}: 0.5}}), took other columns, or scaled otherwise."
            )
        if columns and self.unscored:
            yield Remark(
                text=f"In {self.unscored} groups the trainer counted a completion that no function scored as 0; here "
                "it is ungraded, so that the advantages of these groups differ from the file's."
            )


def _agree(rewards: Sequence[float | None], given: Sequence[float | None]) -> bool:
    """Whether advantages are those of TRL: (r - mean) / (std + EPSILON), std with n - 1, or r - mean without scaling.

    A completion that nothing scored has the advantage 0 and is in no mean.
    """
    scored = [r for r in rewards if r is not None]
    if not scored:
        return True
    mean = statistics.fmean(scored)
    spread = statistics.stdev(scored) if len(scored) > 1 else 0.0
    for scale in (spread + EPSILON, 1.0):
        expected = [0.0 if r is None else (r - mean) / scale for r in rewards]
        if all(
            g is None or abs(e - g) <= TOLERANCE * max(1.0, abs(e))
            for e, g in zip(expected, given, strict=True)
        ):
            return True
    return False
