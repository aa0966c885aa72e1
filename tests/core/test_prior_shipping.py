"""Token priors leave and come in: alone, inside a pack, on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from core.errors import InputError, PackError
from core.packs import logit_bias, pack_schema, read_pack, verify_pack
from core.packs.pack import build_pack
from core.prior import Prior, TokenizerName, bias_map
from core.workspace import Workspace
from core.workspace.priors import tokenizer_of
from tests.core.test_cli import winnow
from tests.core.test_packs import rezip, small, unzip, with_json
from tests.core.test_prior import OPENAI, make_factor, make_prior
from tests.core.test_priors_kept import WORDS, hesitant, learn, write_tokenizer
from tests.make import add_stub, add_tasks, make_tasks, publish
from tests.stub_server import StubServer

PRIOR = make_prior(make_factor(3, -4), make_factor(7, domain="general")).model_copy(
    update={"id": "PR-0001", "derived_by": "ann", "run_ids": ("R1",)}
)
SHIPPED = build_pack(small().model_copy(update={"prior": PRIOR}))


def altered(change: Callable[[dict[str, Any]], object]) -> bytes:
    value = json.loads(logit_bias.write(logit_bias.packed(PRIOR)))
    change(value)
    return json.dumps(value).encode()


def test_a_prior_goes_through_its_file_and_comes_out_the_same() -> None:
    packed = logit_bias.packed(PRIOR)
    data = logit_bias.write(packed)
    assert logit_bias.read(data) == packed
    assert logit_bias.write(logit_bias.read(data)) == data
    assert packed.as_prior().factors == PRIOR.factors


def test_the_map_of_a_domain_is_what_runs_are_sent_for_its_tasks() -> None:
    maps = json.loads(logit_bias.write(logit_bias.packed(PRIOR)))["logit_bias"]
    for domain in ("sums", "general"):
        sent = bias_map(PRIOR, OPENAI, domain=domain).values
        assert maps[domain] == {str(i): v for i, v in sent.items()}
    assert set(maps["sums"]) == {"3", "4", "7"}


def test_who_derived_it_and_from_what_is_not_shipped() -> None:
    text = logit_bias.write(logit_bias.packed(PRIOR)).decode()
    assert "ann" not in text
    assert "R1" not in text


def test_a_folder_of_this_machine_is_not_shipped_with_the_name_of_a_tokenizer() -> None:
    named = TokenizerName(name="/srv/models/small.gguf", sha256="0" * 64)
    assert logit_bias.packed(PRIOR.model_copy(update={"tokenizer": named})).tokenizer.name == "small.gguf"


def test_a_token_that_looks_like_a_secret_is_not_shipped() -> None:
    token = PRIOR.factors[0].tokens[0].model_copy(update={"piece": "sk-" + "a1B2" * 8})
    factor = PRIOR.factors[0].model_copy(update={"tokens": (token,)})
    with pytest.raises(PackError, match="looks like a secret"):
        logit_bias.packed(PRIOR.model_copy(update={"factors": (factor,)}))


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"{", "no valid JSON"),
        (b"[]", "is no token prior"),
        (b'{"format": "winnow-logit-bias"}', "does not fit its format"),
        (altered(lambda v: v["logit_bias"]["sums"].update({"9": 3.0})), "does not follow from the prior"),
        (altered(lambda v: v["logit_bias"].pop("general")), "does not follow from the prior"),
        (altered(lambda v: v["prior"]["factors"][0].update(wins=-1)), "does not fit its format"),
        (altered(lambda v: v["prior"]["tokenizer"].update(sha256="x")), "does not fit its format"),
        (
            altered(
                lambda v: v["prior"]["factors"][0]["tokens"].append(v["prior"]["factors"][0]["tokens"][0])
            ),
            "twice",
        ),
        (altered(lambda v: v["prior"].update(id="a\0b")), "NUL"),
    ],
)
def test_a_file_with_a_fault_is_refused_in_a_sentence(data: bytes, fault: str) -> None:
    with pytest.raises(PackError, match=fault):
        logit_bias.read(data)


def test_a_pack_without_a_prior_has_the_bytes_that_it_always_had() -> None:
    data = build_pack(small())
    assert set(unzip(data)) == {"pack.json", "README.md", "prompt.txt", "SHA256SUMS"}
    value = json.loads(unzip(data)["pack.json"])
    assert value["schema_version"] == "1.0"
    assert "prior" not in value


def test_a_pack_holds_a_prior_and_verifies() -> None:
    files = unzip(SHIPPED)
    assert set(files) == {"pack.json", "README.md", "prompt.txt", "logit_bias.json", "SHA256SUMS"}
    Draft202012Validator(pack_schema()).validate(json.loads(files["pack.json"]))
    check = verify_pack(SHIPPED)
    assert (check.schema_version, check.unknown) == ("1.1", ())
    assert read_pack(SHIPPED).prior == logit_bias.packed(PRIOR) == logit_bias.read(files["logit_bias.json"])
    assert "0" * 64 in files["README.md"].decode()


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (rezip({**unzip(SHIPPED), "logit_bias.json": b"{}"}), "logit_bias.json is not what"),
        (
            rezip({n: d for n, d in unzip(SHIPPED).items() if n != "logit_bias.json"}),
            "logit_bias.json is not what",
        ),
        (with_json(lambda p: p.update(schema_version="1.0"), SHIPPED), "belong together"),
        (with_json(lambda p: p.update(schema_version="1.1")), "belong together"),
        (with_json(lambda p: p["prior"]["rules"].update(scale=9), SHIPPED), "breaks the rule"),
        (rezip({**unzip(build_pack(small())), "logit_bias.json": b"{}"}), "a file that no pack"),
    ],
)
def test_a_pack_whose_prior_is_not_what_it_says_is_refused(data: bytes, fault: str) -> None:
    with pytest.raises(PackError, match=fault):
        verify_pack(data)


def test_a_pack_for_a_domain_has_the_factors_of_that_domain() -> None:
    other = small().model_copy(
        update={"prior": make_prior(make_factor(1), make_factor(2, domain="capitals"))}
    )
    kept = other.for_domain("capitals").prior
    assert kept is not None
    assert [f.domain for f in kept.factors] == ["capitals"]
    assert other.for_domain("elsewhere").prior is None


# -- the command line ----------------------------------------------------------------------------------------------


@pytest.fixture
def made(workspace: Workspace, tmp_path: Path) -> Prior:
    """A prior in a workspace with a version, derived from a run at the endpoint `stub`."""
    file = write_tokenizer(tmp_path / "tokenizer.json", WORDS)
    add_tasks(workspace, make_tasks(12))
    with StubServer(reply=hesitant) as stub:
        run_id = learn(workspace, add_stub(workspace, stub.base_url, tokenizer=str(file)))
    publish(workspace, "Say the number alone.")
    done = winnow(workspace.folder, "prior", "derive", "--run", run_id, "--k", "3", "--json")
    assert done.code == 0, done.err
    return workspace.priors.get(done.json["id"])


def test_a_prior_is_derived_listed_and_shown(workspace: Workspace, made: Prior) -> None:
    assert len(made.factors[0].tokens) == 3
    [listed] = winnow(workspace.folder, "prior", "list", "--json").json
    assert (listed["id"], listed["factors"][0]["q"]) == (made.id, made.factors[0].q)
    shown = winnow(workspace.folder, "prior", "show", made.id, "--endpoint", "stub", "--json").json
    assert shown["logit_bias"] == {
        str(i): v for i, v in workspace.priors.bias(made.id, "stub").values.items()
    }
    text = winnow(workspace.folder, "prior", "show", made.id, "--endpoint", "stub").out
    assert "'answer'" in text
    assert (
        f"3 tokens at stub; 0 had no room, {workspace.priors.bias(made.id, 'stub').clipped} were capped."
        in text
    )


def test_a_prior_that_is_exported_comes_in_elsewhere_with_the_same_tokenizer(
    workspace: Workspace, made: Prior, tmp_path: Path
) -> None:
    out = tmp_path / "bias.json"
    assert winnow(workspace.folder, "prior", "export", made.id, "-o", str(out)).code == 0
    again = winnow(workspace.folder, "prior", "export", made.id, "-o", str(out))
    assert again.code == 0
    other = Workspace(tmp_path / "other")
    add_stub(other, "http://127.0.0.1:1/v1", "same", tokenizer=str(tmp_path / "tokenizer.json"))
    done = winnow(other.folder, "prior", "import", str(out), "--endpoint", "same", "--json")
    assert done.code == 0, done.err
    assert other.priors.bias(done.json["id"], "same") == workspace.priors.bias(made.id, "stub")


def test_a_prior_of_another_tokenizer_is_refused_wherever_it_comes_from(
    workspace: Workspace, made: Prior, tmp_path: Path
) -> None:
    alone, pack = tmp_path / "bias.json", tmp_path / "pack.zip"
    winnow(workspace.folder, "prior", "export", made.id, "-o", str(alone))
    shipped = winnow(workspace.folder, "pack", "export", "--prior", made.id, "-o", str(pack))
    assert shipped.code == 0, shipped.err
    add_stub(
        workspace,
        "http://127.0.0.1:1/v1",
        "else",
        tokenizer=str(write_tokenizer(tmp_path / "o.json", ["[UNK]", "a"])),
    )
    for file in (alone, pack):
        done = winnow(workspace.folder, "prior", "import", str(file), "--endpoint", "else")
        assert done.code == 2
        assert "belongs to the tokenizer of stub-model" in done.err
        assert "Traceback" not in done.err
    assert tokenizer_of(workspace.models.get("else")).sha256 != made.tokenizer.sha256
    assert winnow(workspace.folder, "prior", "import", str(pack), "--endpoint", "stub").code == 0


def test_a_file_in_the_way_is_not_written_over(workspace: Workspace, made: Prior, tmp_path: Path) -> None:
    out = tmp_path / "bias.json"
    out.write_text("mine", encoding="utf-8")
    done = winnow(workspace.folder, "prior", "export", made.id, "-o", str(out))
    assert (done.code, out.read_text(encoding="utf-8")) == (2, "mine")
    assert winnow(workspace.folder, "prior", "export", made.id, "-o", str(out), "--force").code == 0


def test_a_pack_without_a_prior_brings_none_in(workspace: Workspace, made: Prior, tmp_path: Path) -> None:
    pack = tmp_path / "plain.zip"
    winnow(workspace.folder, "pack", "export", "-o", str(pack))
    done = winnow(workspace.folder, "prior", "import", str(pack), "--endpoint", "stub")
    assert done.code == 2
    assert "holds no token prior" in done.err


def test_only_a_pack_can_hold_a_prior(workspace: Workspace, made: Prior) -> None:
    with pytest.raises(InputError, match="cannot hold a token prior"):
        workspace.shipping.export("csv", prior=made.id)


def test_bad_options_are_refused_in_a_sentence(workspace: Workspace, made: Prior) -> None:
    done = winnow(workspace.folder, "prior", "derive", "--scale", "9")
    assert done.code == 2
    assert "scale" in done.err
    assert winnow(workspace.folder, "prior", "show", "PR-0099").code == 2
    done = winnow(workspace.folder, "objective", "--endpoint", "stub")
    assert done.code == 2
    assert "Not available: endpoint stub gives no log-probabilities of tokens." in done.err


def test_the_objective_says_that_nothing_moved_where_no_lesson_is_injected(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(2))
    done = winnow(workspace.folder, "objective", "--json")
    assert done.code == 0, done.err
    assert (done.json["not_injected"], done.json["kl_k3"]) == (2, None)
    assert "2 tasks got no lesson and took no part." in winnow(workspace.folder, "objective").out


def test_an_endpoint_is_told_what_it_can_do_with_tokens(workspace: Workspace, tmp_path: Path) -> None:
    words = (
        "--base-url",
        "http://127.0.0.1:1/v1",
        "--model",
        "m",
        "--bias-range",
        "50",
        "--bias-entries",
        "20",
    )
    more = ("--logprobs", "--grammar", "--tokenizer", str(tmp_path / "t.json"))
    assert winnow(workspace.folder, "endpoints", "add", "llama", *words, *more).code == 0
    found = workspace.models.get("llama")
    assert (found.bias_range, found.bias_entries, found.logprobs, found.grammar) == (50.0, 20, True, True)
    assert workspace.policies.why_not("llama") == ""
