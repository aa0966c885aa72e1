"""Measure learning without a model: what evidence finds of planted lessons, and what the trial gate lets pass.

    python -m tests.bench.learning               precision and recall over the effect size
    python -m tests.bench.learning --cases       what was missed and what was false, with the reasons
    python -m tests.bench.learning --record      append to docs/benchmarks.md

The gate is tried on simulated trials of the same agent on fresh tasks: without the lesson it follows a habit as often
as it happens to, with it always; so what a trial can show of an effect is the part that was not followed before.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from core.effect import gate, paired
from core.evidence import Seen
from core.experience import GENERAL, Add
from core.extraction.draft import Outcome
from core.extraction.from_evidence import propose
from core.rollout import Group, Task
from tests.bench.planted import KINDS, Agent, Judged, domains, groups, judge
from tests.bench.report import RECORD, Row, circumstances, table

EFFECTS = (0.05, 0.1, 0.2, 0.3, 0.5)
SEEDS = (1, 2, 3)
"""Of the figures that are recorded; whoever mends the extractor looks at others."""
AIM, AIM_AT = 0.9, 0.3
TRIAL_TASKS = 40
TRIAL_SAMPLES = (4, 8)
"""For each task and arm: the fewest that the gate takes, and as many as a group of the aim has (G = 8)."""

Extractor = Callable[[Iterable[tuple[Task, Group]], int], Outcome]


def evidence(batch: Iterable[tuple[Task, Group]], seed: int) -> Outcome:
    """What the extractor without a model makes of the groups."""
    seen = Seen()
    for task, group in batch:
        seen.add(task, group)
    return propose(seen, [], run_id="R1", seed=seed)


@dataclass
class Measured:
    """The batches of one effect size, judged."""

    batches: list[Judged] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def recall(self) -> float:
        return sum(j.recall for j in self.batches) / len(self.batches)

    @property
    def precision(self) -> float | None:
        """Of all proposals together; None where there was none."""
        proposed = sum(j.proposed for j in self.batches)
        return 1 - sum(len(j.false) for j in self.batches) / proposed if proposed else None

    def recall_of(self, kind: str) -> float:
        names = [d.name for d in domains() if d.planted.kind == kind]
        return sum(n in j.found for j in self.batches for n in names) / (len(names) * len(self.batches))


def measure(
    effect: float,
    seeds: Sequence[int] = SEEDS,
    extractor: Extractor = evidence,
    *,
    tasks: int = 40,
    size: int = 8,
) -> Measured:
    """Let an extractor loose on the planted lessons, once for each seed."""
    measured = Measured()
    for seed in seeds:
        outcome = extractor(groups(effect, seed, tasks=tasks, size=size), seed)
        lessons = [
            (draft.operation.domain or GENERAL, draft.text or "")
            for draft in outcome.drafts
            if isinstance(draft.operation, Add)
        ]
        measured.batches.append(judge(lessons))
        measured.outcomes.append(outcome)
    return measured


@dataclass
class Gated:
    """What the trial gate let pass, each of 20 planted habits and 20 decoys tried together."""

    planted: int
    decoys: int
    tried: int
    """Planted habits; as many decoys."""

    @property
    def recall(self) -> float:
        return self.planted / self.tried

    @property
    def precision(self) -> float | None:
        passed = self.planted + self.decoys
        return self.planted / passed if passed else None


def trials(effect: float, samples: int, seeds: Sequence[int] = SEEDS) -> Gated:
    """Try every planted habit and every decoy on fresh tasks, each so often, and let the gate decide."""
    found = Gated(0, 0, 0)
    for seed in seeds:
        p_values: dict[tuple[str, str], float] = {}
        for domain in domains():
            agent = Agent(domain, effect, seed + 1000)
            baseline = _trial(agent, "none", samples)
            for what in ("planted", "decoy"):
                p_greater = paired(_trial(agent, what, samples), baseline, seed=seed).p_greater
                p_values[domain.name, what] = 1.0 if p_greater is None else p_greater
        passed = [key for key, passes in gate(p_values).items() if passes]
        found.planted += sum(what == "planted" for _, what in passed)
        found.decoys += sum(what == "decoy" for _, what in passed)
        found.tried += len(domains())
    return found


def _trial(agent: Agent, arm: str, samples: int) -> list[float]:
    """Mean reward of each task, shape [tasks]."""
    planted, decoy = (True if arm == what else None for what in ("planted", "decoy"))
    return [
        fmean(agent.attempt(task, i, planted, decoy, arm=arm)[1] for i in range(samples))
        for task in map(agent.task, range(TRIAL_TASKS))
    ]


# --- the table ----------------------------------------------------------------------------------------------


def rows(seeds: Sequence[int], *, cases: bool = False) -> list[Row]:
    """The curve of the extractor, then that of the gate."""
    made = []
    for effect in EFFECTS:
        sys.stderr.write(f"effect {effect} ...\n")
        measured = measure(effect, seeds)
        what = f"planted lessons, effect {effect:g}, {len(seeds)} x 20 habits and 20 decoys"
        bound, met = _aim(effect, measured.precision, measured.recall)
        made.append(
            Row(
                f"{what}: evidence, precision / recall",
                f"{_short(measured.precision)} / {measured.recall:.2f}",
                bound,
                met,
            )
        )
        if effect == AIM_AT:
            kinds = ", ".join(f"{kind} {measured.recall_of(kind):.2f}" for kind in KINDS)
            made.append(Row(f"{what}: recall by kind", kinds))
        if cases:
            sys.stderr.write(told(measured))
    for samples in TRIAL_SAMPLES:
        for effect in EFFECTS:
            made += _of_gate(trials(effect, samples, seeds), effect, samples)
    return made


def _of_gate(gated: Gated, effect: float, samples: int) -> list[Row]:
    what = f"trial gate, effect {effect:g}, {TRIAL_TASKS} tasks x {samples}"
    bound, met = _aim(effect, gated.precision, gated.recall)
    return [
        Row(f"{what}: precision / recall", f"{_short(gated.precision)} / {gated.recall:.2f}", bound, met),
        Row(f"{what}: decoys that pass", f"{gated.decoys} of {gated.tried}"),
    ]


def _aim(effect: float, precision: float | None, recall: float) -> tuple[str, bool | None]:
    """(the bound, whether it is met); there is one at `AIM_AT` alone."""
    if effect != AIM_AT:
        return "-", None
    return f">= {AIM:g} / {AIM:g}", recall >= AIM and (precision or 0.0) >= AIM


def told(measured: Measured) -> str:
    """Every habit that was missed, with what was set aside in its domain, and every false lesson."""
    lines = []
    for judged, outcome in zip(measured.batches, measured.outcomes, strict=True):
        lines += [f"false, {domain}: {text}" for domain, text in judged.false]
        for domain in domains():
            if domain.name in judged.found:
                continue
            lines.append(f"missed, {domain.name}: {domain.planted.what}")
            aside = (q for q in outcome.quarantined if q.reason.startswith(f"{domain.name}:"))
            lines += [f"    {q.reason} | {q.raw}" for q in aside]
            lines += [f"    {note}" for note in outcome.notes if note.startswith(domain.name)]
    return "".join(f"{line}\n" for line in lines)


def _short(share: float | None) -> str:
    return "-" if share is None else f"{share:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--cases", action="store_true", help="tell what was missed or false, on stderr")
    parser.add_argument("--record", action="store_true", help="append to docs/benchmarks.md")
    options = parser.parse_args()
    about = circumstances()
    found = table(rows(options.seeds, cases=options.cases))
    sys.stdout.write(f"{about}\n\n{found}")
    if options.record:
        with RECORD.open("a", encoding="utf-8") as record:
            record.write(f"\n## Planted lessons: {about}\n\n{found}")


if __name__ == "__main__":
    main()
