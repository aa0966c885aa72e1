"""The library as one reads it: pages, differences, provenance, lessons by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.cli import main
from core.errors import ApplyError, InputError, NotFoundError
from core.experience import Add, Delete, Experience, Merge, Modify
from core.library import Library
from core.record import canonical_json
from core.review import differences
from core.rollout import Step
from core.settings import RunConfig
from core.store.versions import ORDERS, Order
from core.workspace import Workspace
from core.workspace.by_hand import propose_by_hand
from core.workspace.erasing import Erasing
from core.workspace.provenance import GROUPS_SHOWN, provenance
from tests.make import add_tasks, make_group, make_proposal, make_tasks, propose, publish, ticking
from tests.steps import steps

LESSON = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=30
).filter(lambda text: text.strip() != "")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "ws", clock=ticking())


def winnow(workspace: Workspace, *words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, [*words, "--workspace", str(workspace.folder)])
    return result.exit_code, result.stdout if result.exit_code == 0 else result.stderr


def as_json(workspace: Workspace, *words: str) -> Any:
    code, out = winnow(workspace, *words, "--json")
    assert code == 0, out
    return json.loads(out)


def with_origin(workspace: Workspace, *, groups: int = 2) -> str:
    """A published lesson with a run of agents behind it; gives the id of its proposal."""
    add_tasks(workspace, make_tasks(groups))
    tasks = workspace.store.tasks.select("train")
    run_id = workspace.store.runs.create(
        RunConfig(group_size=2),
        tasks,
        [0] * groups,
        request="request",
        kind="sampled",
        library_version=0,
        model="stub-model",
        note="",
        actor="test",
    )
    ids = workspace.store.groups.ids(run_id, "waiting")
    for group_id, task in zip(ids, tasks, strict=True):
        steps = [
            [Step(tool="read_json", success=True)],
            [Step(tool="read_csv", success=False, error="no such file")],
        ]
        made = make_group(1.0, 0.0, id=group_id, run_id=run_id, task_id=task.id, steps=steps)
        rollouts = tuple(r.model_copy(update={"task_id": task.id}) for r in made.rollouts)
        workspace.store.groups.save(made.model_copy(update={"rollouts": rollouts}))
    proposal = make_proposal("Call read_json first.", run_id=run_id, rationale="Winners read JSON.")
    evidence = proposal.evidence.model_copy(
        update={"group_ids": tuple(ids), "rollout_ids": (f"{ids[0]}-0", f"{ids[0]}-1")}
    )
    [proposal_id] = workspace.store.proposals.add(
        [proposal.model_copy(update={"evidence": evidence})], "test"
    )
    workspace.review.approve(proposal_id, "ann", text="Call `read_json` first.")
    workspace.review.publish("First lessons", "bob")
    return proposal_id


# ---- pages ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
def test_pages_cover_each_experience_once_in_every_order(workspace: Workspace, order: Order) -> None:
    publish(workspace, *(f"Lesson {i}." for i in range(11)))
    publish(workspace, Delete(experience_id="E-0003"), Modify(experience_id="E-0005", text="Another."))
    for number in (None, 1, 2):
        seen: list[str] = []
        for offset in range(0, 15, 3):
            found, total = workspace.store.versions.page(number, order=order, limit=3, offset=offset)
            seen += [e.id for e in found]
            assert total == (11 if number == 1 else 10)
        assert sorted(seen) == [e.id for e in workspace.store.versions.library(number)]


def test_a_page_holds_what_its_filters_ask_for(workspace: Workspace) -> None:
    publish(
        workspace,
        Add(text="One.", domain="sums", kind="convention"),
        Add(text="Two.", domain="office"),
        Add(text="Three.", domain="sums"),
    )
    publish(workspace, Delete(experience_id="E-0003"))
    page = workspace.store.versions.page
    assert [e.text for e in page(domain="sums")[0]] == ["One."]
    assert [e.text for e in page(kind="convention")[0]] == ["One."]
    assert [e.text for e in page(status="deleted")[0]] == ["Three."]
    assert [e.text for e in page(status="")[0]] == ["One.", "Two.", "Three."]
    assert [e.text for e in page(1, domain="sums")[0]] == ["One.", "Three."]


def test_the_newest_library_reads_the_same_by_its_number_and_without_it(workspace: Workspace) -> None:
    publish(workspace, "One.", "Two.")
    publish(workspace, Modify(experience_id="E-0002", text="Second."))
    assert workspace.store.versions.library() == workspace.store.versions.library(2)


def test_the_newest_library_is_read_once_for_each_version(workspace: Workspace) -> None:
    publish(workspace, "One.", "Two.")
    versions = workspace.store.versions
    first = versions.library()
    assert versions.library() is first
    with workspace.store.writing():
        assert versions.library() is first, "nothing is written in this transaction yet"
    publish(Workspace(workspace.folder), "Three.")
    assert [e.text for e in versions.library()] == ["One.", "Two.", "Three."], "another process published it"


def test_a_version_that_was_undone_is_not_kept(workspace: Workspace) -> None:
    publish(workspace, "One.")
    versions = workspace.store.versions
    before = versions.library()
    changed = Library.of([before.live("E-0001").model_copy(update={"text": "Another."})], 1)
    with suppress(LookupError), workspace.store.writing():
        versions.save(before, changed, parent=1, author="ann", message="", event="version.published")
        assert [e.text for e in versions.library()] == ["Another."], "a transaction reads what it wrote"
        raise LookupError
    assert [e.text for e in versions.library()] == ["One."]
    publish(workspace, Modify(experience_id="E-0001", text="A third."))
    assert [e.text for e in versions.library()] == ["A third."]


def test_a_text_that_somebody_redacted_is_kept_no_longer(workspace: Workspace) -> None:
    publish(workspace, "One.", "Ask for zanzibar.")
    publish(workspace, Delete(experience_id="E-0002"))
    assert "zanzibar" in workspace.store.versions.library().experiences["E-0002"].text
    Erasing(Workspace(workspace.folder)).redact(("zanzibar",), "ann", reason="it leaked")
    assert "zanzibar" not in workspace.store.versions.library().experiences["E-0002"].text
    assert workspace.store.versions.head() == 2, "no version tells of it: no live lesson held the text"


def test_history_goes_on_below_a_version(workspace: Workspace) -> None:
    for i in range(5):
        publish(workspace, f"Lesson {i}.")
    newest = workspace.store.versions.newest
    assert [v.number for v in newest(2)] == [5, 4]
    assert [v.number for v in newest(2, before=4)] == [3, 2]
    assert newest(1, before=2)[0].proposal_ids == ("P-0001",)


def test_reading_costs_the_same_after_a_thousand_versions(workspace: Workspace) -> None:
    """Counted in steps of SQLite's machine, which no other work on this computer changes."""
    publish(workspace, *(f"Lesson {i}." for i in range(20)))

    def cost(read: Callable[[], object]) -> int:
        return steps(workspace.store, read)

    versions = workspace.store.versions

    def costs(head: int) -> dict[str, int]:
        return {
            "history": cost(lambda: versions.newest(20)),
            "below": cost(lambda: versions.newest(20, before=head - 5)),
            "page": cost(lambda: versions.page(limit=10)),
            "library": cost(lambda: versions.library()),
            "difference": cost(lambda: versions.changed(head - 1, head)),
            "search": cost(lambda: workspace.store.search.find("lesson")),
        }

    def write(count: int) -> None:
        with workspace.store.writing():
            for _ in range(count):
                before = versions.library()
                some = before.live(f"E-{before.version % 20 + 1:04d}")
                new = some.model_copy(update={"text": f"Lesson of version {before.version}."})
                after = Library.of((before.experiences | {some.id: new}).values(), before.version)
                versions.save(
                    before, after, parent=before.version, author="a", message="m", event="version.published"
                )

    write(30)
    early = costs(31)
    write(1_000)
    late = costs(1_031)
    assert late == {name: pytest.approx(steps, rel=0.3, abs=30) for name, steps in early.items()}


def test_what_changed_is_what_differs_between_the_whole_libraries(workspace: Workspace) -> None:
    publish(workspace, "One.", "Two.", "Three.", "Four.")
    publish(workspace, Modify(experience_id="E-0001", text="First."), Delete(experience_id="E-0002"))
    publish(workspace, Merge(experience_ids=("E-0003", "E-0004"), text="Both."), "Five.")
    workspace.review.rollback(1, "ann")
    versions = workspace.store.versions
    for a in range(5):
        for b in range(5):
            whole = differences(versions.library(a), versions.library(b))
            assert differences(*versions.changed(a, b)) == whole
    assert len(versions.changed(1, 2)[1].experiences) == 2, "only what changed is read"


def test_a_difference_from_a_version_that_is_not_there_is_refused(workspace: Workspace) -> None:
    with pytest.raises(NotFoundError, match="no version 3"):
        workspace.store.versions.changed(0, 3)


def test_the_overview_counts_without_reading_the_library(workspace: Workspace) -> None:
    publish(workspace, "One.", "Two.")
    publish(workspace, Delete(experience_id="E-0001"))
    assert (workspace.overview().version, workspace.overview().experiences) == (2, 1)


# ---- what always holds ----------------------------------------------------------------------------------


@given(st.lists(LESSON, min_size=1, max_size=4, unique_by=lambda text: text.strip()))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_way_of_reading_gives_any_text_exactly(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    workspace = Workspace(tmp_path_factory.mktemp("exact"), clock=ticking())
    lessons = [Experience(id=f"E-{i:04d}", text=text) for i, text in enumerate(texts, start=1)]
    with workspace.store.writing():
        workspace.store.versions.save(
            Library(), Library.of(lessons), parent=0, author="a", message="m", event="version.published"
        )
    listed = as_json(workspace, "library", "list")["experiences"]
    assert [e["text"] for e in listed] == texts
    assert as_json(workspace, "library", "show", "E-0001")["experience"]["text"] == texts[0]
    assert [d["after"] for d in as_json(workspace, "library", "diff", "0", "1")] == texts
    assert [e.text for e in workspace.store.versions.page()[0]] == texts
    for text in texts:
        phrase = f'"{text}"' if '"' not in text else text
        found = workspace.store.search.find(phrase)[0]
        assert text in [hit.experience.text for hit in found]
        assert text in [hit["experience"]["text"] for hit in json.loads(canonical_json(
            [hit.model_dump(mode="json") for hit in found]
        ))]  # fmt: skip


@given(st.lists(st.sampled_from(["add", "modify", "delete", "merge", "rollback"]), max_size=12), st.randoms())
@settings(max_examples=8, deadline=None)
def test_an_id_means_one_lesson_for_ever_whatever_is_done(
    tmp_path_factory: pytest.TempPathFactory, kinds: list[str], rng: Any
) -> None:
    workspace = Workspace(tmp_path_factory.mktemp("ids"), clock=ticking())
    publish(workspace, "First lesson.", "Second lesson.")
    born: dict[str, int] = {"E-0001": 1, "E-0002": 1}
    for i, kind in enumerate(kinds):
        library = workspace.store.versions.library()
        ids = [e.id for e in library]
        if kind == "rollback":
            try:
                workspace.review.rollback(rng.randrange(library.version), "ann")
            except InputError:
                continue
        elif kind == "add" or len(ids) < 2:
            publish(workspace, f"Lesson number {i}.")
        elif kind == "modify":
            publish(workspace, Modify(experience_id=rng.choice(ids), text=f"Changed lesson {i}."))
        elif kind == "delete":
            publish(workspace, Delete(experience_id=rng.choice(ids)))
        else:
            publish(workspace, Merge(experience_ids=tuple(rng.sample(ids, 2)), text=f"Merged lesson {i}."))
        after = workspace.store.versions.library()
        new = set(after.experiences) - set(born)
        assert set(born) <= set(after.experiences), "nothing is forgotten"
        assert len(new) == (kind == "add" or (kind != "rollback" and len(ids) < 2))
        assert all(int(i[2:]) > max(int(j[2:]) for j in born) for i in new)
        born |= dict.fromkeys(new, after.version)
        assert workspace.store.search.find("lesson")[1] == len(after)
    for experience_id, version in born.items():
        assert workspace.store.versions.history(experience_id)[0][0] == version


# ---- provenance -----------------------------------------------------------------------------------------


def test_an_experience_leads_back_to_proposal_run_groups_rollouts_steps_and_reviewer(
    workspace: Workspace,
) -> None:
    proposal_id = with_origin(workspace)
    found = provenance(workspace.store, "E-0001")
    assert found.experience.text == "Call `read_json` first."
    [origin] = found.origins
    assert (origin.proposal.id, origin.proposal.operation.op) == (proposal_id, "add")
    assert origin.run is not None
    assert (origin.run.id, origin.run.model) == ("R1", "stub-model")
    assert [(g.mean, g.spread, g.scored, g.size) for g in origin.groups] == [(0.5, 1.0, 2, 2)] * 2
    assert origin.groups[0].question == "What is 4 + 6?"
    good, bad = origin.rollouts
    assert (good.reward, good.steps) == (1.0, ("read_json succeeded",))
    assert (bad.reward, bad.steps) == (0.0, ("read_csv failed",))
    assert good.advantage is not None
    assert good.advantage > 0
    assert good.trajectory is None
    kinds = [(d.kind, d.actor) for d in origin.decisions]
    assert kinds[0] == ("made", "test")
    assert ("approved", "ann") in kinds
    assert kinds[-1] == ("published", "bob")
    assert [(s.from_version, s.author, s.message) for s in found.history] == [(1, "bob", "First lessons")]


def test_whole_trajectories_come_when_they_are_asked_for(workspace: Workspace) -> None:
    with_origin(workspace)
    [origin] = provenance(workspace.store, "E-0001", trajectories=True).origins
    assert origin.rollouts[1].trajectory is not None
    assert origin.rollouts[1].trajectory.steps[0].error == "no such file"
    code, out = winnow(workspace, "library", "show", "E-0001", "--full")
    assert code == 0
    assert "step 1: read_csv failed, with {}\n  no such file" in out


def test_a_reader_sees_the_whole_way_on_one_screen(workspace: Workspace) -> None:
    proposal_id = with_origin(workspace, groups=GROUPS_SHOWN + 3)
    code, out = winnow(workspace, "library", "show", "E-0001")
    assert code == 0
    for part in (
        "Call `read_json` first.",
        proposal_id,
        "rationale: Winners read JSON.",
        "7 of 8 winners answered with one word, 1 of 9 losers",
        "corrected",
        "run R1",
        "What is 4 + 6?",
        "and 3 more groups",
        "read_csv failed > answer 1",
        "approved by ann",
        "published by bob",
        "learned on stub-model",
        "by bob: First lessons",
    ):
        assert part in out, part


def test_rollouts_that_are_no_longer_kept_are_named(workspace: Workspace) -> None:
    publish(workspace, "Answer with one word.")
    [origin] = provenance(workspace.store, "E-0001").origins
    assert origin.gone == ("R1-0001", "R1-0001-0")


def test_a_merged_lesson_names_what_it_was_merged_from_and_every_text_it_had(workspace: Workspace) -> None:
    publish(workspace, "One.", "Two.")
    publish(workspace, Merge(experience_ids=("E-0001", "E-0002"), text="Both."))
    _, out = winnow(workspace, "library", "show", "E-0001")
    assert "merged from: E-0001, E-0002" in out
    assert "from version 1 to before version 2 (live), by ann: test\n  One." in out
    _, out = winnow(workspace, "library", "show", "E-0002")
    assert "E-0002 (merged into E-0001" in out


def test_an_unknown_experience_has_no_provenance(workspace: Workspace) -> None:
    assert winnow(workspace, "library", "show", "E-0009")[0] == 2


# ---- by hand --------------------------------------------------------------------------------------------


def test_a_lesson_written_by_hand_waits_for_a_review_and_is_not_published(workspace: Workspace) -> None:
    publish(workspace, "Read the file before you answer.")
    made = as_json(
        workspace,
        "library",
        "propose",
        "--text",
        "Read the whole file.",
        "--kind",
        "convention",
        "-r",
        "It is long.",
    )
    proposal = workspace.store.proposals.get(made["proposal"]["id"])
    assert (proposal.status, proposal.extractor, proposal.rationale) == ("proposed", "person", "It is long.")
    assert proposal.operation == Add(text="Read the whole file.", kind="convention")
    assert (proposal.base_version, proposal.learned_on) == (1, "")
    assert [e["id"] for e in made["near"]] == ["E-0001"]
    assert len(workspace.store.versions.library()) == 1


def test_changes_by_hand_know_the_texts_that_they_were_made_against(workspace: Workspace) -> None:
    publish(workspace, "One.", "Two.", "Three.")
    for words in (
        ["--modify", "E-0001", "--text", "First.", "--domain", "office"],
        ["--delete", "E-0002"],
        ["--merge", "E-0001", "E-0002", "E-0003", "--text", "All."],
    ):
        as_json(workspace, "library", "propose", *words)
    found, _ = workspace.store.proposals.page(["proposed"])
    by_op = {p.operation.op: p for p in found}
    assert by_op["modify"].base_texts == {"E-0001": "One."}
    assert by_op["modify"].operation == Modify(experience_id="E-0001", text="First.", domain="office")
    assert by_op["delete"].base_texts == {"E-0002": "Two."}
    assert by_op["merge"].base_texts == {"E-0001": "One.", "E-0002": "Two.", "E-0003": "Three."}


def test_what_is_said_already_is_not_proposed_again(workspace: Workspace) -> None:
    publish(workspace, Add(text="Read the file."))
    with pytest.raises(ApplyError, match="E-0001 says the same"):
        propose_by_hand(workspace.store, Add(text="read the FILE"), "ann", workspace.comparing)
    first = propose_by_hand(workspace.store, Add(text="Be brief."), "ann", workspace.comparing).proposal
    with pytest.raises(InputError, match=f"{first.id} proposes the same already"):
        propose_by_hand(workspace.store, Add(text="be brief!", kind="convention"), "bob", workspace.comparing)
    propose_by_hand(workspace.store, Add(text="Be brief.", domain="office"), "bob", workspace.comparing)
    propose_by_hand(
        workspace.store, Modify(experience_id="E-0001", text="Read it."), "bob", workspace.comparing
    )
    propose_by_hand(
        workspace.store,
        Modify(experience_id="E-0001", text="Read it.", domain="office"),
        "bob",
        workspace.comparing,
    )
    assert workspace.store.proposals.counts()["proposed"] == 4


def test_the_nearest_lessons_leave_out_the_one_that_is_changed(workspace: Workspace) -> None:
    publish(workspace, "Read the file first.", "Read the file twice.")
    written = propose_by_hand(
        workspace.store, Modify(experience_id="E-0001", text="Read the file now."), "ann", workspace.comparing
    )
    assert [e.id for e in written.near] == ["E-0002"]


def test_a_lesson_that_was_rejected_comes_back_with_the_reason(workspace: Workspace) -> None:
    first = propose_by_hand(workspace.store, Add(text="Be brief."), "ann", workspace.comparing).proposal
    workspace.review.reject(first.id, "It is harmful.", "bob")
    again = propose_by_hand(
        workspace.store, Add(text="be brief!"), "ann", workspace.comparing, rationale="I insist."
    )
    assert again.rejected == "P-0001 said the same and was rejected: It is harmful."
    assert again.proposal.rationale == f"I insist.\n{again.rejected}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--text", "Log in with sk-" + "a1B2" * 8], "name the variable"),
        (["--modify", "E-0001", "--text", "Look into /home/ada/notes.txt."], "name it from ~"),
        (["--merge", "E-0001", "E-0002", "--text", "[redacted 2026-11-30 #1]"], "mark of a redaction"),
        (["--text", "X", "-r", "The key is sk-" + "a1B2" * 8], "Leave it out"),
        (["--text", " "], "the text is empty"),
        (["--text", "w " * 33], "33 words"),
        ([], "--text"),
        (["--delete", "E-0001", "--text", "X"], "takes no --text"),
        (["--delete", "E-0009"], "There is no experience E-0009"),
        (["--modify", "E-0001"], "--text"),
        (["--modify", "E-0001", "--delete", "E-0001", "--text", "X"], "exclude each other"),
        (["--modify", "E-0001", "--text", "One."], "changes nothing: E-0001 reads so already"),
        (["--modify", "E-0001", "--text", "One.", "--kind", "strategy"], "changes nothing"),
        (
            ["--merge", "E-0001", "--text", "X"],
            "winnow: A merge takes lessons together: name at least two exp",
        ),
        (["--merge", "E-0001", "E-0001", "--text", "X"], "same experience twice"),
        (["--text", "X", "E-0001"], "without --merge"),
        (["--merge", "E-0001", "E-0002", "--text", "X", "--kind", "strategy"], "--kind"),
    ],
)
def test_what_cannot_be_proposed_is_refused_in_one_sentence(
    workspace: Workspace, words: list[str], said: str
) -> None:
    publish(workspace, "One.", "Two.")
    before = workspace.store.dump()
    code, err = winnow(workspace, "library", "propose", *words)
    assert (code, err.count("\n")) == (2, 1)
    assert said in err
    assert workspace.store.dump() == before


def test_a_lesson_by_hand_comes_from_standard_input_or_a_file_as_well(
    workspace: Workspace, tmp_path: Path
) -> None:
    publish(workspace, "One.")
    (tmp_path / "text.txt").write_text("Two lines\nof text.\n", encoding="utf-8")
    as_json(workspace, "library", "propose", "--text-file", str(tmp_path / "text.txt"))
    words = ["library", "propose", "--modify", "E-0001", "--text", "-", "--workspace", str(workspace.folder)]
    assert CliRunner().invoke(main, words, input="Another one.\n").exit_code == 0
    found, _ = workspace.store.proposals.page(["proposed"])
    assert {getattr(p.operation, "text", "") for p in found} == {"Two lines\nof text.", "Another one."}


# ---- the commands ---------------------------------------------------------------------------------------


def test_lists_and_searches_say_how_much_there_is_and_how_to_go_on(workspace: Workspace) -> None:
    publish(workspace, *(f"Lesson {i}." for i in range(3)))
    _, out = winnow(workspace, "library", "list", "--limit", "2")
    assert "2 of 3 experiences in version 1. The next page: --offset 2." in out
    _, out = winnow(workspace, "library", "search", "lesson", "--limit", "2", "--offset", "2")
    assert "«Lesson» 2." in out
    assert "1 of 3 experiences found." in out
    assert winnow(workspace, "library", "search", " ")[0] == 2


def test_versions_go_by_number_or_label(workspace: Workspace) -> None:
    publish(workspace, "One.")
    publish(workspace, "Two.")
    workspace.store.labels.set("production", 1, "ann")
    [found] = as_json(workspace, "library", "diff", "production", "2")
    assert (found["experience_id"], found["after"]) == ("E-0002", "Two.")
    assert as_json(workspace, "library", "list", "--version", "production")["total"] == 1
    for name in ("9", "nowhere", "²", "-1"):
        assert winnow(workspace, "library", "diff", "0", name)[0] == 2


def test_a_dead_lesson_is_listed_and_found_when_it_is_asked_for(workspace: Workspace) -> None:
    publish(workspace, "One lesson.", "Two lesson.")
    propose(workspace)
    publish(workspace, Delete(experience_id="E-0001"))
    assert as_json(workspace, "library", "search", "lesson")["total"] == 1
    assert as_json(workspace, "library", "search", "lesson", "--dead")["total"] == 2
    assert as_json(workspace, "library", "list", "--status", "all")["total"] == 2
    _, out = winnow(workspace, "library", "list", "--status", "all")
    assert "deleted" in out


def test_the_log_of_an_experience_holds_its_proposals_and_its_versions(workspace: Workspace) -> None:
    publish(workspace, "Read the file.", "Ask once.")
    publish(workspace, Modify(experience_id="E-0001", text="Read the file twice."))
    propose(workspace, Modify(experience_id="E-0001", text="Read it."), "Count to ten.")
    events = as_json(workspace, "log", "--subject", "E-0001")
    told = [(e["kind"], e["subject"]) for e in events]
    assert told[0] == ("proposal.made", "P-0004")
    assert ("version.published", "2") in told
    assert {subject for _, subject in told} == {"P-0001", "P-0003", "P-0004", "1", "2"}
    page, total = workspace.store.events.page(subject="E-0001", kind="proposal", limit=2)
    assert ([e.subject for e in page], total) == (["P-0004", "P-0003"], 7)
    assert workspace.store.events.newest(9, subject="E-0001", before=1) == []
