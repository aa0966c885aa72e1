from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ApplyError, InputError, UnknownExperienceError
from core.experience import Add, Delete, Merge, Modify, Operation
from core.library import Change, Library, check_fit
from tests.make import make_experience

TWO = Library.of(
    [make_experience(1, "Read the file first."), make_experience(2, "Check the columns.", confidence=0.9)]
)


def apply(library: Library, *operations: Operation, first: int = 3) -> Library:
    return library.apply([Change(o, proposal_id="P-0001") for o in operations], first).library


def test_an_add_gets_the_next_id_and_remembers_its_proposal() -> None:
    after = apply(TWO, Add(text="Answer with one word."))
    assert after.live("E-0003").proposal_id == "P-0001"
    assert len(after) == 3


def test_the_library_that_was_changed_stays_as_it_was() -> None:
    apply(TWO, Delete(experience_id="E-0001"))
    assert [e.id for e in TWO] == ["E-0001", "E-0002"]


def test_a_modify_keeps_id_and_confidence() -> None:
    after = apply(TWO, Modify(experience_id="E-0002", text="Check the columns before a query."))
    assert after.live("E-0002").text == "Check the columns before a query."
    assert after.live("E-0002").confidence == 0.9


def test_a_delete_needs_an_id_only_and_leaves_a_tombstone() -> None:
    after = apply(TWO, Delete(experience_id="E-0001"))
    assert [e.id for e in after] == ["E-0002"]
    assert after.experiences["E-0001"].status == "deleted"


def test_a_merge_lives_on_under_the_first_id_with_the_highest_confidence() -> None:
    after = apply(
        TWO, Merge(experience_ids=("E-0001", "E-0002"), text="Read the file and its columns first.")
    )
    assert [e.id for e in after] == ["E-0001"]
    assert after.live("E-0001").confidence == 0.9
    assert after.experiences["E-0002"].merged_into == "E-0001"


@pytest.mark.parametrize(
    "operation",
    [
        Modify(experience_id="E-0009", text="New text."),
        Delete(experience_id="[E-0001]"),
        Merge(experience_ids=("E-0001", "E-0009"), text="Both."),
    ],
)
def test_an_unknown_id_is_refused_and_nothing_is_added(operation: Operation) -> None:
    with pytest.raises(UnknownExperienceError):
        apply(TWO, operation)


def test_a_deleted_experience_can_not_be_changed_and_the_message_says_so() -> None:
    gone = apply(TWO, Delete(experience_id="E-0001"))
    with pytest.raises(UnknownExperienceError, match="was deleted"):
        apply(gone, Modify(experience_id="E-0001", text="Again."))


def test_one_operation_that_does_not_fit_leaves_all_others_unapplied() -> None:
    before = dict(TWO.experiences)
    with pytest.raises(ApplyError):
        apply(TWO, Add(text="Fine."), Delete(experience_id="E-0009"))
    assert dict(TWO.experiences) == before


def test_a_text_of_200_words_is_refused() -> None:
    with pytest.raises(ApplyError, match="200 words"):
        apply(TWO, Add(text="word " * 200))


@pytest.mark.parametrize(
    "operation", [Add(text="a" * 1_001), Modify(experience_id="E-0001", text="a-b" * 400)]
)
def test_a_single_word_without_an_end_is_refused(operation: Operation) -> None:
    with pytest.raises(ApplyError, match="at most 1,000, however few words"):
        apply(TWO, operation)
    assert len(apply(TWO, Add(text="a" * 1_000))) == 3


@pytest.mark.parametrize("domain", ["", " ", "a" * 101, "a\u200bb", "office ", "\u00a0office"])
def test_a_domain_that_no_task_can_be_asked_to_match_is_refused(domain: str) -> None:
    for operation in (
        Add(text="New.", domain=domain),
        Modify(experience_id="E-0001", text="New.", domain=domain),
    ):
        with pytest.raises(ApplyError, match="domain"):
            check_fit(operation, TWO)


@pytest.mark.parametrize("domain", ["General", "general ", "GENERAL", "OFFICE  work", "office\u00a0work"])
def test_a_domain_that_differs_only_in_case_or_spaces_is_refused_with_the_one_that_is_meant(
    domain: str,
) -> None:
    library = Library.of([make_experience(1, domain="office work")])
    with pytest.raises(ApplyError, match=r"name '(general|office work)'"):
        check_fit(Add(text="New.", domain=domain), library)


@pytest.mark.parametrize("domain", ["a\x00b", "a\nb", "a\x7fb"])
def test_no_operation_holds_a_domain_with_a_control_character(domain: str) -> None:
    for make in (Add, Modify):
        with pytest.raises(InputError, match="control character"):
            make.read(
                {"text": "New.", "domain": domain} | ({} if make is Add else {"experience_id": "E-0001"})
            )


def test_a_domain_that_a_task_has_or_that_is_mended_is_taken() -> None:
    library = Library.of([make_experience(1, domain="Office")])
    check_fit(Modify(experience_id="E-0001", text="Read the file first.", domain="office"), library)
    check_fit(Add(text="New.", domain="office"), library, domains=["office"])
    check_fit(Add(text="New.", domain="another"), library)


def test_what_a_live_experience_says_already_is_not_added_again() -> None:
    with pytest.raises(ApplyError, match="E-0001 says the same"):
        apply(TWO, Add(text="  read the FILE first!"))


def test_another_domain_may_learn_the_same_lesson() -> None:
    after = apply(TWO, Add(text="Read the file first.", domain="office"))
    assert after.live("E-0003").domain == "office"


def test_two_equal_adds_of_one_version_are_refused() -> None:
    with pytest.raises(ApplyError, match="E-0003 says the same"):
        apply(TWO, Add(text="Be brief."), Add(text="be brief"))


@pytest.mark.parametrize(
    "before",
    [
        [Delete(experience_id="E-0001")],
        [Modify(experience_id="E-0001", text="Another.")],
        [Modify(experience_id="E-0001", text="Read the file first.", domain="office")],
        [Merge(experience_ids=("E-0002", "E-0001"), text="Both.")],
    ],
)
def test_what_no_experience_says_any_more_may_be_said_again(before: list[Operation]) -> None:
    unrelated = Add(text="Be brief.")  # by then the texts of the domain are known
    after = apply(TWO, unrelated, *before, Add(text="Read the file first!"))
    assert [e.id for e in after if e.text == "Read the file first!"] == ["E-0004"]


def test_what_was_changed_in_the_same_version_is_said_already() -> None:
    with pytest.raises(ApplyError, match="E-0001 says the same"):
        apply(TWO, Add(text="Be brief."), Modify(experience_id="E-0001", text="New."), Add(text="new"))


def test_a_library_of_changes_reads_in_the_order_of_its_ids() -> None:
    many = Library.of(make_experience(n, f"Lesson {n}.") for n in (10_000, 9_999, 2))
    assert [e.id for e in many] == ["E-0002", "E-9999", "E-10000"]


@given(st.lists(st.sampled_from(["add", "modify", "delete", "merge"]), max_size=20), st.randoms())
def test_ids_are_never_used_twice(kinds: list[str], rng: object) -> None:
    library, number = TWO, 3
    for i, kind in enumerate(kinds):
        ids = [e.id for e in library]
        if kind == "add" or len(ids) < 2:
            operation: Operation = Add(text=f"Lesson number {i}.")
        elif kind == "modify":
            operation = Modify(experience_id=ids[0], text=f"Changed lesson {i}.")
        elif kind == "delete":
            operation = Delete(experience_id=ids[-1])
        else:
            operation = Merge(experience_ids=(ids[0], ids[-1]), text=f"Merged lesson {i}.")
        known = set(library.experiences)
        applied = library.apply([Change(operation)], number)
        assert known <= set(applied.library.experiences)
        assert (applied.touched[0] in known) == (operation.op != "add")
        library, number = applied.library, applied.next_number
