"""Faults of the reference systems that must be impossible here, each named after what the user would lose."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest

from core.experience import MAX_WORDS, Add, Delete, Experience, Merge, Modify
from core.extraction.draft import Draft
from core.extraction.with_model import Learned, Teacher
from core.injection import estimate_tokens
from core.library import Change, Library
from core.ports import Completion, Sampling
from core.rollout import Group, Message, Score, Task
from core.words import count_words
from tests import teacher
from tests.core.test_prompts import GROUPS, LIBRARY, TASK, Stand, agent_group, learn

GOOD = {
    "semantic_advantages": [
        {"rollout": "R1", "verdict": "better", "why": "w1"}, {"rollout": "R2", "verdict": "worse", "why": "w2"}
    ],
    "operations": [{"op": "add", "ids": [], "text": "Look twice.", "kind": "strategy"}],
}  # fmt: skip


class Saying:
    """Summarises as the teacher does; says what it is told at the other stages, first reply first."""

    name = "saying"
    context_length = 16_000

    def __init__(self, *contrasts: object, consolidation: object = None) -> None:
        self.contrasts = [c if isinstance(c, str) else json.dumps(c) for c in contrasts]
        self.consolidation = consolidation if isinstance(consolidation, str) else json.dumps(consolidation)
        self.compression = ""
        self.asked: list[list[Message]] = []

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, replicates: Sequence[int] = (0,)
    ) -> list[Completion | str]:
        self.asked.append(list(messages))
        system = messages[0].content
        if '"semantic_advantages"' in system:
            text = self.contrasts.pop(0) if len(self.contrasts) > 1 else self.contrasts[0]
        elif '"actions"' in system:
            text = self.consolidation
        elif self.compression and "You shorten" in system:
            text = self.compression
        else:
            text = teacher.reply(system, messages[1].content)
        return [Completion(text=text)]


def taught(model: object, *groups: Group, library: Sequence[Experience] = LIBRARY) -> Learned:
    one = Teacher(library, model, run_id="R1")  # type: ignore[arg-type]
    return _learned(one, groups or [agent_group("g1", [1.0, 0.0])])


def operations(*items: object, library: Sequence[Experience] = LIBRARY) -> Learned:
    return taught(Saying(GOOD | {"operations": list(items)}), library=library)


# ---- Y1 and Y2: replies that cannot be read ----


@pytest.mark.parametrize("fence", ["```json\n%s\n```", "```\n%s\n```", "```JSON5\n%s```", "Sure!\n%s\nDone."])
def test_y01_a_groups_lessons_do_not_vanish_with_a_fence_of_another_kind(fence: str) -> None:
    learned = taught(Saying(fence % json.dumps(GOOD, indent=1)))
    assert [d.text for d in learned.drafts] == ["Look twice."]


def test_y01_a_group_whose_reply_is_no_json_is_asked_again_with_the_error() -> None:
    model = Saying('{"operations": [', GOOD)
    learned = taught(model)
    assert [d.text for d in learned.drafts] == ["Look twice."]
    assert "the JSON is not valid" in model.asked[-1][-1].content
    assert learned.calls["retry"] == 1


def test_y01_a_group_that_stays_unreadable_is_kept_with_both_replies_and_its_reason() -> None:
    learned = taught(Saying("one", "two"))
    assert learned.failed == {"g1": "the reply holds no JSON"}
    (lost,) = learned.quarantined
    assert "one" in lost.raw
    assert "two" in lost.raw
    assert lost.group_ids == ("g1",)
    assert learned.adds_up


@pytest.mark.parametrize("reply", ["", "null", "no plan", '{"actions": ', '{"operations": []}'])
def test_y02_a_batch_whose_consolidation_fails_still_proposes_all_that_its_groups_taught(reply: str) -> None:
    texts = ["Answer with one word and no more.", "Answer with one single word and no more."]
    model = Saying(
        *(GOOD | {"operations": [{"op": "add", "text": text}]} for text in texts), consolidation=reply
    )
    learned = taught(model, agent_group("g1", [1.0, 0.0]), agent_group("g2", [1.0, 0.0]))
    assert [d.text for d in learned.drafts] == texts
    assert any("left as they were" in note for note in learned.notes)
    assert (learned.calls["consolidate"], learned.calls["retry"], learned.adds_up) == (1, 1, True)


# ---- Y3 to Y7: operations ----


@pytest.mark.parametrize("text", [{}, {"text": None}, {"text": ""}, {"text": "null"}, {"content": ""}])
def test_y03_a_delete_without_text_is_kept(text: dict[str, object]) -> None:
    learned = operations({"op": "DELETE", "ids": ["E-0007"]} | text)
    assert [d.operation for d in learned.drafts] == [Delete(experience_id="E-0007")]


@pytest.mark.parametrize("name", ["[G0]", "G0", "g0", "[E-0007]", "e-0007", "`E-0007`"])
@pytest.mark.parametrize("op", ["modify", "delete"])
def test_y04_an_id_in_the_form_of_the_prompt_is_understood_and_never_becomes_an_add(
    name: str, op: str
) -> None:
    learned = operations({"op": op, "ids": [name], "text": "Answer with a single word."})
    expected = {"modify": Modify(experience_id="E-0007", text="Answer with a single word.", kind=None)}
    (draft,) = learned.drafts
    assert draft.operation == expected.get(op, Delete(experience_id="E-0007"))


@pytest.mark.parametrize("op", ["modify", "delete", "merge", "UPDATE"])
def test_y05_an_operation_on_an_unknown_id_is_quarantined_with_its_reply_and_never_dropped(op: str) -> None:
    learned = operations(
        {"op": op, "ids": ["E-0007", "E-0404"][-1 if op != "merge" else 0 :], "text": "Look."}
    )
    assert not learned.drafts
    (lost,) = learned.quarantined
    assert "E-0404" in lost.reason
    assert "E-0404" in lost.raw


@pytest.mark.parametrize("name", ["add", "ADD", "Add", "[ADD]", "create", " add "])
def test_y06_the_name_of_an_operation_is_read_in_any_case(name: str) -> None:
    assert [d.text for d in operations({"op": name, "text": "Look twice."}).drafts] == ["Look twice."]


@pytest.mark.parametrize("name", [None, "", "upsert", 3])
def test_y06_an_operation_without_a_known_name_is_no_add(name: object) -> None:
    learned = operations({"op": name, "text": "Look twice."})
    assert not learned.drafts
    assert len(learned.quarantined) == 1


def test_y06_a_merge_is_carried_out() -> None:
    learned = operations({"op": "merge", "ids": ["E-0007", "E-0009"], "text": "One bare word."})
    assert [d.operation for d in learned.drafts] == [
        Merge(experience_ids=("E-0007", "E-0009"), text="One bare word.")
    ]


@pytest.mark.parametrize("item", ["add", None, 7, ["add", "Look."], [], True])
def test_y07_an_operation_that_is_no_object_costs_itself_and_not_the_run(item: object) -> None:
    learned = operations(item, {"op": "add", "text": "Look twice."})
    assert [d.text for d in learned.drafts] == ["Look twice."]
    assert len(learned.quarantined) == 1
    assert learned.adds_up


# ---- Y8 and Y9: ids ----


def test_y08_a_lesson_keeps_its_id_whatever_a_batch_does_to_the_others() -> None:
    learned = operations(
        {"op": "delete", "ids": ["E-0007"]},
        {"op": "add", "text": "Look twice."},
        {"op": "modify", "ids": ["E-0009"], "text": "Reply with a bare word."},
    )
    after = Library.of(LIBRARY, 1).apply([Change(d.operation) for d in learned.drafts], next_number=10)
    assert {e.id: e.text for e in after.library} == {
        "E-0008": "Explain everything thoroughly.",
        "E-0009": "Reply with a bare word.",
        "E-0010": "Look twice.",
    }


@pytest.mark.parametrize("name", ["E-0010", "2", "D1", "R1", "new", "G3"])
def test_y09_a_lesson_that_was_just_added_cannot_be_overwritten_by_the_same_plan(name: str) -> None:
    learned = operations(
        {"op": "add", "id": "E-0010", "text": "Look twice."},
        {"op": "modify", "id": name, "text": "Never look."},
    )
    assert [d.operation for d in learned.drafts] == [Add(text="Look twice.", domain="tables")]
    assert len(learned.quarantined) == 1


# ---- Y12, Y14, Y15: what is taught from ----


def test_y12_a_task_without_an_answer_teaches_like_any_other() -> None:
    model = Stand()
    groups = [agent_group("g1", [1.0, 0.0])]
    learned = _learned(Teacher(LIBRARY, model, run_id="R1"), groups, TASK.model_copy(update={"answer": None}))
    assert learned.drafts
    assert all("(none is given)" in user for _, user in model.asked if "The right answer" in user)


def test_y14_without_an_informative_group_nobody_is_asked_and_nothing_is_invented() -> None:
    model = Stand()
    near = [Draft(operation=Add(text=f"Answer with one {w} only.")) for w in ("word", "single word")]
    one = Teacher(LIBRARY, model, run_id="R1")
    learned = asyncio.run(one.consolidate([], beside=near, strengths={}))
    assert (learned.drafts, model.asked) == (tuple(near), [])
    dull = agent_group("g1", [1.0, 1.0]).model_copy(update={"status": "uninformative", "reason": "all right"})
    with pytest.raises(ValueError, match="only an informative one teaches"):
        asyncio.run(one.teach(TASK, dull))
    assert model.asked == []


@pytest.mark.parametrize("none", [[], None, "none", {}, "null"])
def test_y15_a_group_that_drew_no_lesson_changes_nothing_and_sends_nothing_on(none: object) -> None:
    model = Saying(
        GOOD | {"operations": none},
        consolidation={"actions": [{"action": "drop", "drafts": ["D1"], "keep": "E-0007"}]},
    )
    learned = taught(model)
    assert not learned.drafts
    assert "consolidate" not in learned.calls
    assert learned.learned == ("g1",)
    assert learned.adds_up


@pytest.mark.parametrize("action", ["delete", "add", "modify", "merge", "drop"])
def test_y15_the_consolidation_cannot_touch_what_nobody_proposed_to_change(action: str) -> None:
    invented = {
        "action": action,
        "drafts": ["E-0007"],
        "ids": ["E-0007"],
        "keep": "E-0008",
        "text": "Invented.",
    }
    texts = ["Answer with one word and no more.", "Answer with one single word and no more."]
    adds = [{"op": "add", "text": text} for text in texts]
    learned = taught(Saying(GOOD | {"operations": adds}, consolidation={"actions": [invented]}))
    assert [d.text for d in learned.drafts] == texts
    assert "Invented." in learned.quarantined[0].raw


# ---- Y16: length and duplicates ----


def test_y16_a_text_of_200_words_is_shortened_or_marked_and_never_counted_as_fit() -> None:
    long = "word " * 200
    learned = operations({"op": "add", "text": long})
    (draft,) = learned.drafts
    assert count_words(draft.text or "") <= MAX_WORDS
    assert long.strip() in draft.rationale
    stubborn = Saying(GOOD | {"operations": [{"op": "add", "text": long}]})
    stubborn.compression = json.dumps({"text": long})
    learned = taught(stubborn)
    assert any("must be edited" in note for note in learned.notes)
    assert learned.calls["compress"] == 1


def test_y16_an_exact_duplicate_is_never_proposed_twice() -> None:
    groups = [agent_group(f"g{n}", [1.0, 0.0]) for n in range(3)]
    learned = taught(Saying(GOOD), *groups)
    (draft,) = learned.drafts
    assert draft.group_ids == ("g0", "g1", "g2")
    assert len(learned.joined) == 2
    again = operations({"op": "add", "text": "- explain everything THOROUGHLY"})
    assert (again.drafts, again.joined[0].into) == ((), "E-0008")


# ---- Y17: long attempts, several agents ----


def test_y17_every_agents_messages_are_shown_and_the_longest_attempt_is_not_dropped() -> None:
    group = agent_group("g1", [1.0, 0.0])
    said = tuple(
        Message(role="assistant", content=f"I am agent {n}. " + "so " * 20_000 + f"end {n}") for n in range(3)
    )
    longest = group.rollouts[1].trajectory.model_copy(update={"messages": said})
    long = group.model_copy(
        update={"rollouts": (group.rollouts[0], group.rollouts[1].model_copy(update={"trajectory": longest}))}
    )
    model = Stand(context_length=4_000)
    learned = _learned(Teacher(LIBRARY, model, run_id="R1"), [long])
    assert learned.learned == ("g1",)
    (shown,) = [user for _, user in model.asked if "I am agent" in user]
    assert all(f"I am agent {n}." in shown and f"end {n}" in shown for n in range(3))
    assert "characters left out" in shown


class Narrow(Stand):
    """An endpoint whose tokenizer makes more tokens of a text than ours; it says so as `core.llm` does."""

    takes = 1_500

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, replicates: Sequence[int] = (0,)
    ) -> list[Completion | str]:
        if sum(estimate_tokens(m.content) for m in messages) > self.takes:
            self.asked.append(("too long", messages[1].content))
            return ["The prompt does not fit the context of model m (400): shorten it, or inject less."]
        return await super().complete(messages, sampling, replicates)


def test_y17_where_an_endpoint_counts_otherwise_a_group_gets_a_second_try_at_half_the_size() -> None:
    group = agent_group("g1", [1.0, 0.0])
    rollouts = tuple(
        r.model_copy(
            update={
                "trajectory": r.trajectory.model_copy(update={"answer": f"{r.id} " + "very long " * 3_000})
            }
        )
        for r in group.rollouts
    )
    model = Narrow(context_length=4_000)
    learned = _learned(
        Teacher(LIBRARY, model, run_id="R1"), [group.model_copy(update={"rollouts": rollouts})]
    )
    assert learned.learned == ("g1",)
    assert sum(system == "too long" for system, _ in model.asked) == learned.calls["retry"] >= 2
    assert learned.calls["summarise"] == 2


def test_y17_a_prompt_that_cannot_be_made_shorter_is_not_sent_again() -> None:
    model = Narrow(context_length=16_000)
    model.takes = 10
    learned = _learned(Teacher(LIBRARY, model, run_id="R1"), [agent_group("g1", [1.0, 0.0])])
    assert len(model.asked) == 2
    assert "does not fit the context" in learned.failed["g1"]
    assert [a.verdict for a in learned.advantages.values()] == ["better", "worse"]


# ---- Y29: why an entry exists ----


def test_y29_every_reply_and_every_reason_can_be_stored() -> None:
    learned = learn()
    for t in learned.taught:
        assert json.loads(t.raw_reply)["operations"], "the contrast as it came"
        assert all(s.text and s.text == json.loads(s.raw_reply)["summary"] for s in t.summaries)
        assert len(t.advantages) == sum(len(g.rollouts) for g in GROUPS if g.id == t.group_id)
        assert all(a.sentence.startswith(f"{a.verdict}: ") for a in t.advantages)
    assert json.loads(learned.raw_reply)["actions"], "the consolidation as it came"
    for draft in learned.drafts:
        if draft.extractor == "llm":
            assert draft.raw_reply
            assert draft.group_ids
            assert draft.evidence.rollout_ids


def test_y29_a_rollout_that_broke_off_or_was_not_scored_has_its_semantic_advantage_too() -> None:
    group = agent_group("g1", [1.0, 0.0, None])
    unscored = group.rollouts[2].model_copy(
        update={"id": "g1-r3", "error": None, "scores": {"judge": Score(reason="the judge gave no verdict")}}
    )
    learned = _learned(
        Teacher(LIBRARY, Stand(), run_id="R1"),
        [group.model_copy(update={"rollouts": (*group.rollouts, unscored)})],
    )
    assert {i: (a.verdict, a.by) for i, a in learned.advantages.items()} == {
        "g1-r0": ("better", "model"),
        "g1-r1": ("worse", "model"),
        "g1-r2": ("unscored", "measurement"),
        "g1-r3": ("unscored", "measurement"),
    }
    assert "The endpoint timed out." in learned.advantages["g1-r2"].why
    assert "the judge gave no verdict" in learned.advantages["g1-r3"].why


# ---- P2, H3, H4 ----


@pytest.mark.parametrize("text", [{}, {"text": None}, {"text": " "}, {"text": 7}])
def test_p2_a_merge_without_text_destroys_nothing(text: dict[str, object]) -> None:
    learned = operations({"op": "merge", "ids": ["E-0007", "E-0009"]} | text)
    assert not learned.drafts
    assert "text" in learned.quarantined[0].reason


@pytest.mark.parametrize("ids", [[], ["E-0007"], ["E-0007", "[G0]"]])
def test_p2_a_merge_of_fewer_than_two_lessons_is_refused(ids: list[str]) -> None:
    learned = operations({"op": "merge", "ids": ids, "text": "Both."})
    assert not learned.drafts
    assert "at least two" in learned.quarantined[0].reason


def test_h3_deletes_and_merges_of_a_group_reach_the_batch() -> None:
    learned = operations(
        {"op": "delete", "ids": ["E-0008"]},
        {"op": "merge", "ids": ["E-0007", "E-0009"], "text": "One bare word."},
    )
    assert [d.operation.op for d in learned.drafts] == ["delete", "merge"]


def test_h3_a_batch_of_nothing_but_adds_is_consolidated() -> None:
    texts = ["Answer with one word and no more.", "Answer with one single word and no more."]
    model = Saying(
        *(GOOD | {"operations": [{"op": "add", "text": text}]} for text in texts),
        consolidation={
            "actions": [{"action": "merge", "drafts": ["D1", "D2"], "text": "One word and no more."}]
        },
    )
    learned = taught(model, agent_group("g1", [1.0, 0.0]), agent_group("g2", [1.0, 0.0]), library=[])
    assert [d.text for d in learned.drafts] == ["One word and no more."]
    assert learned.drafts[0].group_ids == ("g1", "g2")


def test_h4_an_empty_library_can_be_added_to() -> None:
    model = Saying(GOOD)
    learned = taught(model, library=[])
    assert [d.operation for d in learned.drafts] == [Add(text="Look twice.", domain="tables")]
    (contrast,) = [m for m in model.asked if '"semantic_advantages"' in m[0].content]
    assert "- add: a new lesson" in contrast[0].content
    assert "(empty: only add is possible)" in contrast[1].content


def _learned(one: Teacher, groups: Sequence[Group], task: Task = TASK) -> Learned:
    async def main() -> Learned:
        found = [await one.teach(task, g) for g in groups]
        return await one.consolidate(found, strengths={g.id: 0.5 for g in groups})

    return asyncio.run(main())
