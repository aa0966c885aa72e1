"""What the counts say for and against the lessons of a model: claimed only where something was counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from core.evidence import Feature, Seen
from core.experience import Add, Delete, Experience, Merge, Modify
from core.extraction.draft import Draft
from core.extraction.from_evidence import propose
from core.extraction.sayings import Names, sayings
from core.extraction.support import support
from core.rollout import Group, Step, Task, Trajectory
from tests.core.test_from_evidence import agent, make_batch, sentence_wins, short_wins, step, stumble


def counted(*batches: Sequence[tuple[Task, Group]]) -> Seen:
    seen = Seen()
    for batch in batches:
        for task, group in batch:
            seen.add(task, group)
    return seen


def drafted(operation: Any, groups: tuple[str, ...] = ("g-capitals-0", "g-capitals-1")) -> Draft:
    return Draft(operation=operation, extractor="llm", group_ids=groups, raw_reply="{}")


def lesson(text: str, domain: str = "capitals") -> Draft:
    return drafted(Add(text=text, domain=domain), (f"g-{domain}-0", f"g-{domain}-1"))


def supported(draft: Draft, seen: Seen, *library: Experience) -> Draft:
    return support(draft, seen, library, seed=1)


def live(text: str, number: int = 1, domain: str = "capitals") -> Experience:
    return Experience(id=f"E-{number:04d}", text=text, domain=domain)


# --- what is claimed ---------------------------------------------------------------------------------------


def test_a_lesson_that_the_counts_bear_out_gets_the_counts_and_their_rollouts() -> None:
    seen = counted(make_batch(short_wins))
    draft = supported(lesson("When asked for a capital, reply with one word."), seen)
    own = propose(seen, (), run_id="R", seed=1).drafts[0].evidence
    assert draft.evidence.findings[0] in own.findings  # the same contrast, corrected over the same features
    assert draft.evidence.sentence.startswith(
        f"{own.findings[0].winners_with} of {own.findings[0].winners} winners"
    )
    assert draft.confidence == 0.7
    assert draft.evidence.group_ids[:2] == ("g-capitals-0", "g-capitals-1")
    assert set(draft.evidence.rollout_ids) <= {r.id for _, g in make_batch(short_wins) for r in g.rollouts}
    assert draft.evidence.features_tried == own.features_tried > 0


def test_a_lesson_that_the_counts_contradict_says_so_first() -> None:
    draft = supported(
        lesson("Answer in a full sentence that repeats the question."), counted(make_batch(short_wins))
    )
    assert draft.evidence.sentence.startswith("The counts contradict this lesson: ")
    assert draft.confidence == 0.5
    assert draft.evidence.findings[0].p_corrected < 0.05


def test_a_lesson_half_right_is_told_both_and_gets_no_higher_start() -> None:
    text = "Answer with one word, and end the answer with a period."
    draft = supported(lesson(text), counted(make_batch(short_wins)))
    assert "The counts contradict this lesson: " in draft.evidence.sentence
    assert "answered with one word" in draft.evidence.sentence
    assert draft.confidence == 0.5


def test_a_lesson_that_nothing_was_counted_for_says_so_and_invents_no_number() -> None:
    batch = make_batch(short_wins)
    draft = supported(lesson("Think of the map of the continent before you decide."), counted(batch))
    rows = [r for _, g in batch[:2] for r in g.rollouts]
    won = [r.reward for r in rows if (r.advantage or 0) > 0]
    lost = [r.reward for r in rows if (r.advantage or 0) < 0]
    assert draft.evidence.sentence == (
        "No counted habit matches this lesson; it was drawn from 2 groups: mean reward of "
        f"{np.mean(won):.2f} for {len(won)} winners, of {np.mean(lost):.2f} for {len(lost)} losers."
    )
    assert draft.evidence.findings == ()
    assert draft.confidence == 0.5
    by_id = {r.id: r.reward for r in rows}
    best_and_worst = [by_id[i] for i in draft.evidence.rollout_ids]
    for number, (_, group) in enumerate(batch[:2]):
        rewards = [r.reward for r in group.rollouts]
        assert best_and_worst[number] == max(rewards)
        assert best_and_worst[2 + number] == min(rewards)


def test_chance_alone_is_called_chance() -> None:
    def chance(task: Task, rng: np.random.Generator) -> tuple[Trajectory, float]:
        return Trajectory(answer="Abo" if rng.random() < 0.5 else "It is Abo."), float(rng.random() < 0.5)

    draft = supported(lesson("Answer with one word."), counted(make_batch(chance)))
    assert "within chance" in draft.evidence.sentence
    assert draft.confidence == 0.5
    assert draft.evidence.findings[0].p_corrected >= 0.05


def test_groups_that_were_never_counted_are_not_spoken_of() -> None:
    draft = supported(drafted(Add(text="Think twice."), ("elsewhere",)), counted(make_batch(short_wins)))
    assert (
        draft.evidence.sentence == "No counted habit matches this lesson, and none of its groups was counted."
    )


def test_a_draft_made_from_evidence_comes_back_as_it_is() -> None:
    seen = counted(make_batch(short_wins))
    (draft,) = propose(seen, (), run_id="R", seed=1).drafts
    assert supported(draft, seen) is draft


# --- changes of the library ---------------------------------------------------------------------------------


def test_a_deletion_is_borne_out_by_counts_against_its_target() -> None:
    seen = counted(make_batch(short_wins))
    good = supported(drafted(Delete(experience_id="E-0001")), seen, live("Answer in a full sentence."))
    assert good.confidence == 0.7
    assert "winners" in good.evidence.sentence
    bad = supported(drafted(Delete(experience_id="E-0001")), seen, live("Answer with one word."))
    assert bad.evidence.sentence.startswith("The counts contradict this deletion: ")
    assert bad.confidence == 0.5


def test_a_change_tells_the_counts_of_the_new_text_and_of_the_old_one() -> None:
    seen = counted(make_batch(short_wins))
    new = Modify(experience_id="E-0001", text="Answer with one word.")
    draft = supported(drafted(new), seen, live("Answer in a full sentence."))
    new_part, old_part = draft.evidence.sentence.split(" E-0001, as it stands: ")
    assert "answered with one word" in new_part
    assert old_part.startswith("the counts contradict E-0001: ")
    assert len(draft.evidence.findings) == 2
    assert draft.confidence == 0.7


def test_a_merge_tells_the_counts_of_all_its_texts() -> None:
    seen = counted(make_batch(short_wins))
    merge = Merge(experience_ids=("E-0001", "E-0002"), text="Be careful with capitals.")
    draft = supported(drafted(merge), seen, live("Answer with one word."), live("End with a period.", 2))
    assert "E-0001, as it stands: " in draft.evidence.sentence
    assert "E-0002, as it stands: the counts contradict E-0002: " in draft.evidence.sentence


def test_a_lesson_is_judged_in_its_own_domain() -> None:
    seen = counted(
        make_batch(short_wins),
        make_batch(sentence_wins, domain="towns", ask="Which town now governs the {}?"),
    )
    here = supported(lesson("Answer with one word."), seen)
    there = supported(lesson("Answer with one word.", "towns"), seen)
    assert here.confidence == 0.7
    assert "contradict" in there.evidence.sentence


# --- tools -----------------------------------------------------------------------------------------------


def test_lessons_about_tools_are_counted_by_the_names_that_the_rollouts_used() -> None:
    seen = counted(make_batch(agent, ask="Find the owner of {}.", domain="files"))
    for text in (
        "In file tasks, start with list_files.",
        "Call list_files before read_file.",
        "Before calling read_file, use list_files to see what is there.",
        "Use list_files, then read_file.",
    ):
        draft = supported(lesson(text, "files"), seen)
        assert draft.confidence == 0.7, text
        assert "list_files" in draft.evidence.sentence or "read_file" in draft.evidence.sentence
    for text in (
        "Call read_file before list_files.",
        "Never start with list_files.",
        "Call list_files after read_file.",
    ):
        assert "contradict" in supported(lesson(text, "files"), seen).evidence.sentence, text


def test_lessons_about_recovery_are_counted_by_what_followed_the_error() -> None:
    seen = counted(make_batch(stumble, ask="Find the owner of {}.", domain="files"))
    good = supported(lesson("When a call fails, do not repeat the same call.", "files"), seen)
    assert "repeated the same call after an error" in good.evidence.sentence
    assert good.confidence == 0.7
    bad = supported(lesson("If read_file fails with FileNotFoundError, retry once more.", "files"), seen)
    assert bad.evidence.sentence.startswith("The counts contradict this lesson: ")


def test_lessons_about_parameters_are_counted_by_their_value() -> None:
    def limited(task: Task, rng: np.random.Generator) -> tuple[Trajectory, float]:
        small = rng.random() < 0.5
        steps = (step("search", limit=5 if small else 50), step("read_file", path="x"))
        return Trajectory(answer="done", steps=steps), float(rng.random() < (0.9 if small else 0.1))

    seen = counted(make_batch(limited, ask="Find the owner of {}.", domain="files"))
    for text in (
        "Call search with limit=5.",
        "Set `limit` to 5 when you search.",
        "Do not call search with limit=50.",
    ):
        draft = supported(lesson(text, "files"), seen)
        assert draft.confidence == 0.7, text
        assert "limit=5" in draft.evidence.sentence
    assert "contradict" in supported(lesson("Call search with limit=50.", "files"), seen).evidence.sentence


NAMES = Names.of(
    [
        Feature("tool=read", "called read", "tool", value="read"),
        Feature("tool=write", "called write", "tool", value="write"),
        Feature("error=Timeout", "ran into Timeout", "error", value="Timeout"),
        Feature("param=read.mode=fast", "called read with mode=fast", "parameter", value="read.mode=fast"),
    ]
)


@pytest.mark.parametrize(
    ("text", "feature", "do"),
    [
        ("Always call read first.", "first_tool=read", True),
        ("Begin with `read`.", "first_tool=read", True),
        ("Do not start with write.", "first_tool=write", False),
        ("Call read before write.", "before=read>write", True),
        ("Call write after read.", "before=read>write", True),
        ("After write, call read.", "before=write>read", True),
        ("Do not call write before read.", "before=write>read", False),
        ("Finish with write.", "last_tool=write", True),
        ("Never use write.", "tool=write", False),
        ("Use read with mode fast.", "param=read.mode=fast", True),
        ("When a call fails, do not give up.", "recovery=give_up", False),
        ("After an error, try again with corrected parameters.", "recovery=fix_parameters", True),
        ("Check the file before changing it.", "checked_before_acting", True),
        ("Never repeat an identical call.", "repeated_call", False),
        ("Start with the answer, without any introduction.", "preamble", False),
        ("Do not hedge; commit to one answer.", "hedges", False),
    ],
)
def test_usual_wordings_are_understood(text: str, feature: str, do: bool) -> None:
    assert any(feature in s.features and s.do == do for s in sayings(text, NAMES)), sayings(text, NAMES)
    assert not any(feature in s.features and s.do != do for s in sayings(text, NAMES))


@pytest.mark.parametrize(
    "text",
    [
        "Think about the units of each quantity.",
        "Read the question twice.",
        "The map shows what is near.",
        "",
    ],
)
def test_what_is_not_understood_is_not_claimed(text: str) -> None:
    assert sayings(text, NAMES) == ()


def test_a_failed_step_says_nothing_of_a_tool_that_is_only_the_condition() -> None:
    found = sayings("When read fails, use write.", NAMES)
    assert not any("tool=read" in s.features or "before=read>write" in s.features for s in found)


def test_support_of_a_step_without_tools_in_the_run_is_silent() -> None:
    draft = supported(lesson("Call `read_file` first."), counted(make_batch(short_wins)))
    assert draft.evidence.sentence.startswith("No counted habit matches this lesson; ")
    assert Step(tool="read_file")  # the tool exists; nobody called it here
