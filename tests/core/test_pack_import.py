"""Libraries that come in: as proposals with their origin, deduplicated, once; and out again, byte for byte."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from core.errors import ApplyError, InputError, PackError
from core.experience import Add, Delete, Modify
from core.packs import EXPORTERS
from core.words import count_words, normalise
from core.workspace import Workspace
from core.workspace.arriving import Arrived
from core.workspace.erasing import Erasing
from tests.core.test_cli import winnow
from tests.core.test_packs import HOSTILE, TEXTS, content, small
from tests.make import propose, publish, ticking

FORMS = ("pack", "json", "csv", "playbook", "agent-yaml")
FIT = TEXTS.filter(lambda text: count_words(text) <= 32)


def arrive(workspace: Workspace, data: bytes, name: str = "lessons.x", **how: object) -> Arrived:
    return workspace.shipping.arriving.library(data, name, "ann", **how)  # type: ignore[arg-type]


def publish_all(workspace: Workspace) -> None:
    waiting, _ = workspace.store.proposals.page(["proposed"], limit=10_000)
    for proposal in sorted(waiting, key=lambda p: p.id):
        workspace.review.approve(proposal.id, "ann")
    workspace.review.publish("All of them.", "ann")


def json_of(**texts: str) -> bytes:
    return json.dumps(texts, ensure_ascii=False).encode()


# -- out, in, and out again ---------------------------------------------------------------------


def there_and_back(folder: Path, form: str, texts: list[str]) -> tuple[bytes, bytes]:
    """A version exported, imported elsewhere, approved, published and exported: both files."""
    first, second = Workspace(folder / "a", clock=ticking()), Workspace(folder / "b", clock=ticking())
    publish(first, *texts)
    out = first.shipping.export(form, provenance=False).data
    done = arrive(second, out, form=form, domain="sums")
    assert (len(done.new), done.joined, done.aside) == (len(texts), (), ())
    publish_all(second)
    return out, second.shipping.export(form, provenance=False).data


@pytest.mark.parametrize("form", FORMS)
def test_hostile_texts_come_out_again_byte_for_byte(tmp_path: Path, form: str) -> None:
    """A pack without its provenance; every other form whole."""
    out, again = there_and_back(tmp_path, form, list(HOSTILE))
    assert again == out


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(form=st.sampled_from(FORMS), texts=st.lists(FIT, min_size=1, max_size=4, unique_by=normalise))
@example(form="pack", texts=["${x} {} $5 and $x^2$ -> 先读取 🎉 אל\ttab\nnew\r\nline"])
def test_any_texts_come_out_again_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, form: str, texts: list[str]
) -> None:
    out, again = there_and_back(tmp_path_factory.mktemp("w"), form, texts)
    assert again == out


def test_no_form_changes_a_byte_of_what_is_injected(tmp_path: Path) -> None:
    texts = list(HOSTILE[:6])
    prompts = set()
    for form in FORMS:
        there_and_back(tmp_path / form, form, texts)
        back = Workspace(tmp_path / form / "b")
        prompts.add(back.shipping.export("prompt").data)
    assert prompts == {EXPORTERS["prompt"].write(content(*texts))}


# -- proposals ----------------------------------------------------------------------------------


def test_lessons_of_a_pack_wait_for_a_person_with_their_origin_and_a_confidence_of_ours(
    workspace: Workspace,
) -> None:
    done = arrive(workspace, EXPORTERS["pack"].write(small()), "demo.zip")
    assert (done.form, done.name, done.version, done.lessons) == ("pack", "Demo", 3, 2)
    proposal = workspace.store.proposals.get("P-0001")
    assert (proposal.status, proposal.extractor, proposal.confidence) == ("proposed", "pack", 0.5)
    assert proposal.learned_on == "SmolLM2-135M-Instruct"
    assert (proposal.operation.kind, proposal.operation.domain) == ("convention", "capitals")  # type: ignore[union-attr]
    for word in ("'Demo'", "version 3", "E-0001", done.sha256[:12], "confidence 0.70", "3 wins in 4 uses"):
        assert word in proposal.rationale
    [(made, lesson)] = workspace.store.imports.origin("P-0001")
    assert (made.sha256, made.source, made.name, made.version) == (done.sha256, "demo.zip", "Demo", 3)
    assert (lesson.their_id, lesson.claimed["confidence"], lesson.claimed["wins"]) == ("E-0001", 0.7, 3)
    assert len(workspace.store.versions.library()) == 0


def test_the_same_file_again_changes_nothing(workspace: Workspace) -> None:
    data = EXPORTERS["pack"].write(small())
    first = arrive(workspace, data)
    before = workspace.store.dump()
    again = arrive(workspace, data, "under another name.zip")
    assert again.before is not None
    assert (again.new, again.before.actor, len(first.new)) == ((), "ann", 2)
    assert workspace.store.dump() == before
    publish_all(workspace)
    before = workspace.store.dump()
    arrive(workspace, data)
    assert workspace.store.dump() == before


def test_what_is_there_already_is_joined_and_said(workspace: Workspace) -> None:
    publish(workspace, "Answer with the number alone.")
    propose(workspace, "Round half up.")
    data = json_of(
        a="answer with the NUMBER alone", b="- Round half up", c="Check the sum.", d="check the sum"
    )
    done = arrive(workspace, data, domain="sums")
    assert [(j.their_id, j.into) for j in done.joined] == [("a", "E-0001"), ("b", "P-0002"), ("d", "P-0003")]
    assert [n.proposal_id for n in done.new] == ["P-0003"]
    assert [lesson.became for lesson in workspace.store.imports.lessons(_key(workspace))] == [
        *("E-0001", "P-0002"),
        *("P-0003", "P-0003"),
    ]


def _key(workspace: Workspace) -> str:
    [(made, _)] = workspace.store.imports.origin("E-0001")
    return made.key


def test_the_text_that_an_open_change_would_give_is_joined_too(workspace: Workspace) -> None:
    publish(workspace, "Answer with the number alone.")
    propose(workspace, Modify(experience_id="E-0001", text="Give the number and nothing else."))
    done = arrive(workspace, json_of(a="Give the number and nothing else"), domain="sums")
    assert [j.into for j in done.joined] == ["P-0002"]


def test_the_same_words_for_another_domain_are_another_lesson(workspace: Workspace) -> None:
    publish(workspace, "Answer with the number alone.")
    done = arrive(workspace, json_of(a="Answer with the number alone."), domain="capitals")
    assert (len(done.new), done.joined) == (1, ())


def test_a_domain_that_is_in_use_but_for_its_case_is_that_one_and_this_is_said(workspace: Workspace) -> None:
    publish(workspace, Add(text="Count twice.", kind="strategy", domain="Office work"))
    done = arrive(workspace, b"text,domain\nSum it up.,office  work\n", "lessons.csv")
    assert any("'office  work' is taken as 'Office work'" in note for note in done.notes)
    [new] = done.new
    assert getattr(workspace.store.proposals.get(new.proposal_id).operation, "domain") == "Office work"  # noqa: B009


def test_a_file_without_domains_brings_nothing_that_is_there_under_any(workspace: Workspace) -> None:
    publish(workspace, "Answer with the number alone.")
    done = arrive(workspace, json_of(a="answer with the NUMBER alone", b="Ask once."))
    assert ([j.into for j in done.joined], [n.text for n in done.new]) == (["E-0001"], ["Ask once."])


def test_what_was_rejected_may_be_proposed_again_by_another_file_and_the_reviewer_is_told(
    workspace: Workspace,
) -> None:
    arrive(workspace, json_of(a="Check the sum."))
    workspace.review.reject("P-0001", "It is harmful.", "ann")
    done = arrive(workspace, json_of(a="check the SUM!", b="Ask once."))
    assert [n.rejected for n in done.new] == ["P-0001", None]
    told = [workspace.store.proposals.get(n.proposal_id).rationale for n in done.new]
    assert ["P-0001 said the same and was rejected: It is harmful." in text for text in told] == [True, False]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Use sk-" + "a1B2" * 8 + " to log in.", "secret"),
        ("Read /home/ada/keys.txt first.", "home folder"),
        ("Log in with [redacted 2026-11-30 #1].", "mark of a redaction"),
    ],
)
def test_what_no_lesson_may_hold_is_set_aside(workspace: Workspace, text: str, reason: str) -> None:
    done = arrive(workspace, json_of(a=text, b="Ask once."))
    [aside] = done.aside
    assert (reason in aside.reason, [n.text for n in done.new], done.lessons) == (True, ["Ask once."], 1)


def test_lessons_under_one_label_or_with_long_ids_stay_apart(workspace: Workspace) -> None:
    twice = b"agent:\n  instructions: |\n    [G0] Ask once.\n    [G0] Check the sum.\n"
    assert [n.text for n in arrive(workspace, twice).new] == ["Ask once.", "Check the sum."]
    long = {"x" * 80 + end: f"Lesson {end}." for end in "ab"}
    assert len(arrive(workspace, json_of(**long)).new) == 2


def test_near_lessons_are_named_and_nothing_is_decided(workspace: Workspace) -> None:
    publish(workspace, "Answer with the number alone.", "Read the file before you change it.")
    done = arrive(workspace, json_of(a="Answer with the number alone, please.", b="Ask once."), domain="sums")
    assert [n.near for n in done.new] == [("E-0001",), ()]
    assert "Near: E-0001." in workspace.store.proposals.get(done.new[0].proposal_id).rationale


def test_a_text_of_more_than_32_words_waits_and_must_be_edited(workspace: Workspace) -> None:
    done = arrive(workspace, json_of(a="word " * 33))
    assert (done.new[0].words, done.new[0].too_long) == (33, True)
    with pytest.raises(ApplyError, match="33 words"):
        workspace.review.approve("P-0001", "ann")
    workspace.review.approve("P-0001", "ann", text="Fewer words.")


def test_a_dry_run_says_the_same_and_writes_nothing(workspace: Workspace) -> None:
    publish(workspace, "Ask once.")
    before = workspace.store.dump()
    data = json_of(a="ask once", b="Check the sum.", c="check the sum", d=" ")
    dry = arrive(workspace, data, domain="sums", dry_run=True)
    assert workspace.store.dump() == before
    done = arrive(workspace, data, domain="sums")
    assert [j.their_id for j in dry.joined] == [j.their_id for j in done.joined] == ["a", "c"]
    assert [n.text for n in dry.new] == [n.text for n in done.new] == ["Check the sum."]
    assert dry.aside == done.aside


def test_every_lesson_of_a_file_is_new_joined_or_aside(workspace: Workspace) -> None:
    texts = {str(i): text for i, text in enumerate([*HOSTILE, *HOSTILE, " ", "x" * 10_001])}
    done = arrive(workspace, json_of(**texts))
    assert done.lessons == len(done.new) + len(done.joined)
    assert len(texts) == done.lessons + len(done.aside)
    assert len(workspace.store.imports.kept_aside()) == 2


def test_a_library_of_many_lessons_against_many_is_compared_without_all_pairs(workspace: Workspace) -> None:
    mine = {f"m{i}": f"Lesson {i} says that step {i * 7} comes first." for i in range(400)}
    theirs = {f"t{i}": f"Lesson {i} says that step {i * 7} comes last." for i in range(400)}
    arrive(workspace, json_of(**mine))
    done = arrive(workspace, json_of(**theirs))
    assert len(done.new) == 400
    assert done.new[5].near[0] == "P-0006"


@pytest.mark.parametrize(
    ("data", "form", "reason"),
    [
        (b"", None, "empty"),
        (b"hello", None, "no form that Winnow knows"),
        (b"{}", "toml", "no form 'toml'"),
        (b'{"id": "t", "question": "1+1?"}\n{"id": "u", "question": "2?"}\n', None, "winnow tasks import"),
        (b'[\n {"problem": "1+1?",\n  "answer": "2"}]', None, "winnow tasks import"),
        (b'"Question",answer\n1+1?,2\n', None, "winnow tasks import"),
        (b'{"winnow_rollout": 1, "task": {}}\n', None, "winnow rollouts import"),
        (b"[1, 2]", "json", "not an object"),
        (b'{"a": "x", "a": "y"}', None, "twice"),
        (b'{"a": "\xff"}', None, "not UTF-8"),
        (b"PK\x03\x04rest", None, "not a pack"),
        (b"a,b\n1,2\n", "csv", "no column"),
    ],
)
def test_a_file_that_is_no_library_is_refused_with_one_sentence(
    workspace: Workspace, data: bytes, form: str | None, reason: str
) -> None:
    before = workspace.store.dump()
    with pytest.raises(InputError, match=re.escape(reason)) as caught:
        arrive(workspace, data, form=form)
    assert re.fullmatch(r"[^\n]{10,300}\.", str(caught.value))
    assert workspace.store.dump() == before


def test_more_lessons_than_a_pack_may_hold_are_refused(workspace: Workspace) -> None:
    with pytest.raises(PackError, match="more than 10000"):
        arrive(workspace, json_of(**{str(i): f"Lesson {i}." for i in range(10_001)}))


# -- by command ---------------------------------------------------------------------------------


def test_a_pack_travels_by_command(tmp_path: Path) -> None:
    publish(Workspace(tmp_path / "a"), "Answer with the number alone.", "Check the sum.")
    pack, there = str(tmp_path / "p.zip"), tmp_path / "b"
    out = winnow(tmp_path / "a", "pack", "export", "-o", pack, "--redact", "--json")
    assert out.json["redaction"]["provenance"] == "redacted"
    dry = winnow(there, "pack", "import", pack, "--dry-run")
    assert (dry.code, "Nothing was written." in dry.out) == (0, True)
    done = winnow(there, "pack", "import", pack, "--json")
    assert (done.code, len(done.json["new"])) == (0, 2)
    again = winnow(there, "pack", "import", pack)
    assert (again.code, "nothing changed" in again.out) == (0, True)
    assert "Next: winnow review list" in winnow(tmp_path / "c", "pack", "import", pack).out
    found_nothing = winnow(tmp_path / "a", "pack", "import", pack)
    assert "0 proposals; 2 were there already." in found_nothing.out
    assert "Next:" not in found_nothing.out
    assert winnow(there, "pack", "import", str(tmp_path / "none")).code == 2


def test_a_file_with_something_set_aside_ends_with_1(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(json.dumps({"a": "Ask once.", "b": 3}).encode())
    done = winnow(tmp_path / "w", "pack", "import", str(tmp_path / "x.json"))
    assert (done.code, "entry 'b': it is no text" in done.out) == (1, True)


def test_a_pack_from_before_a_redaction_is_refused_until_it_is_exported_anew(workspace: Workspace) -> None:
    publish(workspace, "Log in with zanzibarkey first.", "Ask once.")
    publish(workspace, Delete(experience_id="E-0001"))
    old, clean = (workspace.shipping.export("json", version) for version in (1, 2))
    for exported in (old, clean):
        workspace.shipping.record(exported, "ann", "lessons.json")
    arrive(workspace, old.data, dry_run=True)
    Erasing(workspace).redact(["zanzibarkey"], "ann", dry_run=False)
    before = workspace.store.dump()
    for exported in (old, clean):  # nobody knows what is in it
        with pytest.raises(PackError, match=r"before redaction 1 of .*: export anew"):
            arrive(workspace, exported.data)
    assert workspace.store.dump() == before
    again = workspace.shipping.export("json", 2)
    assert again.data == clean.data
    workspace.shipping.record(again, "ann", "lessons.json")
    assert [lesson.into for lesson in arrive(workspace, again.data).joined] == ["E-0002"]


def test_a_file_name_that_looks_like_a_secret_is_not_kept(workspace: Workspace) -> None:
    key = "sk-" + "a1B2" * 8
    done = arrive(workspace, json_of(a="Ask once."), f"{key}.json")
    assert done.source == "a file whose name looks like a secret"
    rationale = workspace.store.proposals.get(done.new[0].proposal_id).rationale
    assert "a file whose name looks like a secret" in rationale
    assert key not in workspace.store.dump()
