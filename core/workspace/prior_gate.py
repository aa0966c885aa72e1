"""The gate of a token prior: each factor is kept only where it was seen to help on trial tasks (DESIGN 2.8, 2.10).

A prior is derived from what winners say, and a true contrast is not always a help: on one sample family of six it made
the model worse (docs/proof.md). So it is tried as lessons are: a version with it against the same version without it,
on at least 40 trial tasks x 4 samples of each domain, one-sided, Benjamini-Hochberg at .10 over its domains. What
passes is kept as a prior of its own; the first one stays as it is.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from core.effect import benjamini_hochberg, gate
from core.errors import InputError
from core.experience import GENERAL
from core.prior import Prior
from core.proof import Arm, Effect, Evaluation, EvaluationConfig
from core.record import Record
from core.settings import RewardConfig
from core.store import Store
from core.workspace.evaluating import Evaluating
from core.workspace.judgeable import judgeable
from core.workspace.trial_gate import LEAST_TASKS, SAMPLES

GATED = "prior.gated"
"""Kind of the log's line that tells which factors passed, with what was measured of each domain."""


VERIFIED = RewardConfig()
"""The reward where nobody chose another one."""


class DomainTried(Record):
    """What a trial says of the factors of one domain."""

    domain: str
    """`general`: the factors that every task takes, measured on all tasks."""
    effect: Effect
    """With the prior against without it."""
    p_adjusted: float
    """One-sided, corrected over the domains; 1 where fewer than 40 tasks could be scored in both arms."""
    kept: bool

    @property
    def too_few(self) -> bool:
        """Whether too few tasks could be scored in both arms to tell."""
        return self.effect.tasks < LEAST_TASKS


class PriorTried(Record):
    """A prior and what the gate made of it."""

    prior_id: str
    evaluation_id: str
    domains: tuple[DomainTried, ...]
    gated: str | None
    """The prior of the factors that passed, which is the same one where all did; None where none did."""


class PriorGate:
    """Tries the priors of one workspace on trial tasks."""

    def __init__(self, store: Store, evaluating: Evaluating) -> None:
        self._store = store
        self._evaluating = evaluating

    def of_prior(
        self, prior_id: str, config: EvaluationConfig, version: int | None = None
    ) -> EvaluationConfig:
        """The evaluation that tries a prior: a version with it against the same without it.

        Args:
            prior_id: which.
            config: how it is sampled; its split, arms and domains are replaced. A domain with fewer tasks than the
                gate takes is not sampled: it could not pass.
            version: of the library that stands beside it; None takes the newest.

        Raises:
            NotFoundError: there is no such prior or version.
            InputError: it weighs nothing, or there are fewer tasks of each domain, or rollouts of each task, than the
                gate takes.
        """
        prior = self._store.priors.get(prior_id)
        domains = _domains(prior)
        if not domains:
            raise InputError(f"{prior.id} weighs nothing at all: there is nothing to try.")
        if config.samples * len(config.seeds) < SAMPLES:
            raise InputError(f"The gate takes at least {SAMPLES} rollouts of each task: see --samples.")
        beside = self._store.versions.head() if version is None else self._store.versions.get(version).number
        name = f"version {beside}"
        arms = (
            Arm(name=name, kind="version", version=beside),
            Arm(name=f"{name} + {prior.id}", kind="version", version=beside, prior=prior.id),
        )
        of = self._that_may_pass(prior.id, self.tasks(prior, config.reward, config.limit), config.limit)
        return config.model_copy(update={"split": "trial", "domains": of, "arms": arms})

    def tasks(
        self, prior: Prior, reward: RewardConfig = VERIFIED, limit: int | None = None
    ) -> dict[str, int]:
        """The trial tasks of each of its domains, of which a trial takes at most `limit`; of `general`, all tasks."""
        there = Counter(t.domain for t in judgeable(self._store.tasks.select("trial"), reward))
        taken = {d: n if limit is None else min(n, limit) for d, n in there.items()}
        return {d: sum(taken.values()) if d == GENERAL else taken.get(d, 0) for d in _domains(prior)}

    def _that_may_pass(self, prior_id: str, tasks: dict[str, int], limit: int | None) -> tuple[str, ...]:
        """The domains that are sampled; empty = all, where factors of every task may pass."""
        enough = tuple(d for d, n in tasks.items() if n >= LEAST_TASKS)
        if not enough:
            named = ", ".join(f"{d} has {n:,}" for d, n in tasks.items())
            within = f" within --limit {limit}" if limit is not None else ""
            raise InputError(
                f"The gate takes at least {LEAST_TASKS} trial tasks of a domain, and{within} {named}: "
                + ("raise the limit." if limit is not None and limit < LEAST_TASKS else "import more.")
            )
        return () if GENERAL in enough else enough

    def decide(self, evaluation: Evaluation, actor: str) -> PriorTried:
        """Keep what passed as a prior; again, it gives the same one, and the log has it once.

        Raises:
            InputError: the evaluation is not done, or tries no prior.
        """
        prior_id = evaluation.config.arms[-1].prior
        if prior_id is None:
            raise InputError(f"{evaluation.id} tries no prior.")
        if evaluation.status != "done":
            raise InputError(f"{evaluation.id} is not done: go on with it first.")
        prior = self._store.priors.get(prior_id)
        tried = self._tried(prior, evaluation.id)
        passed = {one.domain for one in tried if one.kept}
        factors = tuple(f for f in prior.factors if f.domain in passed)
        with self._store.writing():
            kept = (
                self._store.priors.add(prior.model_copy(update={"factors": factors}), actor)
                if factors
                else None
            )
            made = PriorTried(
                prior_id=prior.id, evaluation_id=evaluation.id, domains=tried, gated=kept.id if kept else None
            )
            if made != self.last(prior.id):
                self._tell(made, actor)
        return made

    def _tell(self, made: PriorTried, actor: str) -> None:
        self._store.events.append(
            actor,
            GATED,
            made.prior_id,
            evaluation=made.evaluation_id,
            passed=[*sorted(one.domain for one in made.domains if one.kept)],
            dropped=[*sorted(one.domain for one in made.domains if not one.kept)],
            gated=made.gated,
            by_domain=[one.model_dump(mode="json") for one in made.domains],
        )

    def last(self, prior_id: str) -> PriorTried | None:
        """The newest trial of a prior, as it was decided; None where it was never tried."""
        found, _ = self._store.events.page(kind=GATED, subject=prior_id, limit=1)
        if not found:
            return None
        told = found[0].data
        domains: Any = told.get("by_domain")
        if domains is None:  # of an older log: counted anew
            domains = self._tried(self._store.priors.get(prior_id), str(told["evaluation"]))
        return PriorTried.model_validate(
            {
                "prior_id": prior_id,
                "evaluation_id": told["evaluation"],
                "domains": domains,
                "gated": told["gated"],
            }
        )

    def _tried(self, prior: Prior, evaluation_id: str) -> tuple[DomainTried, ...]:
        [compared] = self._evaluating.report(evaluation_id).comparisons
        return _judged(
            {
                d: compared.effect if d == GENERAL else compared.by_domain.get(d, Effect(tasks=0))
                for d in _domains(prior)
            }
        )


def _domains(prior: Prior) -> tuple[str, ...]:
    """The domains of the factors that weigh something."""
    return tuple(dict.fromkeys(f.domain for f in prior.factors if f.eta > 0 and f.tokens))


def _judged(effects: dict[str, Effect]) -> tuple[DomainTried, ...]:
    values = {
        domain: e.p_greater if e.p_greater is not None and e.tasks >= LEAST_TASKS else 1.0
        for domain, e in effects.items()
    }
    passes = gate(values)
    adjusted = benjamini_hochberg(list(values.values()))
    return tuple(
        DomainTried(domain=domain, effect=effects[domain], p_adjusted=p, kept=passes[domain])
        for domain, p in zip(values, adjusted, strict=True)
    )
