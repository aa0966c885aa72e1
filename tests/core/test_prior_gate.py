"""The gate of a token prior: what helped on trial tasks is kept, domain by domain, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from core.cli import main
from core.errors import InputError
from core.experience import GENERAL
from core.prior import Factor, Prior, PriorToken, TokenizerName
from core.proof import Arm, EvaluationConfig
from core.workspace import Workspace
from core.workspace.prior_gate import GATED, PriorTried
from core.workspace.priors import tokenizer_of
from core.workspace.proving import PriorFound, ProofPlan, gated
from tests.core.test_priors_kept import ID, WORDS, write_tokenizer
from tests.make import add_stub, add_tasks, make_tasks
from tests.stub_server import Asked, StubServer

HELPS, HARMS = "answer", "perhaps"


def reply(asked: Asked) -> str:
    """A model that one token helps when it is promoted, and another one harms."""
    bias = asked.body.get("logit_bias") or {}
    chance = 0.5 + 0.4 * (str(ID[HELPS]) in bias) - 0.4 * (str(ID[HARMS]) in bias)
    a, b = map(int, re.findall(r"\d+", asked.user)[:2])
    return str(a + b if asked.rng.random() < chance else a + b + 1)


def factor(domain: str, word: str) -> Factor:
    token = PriorToken(
        id=ID[word], piece=word, sign=1, log_odds=1.0, z=3.0,
        winners_with=9, winners=10, losers_with=1, losers=10, groups=9,
    )  # fmt: skip
    return Factor(
        domain=domain, tokens=(token,), alpha=1.0, wins=9, contrasts=10, groups=10, replies=40, masked=0
    )


def make_prior(workspace: Workspace, *factors: Factor) -> Prior:
    tokenizer = tokenizer_of(workspace.models.get("stub"))
    name = TokenizerName(name=tokenizer.name, sha256=tokenizer.sha256)
    return workspace.store.priors.add(Prior(tokenizer=name, model="stub-model", factors=factors), "ann")


def prepare(workspace: Workspace, stub: StubServer, folder: Path, tasks: int = 44) -> EvaluationConfig:
    file = write_tokenizer(folder / "tokenizer.json", WORDS)
    endpoint = add_stub(workspace, stub.base_url, tokenizer=str(file)).endpoint
    for domain in ("sums", "more"):
        made = make_tasks(tasks, split="trial", domain=domain)
        add_tasks(workspace, [t.model_copy(update={"id": f"{domain}-{t.id}"}) for t in made])
    return EvaluationConfig(arms=(Arm(name="none", kind="none"),), endpoint=endpoint)


def tried(workspace: Workspace, prior: Prior, config: EvaluationConfig) -> PriorTried:
    started = workspace.evaluating.start(workspace.prior_gate.of_prior(prior.id, config), "ann")
    workspace.evaluating.work(started.id, "ann")
    return workspace.prior_gate.decide(workspace.store.evaluations.get(started.id), "ann")


def test_a_domain_that_a_prior_harms_is_left_out_and_one_that_it_helps_is_kept(
    workspace: Workspace, tmp_path: Path
) -> None:
    with StubServer(reply) as stub:
        config = prepare(workspace, stub, tmp_path)
        prior = make_prior(workspace, factor("sums", HELPS), factor("more", HARMS))
        found = tried(workspace, prior, config)
    assert {d.domain: d.kept for d in found.domains} == {"sums": True, "more": False}
    assert found.gated is not None
    kept = workspace.priors.get(found.gated)
    assert [f.domain for f in kept.factors] == ["sums"]
    assert len(workspace.priors.get(prior.id).factors) == 2  # the first one stays as it is
    assert workspace.prior_gate.last(prior.id) == found
    assert workspace.prior_gate.last(kept.id) is None
    assert workspace.prior_gate.decide(workspace.store.evaluations.get(found.evaluation_id), "ann") == found
    [told] = [e for e in workspace.store.events.newest(20) if e.kind == GATED]
    assert (told.subject, told.data["dropped"], told.data["gated"]) == (prior.id, ["more"], kept.id)


def test_what_the_gate_said_is_read_and_not_counted_again(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StubServer(reply) as stub:
        config = prepare(workspace, stub, tmp_path)
        prior = make_prior(workspace, factor("sums", HELPS))
        found = tried(workspace, prior, config)

    def counted_again(*_: object) -> None:
        raise AssertionError("the report was counted")

    monkeypatch.setattr(workspace.evaluating, "report", counted_again)
    assert workspace.prior_gate.last(prior.id) == found


def test_of_an_older_log_what_the_gate_said_is_counted_from_its_evaluation(
    workspace: Workspace, tmp_path: Path
) -> None:
    with StubServer(reply) as stub:
        config = prepare(workspace, stub, tmp_path)
        prior = make_prior(workspace, factor("sums", HELPS))
        found = tried(workspace, prior, config)
    with workspace.store.writing():
        old = {"evaluation": found.evaluation_id, "passed": ["sums"], "dropped": [], "gated": found.gated}
        workspace.store.events.append("ann", GATED, prior.id, **old)
    assert workspace.prior_gate.last(prior.id) == found


def test_a_prior_that_helps_nowhere_leaves_nothing(workspace: Workspace, tmp_path: Path) -> None:
    with StubServer(reply) as stub:
        config = prepare(workspace, stub, tmp_path)
        prior = make_prior(workspace, factor("more", HARMS))
        found = tried(workspace, prior, config)
    assert found.gated is None
    assert [p.id for p in workspace.priors.all()] == [prior.id]


def test_a_prior_of_which_all_helps_is_kept_as_it_is(workspace: Workspace, tmp_path: Path) -> None:
    with StubServer(reply) as stub:
        config = prepare(workspace, stub, tmp_path)
        prior = make_prior(workspace, factor("sums", HELPS), factor("more", HELPS))
        assert tried(workspace, prior, config).gated == prior.id


def test_too_few_trial_tasks_of_every_domain_are_refused_before_a_call(
    workspace: Workspace, tmp_path: Path
) -> None:
    with StubServer(reply) as stub:
        config = prepare(workspace, stub, tmp_path, tasks=41)
        prior = make_prior(workspace, factor("sums", HELPS), factor("more", HELPS))
        command = ["eval", "prior", prior.id, "--limit", "39", "--endpoint", config.endpoint]
        done = CliRunner().invoke(main, [*command, "--workspace", str(workspace.folder)])
        assert done.exit_code == 2
        why = "The gate takes at least 40 trial tasks of a domain, and within --limit 39 sums has 39, more has 39"
        assert f"{why}: raise the limit." in done.output
        assert stub.stats()["calls"] == 0
        assert workspace.store.evaluations.page()[1] == 0
        assert workspace.prior_gate.of_prior(prior.id, config.model_copy(update={"limit": 40})).domains


def test_factors_of_every_task_are_tried_on_all_domains_together(
    workspace: Workspace, tmp_path: Path
) -> None:
    with StubServer(reply) as stub:
        config = prepare(workspace, stub, tmp_path, tasks=20)
        everywhere = make_prior(workspace, factor(GENERAL, HELPS))
        with pytest.raises(InputError, match=r"sums has 20: import more"):
            workspace.prior_gate.of_prior(make_prior(workspace, factor("sums", HELPS)).id, config)
        assert workspace.prior_gate.of_prior(everywhere.id, config).domains == ()
        with pytest.raises(InputError, match=r"within --limit 19 general has 38: raise the limit"):
            workspace.prior_gate.of_prior(everywhere.id, config.model_copy(update={"limit": 19}))


def test_a_domain_with_too_few_tasks_is_not_sampled_and_left_out_with_the_reason(
    workspace: Workspace, tmp_path: Path
) -> None:
    with StubServer(reply) as stub:
        config = prepare(workspace, stub, tmp_path)
        add_tasks(
            workspace,
            [t.model_copy(update={"id": f"few {t.id}"}) for t in make_tasks(5, split="trial", domain="few")],
        )
        prior = make_prior(workspace, factor("sums", HELPS), factor("few", HELPS))
        command = ["eval", "prior", prior.id, "--endpoint", config.endpoint]
        done = CliRunner().invoke(main, [*command, "--workspace", str(workspace.folder)])
        assert stub.stats()["calls"] == 2 * 4 * 44
    assert "left out, as fewer than 40 tasks were scored both with and without it" in done.output
    assert "corrected < 0.001: kept" in done.output
    found = workspace.prior_gate.last(prior.id)
    assert found is not None
    assert {d.domain: (d.kept, d.too_few) for d in found.domains} == {
        "sums": (True, False),
        "few": (False, True),
    }


def test_with_too_few_tasks_that_could_be_scored_nothing_is_kept_however_good_it_looks(
    workspace: Workspace, tmp_path: Path
) -> None:
    with StubServer(reply) as stub:
        config = prepare(workspace, stub, tmp_path)
        prior = make_prior(workspace, factor("sums", HELPS))
        wanted = workspace.prior_gate.of_prior(prior.id, config)
        few = workspace.evaluating.start(wanted.model_copy(update={"limit": 20}), "ann")
        workspace.evaluating.work(few.id, "ann")
        found = workspace.prior_gate.decide(workspace.store.evaluations.get(few.id), "ann")
    [one] = found.domains
    assert one.effect.tasks == 20
    assert one.effect.low is not None
    assert one.effect.low > 0
    assert (one.kept, one.p_adjusted, one.too_few, found.gated) == (False, 1.0, True, None)


def test_too_few_samples_and_an_unfinished_trial_are_refused(workspace: Workspace, tmp_path: Path) -> None:
    with StubServer(reply) as stub:
        config = prepare(workspace, stub, tmp_path)
        prior = make_prior(workspace, factor("sums", HELPS))
        with pytest.raises(InputError, match="at least 4 rollouts"):
            workspace.prior_gate.of_prior(prior.id, config.model_copy(update={"samples": 2}))
        started = workspace.evaluating.start(workspace.prior_gate.of_prior(prior.id, config), "ann")
        with pytest.raises(InputError, match="is not done"):
            workspace.prior_gate.decide(started, "ann")


def test_the_command_tries_a_prior_and_says_what_it_kept(workspace: Workspace, tmp_path: Path) -> None:
    with StubServer(reply) as stub:
        config = prepare(workspace, stub, tmp_path)
        prior = make_prior(workspace, factor("sums", HELPS), factor("more", HARMS))
        command = [
            "eval",
            "prior",
            prior.id,
            "--endpoint",
            config.endpoint,
            "--workspace",
            str(workspace.folder),
        ]
        done = CliRunner().invoke(main, command)
        assert done.exit_code == 0, done.output
        assert "sums: +" in done.output
        assert "What helped is PR-0002: winnow run --prior PR-0002" in done.output
        calls = stub.stats()["calls"]
        assert CliRunner().invoke(main, command).exit_code == 0
        assert stub.stats()["calls"] == calls


def test_the_standing_proof_carries_what_passed_and_says_what_was_left_out(
    workspace: Workspace, tmp_path: Path
) -> None:
    with StubServer(reply) as stub:
        config = prepare(workspace, stub, tmp_path)
        plan = ProofPlan(endpoint=config.endpoint, max_tokens=config.max_tokens)
        prior = make_prior(workspace, factor("sums", HELPS), factor("more", HARMS))
        found = gated(workspace, plan, PriorFound(prior.id), version=0)
        asked = stub.stats()["calls"]
        assert gated(workspace, plan, PriorFound(prior.id), version=0) == found
        assert stub.stats()["calls"] == asked
        harmful = make_prior(workspace, factor("more", HARMS))
        nothing = gated(workspace, plan, PriorFound(harmful.id), version=0)
    assert found == PriorFound("PR-0002", "The gate left out what PR-0001 has for: more.")
    assert nothing == PriorFound(None, f"the gate let no factor of {harmful.id} pass (more).")
