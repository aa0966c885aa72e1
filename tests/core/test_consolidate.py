"""The drafts of a batch are reconciled, and every one of them can be accounted for."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BudgetError, ModelUnavailableError, TrustError, WinnowError
from core.experience import Add, Delete, Evidence, Experience, Finding, Merge, Modify
from core.extraction.consolidate import Consolidated, consolidate, reconcile
from core.extraction.draft import Draft
from core.extraction.near_duplicates import pairwise
from core.ports import Completion, Sampling
from core.rollout import Message

LIVE = [
    Experience(id="E-0001", text="Read the file first.", domain="files"),
    Experience(id="E-0002", text="Answer with the number only.", domain="sums"),
    Experience(id="E-0003", text="Name the capital without a sentence.", domain="capitals"),
    Experience(id="E-0004", text="An old rule.", status="deleted"),
]
LONG = "When the question asks for a capital " + "and then for something else " * 8 + "answer with one name."


def draft(operation: Add | Modify | Delete | Merge, group: str = "g1", **more: object) -> Draft:
    return Draft.read({"operation": operation, "group_ids": (group,), "raw_reply": f"raw of {group}", **more})


def add(text: str, group: str = "g1", domain: str = "general", **more: object) -> Draft:
    return draft(Add(text=text, domain=domain), group, **more)


def texts(result: Consolidated) -> list[str | None]:
    return [d.text for d in result.drafts]


class Failed(str):
    """Stands in the place of a reply that failed."""


class Scripted:
    """Gives each stage its reply, or fails; keeps count."""

    name = "scripted"
    context_length = 8192

    def __init__(self, **stages: str | Exception) -> None:
        self.stages = stages
        self.prompts: list[tuple[str, str]] = []

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, replicates: Sequence[int] = (0,)
    ) -> list[Completion | str]:
        stage = "compress" if "You shorten a lesson" in messages[0].content else "consolidate"
        self.prompts.append((stage, messages[1].content))
        answer = self.stages[stage]
        if isinstance(answer, Exception):
            raise answer
        return [str(answer) if isinstance(answer, Failed) else Completion(text=answer)]

    def calls(self, stage: str) -> int:
        return sum(s == stage for s, _ in self.prompts)


def with_model(drafts: Sequence[Draft], model: Scripted) -> Consolidated:
    return asyncio.run(consolidate(drafts, LIVE, model, run_id="r1"))


# ---- without a model ----


def test_texts_that_are_identical_after_normalisation_are_joined_and_their_evidence_united() -> None:
    one = add(
        "Look twice.",
        "g1",
        confidence=0.5,
        evidence=Evidence(group_ids=("g1",), rollout_ids=("a",), sentence="s1"),
    )
    two = add(
        "  look   TWICE",
        "g2",
        confidence=0.7,
        evidence=Evidence(group_ids=("g2",), rollout_ids=("b",), sentence="s2"),
    )
    result = reconcile([one, two], LIVE)
    assert texts(result) == ["Look twice."]
    kept = result.drafts[0]
    assert (kept.evidence.group_ids, kept.evidence.rollout_ids) == (("g1", "g2"), ("a", "b"))
    assert (kept.evidence.sentence, kept.confidence, kept.group_ids) == ("s1; s2", 0.7, ("g1", "g2"))
    assert (result.joined[0].into, result.joined[0].raw_reply) == ("Look twice.", "raw of g2")
    assert result.adds_up


def test_findings_of_joined_drafts_are_kept_once_each() -> None:
    finding = Finding(
        feature="f", label="l", winners_with=1, winners=2, losers_with=0, losers=2, odds_ratio=3, p=0.1, p_corrected=0.2
    )  # fmt: skip
    other = finding.model_copy(update={"feature": "g"})
    one, two = (add("Look.", evidence=Evidence(findings=f)) for f in ((finding,), (finding, other)))
    assert reconcile([one, two], LIVE).drafts[0].evidence.findings == (finding, other)


def test_texts_with_another_polarity_number_or_literal_are_not_joined() -> None:
    different = [
        "Answer `Yes`.",
        "Answer `yes`.",
        "Use 3 steps.",
        "Use 4 steps.",
        "Always retry.",
        "Never retry.",
    ]
    assert texts(reconcile([add(t) for t in different], LIVE)) == different


def test_what_the_library_says_already_is_not_proposed_again() -> None:
    result = reconcile([add("read the file first", domain="files")], LIVE)
    assert not result.drafts
    assert (result.joined[0].into, result.adds_up) == ("E-0001", True)


def test_a_lesson_that_only_another_domain_has_is_still_proposed_for_its_own() -> None:
    elsewhere, here = (add("Read the file first", domain=d) for d in ("sums", "files"))
    result = reconcile([elsewhere, here], LIVE)
    assert result.drafts == (elsewhere,)
    assert (result.joined[0].into, result.adds_up) == ("E-0001", True)
    both = [*LIVE, LIVE[0].model_copy(update={"id": "E-0005", "domain": "sums"})]
    assert [j.into for j in reconcile([elsewhere, here], both).joined] == ["E-0005", "E-0001"]


def test_a_change_that_changes_nothing_is_joined_to_its_target() -> None:
    result = reconcile([draft(Modify(experience_id="E-0001", text="Read the file first"))], LIVE)
    assert (result.drafts, result.joined[0].into) == ((), "E-0001")


def test_an_add_that_a_modify_of_the_batch_will_say_is_joined_to_it() -> None:
    modify = draft(Modify(experience_id="E-0001", text="Read it twice."), "g1")
    result = reconcile([add("Read it twice", "g2", "files"), modify], LIVE)
    assert [d.operation for d in result.drafts] == [modify.operation]
    assert result.drafts[0].group_ids == ("g1", "g2")


def test_an_add_is_not_lost_to_a_modify_that_says_it_in_another_domain_only() -> None:
    modify = draft(Modify(experience_id="E-0001", text="Read it twice."), "g1")
    elsewhere = add("Read it twice", "g2", "sums")
    assert reconcile([elsewhere, modify], LIVE).drafts == (elsewhere, modify)


@pytest.mark.parametrize("ghost", ["E-0004", "E-0099"])
def test_an_operation_on_what_is_not_live_is_quarantined(ghost: str) -> None:
    merge = draft(Merge(experience_ids=("E-0001", ghost), text="Both."))
    result = reconcile([draft(Delete(experience_id=ghost)), merge, add("Look.")], LIVE, run_id="r1")
    assert texts(result) == ["Look."]
    assert all(ghost in q.reason and q.raw == "raw of g1" and q.run_id == "r1" for q in result.quarantined)
    assert (len(result.quarantined), result.adds_up) == (2, True)


@pytest.mark.parametrize("order", [1, -1])
def test_of_a_conflict_the_group_with_the_wider_spread_wins_and_the_loser_is_kept(order: int) -> None:
    weak = draft(Delete(experience_id="E-0001"), "weak")
    strong = draft(Modify(experience_id="E-0001", text="Read it twice."), "strong")
    result = reconcile([weak, strong][::order], LIVE, {"weak": 0.2, "strong": 0.5})
    assert result.drafts == (strong,)
    assert result.superseded[0].draft == weak
    assert "0.5 against 0.2" in result.superseded[0].reason
    assert result.adds_up


def test_a_merge_conflicts_with_each_change_of_its_sources() -> None:
    merge = draft(Merge(experience_ids=("E-0001", "E-0002"), text="Both."), "g1")
    modify = draft(Modify(experience_id="E-0002", text="Give a number."), "g2")
    delete = draft(Delete(experience_id="E-0003"), "g3")
    result = reconcile([modify, merge, delete], LIVE, {"g1": 0.5, "g2": 0.4, "g3": 0.1})
    assert result.drafts == (merge, delete)
    assert [s.draft for s in result.superseded] == [modify]


def test_equal_operations_are_one_and_not_a_conflict() -> None:
    result = reconcile([draft(Delete(experience_id="E-0001"), g) for g in ("g1", "g2", "g3")], LIVE)
    assert len(result.drafts) == 1
    assert result.drafts[0].group_ids == ("g1", "g2", "g3")
    assert not result.superseded


def test_an_equal_strength_leaves_the_earlier_draft() -> None:
    one, two = (draft(Modify(experience_id="E-0001", text=t), g) for t, g in (("One.", "g1"), ("Two.", "g2")))
    assert reconcile([one, two], LIVE, {"g1": 0.3, "g2": 0.3}).drafts == (one,)


# ---- length ----


def test_a_text_that_is_too_long_is_shortened_once_and_the_old_one_stays_visible() -> None:
    model = Scripted(compress='{"text": "For a capital, answer with one name."}')
    result = with_model([add(LONG)], model)
    assert texts(result) == ["For a capital, answer with one name."]
    assert LONG in result.drafts[0].rationale
    assert "raw of g1" in result.drafts[0].raw_reply
    assert result.calls == {"compress": 1}
    assert LONG in model.prompts[0][1]


@pytest.mark.parametrize(
    "reply", [json.dumps({"text": LONG}), '{"text": ""}', '{"text": 3}', "no", Failed("It timed out.")]
)
def test_a_text_that_stays_too_long_is_kept_whole_and_said_so(reply: str) -> None:
    model = Scripted(compress=reply)
    result = with_model([add(LONG)], model)
    assert texts(result) == [LONG]
    assert "could not be shortened" in result.drafts[0].rationale
    assert any(LONG in note for note in result.notes)
    assert len(model.prompts) == 1, "compression is tried once"


def test_without_a_model_a_long_text_is_kept_and_noted() -> None:
    result = asyncio.run(consolidate([add(LONG)], LIVE))
    assert (texts(result), result.calls) == ([LONG], {})
    assert "must be edited" in result.notes[0]


def test_two_texts_that_become_equal_by_shortening_are_joined() -> None:
    result = with_model(
        [add(LONG), add(LONG + " Always so.", "g2")], Scripted(compress='{"text": "One name."}')
    )
    assert (texts(result), len(result.joined), result.adds_up) == (["One name."], 1, True)


@pytest.mark.parametrize(
    "long", [add(LONG, domain="files"), draft(Modify(experience_id="E-0001", text=LONG))]
)
def test_a_text_that_becomes_a_known_lesson_by_shortening_can_still_be_read(long: Draft) -> None:
    result = with_model([long], Scripted(compress='{"text": "Read the file first."}'))
    assert (result.drafts, result.joined[0].into) == ((), "E-0001")
    assert LONG in result.joined[0].reason


# ---- near-duplicates ----

NEAR = [
    add("Answer with one word only.", "g1", "capitals"),
    add("Answer with one single word only.", "g2", "capitals"),
    add("Check the sum by adding again.", "g3", "capitals"),
]


def consolidated(*actions: object, drafts: Sequence[Draft] = NEAR) -> Consolidated:
    return with_model(drafts, Scripted(consolidate=json.dumps({"actions": list(actions)})))


@pytest.mark.parametrize(
    "drafts",
    [
        [],
        NEAR[:1],
        [NEAR[0], NEAR[2]],
        [NEAR[0], add("Answer with one single word only.", "g2", "sums")],
        [draft(Delete(experience_id="E-0001")), draft(Delete(experience_id="E-0002"))],
    ],
)
def test_nothing_to_reconcile_costs_no_call(drafts: list[Draft]) -> None:
    model = Scripted()
    assert with_model(drafts, model).drafts == tuple(drafts)
    assert model.prompts == []


def test_a_batch_has_one_consolidation_call_that_shows_the_near_duplicates_only() -> None:
    more = [add("Give the sum as a number.", "g4", "sums"), add("Give the sum as one number.", "g5", "sums")]
    model = Scripted(consolidate='{"actions": []}')
    result = with_model([*NEAR, *more], model)
    assert (result.drafts, result.calls) == ((*NEAR, *more), {"consolidate": 1})
    shown = re.findall(r"^\[D\d\] .*\) (.*)$", model.prompts[0][1], re.MULTILINE)
    assert shown == [d.text for d in (*NEAR[:2], *more)]


def test_merged_drafts_become_one_with_united_evidence_and_their_old_texts_in_sight() -> None:
    result = consolidated(
        {"action": "MERGE", "drafts": "[D1], [D2]", "text": "One word, nothing else.", "reason": "same"}
    )
    assert texts(result) == ["One word, nothing else.", NEAR[2].text]
    merged = result.drafts[0]
    assert merged.group_ids == ("g1", "g2")
    assert f"Merged from: {NEAR[0].text} | {NEAR[1].text}" in merged.rationale
    assert (merged.extractor, result.joined[0].into) == ("llm", "One word, nothing else.")
    assert result.counts == {
        "operations in": 3,
        "proposed": 2,
        "joined": 1,
        "superseded": 0,
        "quarantined": 0,
    }


def test_a_dropped_draft_is_superseded_and_not_gone() -> None:
    result = consolidated({"action": "drop", "drafts": ["D2"], "keep": "D1", "reason": "says less"})
    assert texts(result) == [NEAR[0].text, NEAR[2].text]
    assert result.superseded[0].draft == NEAR[1]
    assert "says less" in result.superseded[0].reason


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("merge all", "must be an object"),
        ({"action": "rewrite", "drafts": ["D1"]}, "unknown action"),
        ({"action": "drop", "drafts": ["D9"], "keep": "D1"}, "no draft 'D9'"),
        ({"action": "drop", "drafts": ["D1", "D2"]}, "must name the one draft or lesson that stays"),
        ({"action": "drop", "drafts": ["D1"], "keep": "D1"}, "other than the one that stays"),
        ({"action": "merge", "drafts": ["D1"], "text": "a"}, "at least two"),
        ({"action": "merge", "drafts": ["D1", "D7"], "text": "a"}, "no draft 'D7'"),
        ({"action": "merge", "drafts": ["D1", "D2"], "text": None}, "has no text"),
        ({"action": "merge", "drafts": ["D1", "D2"], "text": " "}, "empty"),
        ({"action": "merge", "drafts": ["D1", "D2"], "text": LONG}, "at most 32"),
    ],
)
def test_an_action_that_does_not_fit_is_quarantined_and_touches_no_draft(action: object, reason: str) -> None:
    result = consolidated(action)
    assert result.drafts == tuple(NEAR)
    assert reason in result.quarantined[0].reason
    assert "actions" in result.quarantined[0].raw
    assert result.adds_up


def test_a_draft_is_touched_by_one_action_only() -> None:
    drop = {"action": "drop", "drafts": ["D1"], "keep": "D2", "reason": ""}
    result = consolidated(drop, drop | {"drafts": ["D2"], "keep": "D1"})
    assert texts(result) == [NEAR[1].text, NEAR[2].text]
    assert "earlier action" in result.quarantined[0].reason


def test_a_merged_draft_is_not_merged_again() -> None:
    merge = {"action": "merge", "drafts": ["D1", "D2"], "text": "One word."}
    result = consolidated(merge, merge | {"text": "Just a word."})
    assert texts(result) == ["One word.", NEAR[2].text]
    assert "earlier action" in result.quarantined[0].reason
    assert result.adds_up


def test_changes_of_different_experiences_are_never_merged_into_one() -> None:
    live_domain = [Experience(id=f"E-000{i}", text=f"Old {i}.", domain="d") for i in (1, 2)]
    drafts = [
        draft(Modify(experience_id="E-0001", text="Answer with one word only.")),
        draft(Modify(experience_id="E-0002", text="Answer with one single word only.")),
    ]
    model = Scripted(
        consolidate='{"actions": [{"action": "merge", "drafts": ["D1", "D2"], "text": "One word."}]}'
    )
    result = asyncio.run(consolidate(drafts, live_domain, model))
    assert result.drafts == tuple(drafts)
    assert "different experiences" in result.quarantined[0].reason


# ---- near to the library, opposites, what fits ----

SPARE = [*LIVE, Experience(id="E-0005", text="Answer with one word and nothing else.", domain="capitals")]


def near_library(*actions: object, drafts: Sequence[Draft] = NEAR[:1]) -> Consolidated:
    model = Scripted(consolidate=json.dumps({"actions": list(actions)}))
    return asyncio.run(consolidate(drafts, SPARE, model, run_id="r1"))


def test_a_draft_that_is_near_to_a_live_lesson_can_become_a_change_of_it() -> None:
    change = {"action": "modify", "drafts": ["D1"], "keep": "[e-0005]", "text": "Answer with one bare word."}
    result = near_library(change | {"reason": "sharper"})
    assert [d.operation for d in result.drafts] == [
        Modify(experience_id="E-0005", text="Answer with one bare word.")
    ]
    assert NEAR[0].text in result.drafts[0].rationale
    assert result.drafts[0].group_ids == ("g1",)
    assert result.adds_up


def test_a_draft_can_give_way_to_a_live_lesson_and_stays_restorable() -> None:
    result = near_library({"action": "drop", "drafts": ["D1"], "keep": "E-0005", "reason": "says the same"})
    assert result.drafts == ()
    assert result.superseded[0].draft == NEAR[0]
    assert "the model kept lesson E-0005 instead" in result.superseded[0].reason


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ({"action": "modify", "drafts": ["D1"], "keep": "E-0003", "text": "x"}, "no draft 'E-0003'"),
        ({"action": "modify", "drafts": ["D1"], "keep": None, "text": "x"}, "the one live lesson"),
        ({"action": "modify", "drafts": ["D1"], "keep": "D1", "text": "x"}, "the one live lesson"),
        ({"action": "modify", "drafts": [], "keep": "E-0005", "text": "x"}, "drafts that add"),
        ({"action": "modify", "drafts": ["D1"], "keep": "E-0005", "text": LONG}, "at most 32"),
        ({"action": "modify", "drafts": ["D1"], "keep": "E-0005"}, "has no text"),
    ],
)
def test_a_change_that_does_not_fit_is_quarantined_and_the_draft_stays(action: object, reason: str) -> None:
    result = near_library(action)
    assert result.drafts == (NEAR[0],)
    assert reason in result.quarantined[0].reason
    assert result.adds_up


def test_a_live_lesson_is_changed_by_one_action_only() -> None:
    change = {"action": "modify", "drafts": ["D1"], "keep": "E-0005", "text": "One bare word."}
    result = near_library(change, change | {"drafts": ["D2"]}, drafts=NEAR[:2])
    assert [d.operation.op for d in result.drafts] == ["modify", "add"]
    assert "lesson E-0005 was named by an earlier action" in result.quarantined[0].reason


def test_a_lesson_that_the_batch_changes_anyway_is_not_offered() -> None:
    changed = draft(Modify(experience_id="E-0005", text="Think for a while before answering."), "g9")
    model = Scripted(consolidate='{"actions": []}')
    asyncio.run(consolidate([NEAR[0], changed], SPARE, model))
    assert model.prompts == []


OPPOSITES = [
    ("Answer in uppercase letters only.", "Answer in lowercase letters only."),
    ("Use 3 steps for the answer.", "Use four steps for the answer."),
    ("Always end the answer with a period.", "Never end the answer with a period."),
    ("Retry the call after an error.", "Do not retry the call after an error."),
]


@pytest.mark.parametrize(("one", "other"), OPPOSITES)
def test_opposites_are_never_united_however_alike_they_are_held(one: str, other: str) -> None:
    drafts = [add(one, "g1"), add(other, "g2")]
    for action in (
        {"action": "merge", "drafts": ["D1", "D2"], "text": "Both."},
        {"action": "drop", "drafts": ["D2"], "keep": "D1"},
    ):
        model = Scripted(consolidate=json.dumps({"actions": [action]}))
        result = asyncio.run(consolidate(drafts, LIVE, model, near=pairwise(lambda a, b: True)))
        assert result.drafts == tuple(drafts)
        assert "say opposite things" in result.quarantined[0].reason


@pytest.mark.parametrize(("one", "other"), OPPOSITES)
def test_the_opposite_of_a_live_lesson_is_no_near_duplicate_of_it(one: str, other: str) -> None:
    live = [Experience(id="E-0001", text=one)]
    model = Scripted()
    assert asyncio.run(consolidate([add(other)], live, model)).drafts == (add(other),)
    assert model.prompts == []


def test_what_is_alike_is_decided_by_who_is_asked_and_nothing_is_merged_by_likeness_alone() -> None:
    drafts = [add("Look at the header.", "g1"), add("Inspect the first row.", "g2"), add("Sum it up.", "g3")]
    model = Scripted(consolidate='{"actions": []}')
    told = {("Look at the header.", "Inspect the first row.")}
    result = asyncio.run(consolidate(drafts, [], model, near=pairwise(lambda a, b: (a, b) in told)))
    assert result.drafts == tuple(drafts)
    assert "Inspect the first row." in model.prompts[0][1]
    assert "Sum it up." not in model.prompts[0][1]


def test_near_duplicates_that_do_not_fit_are_counted_and_stay_as_they_are() -> None:
    drafts = [add(f"Answer number {'x' * n} with one word only.", f"g{n}") for n in range(1, 60)]
    model = Scripted(consolidate='{"actions": []}')
    model.context_length = 2_200
    result = asyncio.run(consolidate(drafts, [], model))
    shown = len(re.findall(r"^\[D\d+\]", model.prompts[0][1], re.MULTILINE))
    assert 2 <= shown < 59
    assert f"{59 - shown} near-duplicates did not fit the model's context." in result.notes
    assert result.drafts == tuple(drafts)
    model.context_length = 700
    assert asyncio.run(consolidate(drafts, [], model)).drafts == tuple(drafts)
    assert model.calls("consolidate") == 1, "where not two of them fit, nobody is asked"


@pytest.mark.parametrize("reply", ["", "{", "I would merge them all.", '{"plan": []}', Failed("Timed out.")])
def test_a_failing_consolidation_leaves_the_drafts_as_they_are_and_says_so(reply: str) -> None:
    result = with_model(NEAR, Scripted(consolidate=reply))
    assert result.drafts == tuple(NEAR)
    assert "left as they were" in result.notes[0]
    assert result.adds_up


@pytest.mark.parametrize("kind", [BudgetError, ModelUnavailableError, TrustError])
@pytest.mark.parametrize(
    ("stage", "drafts"), [("compress", [add(LONG), add(LONG + " Always so.")]), ("consolidate", NEAR)]
)
def test_drafts_wait_for_a_model_that_can_be_used_and_are_not_proposed_half_done(
    stage: str, drafts: list[Draft], kind: type[WinnowError]
) -> None:
    with pytest.raises(kind, match="Not now"):
        with_model(drafts, Scripted(**{stage: kind("Not now.")}))


# ---- nothing vanishes ----

WORDS = st.sampled_from(
    ["Look twice.", "look twice", "Look twice now.", LONG, "Read the file first.", "Other.", "x"]
)
IDS = st.sampled_from(["E-0001", "E-0002", "E-0003", "E-0004", "E-0099"])
OPERATIONS = st.one_of(
    st.builds(Add, text=WORDS, domain=st.sampled_from(["a", "files"])),
    st.builds(Modify, experience_id=IDS, text=WORDS),
    st.builds(Delete, experience_id=IDS),
    st.builds(
        Merge, text=WORDS, experience_ids=st.lists(IDS, min_size=2, max_size=3, unique=True).map(tuple)
    ),
)
DRAFTS = st.lists(st.builds(draft, OPERATIONS, st.sampled_from(["g1", "g2", "g3"])), max_size=7)
LABELS = st.sampled_from(["D1", "D2", "[D3]", "d4", "D99", "", None, 2, {"id": "D1"}, "D1, D2", "E-0001"])
ACTIONS = st.one_of(
    st.fixed_dictionaries(
        {
            "action": st.sampled_from(["merge", "DROP", "drop", "modify", "keep", None, 3]),
            "drafts": st.one_of(LABELS, st.lists(LABELS, max_size=4)),
            "keep": LABELS,
            "text": st.one_of(WORDS, st.none(), st.just(""), st.just("half \ud800"), st.integers()),
        }
    ),
    st.text(max_size=5),
    st.none(),
)
REPLIES = st.one_of(
    st.lists(ACTIONS, max_size=4).map(lambda actions: json.dumps({"actions": actions})),
    st.lists(ACTIONS, max_size=4).map(json.dumps),
    st.text(max_size=30),
    st.lists(ACTIONS, max_size=3).map(lambda actions: json.dumps({"actions": actions})[:-3]),
)


@settings(max_examples=150, deadline=None)
@given(DRAFTS, REPLIES, st.one_of(REPLIES, WORDS.map(lambda t: json.dumps({"text": t}))))
def test_operations_in_are_proposed_joined_superseded_or_quarantined(
    drafts: list[Draft], consolidation: str, compression: str
) -> None:
    model = Scripted(consolidate=consolidation, compress=compression)
    result = asyncio.run(consolidate(drafts, LIVE, model, strengths={"g1": 0.1, "g2": 0.5}))
    assert result.adds_up, result.counts
    assert result.operations_in >= len(drafts)
    # What leaves must be said somewhere: each text is proposed, joined, superseded, quarantined or in a rationale.
    told = result.canonical() + "".join(q.raw for q in result.quarantined)
    for d in drafts:
        assert d.text is None or json.dumps(d.text, ensure_ascii=False)[1:-1] in told
    changed = [t for d in result.drafts for t in ([] if isinstance(d.operation, Add) else [d.operation])]
    targets = [i for o in changed for i in (o.experience_ids if isinstance(o, Merge) else (o.experience_id,))]
    assert len(targets) == len(set(targets)), "no experience is changed twice"
    assert set(targets) <= {"E-0001", "E-0002", "E-0003"}
