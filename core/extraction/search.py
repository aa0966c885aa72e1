"""The greedy search for the lessons of one domain.

The clearest finding becomes a lesson; the next one must still hold among the rollouts that follow the first
(DESIGN 5). Everything that was significant and did not become a lesson is told with its reason.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

import numpy as np

from core.evidence import Contrast, Feature, Matter, Table, contrast
from core.evidence.contrast import PERMUTATIONS
from core.evidence.instructions import Demand, Instruction, conflicts
from core.evidence.table import Bools
from core.experience import (
    EVIDENCE_CONFIDENCE,
    START_CONFIDENCE,
    Add,
    Experience,
    Finding,
    Modify,
    Operation,
    Quarantined,
    targets_of,
)
from core.extraction.draft import Draft, Joined, Outcome
from core.extraction.library_check import contradicted, nearest
from core.extraction.sayings import SIGNIFICANT, Names
from core.extraction.sentences import Advice, Setting, advice_of, compose, is_general, leaks, setting_of

PROPOSE_BELOW = 0.1
"""Corrected p under which a finding becomes a proposal; weaker ones are noted."""

NOTE_BELOW = 0.2

MAX_WORD_NOTES = 3
"""Telling words noted for one domain."""

COVERAGE = 0.5
"""Share of the best rollouts that must follow a lesson: what most of the best do without is no advice.

DESIGN 5 found .8, with habits that a verifier of form decides. Where luck has its part, .8 asks for much more than
chance rules out: of a habit that half of the rollouts follow and that is worth .3, .65 of the best follow it, and with
.8 no more than 3 of 20 such habits became lessons (`make bench-learning`).
"""

TWINS = 0.6
"""Correlation (phi) from which two habits are looked at as one that goes by two names."""

IMPLIED = 0.95
"""Share of a lesson's followers that do a second thing, too, from which on the one goes with the other."""

VANISHED_P = 0.2
"""Uncorrected p above which an effect, looked at without cut-off answers, counts as gone."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A finding that says something, with its advice."""

    finding: Finding
    do: bool
    advice: Advice

    def followed(self, table: Table) -> Bools:
        """Which rows do what it advises; shape [rows]."""
        holds = table.column(self.finding.feature)
        return holds if self.do else ~holds


@dataclass(slots=True)
class Search:
    """The greedy search of one domain, with what it has found so far."""

    domain: str
    matters: Sequence[Matter]
    contrast: Contrast
    live: Sequence[Experience]
    answers: Set[str]
    run_id: str
    seed: tuple[int, int]
    general: bool | None = None
    """True: only habits that belong to no domain; False: all others; None: both."""
    drafts: list[Draft] = field(default_factory=list)
    joined: list[Joined] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    chosen: list[Candidate] = field(default_factory=list)
    instructions: dict[Instruction, str] = field(default_factory=dict)
    """What the questions demand, each with the first task that demands it."""
    settings: dict[bool, Setting] = field(default_factory=dict)
    """When a lesson holds, for lessons about tools and for others."""

    def __post_init__(self) -> None:
        for matter in self.matters:
            self.instructions.setdefault(matter.instruction, matter.task_id)

    def run(self, limit: int) -> Outcome:
        table = self.contrast.table
        if not self.contrast.findings:
            groups = f"{table.groups} groups with winners and losers"
            self.notes.append(f"{self.domain}: {groups} gave no feature enough support.")
        left = sorted(filter(None, map(self._fit, self._candidates())), key=_order)
        lessons = 0
        while left and lessons < limit:
            first = self._plainest(left)
            rest = [c for c in left if c is not first]
            same = [
                c for c in rest if c.advice.core == first.advice.core and c.advice.when == first.advice.when
            ]
            rest = [c for c in rest if c not in same]
            tails = self._tails(first, rest)
            self._draft(first, same, tails)
            self.chosen += [first, *tails]
            lessons += 1
            left = self._still([c for c in rest if c not in tails])
        for candidate in left:
            self._set_aside(candidate, f"no room: the domain has {limit} lessons already")
        self._delete_contradicted()
        return Outcome(
            drafts=tuple(self.drafts),
            joined=tuple(self.joined),
            quarantined=tuple(self.quarantined),
            notes=tuple(self.notes),
        )

    def _delete_contradicted(self) -> None:
        touched = {i for d in self.drafts for i in targets_of(d.operation)} | {j.into for j in self.joined}
        for gone in contradicted(self.live, self.contrast, touched):
            self.drafts.append(self._as_draft(gone.operation, gone.findings, gone.rationale))

    def _among(self, rows: Bools, permutations: int = 1) -> Contrast:
        """The same contrast among some of the rows; with one permutation only the uncorrected p is of use."""
        table = self.contrast.table.without_words().where(rows)
        return contrast(table, seed=self.seed, permutations=permutations)

    def _stopped(self) -> Bools:
        """Rows that the token limit cut off, or that a step or time limit stopped."""
        table = self.contrast.table
        return table.column("cut") | table.column("step_limit") | table.column("time_limit")

    # --- which findings may become advice ------------------------------------------------------------

    def _candidates(self) -> list[list[Candidate]]:
        """For each finding what it may be said as: under each of its names that advises something."""
        found = []
        words = 0
        for finding in self.contrast.findings:
            feature = self.contrast.features[finding.feature]
            if finding.p_corrected >= NOTE_BELOW or (words >= MAX_WORD_NOTES and feature.is_word):
                continue
            if not self._names(finding):
                continue
            words += feature.is_word
            sayable = self._sayable(finding)
            sentence = self.contrast.sentence(finding)
            if finding.p_corrected >= PROPOSE_BELOW:
                self.notes.append(f"{self.domain}, weak: {sentence}.")
            elif not sayable:
                self.notes.append(f"{self.domain}, true but no advice: {sentence}.")
            else:
                found.append(sayable)
        return found

    def _sayable(self, finding: Finding) -> list[Candidate]:
        """The finding under each of its names that advises something."""
        found = []
        for feature in self._names(finding):
            gain, named = self.contrast.gain_of(feature.name), self.contrast.under(feature.name)
            advice = advice_of(feature, do=gain > 0) if gain else None
            if gain and named is not None and advice is not None:
                found.append(Candidate(named, gain > 0, advice))
        return found

    def _names(self, finding: Finding) -> list[Feature]:
        """The features that a finding stands for and that this search is about."""
        by_name = {f.name: f for f in self.contrast.table.columns}
        features = [by_name[n] for n in (finding.feature, *self.contrast.same.get(finding.feature, ()))]
        return [f for f in features if self.general is None or is_general(f) == self.general]

    def _also(self, first: Candidate) -> list[str]:
        """What further names of the very same rollouts add to a sentence: "no full sentence"."""
        kept = self.contrast.finding(first.finding.feature)
        if not first.advice.leads or kept is None:
            return []
        tails = []
        for feature in self._names(kept):
            advice = advice_of(feature, do=(self.contrast.gain_of(feature.name) or 0.0) > 0)
            if advice and advice.about == first.advice.about and not _clash(first.advice, advice):
                tails.append(advice.tail)
        return [tail for tail in tails if tail and tail != first.advice.tail]

    def _fit(self, sayable: Sequence[Candidate]) -> Candidate | None:
        """The first that may become a lesson; without one, the first is set aside with its reason.

        The same rollouts may go by a name that may not be said and by one that may; but what the task forbids, or
        truncation explains, is no better under another name.
        """
        named = [c for c in sayable if not self._unnamable(c)]
        candidate = (named or sayable)[0]
        reason = self._unfit(candidate) if named else self._unnamable(candidate)
        if reason or any(self._unfit(c) for c in sayable[: sayable.index(candidate)]):
            first = sayable[0]
            self._set_aside(first, self._unfit(first) or self._unnamable(first) or reason)
            return None
        return candidate

    def _unnamable(self, candidate: Candidate) -> str:
        """Why a lesson must not be worded like this, or ""."""
        advice = candidate.advice
        if advice.numeric and not self._setting(advice).numeric:
            return "the answers of these tasks are not numbers"
        if advice.about == "recovery" and not self._holds_after_errors(candidate):
            return "the error itself explains it, or too few rollouts met the error to tell"
        if leaked := leaks(self._text(candidate), self.answers):
            return f"gives away an answer ({leaked!r})"
        return ""

    def _unfit(self, candidate: Candidate) -> str:
        """Why what was found must not become a lesson, or ""."""
        table = self.contrast.table
        if against := self._against(candidate.advice.demands):
            return f"contradicts the task's instruction ({against})"
        if self._truncated(candidate):
            return "explained by truncation: it vanishes without the rollouts that a limit stopped or cut off"
        best, followed = table.best, candidate.followed(table)
        if followed[best].mean() < COVERAGE:
            return f"only {int(followed[best].sum())} of the best {int(best.sum())} rollouts follow it"
        if (candidate.finding.odds_ratio > 1) != candidate.do:
            return "the counts of winners and losers do not bear out what the rewards say"
        return ""

    def _against(self, demands: frozenset[Demand]) -> str:
        """The first demand of any of the domain's questions that the advice goes against."""
        for instruction, task_id in self.instructions.items():
            against = conflicts(demands, instruction)
            if against:
                return f"task {task_id} asks for: {', '.join(sorted(against)).replace('_', ' ')}"
        return ""

    def _truncated(self, candidate: Candidate) -> bool:
        stopped = self._stopped()
        if not stopped.any():
            return False
        whole = self._among(~stopped)
        found = whole.finding(candidate.finding.feature)
        if found is None:
            return False  # too few are left to tell; the rationale says how many were cut
        return not _agrees(whole, candidate) or found.p > VANISHED_P

    def _holds_after_errors(self, candidate: Candidate) -> bool:
        """A recovery is compared among those that had to recover: having met the error loses by itself."""
        table, value = self.contrast.table, candidate.finding.feature.partition("=")[2]
        met = table.column("any_failed")
        if "|" in value:
            signature, tool, *_ = value.split("|")
            met = table.column(f"error={signature}") & table.column(f"failed={tool}")
        within = self._among(met)
        found = within.finding(candidate.finding.feature)
        return found is not None and found.p < SIGNIFICANT and _agrees(within, candidate)

    # --- the greedy step -------------------------------------------------------------------------------

    def _followed(self, about: str) -> Bools:
        """Rows that follow every lesson chosen so far about the same thing."""
        rows = np.ones(self.contrast.table.rows, dtype=np.bool_)
        for candidate in self.chosen:
            if candidate.advice.about == about:
                rows &= candidate.followed(self.contrast.table)
        return rows

    def _plainest(self, left: Sequence[Candidate]) -> Candidate:
        """The clearest of all; where that is about a mere neighbour or no start, perhaps a plainer one in its place.

        "Called sync_clock right after calculator" and "did not start with sync_clock" tell as much as "called
        calculator" where the one mostly goes with the other, and by luck a little more. Those rollouts in which the
        two differ can tell which of them it is; where they do not speak for the first, the plainer one is said.
        """
        clearest, table = left[0], self.contrast.table
        if not _sidelong(clearest):
            return clearest
        held = clearest.followed(table)
        for candidate in left[1:]:
            other = candidate.followed(table)
            if candidate.advice.about != "tool" or _sidelong(candidate) or _phi(held, other) < TWINS:
                continue
            apart = self._among(held != other)
            found = apart.finding(clearest.finding.feature)
            if not (found and found.p < SIGNIFICANT and _agrees(apart, clearest)):
                return candidate
        return clearest

    def _tails(self, first: Candidate, rest: Sequence[Candidate]) -> list[Candidate]:
        """Findings that only spell the first one out: they read better inside its sentence."""
        if not first.advice.leads:
            return []
        table = self.contrast.table
        core = first.followed(table) & self._followed(first.advice.about)
        within = self._among(core)
        tails: list[Candidate] = []
        for candidate in rest:
            advice = candidate.advice
            said = {first.advice.core, *(t.advice.tail for t in tails)}
            if advice.about != first.advice.about or _clash(first.advice, advice):
                continue
            if not advice.tail or advice.tail in said:
                continue
            implied = float(candidate.followed(table)[core].mean()) >= IMPLIED
            found = within.finding(candidate.finding.feature)
            held = found is not None and found.p < SIGNIFICANT and _agrees(within, candidate)
            if implied or held:
                tails.append(candidate)
        return tails[:3]

    def _still(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Those that still tell high from low rewards among the rollouts that follow what is chosen."""
        kept = []
        within: dict[str, Contrast] = {}
        for candidate in candidates:
            about = candidate.advice.about
            rows = self._followed(about)
            if rows.all():  # nothing about the same thing is chosen
                kept.append(candidate)
                continue
            if about not in within:
                within[about] = self._among(rows, PERMUTATIONS)
            found = within[about].finding(candidate.finding.feature)
            if found and found.p_corrected < PROPOSE_BELOW and _agrees(within[about], candidate):
                kept.append(candidate)
            else:
                why = "adds nothing" if found else "varies too little to tell"
                self._set_aside(candidate, f"{why} among the rollouts that follow the lessons above")
        return kept

    # --- drafts -----------------------------------------------------------------------------------------

    def _setting(self, advice: Advice) -> Setting:
        tools = advice.subject != "form"
        if tools not in self.settings:
            self.settings[tools] = setting_of(self.matters, self.domain, self.answers, tools=tools)
        return self.settings[tools]

    def _text(self, candidate: Candidate, tails: Sequence[Candidate] = ()) -> str:
        return compose(
            self._setting(candidate.advice),
            candidate.advice,
            list(dict.fromkeys([*self._also(candidate), *(t.advice.tail for t in tails)])),
        )

    def _set_aside(self, candidate: Candidate, reason: str) -> None:
        self.quarantined.append(
            Quarantined(
                reason=f"{self.domain}: {reason}",
                raw=f"{self._text(candidate)} [{self.contrast.sentence(candidate.finding)}]",
                run_id=self.run_id,
                group_ids=self.contrast.evidence([candidate.finding]).group_ids,
            )
        )

    def _draft(self, first: Candidate, same: Sequence[Candidate], tails: Sequence[Candidate]) -> None:
        text = self._text(first, tails)
        findings = [c.finding for c in (first, *same, *tails)]
        evidence = self.contrast.evidence(findings)
        for candidate in same:  # they say the same: one draft, its evidence united
            alone = self.contrast.evidence([candidate.finding])
            why = "the same text as another draft"
            self.joined.append(
                Joined(text=text, into=text, reason=why, evidence=alone, group_ids=alone.group_ids)
            )
        near = nearest(text, first.advice, self.live, Names.of(self.contrast.table.columns))
        if near is not None and near.same:
            into = near.experience.id
            self.joined.append(
                Joined(text=text, into=into, reason=near.why, evidence=evidence, group_ids=evidence.group_ids)
            )
            return
        rationale = self._rationale([first, *same, *tails])
        operation: Operation = Add(text=text, kind=first.advice.kind, domain=self.domain)
        if near is not None:
            operation = Modify(experience_id=near.experience.id, text=text, kind=first.advice.kind)
            rationale = f"{near.why} {rationale}"
        self.drafts.append(self._as_draft(operation, findings, rationale))

    def _as_draft(self, operation: Operation, findings: Sequence[Finding], rationale: str) -> Draft:
        evidence = self.contrast.evidence(findings)
        return Draft(
            operation=operation,
            evidence=evidence,
            rationale=rationale,
            confidence=EVIDENCE_CONFIDENCE if findings[0].p_corrected < SIGNIFICANT else START_CONFIDENCE,
            learned_on=", ".join(self.contrast.table.models),
            group_ids=evidence.group_ids,
        )

    def _rationale(self, candidates: Sequence[Candidate]) -> str:
        first, table = candidates[0], self.contrast.table
        parts = [self.contrast.sentence(c.finding) + "." for c in candidates]
        best = table.best
        following = int(first.followed(table)[best].sum())
        parts.append(f"{following} of the best {int(best.sum())} rollouts follow this lesson.")
        if any(c.advice.about == first.advice.about for c in self.chosen):
            parts.append("It holds among the rollouts that follow the lessons above.")
        if stopped := int(self._stopped().sum()):
            parts.append(f"{stopped} of {table.rows} rollouts were stopped or cut off by a limit.")
        if first.finding.p_corrected >= SIGNIFICANT:
            parts.append("The evidence is weak (corrected p not below .05).")
        return " ".join(parts)


def _order(candidate: Candidate) -> tuple[bool, bool, float, float]:
    """Sure ones first, then those that say what a good answer looks like, then the smallest p."""
    finding = candidate.finding
    return (
        finding.p_corrected >= SIGNIFICANT,
        not candidate.advice.leads,
        finding.p_corrected,
        finding.p,
    )


def _agrees(within: Contrast, candidate: Candidate) -> bool:
    """Whether a part of the rollouts points the same way as all of them."""
    gain = within.gain_of(candidate.finding.feature)
    return gain is not None and (gain > 0) == candidate.do


def _clash(a: Advice, b: Advice) -> bool:
    return bool(conflicts(b.demands, Instruction(a.demands)))


def _sidelong(candidate: Candidate) -> bool:
    """Whether it says which calls were neighbours, or what was not called first: both may only go with a habit."""
    name = candidate.finding.feature
    return name.startswith("order=") or (name.startswith("first_tool=") and not candidate.do)


def _phi(a: Bools, b: Bools) -> float:
    """Correlation of two boolean columns; 0 where one of them does not vary."""
    if a.all() or b.all() or not a.any() or not b.any():
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])
