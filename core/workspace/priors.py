"""Token priors of a workspace: derived from training rollouts, applied at endpoints of the same tokenizer only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import InputError, PackError
from core.ports import Progress, Tokenizer, silent
from core.prior import (
    Bias,
    Factor,
    Limits,
    Prior,
    PriorRules,
    Reply,
    TokenizerName,
    answers_of,
    bias_map,
    derive_factor,
    says_something,
    spellings,
)
from core.rollout import Group
from core.settings import EMBEDDED, Endpoint
from core.store import Store
from core.workspace.models import Models

if TYPE_CHECKING:
    from core.workspace.workspace import Workspace

PORTION = 500
"""Texts that are tokenised between two reports of progress."""


class Priors:
    """Derives, lists and applies the token priors of one workspace."""

    def __init__(self, store: Store, models: Models) -> None:
        self._store = store
        self._models = models

    def all(self) -> list[Prior]:
        """Every prior, the newest first."""
        return self._store.priors.all()

    def get(self, prior_id: str) -> Prior:
        """One prior.

        Raises:
            NotFoundError: there is none of that id.
        """
        return self._store.priors.get(prior_id)

    def derive(
        self,
        actor: str,
        *,
        run_ids: Sequence[str] = (),
        experience_ids: Sequence[str] = (),
        version: int | None = None,
        domains: Sequence[str] = (),
        rules: PriorRules | None = None,
        progress: Progress = silent,
    ) -> Prior:
        """Derive a prior from training rollouts, and keep it; the same again gives the same prior.

        Args:
            actor: who asks for it.
            run_ids: a factor for each domain, from all informative groups of these runs.
            experience_ids: a factor for each of these experiences, from the groups that it was learned from.
            version: in place of runs: those that the live lessons of this version were learned in.
            domains: only these; empty = all.
            rules: how tokens are chosen; None = the measured defaults.
            progress: told of the tokenising.

        Raises:
            NotFoundError: there is no such run, experience or version.
            InputError: nothing to learn from, no tokenizer, or no factor tells winners from losers.
            ModelUnavailableError: the embedded model's server is needed and cannot be had.
        """
        runs = list(run_ids) or (self._runs_of(version) if version is not None else [])
        sources = {f"{i}": ids for i, ids in self._groups_of(experience_ids).items()}
        learned = _Learned(self._store, domains)
        if sources:
            for experience_id, group_ids in sources.items():
                learned.add((self._domain_of(experience_id), experience_id), group_ids)
        else:
            for run_id in runs:
                learned.add(None, self._store.groups.ids(self._store.runs.get(run_id).id, "informative"))
        if not learned.texts:
            raise InputError(
                "There is nothing to derive a prior from: no informative group of the split train is meant."
            )
        endpoint = self._models.get(self._store.runs.get(learned.runs[0]).config.endpoint)
        tokenizer = tokenizer_of(endpoint)
        rules = rules or PriorRules()
        factors = self._factors(learned, tokenizer, rules, progress)
        if not any(f.eta > 0 and f.tokens for f in factors):
            raise InputError(
                f"No token tells winners from losers: in none of {len(factors)} factors it holds on tasks that it was"
                " not chosen on (q > 1/2), so there is no prior to keep."
            )
        made = Prior(
            tokenizer=TokenizerName(name=tokenizer.name, sha256=tokenizer.sha256),
            model=learned.model,
            rules=rules,
            run_ids=tuple(learned.runs),
            version=version,
            factors=tuple(factors),
            left_out=learned.left_out,
        )
        return self._store.priors.add(made, actor)

    def bias(
        self,
        prior_id: str,
        endpoint: Endpoint | str,
        *,
        domain: str | None = None,
        scale: float | None = None,
    ) -> Bias:
        """What a prior adds to the logits at an endpoint; see `core.prior.bias_map`.

        Raises:
            NotFoundError: there is no such prior or endpoint.
            InputError: the endpoint has another tokenizer, none that is known, or takes no logit_bias.
        """
        at = self._models.get(endpoint) if isinstance(endpoint, str) else endpoint
        prior = self.get(prior_id)
        check_tokenizer(prior, at)
        return bias_map(prior, limits_of(at), domain=domain, scale=scale)

    def bring(self, data: bytes, endpoint: Endpoint | str, actor: str) -> Prior:
        """Keep the prior of a pack, or of a file of `logit_bias` JSON.

        Raises:
            PackError: it is neither, holds no prior, or is not sound.
            NotFoundError: there is no such endpoint.
            InputError: the prior belongs to another tokenizer than the endpoint's.
        """
        from core.packs import logit_bias, read_pack

        packed = read_pack(data).prior if data.startswith(b"PK") else logit_bias.read(data)
        if packed is None:
            raise PackError("The pack holds no token prior.")
        prior = packed.as_prior()
        check_tokenizer(prior, self._models.get(endpoint) if isinstance(endpoint, str) else endpoint)
        return self._store.priors.add(prior, actor)

    def _factors(
        self, learned: _Learned, tokenizer: Tokenizer, rules: PriorRules, progress: Progress
    ) -> list[Factor]:
        ids = _encoded(tokenizer, [t for texts in learned.texts.values() for *_, t in texts], progress)
        masked = self._masked(tokenizer, {domain for domain, _ in learned.texts}, progress)
        piece = lru_cache(maxsize=None)(lambda token: tokenizer.decode([token]).replace("\0", "\ufffd"))
        return [
            derive_factor(
                domain,
                [Reply(group, task, good, ids[text]) for group, task, good, text in texts],
                masked,
                piece,
                rules,
                source,
            )
            for (domain, source), texts in sorted(learned.texts.items())
        ]

    def _masked(self, tokenizer: Tokenizer, domains: set[str], progress: Progress) -> set[int]:
        """Tokens of right answers, of whatever split: all that is taken from them is that none is ever promoted."""
        known = domains & set(self._store.tasks.counts())
        every = "general" in domains or not known
        tasks = [
            task
            for split in ("train", "trial", "final")
            for task in self._store.tasks.select(split, () if every else sorted(known))
        ]
        answers = sorted(
            {spelt for task in tasks for answer in answers_of(task) for spelt in spellings(answer)}
        )
        ids = _encoded(tokenizer, answers, progress, "answers")
        masked: set[int] = set()
        for answer in answers:
            worded = any(map(str.isalnum, answer))
            masked |= {t for t in ids[answer] if not worded or says_something(tokenizer.decode([t]))}
        return masked

    def _runs_of(self, version: int) -> list[str]:
        found = {
            self._store.proposals.get(e.proposal_id).run_id
            for e in self._store.versions.library(version)
            if e.status == "live" and e.proposal_id
        }
        runs = sorted((run_id for run_id in found if run_id), key=lambda r: (len(r), r))
        if not runs:
            raise InputError(f"No live lesson of version {version} was learned in a run of this workspace.")
        return runs

    def _groups_of(self, experience_ids: Sequence[str]) -> dict[str, list[str]]:
        library = self._store.versions.library() if experience_ids else None
        found: dict[str, list[str]] = {}
        for experience_id in experience_ids:
            assert library is not None
            experience = library.live(experience_id)
            proposal = self._store.proposals.get(experience.proposal_id) if experience.proposal_id else None
            if proposal is None or not proposal.evidence.group_ids:
                raise InputError(f"{experience_id} was not learned from groups of this workspace.")
            found[experience_id] = list(proposal.evidence.group_ids)
        return found

    def _domain_of(self, experience_id: str) -> str:
        return self._store.versions.library().live(experience_id).domain


class _Learned:
    """The replies to learn from: by factor, (group, task, good, text) of each with an advantage other than 0."""

    def __init__(self, store: Store, domains: Sequence[str]) -> None:
        self._store = store
        self._domains = set(domains)
        self.texts: dict[tuple[str, str], list[tuple[str, str, bool, str]]] = defaultdict(list)
        self.runs: list[str] = []
        self.model = ""
        self.left_out = 0

    def add(self, factor: tuple[str, str] | None, group_ids: Iterable[str]) -> None:
        """Add groups to a factor, or each to that of its task's domain."""
        for group_id in group_ids:
            group = self._store.groups.get(group_id)
            task = self._store.tasks.find(group.task_id)
            if group.status != "informative" or task is None:
                continue
            if self._domains and task.domain not in self._domains:
                continue
            run = self._store.runs.get(group.run_id)
            if (
                task.split != "train" or run.kind == "evaluated"
            ):  # trial selects, final reports: neither teaches
                self.left_out += 1
                continue
            self._take(factor or (task.domain, ""), group)

    def _take(self, factor: tuple[str, str], group: Group) -> None:
        if group.run_id not in self.runs:
            self.runs.append(group.run_id)
        for rollout in group.rollouts:
            if rollout.advantage:
                self.model = self.model or rollout.model
                text = rollout.trajectory.answer
                self.texts[factor].append((group.id, group.task_id, rollout.advantage > 0, text))


def bias_of(
    workspace: Workspace, prior_id: str, endpoint: Endpoint | str, domain: str | None = None
) -> dict[int, float]:
    """What a prior adds to the logits at an endpoint, by token id: for `Sampling.logit_bias`.

    Args:
        workspace: whose prior it is.
        prior_id: `PR-0001`.
        endpoint: or its name.
        domain: of the task: only its factors and the general ones; None takes all factors.

    Raises:
        NotFoundError: there is no such prior or endpoint.
        InputError: the endpoint has another tokenizer, none that is known, or takes no logit_bias.
    """
    return workspace.priors.bias(prior_id, endpoint, domain=domain).values


def limits_of(endpoint: Endpoint) -> Limits:
    """The limits of an endpoint's `logit_bias`.

    Raises:
        InputError: it takes none.
    """
    if not endpoint.bias_range or not endpoint.bias_entries:
        raise InputError(f"Endpoint {endpoint.name} takes no logit_bias, so no token prior can be applied.")
    return Limits(endpoint.bias_range, endpoint.bias_entries)


def check_tokenizer(prior: Prior, endpoint: Endpoint) -> None:
    """Refuse a prior at an endpoint whose token ids mean other tokens.

    Raises:
        InputError: it has another tokenizer, or none that is known.
    """
    tokenizer = tokenizer_of(endpoint)
    if tokenizer.sha256 != prior.tokenizer.sha256:
        theirs = f"{prior.tokenizer.name} ({prior.tokenizer.sha256[:12]})"
        raise InputError(
            f"The token prior {prior.id or 'of this file'} belongs to the tokenizer of {theirs};"
            f" endpoint {endpoint.name} has that of {tokenizer.name} ({tokenizer.sha256[:12]}),"
            " where its ids mean other tokens."
        )


def tokenizer_of(endpoint: Endpoint) -> Tokenizer:
    """The tokenizer of an endpoint's model.

    Raises:
        InputError: it is not known here.
    """
    if endpoint.name == EMBEDDED:
        from core.local_model.tokenizer import EmbeddedTokenizer

        return EmbeddedTokenizer()
    if endpoint.tokenizer is None:
        raise InputError(
            f"The tokenizer of endpoint {endpoint.name} is not known: name the tokenizer.json of its model"
            " (winnow endpoints add ... --tokenizer FILE)."
        )
    path = Path(endpoint.tokenizer).expanduser()
    return _from_file(path, endpoint.model, path.stat().st_mtime_ns if path.is_file() else 0)


@lru_cache(maxsize=4)
def _from_file(path: Path, model: str, changed: int) -> Tokenizer:
    from core.llm.tokenizer import TokenizerFile

    return TokenizerFile(path, model)


def _encoded(
    tokenizer: Tokenizer, texts: Sequence[str], progress: Progress, what: str = "replies"
) -> dict[str, frozenset[int]]:
    """The tokens that each text has."""
    distinct = list(dict.fromkeys(texts))
    found: dict[str, frozenset[int]] = {}
    for start in range(0, len(distinct), PORTION):
        part = distinct[start : start + PORTION]
        found |= {t: frozenset(ids) for t, ids in zip(part, tokenizer.encode(part), strict=True)}
        progress(f"tokenising {what}", len(found), len(distinct))
    return found
