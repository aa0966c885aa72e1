"""The measured effect of single lessons, proposals and versions: what evaluations leave beside them (DESIGN 2.7, 2.10).

1. A lesson's effect is that of its version with it against without it; a proposal's, of a version with it against
   without it; a version's, against its parent. Above 0, it helps.
2. Only trial tasks measure anything: final tasks report, and select nothing.
3. Several tried together are corrected together (Benjamini and Hochberg 1995), and each keeps how many there were.
4. A measured lesson earns one credit: better where the whole interval lies above 0, worse where it lies below 0;
   else it is a use that was neither. Its rollouts are counted with it. The lesson that a proposal became earns what
   was measured of it before, too, but for the number that selected it (`core.evaluation.credit`).
5. A version whose whole interval lies below 0 is flagged, and a rollback is proposed. Nothing is rolled back by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from core.credit import Credit
from core.effect import benjamini_hochberg
from core.errors import InputError
from core.evaluation import compare, credit_of, credit_of_trial, reach_of, tried_as_it_is, worse
from core.experience import Delete, Proposal
from core.proof import Arm, Evaluation, EvaluationConfig, Measured, MeasuredKind
from core.store import Store
from core.workspace.outcomes import Outcomes

ROLLBACK = "rollback.proposed"
"""Kind of the log's line that tells of a version that does worse than its parent."""


class Measuring:
    """Keeps what evaluations measured; told of each one that is done (`core.workspace.evaluating.Closing`)."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._outcomes = Outcomes(store)

    def __call__(self, evaluation: Evaluation, actor: str) -> list[Measured]:
        """Keep what an evaluation that is done measured; gives it. Again, it changes nothing but the time."""
        found = self._corrected(self.measured(evaluation))
        self._store.evaluations.measure(found, actor)
        self._store.credits.record(self._earned(found, evaluation))
        for one in found:
            if one.kind == "version" and worse(one.effect):
                told = {"mean": one.effect.mean, "low": one.effect.low, "high": one.effect.high}
                self._store.events.append(
                    actor, ROLLBACK, one.subject, to=one.version, evaluation=evaluation.id, **told
                )
        return found

    def _earned(self, found: Sequence[Measured], evaluation: Evaluation) -> list[Credit]:
        earned = [credit_of(one, one.subject) for one in found if one.kind == "lesson"]
        trials = ((one, self._store.proposals.get(one.subject)) for one in found if one.kind == "proposal")
        return earned + [c for one, p in trials if (c := credit_of_trial(one, p, evaluation)) is not None]

    def of(self, subject: str) -> list[Measured]:
        """All that was measured of a lesson, a proposal or a version (by its number), the newest first.

        Of a lesson also what was measured of the proposals that it came from, before it was one.

        Raises:
            NotFoundError: there is no such thing.
        """
        found = self._store.evaluations.measured_of(subject)
        if subject.isdecimal():
            self._store.versions.get(int(subject))
        elif subject.startswith("P-"):
            self._store.proposals.get(subject)
        else:
            states = [state for _, _, state in self._store.versions.history(subject)]
            for proposal_id in dict.fromkeys(state.proposal_id for state in states if state.proposal_id):
                found += self._before(self._store.proposals.get(proposal_id))
        return sorted(found, key=lambda one: -int(one.evaluation_id.removeprefix("EV")))

    def _before(self, proposal: Proposal) -> list[Measured]:
        """What was measured of a proposal with the very text that it was published with."""
        evaluations, found = self._store.evaluations, self._store.evaluations.measured_of(proposal.id)
        return [one for one in found if tried_as_it_is(proposal, evaluations.get(one.evaluation_id))]

    def alarms(self) -> list[Measured]:
        """The newest version, where it does worse than its parent: a rollback to that one is proposed.

        A later measurement takes that back only where it rests on no fewer tasks and rollouts.
        """
        most = 0
        for one in self._store.evaluations.measured_of(str(self._store.versions.head())):
            size = one.effect.tasks * one.samples
            if worse(one.effect) and size > most:
                return [one]
            most = max(most, size)
        return []

    def measured(self, evaluation: Evaluation) -> list[Measured]:
        """What an evaluation says of single lessons, proposals and versions; none where it is of final tasks."""
        config = evaluation.config
        baseline = config.arms[0]
        if config.split != "trial" or baseline.kind != "version" or baseline.prior:
            return []
        told = self._outcomes.told(evaluation)
        sampled = self._outcomes.sampled(evaluation, self._outcomes.libraries(config))
        found = []
        for arm in config.arms[1:]:
            if (of := _subject(arm, baseline)) is None:
                continue
            kind, subject = of
            with_it, without_it = (baseline, arm) if kind == "lesson" else (arm, baseline)
            effect = compare(sampled, with_it, without_it, told).effect
            found.append(
                Measured(
                    kind=kind,
                    subject=subject,
                    evaluation_id=evaluation.id,
                    version=baseline.version or 0,
                    split=config.split,
                    model=evaluation.model,
                    effect=effect,
                    samples=config.samples * len(config.seeds),
                    selected=evaluation.purpose == "gate" and kind == "proposal",
                    fresh=evaluation.purpose == "fresh",
                )
            )
        return found

    def _corrected(self, found: Sequence[Measured]) -> list[Measured]:
        """Each with its p corrected over all of its kind that were tried together; those without one count as 1."""
        by_kind: defaultdict[str, list[Measured]] = defaultdict(list)
        for one in found:
            by_kind[one.kind].append(one)
        corrected = []
        for own in by_kind.values():
            values = [1.0 if one.effect.p_greater is None else one.effect.p_greater for one in own]
            for one, p in zip(own, benjamini_hochberg(values), strict=True):
                corrected.append(one.model_copy(update={"p_adjusted": p, "tried": len(own)}))
        return corrected

    # --- what is to be measured ---

    def of_lessons(self, ids: Sequence[str], config: EvaluationConfig) -> EvaluationConfig:
        """The evaluation that measures lessons of the newest version: each is left out once.

        Args:
            ids: of live lessons.
            config: how it is sampled; its arms and domains are replaced.

        Raises:
            UnknownExperienceError: one is not live.
        """
        library = self._store.versions.library()
        for experience_id in ids:
            library.live(experience_id)
        reaches = [reach_of(Delete(experience_id=i), library) for i in ids]
        arms = [Arm(name=f"without {i}", kind="without", experience_id=i) for i in dict.fromkeys(ids)]
        return _over(config, reaches, arms, library.version)

    def of_proposals(self, ids: Sequence[str], config: EvaluationConfig) -> EvaluationConfig:
        """The evaluation that tries proposals on the newest version, each by itself; see `of_lessons`.

        Raises:
            InputError: one was decided on against it, or is no longer what could be published.
        """
        library = self._store.versions.library()
        proposals = [self._store.proposals.get(i) for i in dict.fromkeys(ids)]
        for one in proposals:
            if one.status in ("rejected", "quarantined", "published"):
                raise InputError(f"{one.id} is {one.status}; there is nothing to try.")
        reaches = [reach_of(one.effective, library) for one in proposals]
        arms = [Arm(name=f"with {one.id}", kind="with", proposal_ids=(one.id,)) for one in proposals]
        return _over(config, reaches, arms, library.version)


def _over(
    config: EvaluationConfig, reaches: Sequence[tuple[str, ...]], arms: Sequence[Arm], version: int
) -> EvaluationConfig:
    if not arms:
        raise InputError("Name at least one.")
    everywhere = not all(reaches)
    baseline = Arm(name=f"version {version}", kind="version", version=version)
    pinned = [arm.model_copy(update={"version": version}) for arm in arms]
    return config.model_copy(
        update={
            "domains": () if everywhere else tuple(sorted({d for reach in reaches for d in reach})),
            "arms": (baseline, *pinned),
        }
    )


def _subject(arm: Arm, baseline: Arm) -> tuple[MeasuredKind, str] | None:
    """What an arm measures against the baseline, a kind and an id; None where it is nothing of this."""
    if arm.prior:
        return None
    if arm.version == baseline.version:
        if arm.kind == "without":
            return "lesson", arm.experience_id or ""
        if arm.kind == "with" and len(arm.proposal_ids) == 1:
            return "proposal", arm.proposal_ids[0]
    if arm.kind == "version" and arm.version is not None and arm.version - 1 == baseline.version:
        return "version", str(arm.version)
    return None
