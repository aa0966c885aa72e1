"""What is near to a text: by vectors of one model, by words where there are none, and always said by which."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import numpy as np
import pytest

from core.embedder import MiniLM
from core.errors import InputError, ModelUnavailableError
from core.experience import Add, Delete, Experience, Merge, Modify
from core.extraction.consolidate import consolidate
from core.extraction.draft import Draft
from core.store import Store
from core.workspace import Workspace
from core.workspace import nearest as module
from core.workspace.by_hand import Written, propose_by_hand
from core.workspace.nearest import Comparing
from core.workspace.shipping import Shipping
from tests.core.test_consolidate import Scripted
from tests.make import publish

MEANINGS = {"one": 0, "single": 0, "uppercase": 1, "lowercase": 1, "file": 2, "document": 2}


class Meaning:
    """Texts are alike where they name the same meanings; `asked` remembers what was embedded."""

    dimension = 4

    def __init__(self, name: str = "meaning") -> None:
        self.name = name
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.asked += texts
        rows = np.full((len(texts), 4), 0.01, np.float32)
        for i, text in enumerate(texts):
            for word, place in MEANINGS.items():
                rows[i, place] += word in text.lower()
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class Away:
    """An embedder that cannot be had."""

    name, dimension = "away", 4

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        raise ModelUnavailableError("Nobody is there.")


def by(store: Store, embedder: object) -> Comparing:
    return Comparing(store, lambda: embedder)  # type: ignore[return-value, arg-type]


def write(workspace: Workspace, text: str, embedder: object, **fields: str) -> Written:
    return propose_by_hand(
        workspace.store,
        Add(text=text, **fields),
        "ann",
        by(workspace.store, embedder),  # type: ignore[arg-type]
    )


def arrive(workspace: Workspace, embedder: object, **texts: str):  # type: ignore[no-untyped-def]
    shipping = Shipping(workspace.store, by(workspace.store, embedder))
    return shipping.arriving.library(json.dumps(texts).encode(), "lessons.json", "ann")


# ---- by vectors -----------------------------------------------------------------------------------------


def test_a_paraphrase_without_a_common_word_is_near_by_vectors_and_not_by_words(workspace: Workspace) -> None:
    texts, among = ["Answer in one word."], ["Look at every file.", "Reply with a single term."]
    found = by(workspace.store, Meaning())(texts, among, 2)
    assert (found.by, found.note) == ("meaning", "")
    assert [[one.place for one in near] for near in found.near] == [[1, 0]]
    assert [[one.place for one in near] for near in found.alike()] == [[1]]
    assert by(workspace.store, Away())(texts, among, 2).alike() == [[]]


def test_vectors_of_two_models_are_never_compared_with_each_other(workspace: Workspace) -> None:
    first, second = Meaning("first"), Meaning("second")
    by(workspace.store, first)(["One word."], ["A single word."], 1)
    by(workspace.store, second)(["One word."], ["A single word."], 1)
    assert first.asked == second.asked == ["One word.", "A single word."]
    assert workspace.store.embeddings.models() == {"first": 4, "second": 4}


def test_each_text_is_embedded_once_in_the_life_of_a_workspace(workspace: Workspace) -> None:
    embedder = Meaning()
    publish(workspace, "Answer in one word.", "Look at every file.")
    write(workspace, "Reply with a single term.", embedder)
    write(workspace, "Open the document.", embedder)
    assert sorted(embedder.asked) == sorted(set(embedder.asked))


def test_nothing_is_asked_where_there_is_nothing_to_compare(workspace: Workspace) -> None:
    assert write(workspace, "Answer in one word.", Away()).near_by == ""


def test_thousands_are_compared_with_thousands_in_bounded_memory(workspace: Workspace) -> None:
    """One block of a product is 16 MiB, where all cells would be 400 MB."""
    import tracemalloc

    from core.similarity import nearest

    vectors = np.random.default_rng(1).standard_normal((10_000, 8)).astype(np.float32)
    tracemalloc.start()
    nearest(vectors, vectors, 3, unit=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 120 << 20


# ---- by words -------------------------------------------------------------------------------------------


def test_without_an_embedder_words_are_compared_and_it_is_said_why(workspace: Workspace) -> None:
    publish(workspace, "Read the whole file first.")
    written = write(workspace, "Read the whole file twice.", Away())
    assert [(n.id, n.alike) for n in written.near] == [("E-0001", True)]
    assert (written.near_by, written.near_note) == ("words", "Compared by words. Nobody is there.")


def test_an_endpoint_that_is_gone_or_has_no_key_leaves_the_words(workspace: Workspace) -> None:
    def none() -> object:
        raise InputError("The variable is not set.")

    found = Comparing(workspace.store, none)(["Read it."], ["Read it twice."], 1)  # type: ignore[arg-type]
    assert (found.by, found.note) == ("words", "Compared by words. The variable is not set.")


def test_a_model_that_is_not_on_this_machine_is_not_fetched_for_it(workspace: Workspace) -> None:
    found = by(workspace.store, MiniLM())(["Read it."], ["Read it twice."], 1)
    assert found.by == "words"
    assert "not on this machine" in found.note


def test_so_many_new_texts_that_it_would_take_minutes_are_compared_by_words(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_NEW", 2)
    embedder = Meaning()
    found = by(workspace.store, embedder)(["Read one.", "Read two."], ["Read three."], 1)
    assert (found.by, embedder.asked) == ("words", [])
    assert "3 texts have no vector yet" in found.note
    workspace.store.embeddings.embed(["Read one.", "Read two."], embedder)
    assert by(workspace.store, embedder)(["Read one.", "Read two."], ["Read three."], 1).by == "meaning"


# ---- lessons by hand ------------------------------------------------------------------------------------


def test_who_writes_a_lesson_sees_the_nearest_and_which_of_them_say_the_opposite(
    workspace: Workspace,
) -> None:
    publish(
        workspace,
        Add(text="Write labels in lowercase.", domain="office"),
        "Reply with a single term.",
        "Look at every file.",
    )
    written = write(workspace, "Write labels in uppercase.", Meaning(), domain="office")
    first, *others = written.near
    assert (first.id, first.domain, first.alike, first.opposed) == ("E-0001", "office", True, True)
    assert first.similarity > 0.9
    assert [(n.alike, n.opposed) for n in others] == [(False, False)] * 2


def test_the_lessons_that_a_change_is_about_are_not_near_to_it(workspace: Workspace) -> None:
    publish(workspace, "Answer in one word.", "Reply with a single term.", "Use one or a single sentence.")
    compare = by(workspace.store, Meaning())
    changed = propose_by_hand(
        workspace.store, Modify(experience_id="E-0001", text="One word only."), "ann", compare
    )
    assert {n.id for n in changed.near} == {"E-0002", "E-0003"}
    merge = Merge(experience_ids=("E-0001", "E-0002"), text="One single word.")
    assert [n.id for n in propose_by_hand(workspace.store, merge, "ann", compare).near] == ["E-0003"]
    gone = propose_by_hand(workspace.store, Delete(experience_id="E-0001"), "ann", compare)
    assert (gone.near, gone.near_by) == ((), "")


# ---- imports --------------------------------------------------------------------------------------------


def test_imports_name_what_may_say_the_same_by_its_meaning_and_what_says_the_opposite(
    workspace: Workspace,
) -> None:
    publish(workspace, "Reply with a single term.", "Write labels in lowercase.")
    done = arrive(
        workspace,
        Meaning(),
        a="Answer in one word.",
        b="Write labels in uppercase.",
        c="Sum up.",
    )
    assert done.near_by == "meaning"
    assert [(n.near, n.opposed) for n in done.new] == [
        (("E-0001",), ()),
        (("E-0002",), ("E-0002",)),
        ((), ()),
    ]
    told = [workspace.store.proposals.get(n.proposal_id).rationale for n in done.new]
    assert "Near: E-0001." in told[0]
    assert "Near: E-0002 (says the opposite)." in told[1]
    assert "Near:" not in told[2]


def test_an_import_without_an_embedder_says_so_in_its_notes(workspace: Workspace) -> None:
    publish(workspace, "Answer with the number alone.")
    done = arrive(workspace, Away(), a="Answer with the number alone, please.")
    assert (done.near_by, done.new[0].near) == ("words", ("E-0001",))
    assert any("Nobody is there" in note for note in done.notes)


def test_what_is_published_while_an_import_is_embedded_is_joined_all_the_same(workspace: Workspace) -> None:
    class Publishing(Meaning):
        def embed(self, texts: Sequence[str]) -> np.ndarray:
            if not self.asked:
                publish(workspace, Add(text="Sum up."))
            return super().embed(texts)

    publish(workspace, "Answer in one word.")
    done = arrive(workspace, Publishing(), a="Sum up.", b="Name it.")
    assert [j.into for j in done.joined] == ["E-0002"]
    assert [n.text for n in done.new] == ["Name it."]


def test_the_write_lock_is_free_while_an_import_is_embedded(workspace: Workspace) -> None:
    class Writing(Meaning):
        def embed(self, texts: Sequence[str]) -> np.ndarray:
            assert not workspace.store._database.handle.conn.in_transaction
            return super().embed(texts)

    publish(workspace, "Answer in one word.")
    assert arrive(workspace, Writing(), a="Reply with a single term.").new[0].near == ("E-0001",)


# ---- consolidation --------------------------------------------------------------------------------------


def test_the_model_is_asked_about_what_vectors_hold_near_and_told_where_words_had_to_do(
    workspace: Workspace,
) -> None:
    drafts = [Draft(operation=Add(text=text)) for text in ("Answer in one word.", "Sum it up.")]
    live = [Experience(id="E-0001", text="Reply with a single term.")]
    asked = {}
    for embedder in (Meaning(), Away()):
        model = Scripted(consolidate='{"actions": []}')
        near = by(workspace.store, embedder).alike
        result = asyncio.run(consolidate(drafts, live, model, near=near))
        asked[embedder.name] = ([prompt for _, prompt in model.prompts], result.notes)
    [prompt], notes = asked["meaning"]
    assert "Answer in one word." in prompt
    assert "Reply with a single term." in prompt
    assert "Sum it up." not in prompt
    assert notes == ()
    assert asked["away"] == ([], ("Compared by words. Nobody is there.",))
