from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from core import cli
from core.audits import (
    AUDITS,
    Known,
    Rules,
    Suggestion,
    Usage,
    audit,
    doubtful,
    over_capacity,
    redundant,
    unused,
)
from core.cli.audit import audit as audit_command
from core.errors import BusyError, InputError
from core.experience import Add, Delete, Experience, Merge, Modify, targets_of
from core.extraction.wording import opposed
from core.review import stale
from core.settings import N_MAX, RunConfig
from core.workspace import Workspace
from core.workspace.auditing import Auditing
from tests.make import add_tasks, make_experience, make_group, make_proposal, make_task, publish

NOW = 60
SENTENCES = (
    "Read the file first.",
    "Read the file before anything else.",
    "Answer in uppercase.",
    "Answer in lowercase.",
    "Use 3 steps.",
    "Use four steps.",
    "Round the result.",
    "Do not round the result.",
    "Name the city only.",
)


def by_table(vectors: dict[str, Sequence[float]]):
    def embed(texts: Sequence[str]) -> np.ndarray:
        return np.array([vectors[t] for t in texts], np.float32)

    return embed


def nobody(texts: Sequence[str]) -> np.ndarray:
    raise AssertionError("no embedding is needed here")


def random_vectors(texts: Sequence[str]) -> np.ndarray:
    """A few directions, so that pairs above the mark are many; equal texts have equal vectors."""
    rows = [np.random.default_rng(list(t.encode())).integers(0, 3, 3) + 0.1 for t in texts]
    return np.array([r / np.linalg.norm(r) for r in rows], np.float32).reshape(len(texts), 3)


class FakeEmbedder:
    """Texts with equal first words point the same way."""

    name = "fake"
    dimension = 16

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        rows = np.zeros((len(texts), 16), np.float32)
        for i, text in enumerate(texts):
            rows[i, sum(text.split()[0].encode()) % 15] = 1
            rows[i, 15] = (len(text) % 10) / 20
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@st.composite
def lessons(draw: st.DrawFn) -> list[Experience]:
    n = draw(st.integers(0, 14))
    return [
        make_experience(
            i + 1,
            f"{draw(st.sampled_from(SENTENCES))} ({draw(st.integers(0, 3))})",
            domain=draw(st.sampled_from(["sums", "words"])),
            confidence=draw(st.sampled_from([0.05, 0.09999, 0.1, 0.11, 0.5, 0.9])),
            uses=draw(st.integers(0, 8)),
            epoch=draw(st.integers(0, 70)),
        )
        for i in range(n)
    ]


# ---- the rules, against their definitions -----------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(lessons(), st.dictionaries(st.sampled_from([f"E-{i:04d}" for i in range(1, 15)]), st.integers(0, 60)))
def test_unused_is_no_use_in_the_last_20_epochs_and_no_younger(
    own: list[Experience], last: dict[str, int]
) -> None:
    expected = []
    for e in own:
        used = e.id in last and last[e.id] in range(NOW - 19, NOW + 1)
        unknown = e.id not in last and e.uses > 0
        if not used and not unknown and NOW - e.epoch >= 20:
            expected.append(e.id)
    found = unused(own, Usage(NOW, last))
    assert [s.operation for s in found] == [Delete(experience_id=i) for i in expected]


@settings(max_examples=40, deadline=None)
@given(lessons())
def test_doubtful_is_a_confidence_of_a_tenth_at_most_after_five_uses(own: list[Experience]) -> None:
    expected = [e.id for e in own if e.confidence <= 0.1 and e.uses >= 5]
    assert [targets_of(s.operation) for s in doubtful(own)] == [(i,) for i in expected]


def test_a_confidence_that_misses_the_bound_by_its_last_bits_is_low() -> None:
    c = 0.1 + 2e-17 + 1e-16
    assert len(doubtful([make_experience(1, confidence=c, uses=5)])) == 1


@settings(max_examples=80, deadline=None)
@given(lessons())
def test_redundant_pairs_are_of_one_domain_similar_and_not_opposed_the_most_similar_first(
    own: list[Experience],
) -> None:
    vectors = random_vectors([e.text for e in own])
    pairs = sorted(
        (-round(float(np.float32(vectors[i] @ vectors[j])), 5), i, j)
        for i in range(len(own))
        for j in range(i + 1, len(own))
        if vectors[i] @ vectors[j] >= 0.85
        and own[i].domain == own[j].domain
        and not opposed(own[i].text, own[j].text)
    )
    expected: list[set[str]] = []
    for _, i, j in pairs:
        if not any({own[i].id, own[j].id} & other for other in expected):
            expected.append({own[i].id, own[j].id})
    found = redundant(own, frozenset(), random_vectors, opposed)
    assert [set(targets_of(s.operation)) for s in found] == expected


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Answer in uppercase.", "Answer in lowercase."),
        ("Use 3 steps.", "Use four steps."),
        ("Round the result.", "Do not round the result."),
    ],
)
def test_opposites_are_never_merged_however_similar(a: str, b: str) -> None:
    own = [make_experience(1, a), make_experience(2, b)]
    assert redundant(own, frozenset(), by_table({a: (1, 0), b: (1, 0)}), opposed) == []


def test_a_merge_carries_the_text_of_the_more_confident_and_shows_both_exactly() -> None:
    a, b = "Read the  file first.", "Read «the file» before ${x}.\nAlways."
    own = [make_experience(1, a, confidence=0.5), make_experience(2, b, confidence=0.8)]
    [found] = redundant(own, frozenset(), by_table({a: (1, 0), b: (0.9, 0.1)}), opposed)
    assert found.operation == Merge(experience_ids=("E-0002", "E-0001"), text=b)
    assert f"E-0001: {a}" in found.rationale
    assert f"E-0002: {b}" in found.rationale
    assert found.sentence == (
        "cosine 0.994 between E-0002 (confidence 0.80) and E-0001 (confidence 0.50), domain general"
    )


def test_a_lesson_is_in_one_suggestion_and_its_reasons_are_united() -> None:
    own = [make_experience(1, confidence=0.1, uses=5), make_experience(2, "Read a file first.")]
    found = audit(own, Known(), Usage(NOW, {"E-0001": 3, "E-0002": 59}), Rules(), nobody_but(own), opposed)
    [only] = found
    assert only.audits == ("unused", "confidence")
    assert only.sentence == (
        "last used in epoch 3, and it is epoch 60; confidence 0.10 after 5 uses, 0 of them wins"
    )


def nobody_but(own: Sequence[Experience]):
    """All alike."""
    return by_table({e.text: (1, 0) for e in own})


def test_embeddings_are_asked_for_only_where_they_are_needed() -> None:
    own = [make_experience(i, f"text {i}") for i in range(1, 6)]
    rules = Rules(audits=("unused", "confidence", "capacity"))
    assert len(audit(own, Known(), Usage(NOW), rules, nobody, opposed)) == 5
    importance = Rules(audits=("capacity",), strategy="importance", to=3)
    assert len(audit(own, Known(), Usage(NOW), importance, nobody, opposed)) == 2
    assert audit(own, Known(), Usage(NOW), Rules(audits=("capacity",), to=5), nobody, opposed) == []


# ---- what is known already --------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(
    lessons(),
    st.integers(1, 12),
    st.sampled_from(["diversity", "importance", "temporal", "hybrid"]),
    st.data(),
)
def test_a_second_audit_finds_nothing_and_the_capacity_is_kept(
    own: list[Experience], to: int, strategy: str, data: st.DataObject
) -> None:
    rules = Rules(strategy=strategy, to=to)
    found = audit(own, Known(), Usage(NOW), rules, random_vectors, opposed)
    touched = [i for s in found for i in targets_of(s.operation)]
    assert len(touched) == len(set(touched))
    shuffled = data.draw(st.permutations(own))
    assert audit(shuffled, Known(), Usage(NOW), rules, random_vectors, opposed) == found
    proposals = [proposed(s, own) for s in found]
    known = Known.of(proposals, own)
    assert audit(own, known, Usage(NOW), rules, random_vectors, opposed) == []
    keepers = sum(s.operation.op == "merge" for s in found)
    assert len(own) - len(known.going) <= max(to, keepers)


def proposed(suggestion: Suggestion, own: Sequence[Experience], **fields: object):
    texts = {e.id: e.text for e in own if e.id in targets_of(suggestion.operation)}
    return make_proposal(suggestion.operation, base_texts=texts, **fields)


def test_what_a_reviewer_kept_is_not_proposed_again_until_its_text_changes() -> None:
    old = make_experience(1)
    [found] = unused([old], Usage(NOW))
    refused = Known.of([proposed(found, [old], status="rejected")], [old])
    assert audit([old], refused, Usage(NOW), Rules(), nobody, opposed) == []
    changed = old.model_copy(update={"text": "Read the file twice."})
    anew = Known.of([proposed(found, [old], status="rejected")], [changed])
    assert len(audit([changed], anew, Usage(NOW), Rules(), nobody, opposed)) == 1


def test_what_a_reviewer_kept_has_its_place_and_another_goes() -> None:
    own = [make_experience(i, f"text {i}", confidence=i / 10) for i in range(1, 5)]
    rules = Rules(audits=("capacity",), strategy="importance", to=3)
    kept = Known(refused=frozenset({frozenset({"E-0001"})}))
    [found] = over_capacity(own, kept, NOW, rules, nobody)
    assert found.operation == Delete(experience_id="E-0002")
    assert found.sentence == (
        "importance compression from 4 lessons to 3: confidence 0.20 is among the lowest 1 of 3"
    )


def test_pairs_that_a_reviewer_kept_apart_leave_their_lessons_free_for_other_pairs() -> None:
    own = [make_experience(i, f"text {i}") for i in range(1, 4)]
    vectors = by_table({"text 1": (1, 0), "text 2": (1, 0), "text 3": (0.95, 0.3)})
    apart = frozenset({frozenset({"E-0001", "E-0002"})})
    [found] = redundant(own, apart, vectors, lambda a, b: False)
    assert set(targets_of(found.operation)) == {"E-0001", "E-0003"}


def test_an_open_merge_counts_as_one_lesson_less() -> None:
    own = [make_experience(i, f"text {i}") for i in range(1, 4)]
    merge = make_proposal(Merge(experience_ids=("E-0001", "E-0002"), text="text 1"), status="approved")
    known = Known.of([merge], own)
    assert (known.touched, known.going) == ({"E-0001", "E-0002"}, {"E-0002"})
    assert over_capacity(own, known, NOW, Rules(to=2), nobody) == []
    [found] = over_capacity(own, known, NOW, Rules(strategy="temporal", to=1), nobody)
    assert found.operation == Delete(experience_id="E-0003")


def test_proposals_to_add_or_modify_do_not_hold_an_audit_up() -> None:
    own = [make_experience(1)]
    others = [make_proposal(Modify(experience_id="E-0001", text="Read it twice.")), make_proposal("Read.")]
    assert Known.of(others, own) == Known()


# ---- in a workspace ----------------------------------------------------------------------------------


def full(workspace: Workspace) -> Auditing:
    """A workspace of four lessons, two of them alike."""
    publish(
        workspace,
        *(Add(text=t, domain="sums") for t in ("Read it first.", "Read one first.", "Sum up.", "Name it.")),
    )
    return Auditing(workspace.store, FakeEmbedder)


def test_suggestions_become_proposals_with_base_texts_and_the_numbers_behind_them(
    workspace: Workspace,
) -> None:
    auditing = full(workspace)
    done = auditing.audit(Rules(to=2), "ann")
    merge, delete = (workspace.store.proposals.get(i) for i in done.proposal_ids)
    assert merge.operation == Merge(experience_ids=("E-0001", "E-0002"), text="Read it first.")
    assert merge.base_texts == {"E-0001": "Read it first.", "E-0002": "Read one first."}
    assert merge.rationale.startswith("Audit: redundant.\nChoose one text or write one")
    assert merge.evidence.sentence.startswith("cosine 0.9")
    assert isinstance(delete.operation, Delete)
    assert delete.rationale == "Audit: capacity."
    assert delete.evidence.sentence.startswith("hybrid compression from 4 lessons to 2: U = 0.50^1.0 x ")
    assert {p.base_version for p in (merge, delete)} == {1}
    assert {p.status for p in (merge, delete)} == {"proposed"}
    assert len(workspace.store.versions.library()) == 4  # nothing was deleted


def test_what_an_audit_suggests_is_of_a_kind_of_its_own_in_lists_and_in_packs(workspace: Workspace) -> None:
    full(workspace).audit(Rules(audits=("redundant",)), "ann")
    listed = (
        CliRunner()
        .invoke(cli.main, ["review", "list", "--json", "--workspace", str(workspace.folder)])
        .stdout
    )
    assert [p["extractor"] for p in json.loads(listed)["proposals"]] == ["audit"]
    [merge], _ = workspace.store.proposals.page(["proposed"])
    workspace.review.approve(merge.id, "ann")
    workspace.review.publish("audited", "ann")
    shown = (
        CliRunner()
        .invoke(cli.main, ["library", "show", "E-0001", "--workspace", str(workspace.folder)])
        .stdout
    )
    assert f"--- {merge.id}: merge by an audit" in shown
    pack = workspace.shipping.export("pack").data
    assert workspace.shipping.verify(pack).experiences == 3
    assert b'"extractor": "audit"' in zipfile.ZipFile(io.BytesIO(pack)).read("pack.json").replace(
        b'"extractor":"audit"', b'"extractor": "audit"'
    )


def test_the_capacity_is_a_setting_of_the_workspace_that_audits_keep_to(workspace: Workspace) -> None:
    auditing = full(workspace)
    rules = Rules(audits=("capacity",))
    assert (auditing.n_max, auditing.audit(rules, "ann").suggestions) == (N_MAX, ())
    auditing.set_n_max(3, "ann")
    assert Workspace(workspace.folder).auditing.n_max == 3
    done = auditing.audit(rules, "ann", dry_run=True)
    assert (done.n_max, len(done.suggestions)) == (3, 1)
    assert done.suggestions[0].sentence.startswith("hybrid compression from 4 lessons to 3: ")
    assert len(auditing.audit(Rules(audits=("capacity",), to=2), "ann", dry_run=True).suggestions) == 2


def test_the_log_says_who_changed_the_capacity_and_the_same_again_says_nothing(workspace: Workspace) -> None:
    for _ in range(2):
        workspace.auditing.set_n_max(300, "ann")
    [event] = [e for e in workspace.store.events.newest(9) if e.kind == "setting.changed"]
    assert (event.actor, event.data) == ("ann", {"was": 500, "to": 300})


@pytest.mark.parametrize("number", [0, -1, 1_000_001])
def test_a_capacity_that_is_none_is_refused(workspace: Workspace, number: int) -> None:
    before = workspace.store.dump()
    with pytest.raises(InputError, match="may hold 1 to"):
        workspace.auditing.set_n_max(number, "ann")
    assert workspace.store.dump() == before


def test_the_command_shows_and_sets_the_capacity(workspace: Workspace) -> None:
    full(workspace)
    assert call(workspace.folder, "limit", "3")[0] == 0
    code, out = call(workspace.folder, "limit", "--json")
    assert (code, json.loads(out)) == (0, {"n_max": 3, "live": 4, "default": 500})
    assert call(workspace.folder, "limit", "0")[0] == 2
    _, out = call(workspace.folder, "unused", "--dry-run")
    assert "may hold 3 lessons" in out


def test_an_audit_takes_the_embedder_that_has_the_role_now(workspace: Workspace) -> None:
    made: list[FakeEmbedder] = []

    def role() -> FakeEmbedder:
        made.append(FakeEmbedder())
        return made[-1]

    full(workspace)
    auditing = Auditing(workspace.store, role)
    for _ in range(2):
        auditing.audit(Rules(to=2), "ann", dry_run=True)
    assert len(made) == 2


def test_an_audit_twice_changes_nothing(workspace: Workspace) -> None:
    auditing = full(workspace)
    assert auditing.audit(Rules(to=2), "ann").proposal_ids
    before = workspace.store.dump()
    again = auditing.audit(Rules(to=2), "ann")
    assert (again.proposal_ids, again.suggestions, again.waiting) == ((), (), 3)
    assert workspace.store.dump() == before


def test_a_dry_run_shows_what_would_be_proposed_and_proposes_nothing(workspace: Workspace) -> None:
    auditing = full(workspace)
    events = workspace.store.events.newest(1)
    dry = auditing.audit(Rules(to=2), "ann", dry_run=True)
    assert workspace.store.events.newest(1) == events
    assert dry.proposal_ids == ()
    assert auditing.audit(Rules(to=2), "ann").suggestions == dry.suggestions


def test_approved_suggestions_can_be_published_as_they_are(workspace: Workspace) -> None:
    auditing = full(workspace)
    for proposal_id in auditing.audit(Rules(to=2), "ann").proposal_ids:
        workspace.review.approve(proposal_id, "ben")
    workspace.review.publish("audited", "ben")
    library = workspace.store.versions.library()
    assert len(library) == 2
    assert library.experiences["E-0002"].merged_into == "E-0001"


def test_a_merge_whose_text_moved_is_stale(workspace: Workspace) -> None:
    auditing = full(workspace)
    [merge] = auditing.audit(Rules(audits=("redundant",)), "ann").proposal_ids
    publish(workspace, Modify(experience_id="E-0002", text="Read two first."))
    found = workspace.store.proposals.get(merge)
    assert stale(found, workspace.store.versions.library())


def test_a_library_that_moves_while_it_is_looked_at_is_looked_at_anew(workspace: Workspace) -> None:
    full(workspace)
    moves = iter([Delete(experience_id="E-0002")])

    class Moving(FakeEmbedder):
        def embed(self, texts: Sequence[str]) -> np.ndarray:
            if (move := next(moves, None)) is not None:
                publish(workspace, move)
            return super().embed(texts)

    found = Auditing(workspace.store, Moving).audit(Rules(audits=("redundant",)), "ann")
    assert (found.version, found.suggestions) == (2, ())


def test_a_library_that_never_rests_is_not_audited(workspace: Workspace) -> None:
    full(workspace)
    texts = (f"Name it {n} times." for n in range(100))

    def restless(library: object) -> Usage:
        publish(workspace, Modify(experience_id="E-0004", text=next(texts)))
        return Usage()

    auditing = Auditing(workspace.store, FakeEmbedder, restless)
    with pytest.raises(BusyError, match="nothing was proposed"):
        auditing.audit(Rules(audits=("redundant",)), "ann")
    assert next(texts) == "Name it 5 times."


# ---- on the command line -----------------------------------------------------------------------------


def call(folder: Path, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli.main, ["audit", *arguments, "--workspace", str(folder)])
    return result.exit_code, result.stdout


def old(workspace: Workspace) -> Path:
    """A workspace of one old lesson and one of today."""
    publish(workspace, "Read it first.")
    store = workspace.store
    store.proposals.add([make_proposal("Sum up.", epoch=30)], "test")
    workspace.review.approve("P-0002", "ann")
    workspace.review.publish("later", "ann")
    return workspace.folder


def test_the_command_makes_all_audits_where_none_is_named(workspace: Workspace) -> None:
    folder = old(workspace)
    code, said = call(folder, "unused", "--dry-run")
    assert code == 0
    assert "never used since epoch 0, and it is epoch 30" in said
    assert "1 proposal would be made on 2 lessons of version 2." in said
    code, said = call(folder)
    assert (code, said.splitlines()[-2:]) == (
        0,
        ["1 proposal made on 2 lessons of version 2.", "Decide with: winnow review list"],
    )
    assert "P-0003    unused  delete E-0001  never used" in said
    code, said = call(folder, "--json")
    answer = json.loads(said)
    assert (code, answer["suggestions"], answer["waiting"]) == (0, [], 1)


def test_compress_takes_a_strategy_and_a_number(workspace: Workspace) -> None:
    folder = old(workspace)
    code, said = call(folder, "compress", "--strategy", "temporal", "--to", "1", "--epoch", "40", "--json")
    [found] = json.loads(said)["suggestions"]
    assert code == 0
    assert found["operation"] == {"op": "delete", "experience_id": "E-0001"}
    assert found["sentence"] == ("temporal compression from 2 lessons to 1: w_t = exp(-0.05 x 40) = 0.135")
    assert call(folder, "compress", "--strategy", "at-random")[0] == 2


def test_there_is_a_command_for_each_audit() -> None:
    assert set(AUDITS) | {"all", "compress", "limit"} == set(audit_command.commands)


def _shipped(workspace: Workspace, *lines: str) -> None:
    from tests.core.test_usage import log

    workspace.shipping.arriving.usage(log(*lines), "u.jsonl", "ann")


def test_a_lesson_that_a_usage_log_tells_of_is_used_when_the_log_comes_in(workspace: Workspace) -> None:
    from tests.core.test_usage import TEXT, line

    def suggested(epoch: int) -> list[tuple[str, ...]]:
        found = workspace.auditing.audit(Rules(audits=("unused",)), "ann", dry_run=True, epoch=epoch)
        return [targets_of(s.operation) for s in found.suggestions]

    publish(workspace, TEXT, "Check the sum.")
    add_tasks(workspace, [make_task(1)])
    run_id = workspace.store.runs.create(
        RunConfig(group_size=2), [make_task(1)], [0], request="r", kind="recorded", library_version=1, model="m",
        note="", actor="test", epochs=[24],
    )  # fmt: skip
    workspace.store.groups.save(make_group(1.0, 0.0, id=f"{run_id}-0001", epoch=24))
    assert suggested(30) == [("E-0001",), ("E-0002",)]
    _shipped(workspace, line(1), line(2, followed=[], outcome=0.0))
    assert suggested(60) == [("E-0002",)], "what no version counts yet is a use of now"
    publish(workspace, "Ask once.")
    assert ("E-0001",) not in suggested(24 + 19)
    assert ("E-0001",) in suggested(24 + 20)
