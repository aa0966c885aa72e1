"""From stored rollouts to a report: every figure is counted anew, and no model is asked.

1. A task's value in an arm is the mean reward of its scored rollouts, all seeds together; where none could be scored it
   has none, takes no part, and is counted.
2. `majority` and `best_of` are of the replies of another arm, group by group: they took as many calls as it did.
3. A task that a lesson of the arm, or of the baseline, was learned from is *in sample*: marked, and left out of the
   headline (DESIGN 2.7).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache

from core.effect import Paired, best_of, majority, mean_at_k, paired, pass_at_k, successes
from core.errors import InputError
from core.evaluation.looking import hopeless_looks, looks, planned
from core.experience import Experience
from core.injection import estimate_tokens, render
from core.library import Library
from core.proof import REASONS, Arm, ArmResult, Comparison, Effect, LabelRow, Look, StopWhen, TaskRow, Verdict
from core.rollout import Task, Usage
from core.store.evaluations import Outcome
from core.verifiers import normalise

LABELS = 12
"""Domains with more right answers than this have no labels."""
FELL = 0.15
"""A label whose accuracy falls by as much, while the total rises, is flagged."""
TAKEN_OVER = 0.5
"""An answer that more than this share of the rollouts of a domain give is flagged, where it grew by `FELL`."""
QUESTION = 200
REASON = 160
"""Characters of a reason why rollouts broke off."""

_SHOWN = 0.0005
"""The least change of a mean that its three printed places show."""

Values = dict[str, float | None]
"""Of each task."""


@dataclass
class Sampled:
    """What came of one arm: its rollouts by task and seed."""

    arm: Arm
    run_ids: tuple[str, ...] = ()
    library: Library = field(default_factory=Library)
    in_sample: frozenset[str] = frozenset()
    """Tasks that one of its lessons was learned from."""
    groups: dict[str, dict[int, list[Outcome]]] = field(default_factory=lambda: defaultdict(dict))
    planned: Sequence[str] = ()
    """Ids of the tasks that it is sampled on."""
    unfinished: frozenset[str] = frozenset()
    """Those of them that have groups still to be sampled."""
    waiting: int = 0
    """Such groups."""
    stopped_after: int | None = None
    note: str = ""

    def values(self, seed: int | None = None) -> Values:
        """Mean reward of each task, of all seeds or of one."""
        return {t: mean_at_k(self.rewards(t, seed)) for t in self.groups if self._has(t, seed)}

    def contents(self) -> Values:
        """Mean content score of each task."""
        return {t: mean_at_k([o.content for own in g.values() for o in own]) for t, g in self.groups.items()}

    def rewards(self, task_id: str, seed: int | None = None) -> list[float | None]:
        found = self.groups[task_id]
        return [o.reward for s, own in found.items() if seed in (None, s) for o in own]

    def every(self) -> list[Outcome]:
        return [o for by_seed in self.groups.values() for own in by_seed.values() for o in own]

    def group_ids(self, task_id: str) -> tuple[str, ...]:
        by_seed = self.groups.get(task_id, {})
        return tuple(dict.fromkeys(o.group_id for own in by_seed.values() for o in own))

    def _has(self, task_id: str, seed: int | None) -> bool:
        return seed is None or seed in self.groups[task_id]


@dataclass(frozen=True)
class Told:
    """What is known of the tasks, and how they are counted."""

    tasks: Mapping[str, Task]
    order: Sequence[str]
    """Ids of all tasks, in the order in which they are sampled."""
    samples: int
    seeds: Sequence[int]
    threshold: float
    """Reward from which a rollout is a success."""
    look_every: int | None = None
    level: float = 0.05
    stop_when: StopWhen = "decided"
    free: bool = False
    """Only the embedded model was asked, which costs nothing."""

    def __post_init__(self) -> None:
        if not math.isfinite(self.threshold):
            raise InputError(
                f"The reward that is a success (--success) is a number, such as 1 or 0.5, not {self.threshold}."
            )


def results(sampled: Mapping[str, Sampled], arms: Sequence[Arm], told: Told) -> list[ArmResult]:
    """What came of each arm by itself, in the order of the configuration."""
    return [_result(chosen(sampled, arm), told) for arm in arms]


def chosen(sampled: Mapping[str, Sampled], arm: Arm) -> Sampled:
    """The rollouts of an arm; of one that is computed, what is chosen of another's replies stands for a rollout."""
    if arm.sampled:
        return sampled[arm.name]
    source = sampled[arm.of or ""]
    choose = _most_frequent if arm.kind == "majority" else _best
    groups: dict[str, dict[int, list[Outcome]]] = defaultdict(dict)
    for task_id, by_seed in source.groups.items():
        for seed, own in by_seed.items():
            groups[task_id][seed] = [choose(own)]
    note = "Every answer takes as many calls as the group has rollouts."
    return replace(source, arm=arm, groups=groups, note=note)


def _most_frequent(own: Sequence[Outcome]) -> Outcome:
    answers = [None if o.error else o.answer for o in own]
    vote = majority(answers, [o.reward for o in own])
    content = majority(answers, [o.content for o in own]).reward
    return own[0]._replace(answer=vote.answer or "", reward=vote.reward, content=content, error=False)


def _best(own: Sequence[Outcome]) -> Outcome:
    scored = [o for o in own if o.reward is not None]
    if not scored:
        return own[0]._replace(reward=None, content=None)
    best = max(scored, key=lambda o: o.reward or 0.0)
    return best._replace(reward=best_of([o.reward for o in own]))


def _result(found: Sampled, told: Told) -> ArmResult:
    outcomes = found.every()
    values = found.values()
    usage = sum((o.usage for o in outcomes), Usage())
    passes = _passes(found, told)
    contents = found.contents()
    by_seed = {s: found.values(s).values() for s in told.seeds}
    by_domain = _by_domain(values, told)
    prompts = [_tokens(found.library, _injected(found, task)) for task in found.groups]
    computed = not found.arm.sampled
    return ArmResult(
        name=found.arm.name,
        kind=found.arm.kind,
        label=label(found.arm),
        run_ids=found.run_ids,
        tasks=len(found.groups),
        scored_tasks=_known(values.values()),
        waiting=found.waiting,
        rollouts=len(outcomes),
        scored=sum(o.reward is not None for o in outcomes),
        unscored=sum(o.reward is None and not o.error for o in outcomes),
        errors=sum(o.error for o in outcomes),
        reasons=_reasons(outcomes),
        mean=_mean(values.values()),
        pass_at={k: p for k, (p, _) in passes.items()},
        pass_tasks={k: n for k, (_, n) in passes.items()},
        content=_mean(contents.values()),
        content_tasks=_known(contents.values()),
        by_seed={s: m for s, own in by_seed.items() if (m := _mean(own)) is not None},
        seed_tasks={s: n for s, own in by_seed.items() if (n := _known(own))},
        by_domain={d: m for d, own in by_domain.items() if (m := _mean(own)) is not None},
        domain_tasks={d: n for d, own in by_domain.items() if (n := _known(own))},
        lessons=len(found.library),
        injected=sum(bool(_injected(found, task)) for task in found.groups),
        tokens_injected=math.fsum(prompts) / len(prompts) if prompts else 0.0,
        calls_per_answer=float(told.samples) if computed else 1.0,
        **({} if computed else {**usage.model_dump(), "priced": usage.priced(free=told.free)}),
        cut=sum(o.cut for o in outcomes),
        in_sample=len(found.in_sample & found.groups.keys()),
        stopped_after=found.stopped_after,
        note=found.note,
    )


def label(arm: Arm) -> str:
    """An arm in words."""
    on = f" on version {arm.version}" if arm.version is not None else ""
    words = {
        "none": "no library",
        "version": f"version {arm.version}",
        "random": f"a random library of the size of version {arm.version}",
        "text": f"{len(arm.lessons)} lessons written by hand",
        "pack": f"{len(arm.lessons)} lessons of a pack",
        "without": f"version {arm.version} without {arm.experience_id}",
        "with": f"with {', '.join(arm.proposal_ids)}{on}",
        "majority": f"majority vote over the replies of {arm.of}",
        "best_of": f"the best reply of {arm.of}: it needs the verifier at run time",
    }
    return words[arm.kind] + (f", with the token prior {arm.prior}" if arm.prior else "")


def _passes(found: Sampled, told: Told) -> dict[int, tuple[float, int]]:
    """Unbiased pass@k over the tasks that have k scored rollouts, and how many these are."""
    if not found.arm.sampled:
        return {}
    counts = [successes(found.rewards(task), told.threshold) for task in found.groups]
    most = told.samples * len(told.seeds)
    ks = sorted({1, most, *(2**i for i in range(1, 7) if 2**i < most)})
    passed = {k: [pass_at_k(one.n, one.c, k) for one in counts if one.n >= k] for k in ks}
    return {k: (math.fsum(each) / len(each), len(each)) for k, each in passed.items() if each}


def _reasons(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Why rollouts broke off, the most frequent first; each in one line."""
    said = Counter(" ".join(o.why.split())[:REASON] for o in outcomes if o.error and o.why)
    return dict(said.most_common(REASONS))


def _by_domain(values: Values, told: Told) -> dict[str, list[float | None]]:
    found: defaultdict[str, list[float | None]] = defaultdict(list)
    for task_id, value in values.items():
        found[told.tasks[task_id].domain].append(value)
    return {d: found[d] for d in sorted(found)}


def _injected(found: Sampled, task_id: str) -> tuple[str, ...]:
    first = next((own for own in found.groups[task_id].values() if own), [])
    return first[0].injected if first else ()


def _tokens(library: Library, ids: tuple[str, ...]) -> float:
    return (
        _rendered(tuple(library.experiences[i].text for i in ids if i in library.experiences)) if ids else 0.0
    )


@lru_cache(maxsize=1024)
def _rendered(texts: tuple[str, ...]) -> float:
    return float(estimate_tokens(render([Experience(id=f"{i}", text=t) for i, t in enumerate(texts)]).text))


def _known(values: Collection[float | None]) -> int:
    return sum(v is not None for v in values)


def _mean(values: Collection[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return math.fsum(known) / len(known) if known else None


# --- one arm against the baseline ---


def compare(
    sampled: Mapping[str, Sampled],
    arm: Arm,
    baseline: Arm,
    told: Told,
) -> Comparison:
    """Compare an arm with the baseline, task by task.

    Args:
        sampled: the rollouts of the sampled arms, by name.
        arm: which.
        baseline: against which.
        told: of the tasks.
    """
    a, b = chosen(sampled, arm), chosen(sampled, baseline)
    both = [t for t in told.order if t in a.groups and t in b.groups]
    own = a.in_sample | b.in_sample
    counted = [t for t in both if t not in own]
    ours, theirs = a.values(), b.values()
    content = _effect(counted, a.contents(), b.contents())
    labels = _labels(a, b, counted, told)
    effect = _effect(counted, ours, theirs)
    return Comparison(
        arm=arm.name,
        baseline=baseline.name,
        effect=effect,
        in_sample=len(both) - len(counted),
        content=content if content.tasks else None,
        by_domain={d: _effect(own_tasks, ours, theirs) for d, own_tasks in _domains(counted, told).items()},
        by_seed={s: _effect(counted, a.values(s), b.values(s)) for s in told.seeds}
        if len(told.seeds) > 1
        else {},
        labels=labels,
        flags=tuple(_flags(effect, content, labels, a, b, counted, told)),
        looks=_looks(a, b, ours, theirs, told),
        rows=tuple(_row(t, a, b, ours, theirs, own, told) for t in both),
    )


def _looks(a: Sampled, b: Sampled, ours: Values, theirs: Values, told: Told) -> tuple[Look, ...]:
    """What the sequential test says by now; in the order of the tasks, whichever was finished first."""
    if not told.look_every:
        return ()
    pair = (set(a.planned) & set(b.planned)) - a.in_sample - b.in_sample
    counted = [t for t in told.order if t in pair]
    unfinished = a.unfinished | b.unfinished | _skipped(a) | _skipped(b)
    done = next((i for i, t in enumerate(counted) if t in unfinished), len(counted))
    plan = planned(told.order, counted, told.look_every)
    if told.stop_when == "hopeless":
        return tuple(hopeless_looks(counted, plan, ours, theirs, done))
    return tuple(looks(counted, plan, ours, theirs, told.level, done))


def _skipped(found: Sampled) -> frozenset[str]:
    """Tasks that were not sampled any more once the arm was stopped: no look is taken at them."""
    return frozenset(found.planned) - found.groups.keys() if found.stopped_after else frozenset()


def _effect(tasks: Sequence[str], ours: Values, theirs: Values) -> Effect:
    found = paired([ours.get(t) for t in tasks], [theirs.get(t) for t in tasks])
    return told_effect(found)


def told_effect(found: Paired) -> Effect:
    """The effect as it is kept and shown."""
    return Effect(**asdict(found))


def _domains(tasks: Sequence[str], told: Told) -> dict[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for task in tasks:
        found[told.tasks[task].domain].append(task)
    return dict(sorted(found.items()))


def _row(
    task_id: str, a: Sampled, b: Sampled, ours: Values, theirs: Values, own: Collection[str], told: Told
) -> TaskRow:
    task = told.tasks[task_id]
    arm, base = ours.get(task_id), theirs.get(task_id)
    difference = None if arm is None or base is None else arm - base
    outcome: Verdict
    if task_id in own:
        outcome = "in sample"
    elif difference is None:
        outcome = "unpaired"
    else:
        outcome = "win" if difference > 1e-9 else "loss" if difference < -1e-9 else "tie"
    return TaskRow(
        task_id=task_id,
        question=task.question[:QUESTION],
        domain=task.domain,
        baseline=base,
        arm=arm,
        difference=difference,
        outcome=outcome,
        baseline_groups=b.group_ids(task_id),
        arm_groups=a.group_ids(task_id),
    )


def _labels(a: Sampled, b: Sampled, counted: Sequence[str], told: Told) -> tuple[LabelRow, ...]:
    """Accuracy by right answer, in domains whose tasks share few of them: a collapse to one answer shows here."""
    rows = []
    for domain, tasks in _domains(counted, told).items():
        by_label: defaultdict[str, list[str]] = defaultdict(list)
        for task_id in tasks:
            if answer := told.tasks[task_id].answer:
                by_label[answer.strip()].append(task_id)
        if not 2 <= len(by_label) <= min(LABELS, len(tasks) // 2):
            continue
        rows += [
            LabelRow(
                domain=domain,
                label=answer,
                tasks=len(own),
                baseline=_accuracy(b, own),
                arm=_accuracy(a, own),
                baseline_tasks=sum(_accuracy(b, [t]) is not None for t in own),
                arm_tasks=sum(_accuracy(a, [t]) is not None for t in own),
            )
            for answer, own in sorted(by_label.items())
        ]
    return tuple(rows)


def _accuracy(found: Sampled, tasks: Sequence[str]) -> float | None:
    outcomes = [o for t in tasks for own in found.groups[t].values() for o in own]
    graded = [o.content for o in outcomes if o.content is not None]
    return _mean(graded or [o.reward for o in outcomes])


def _flags(
    effect: Effect,
    content: Effect,
    labels: Sequence[LabelRow],
    a: Sampled,
    b: Sampled,
    counted: Sequence[str],
    told: Told,
) -> list[str]:
    """What a better total may hide."""
    found = []
    rose = effect.mean is not None and effect.mean >= _SHOWN
    if rose and content.mean is not None and content.mean <= -_SHOWN:
        found.append(
            f"The total rose by {effect.mean:+.3f} while the right content fell by {content.mean:+.3f} "
            f"({_span(content)}): what was gained is form."
        )
    for row in labels:
        if row.arm is not None and row.baseline is not None and row.arm <= row.baseline - FELL:
            found.append(
                f"In {row.domain}, tasks whose answer is {row.label!r} fell from {row.baseline:.2f} to {row.arm:.2f} "
                f"({row.tasks} tasks)."
            )
    labelled = {row.domain for row in labels}
    for domain, tasks in _domains(counted, told).items():
        if domain in labelled and (taken := _taken_over(a, b, tasks)):
            found.append(f"In {domain}, {taken}")
    return found


def _taken_over(a: Sampled, b: Sampled, tasks: Sequence[str]) -> str:
    """The answer that took over, in half a sentence; empty where none did."""
    ours, theirs = _answers(a, tasks), _answers(b, tasks)
    if not ours or not theirs:
        return ""
    answer, count = ours.most_common(1)[0]
    share, before = count / ours.total(), theirs[answer] / theirs.total()
    if share <= TAKEN_OVER or share < before + FELL:
        return ""
    return f"{share:.0%} of the replies are {answer[:60]!r}, before it were {before:.0%}: the arm may have collapsed."


def _answers(found: Sampled, tasks: Sequence[str]) -> Counter[str]:
    outcomes = (o for t in tasks for own in found.groups[t].values() for o in own)
    return Counter(normalise(o.answer) for o in outcomes if not o.error)


def _span(effect: Effect) -> str:
    if effect.low is None or effect.high is None:
        return "too few tasks for an interval"
    return f"95 % interval {effect.low:+.3f} to {effect.high:+.3f}"
