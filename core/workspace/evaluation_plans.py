"""What an evaluation would do, before anything is done: its tasks, its arms pinned, and what it is refused for."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from core.errors import AlikeError, InputError
from core.evaluation import made_of, reach_of
from core.experience import GENERAL, Delete, Operation
from core.library import Library
from core.memory import learned_elsewhere
from core.proof import SEED_STRIDE, Arm, Evaluation, EvaluationConfig
from core.record import Record, content_hash
from core.review.staging import stale
from core.rollout import Task
from core.settings import Endpoint, RunConfig
from core.store import Store
from core.workspace.judgeable import judgeable, left_out, nothing_checks
from core.workspace.models import Models
from core.workspace.outcomes import Outcomes
from core.workspace.planning import CAPS, check_help, check_money, identity_of
from core.workspace.priors import Priors

LONGEST_NAME = 100
"""Characters of the name of an arm."""

ARM_SETTINGS = (
    "endpoint",
    "judge_endpoint",
    "split",
    "domains",
    "limit",
    "temperature",
    "top_p",
    "max_tokens",
    "stop",
    "reward",
    "agent",
    "rollout_timeout_s",
)
"""What the run of an arm has of its evaluation."""


class EvaluationPlan(Record):
    """What an evaluation would do, before anything is done."""

    config: EvaluationConfig
    """With every version pinned."""
    tasks: tuple[str, ...]
    """Their ids, in the order in which they are sampled."""
    by_domain: dict[str, int]
    model: str
    rollouts: int
    """Of all arms and seeds; what is in the cache costs nothing."""
    calls: int
    """Requests at most; retries and agents' further turns apart."""
    notes: tuple[str, ...] = ()
    request: str
    resumes: str | None = None
    """The evaluation of this request that is there already."""
    finished: bool = False


class EvaluationPlans:
    """Plans the evaluations of one workspace; writes nothing."""

    def __init__(self, store: Store, models: Models) -> None:
        self._store = store
        self._models = models
        self._outcomes = Outcomes(store)

    def plan(self, config: EvaluationConfig) -> EvaluationPlan:
        """Say what an evaluation would do.

        Raises:
            InputError: there are no tasks for it, or its settings contradict each other.
            NotFoundError: there is no such endpoint, version, lesson or proposal.
        """
        config = self._pinned(config)
        endpoint = self._models.get(config.endpoint)
        run_config = run_config_of(config, config.arms[0], config.seeds[0])
        there_are = self._store.tasks.select(config.split, config.domains)
        can_be_judged = judgeable(there_are, config.reward)
        if there_are and not can_be_judged:
            raise InputError(nothing_checks(f"any of the {len(there_are):,} {config.split} tasks asked for"))
        tasks = ordered(can_be_judged, config)
        if not tasks:
            raise InputError(self._no_tasks(config))
        libraries = self._outcomes.libraries(config)
        self._check(config, endpoint, run_config, tasks)
        judge = self._models.get(config.judge_endpoint) if config.judge_endpoint else None
        request = content_hash(
            [
                config.model_dump(mode="json", exclude=CAPS),
                [identity_of(e) if e else None for e in (endpoint, judge)],
                [t.canonical() for t in tasks],
                {n: [e.text for e in own] for n, own in libraries.items()},
            ]
        )
        there = self._store.evaluations.by_request(request)
        if there and there.status == "cancelled" and not groups_of(self._store, there):
            there = None  # it was discarded
        alike = _alike(config, libraries, tasks)
        if there is None:
            _refuse_one_way(config, alike)
        groups = sum(len(of_arm(tasks, arm)) * len(config.seeds) for arm in config.arms if arm.sampled)
        each = 1 if endpoint.sends_n and config.agent is None else config.samples
        return EvaluationPlan(
            config=config,
            tasks=tuple(t.id for t in tasks),
            by_domain=dict(Counter(t.domain for t in tasks)),
            model=endpoint.model,
            rollouts=groups * config.samples,
            calls=groups * each,
            notes=(
                *filter(None, [left_out(len(there_are) - len(can_be_judged))]),
                *self.notes(config, libraries, endpoint.model, endpoint, tasks, there.id if there else ""),
                *(f"{one.told}: they differ by chance alone." for one in alike),
                *self._made_of(config),
            ),
            request=request,
            resumes=there.id if there else None,
            finished=there is not None and there.status == "done",
        )

    def _pinned(self, config: EvaluationConfig) -> EvaluationConfig:
        """The configuration with every version and text pinned, and with the tasks that a change can reach."""
        return config.model_copy(update={"arms": _by_number([self._pinned_arm(arm) for arm in config.arms])})

    def _pinned_arm(self, arm: Arm) -> Arm:
        if arm.kind not in ("version", "random", "without", "with"):
            return arm
        base = self._store.versions.library(arm.version)
        pinned: dict[str, object] = {"version": base.version}
        operations = [self._operation(i, base) for i in arm.proposal_ids]
        if arm.kind == "with" and not arm.operations:
            pinned["operations"] = tuple(operations)
        if arm.kind in ("with", "without") and not arm.domains:
            changes = operations or [Delete(experience_id=arm.experience_id or "")]
            reaches = [reach_of(one, base) for one in changes]
            pinned["domains"] = tuple(sorted({d for r in reaches for d in r})) if all(reaches) else ()
        return arm.model_copy(update=pinned)

    def _operation(self, proposal_id: str, base: Library) -> Operation:
        proposal = self._store.proposals.get(proposal_id)
        if moved := stale(proposal, base):
            raise InputError(f"{proposal_id} cannot be tried on version {base.version}: {moved}.")
        return proposal.effective

    def _check(
        self, config: EvaluationConfig, endpoint: Endpoint, run: RunConfig, tasks: Sequence[Task]
    ) -> None:
        if config.max_tokens >= endpoint.context_length:
            raise InputError(
                f"max_tokens {config.max_tokens} leaves no room for a prompt: {endpoint.name} has a context of "
                f"{endpoint.context_length} tokens."
            )
        if "epistemic" in config.reward.by_component:
            raise InputError(
                "The epistemic reward depends on the answers that were there before, so it compares nothing: choose "
                "another reward for an evaluation."
            )
        for arm in config.arms:
            if len(arm.name) > LONGEST_NAME or not arm.name.isprintable():
                raise InputError(
                    f"The name of an arm has at most {LONGEST_NAME} characters that can be seen: give it a shorter one,"
                    " as in NAME=ARM."
                )
            if arm.domains and not of_arm(tasks, arm):
                raise InputError(
                    f"The arm {arm.name!r} changes only tasks of {', '.join(arm.domains)}, and there is no "
                    f"{config.split} task of them here."
                )
        for prior in dict.fromkeys(arm.prior for arm in config.arms if arm.prior):
            if config.agent is not None:
                raise InputError("A token prior cannot be applied to an agent; leave one of them out.")
            Priors(self._store, self._models).bias(prior, endpoint)
        check_money(run.model_copy(update=config.model_dump(include=CAPS)), self._models)
        check_help(run, tasks, self._models)

    def _no_tasks(self, config: EvaluationConfig) -> str:
        counts = self._store.tasks.counts()
        there = "; ".join(f"{d} ({', '.join(f'{n} {s}' for s, n in by.items())})" for d, by in counts.items())
        asked = f" of {', '.join(config.domains)}" if config.domains else ""
        left = f" beyond the first {config.skip} of each domain" if config.skip else ""
        return f"There are no {config.split} tasks{asked}{left}; the workspace has {there or 'no tasks'}."

    def notes(
        self,
        config: EvaluationConfig,
        libraries: Mapping[str, Library],
        model: str,
        endpoint: Endpoint | None,
        tasks: Sequence[Task],
        own: str,
    ) -> list[str]:
        """What must be known beside the numbers.

        Args:
            config: of the evaluation.
            libraries: by the names of its arms.
            model: which answers.
            endpoint: None where it was removed since.
            tasks: which are asked.
            own: id of the evaluation; empty where it was not begun.
        """
        domains = sorted({t.domain for t in tasks})
        notes = []
        for arm in (a for a in config.arms if a.sampled):
            if told := learned_elsewhere(list(libraries[arm.name]), domains, model):
                notes.append(f"{arm.name}: {told}")
        if config.split == "final":
            notes += self._on_final(config, own)
        if config.seeds != (0,) and endpoint is not None and not endpoint.sends_seed:
            notes.append(f"{endpoint.name} is not sent a seed: its seeds are only other draws.")
        return notes

    def _made_of(self, config: EvaluationConfig) -> Iterator[str]:
        for arm in config.arms:
            if arm.kind == "random" and (told := made_of(arm, self._store.versions.library(arm.version))):
                yield f"{arm.name}: {told}"

    def _on_final(self, config: EvaluationConfig, own: str) -> list[str]:
        uses = list(dict.fromkeys(name for name, _ in self._store.evaluations.final_uses(before=own)))
        if not uses:
            return []
        named = ", ".join(uses[:5]) + (", ..." if len(uses) > 5 else "")
        return [
            f"The final split was used {len(uses)} time{'s' if len(uses) > 1 else ''} before ({named}). Who chooses by "
            "what it shows has no final split left: take fresh tasks for what is quoted."
        ]


class _Alike(NamedTuple):
    """Sampled arms that send the same prompts: they differ by chance alone."""

    names: list[str]
    lessons: int
    """That each of them has for the tasks."""

    @property
    def told(self) -> str:
        each = ("both" if len(self.names) == 2 else "all") + " send the same prompts"
        what = "the same lessons" if self.lessons else "no lesson"
        return f"{' and '.join(self.names)} have {what} for these tasks, so {each}"


def _alike(config: EvaluationConfig, libraries: Mapping[str, Library], tasks: Sequence[Task]) -> list[_Alike]:
    """The sampled arms by what they send, those apart that are alone."""
    reached = {GENERAL, *(t.domain for t in tasks)}
    by_prompts: defaultdict[tuple[tuple[tuple[str, str], ...], str | None], list[str]] = defaultdict(list)
    for arm in config.arms:
        if arm.sampled:
            lessons = tuple((e.text, e.domain) for e in libraries[arm.name] if e.domain in reached)
            by_prompts[(lessons, arm.prior)].append(arm.name)
    return [_Alike(names, len(lessons)) for (lessons, _), names in by_prompts.items() if len(names) > 1]


def _refuse_one_way(config: EvaluationConfig, alike: Sequence[_Alike]) -> None:
    """Refuse to compare arms that all send the same."""
    if any(len(one.names) == len(config.arms) for one in alike):
        raise AlikeError(
            f"There is nothing to compare: {alike[0].told}. Publish lessons for them first, or take an arm that "
            "differs."
        )


def _by_number(arms: Sequence[Arm]) -> tuple[Arm, ...]:
    """Pinned arms, `version:3` where `version:newest` was said: the newest one will be another, and a report stays."""
    names = {a.name: a.name.replace(":newest", f":{a.version}") for a in arms if a.version is not None}
    for arm in arms:
        if arm.of in names and arm.name == f"{arm.kind}:{arm.of}":
            names[arm.name] = f"{arm.kind}:{names[arm.of]}"
    said = [names.get(arm.name, arm.name) for arm in arms]
    if twice := [name for name in said if said.count(name) > 1]:
        raise InputError(f"Two arms are {twice[0]}: leave one of them out.")
    return tuple(
        arm.model_copy(update={"name": name, "of": names.get(arm.of or "", arm.of)})
        for arm, name in zip(arms, said, strict=True)
    )


def run_config_of(config: EvaluationConfig, arm: Arm, seed: int) -> RunConfig:
    """The configuration of the run that an arm is with one seed."""
    own = {name: getattr(config, name) for name in ARM_SETTINGS}
    return RunConfig(
        **own,
        group_size=config.samples,
        seed=seed * SEED_STRIDE,
        library_version=arm.version or 0,
        prior=arm.prior,
        arm=arm.name,
    )


def ordered(tasks: Sequence[Task], config: EvaluationConfig) -> list[Task]:
    """The tasks of an evaluation: shuffled, alike for all seeds, without those that are skipped or over the limit."""
    order = sorted(tasks, key=lambda t: t.id)
    random.Random(0).shuffle(order)
    seen: Counter[str] = Counter()
    kept = []
    most = None if config.limit is None else config.skip + config.limit
    for task in order:
        if seen[task.domain] >= config.skip and (most is None or seen[task.domain] < most):
            kept.append(task)
        seen[task.domain] += 1
    return kept


def of_arm(tasks: Sequence[Task], arm: Arm) -> list[Task]:
    """The tasks that an arm is sampled on."""
    return [t for t in tasks if not arm.domains or t.domain in arm.domains]


def groups_of(store: Store, evaluation: Evaluation) -> int:
    """Groups that an evaluation has; none where it was discarded."""
    return sum(store.runs.tally(run_id).total for ids in evaluation.runs.values() for run_id in ids)
