"""The three stages with a model that answers from what it was shown: a wrong prompt changes what is learned."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Sequence

import pytest

from core.advantage import advantages, mean_deviation
from core.errors import BudgetError, InputError, ModelUnavailableError, TrustError, WinnowError
from core.executor import all_home
from core.experience import MAX_WORDS, Add, Delete, Experience, Modify
from core.extraction.attempt import condense
from core.extraction.contrast import Contrast, contrast, evidence_of
from core.extraction.draft import Draft
from core.extraction.relevant import relevant
from core.extraction.summarise import Summary, Unsummarised, shorten, summarise
from core.extraction.with_model import Learned, Teacher
from core.injection import estimate_tokens, render, system_prompt
from core.ports import Completion, Sampling
from core.rollout import Group, Message, Rollout, Score, Step, Task, Trajectory
from core.words import count_words

TASK = Task(
    id="t1",
    question="Which city is the capital of France? {{answer}} ${x} {}",
    answer="Paris",
    domain="capitals",
)
LIBRARY = [
    Experience(id="E-0007", text="Write a whole paragraph.", domain="capitals"),
    Experience(id="E-0008", text="Answer with the name only.", domain="capitals"),
]


def make_group(
    rewards: Sequence[float | None], answers: Sequence[str] | None = None, name: str = "g1", **more: object
) -> Group:
    """A group of text rollouts with these rewards; each rollout has an answer of its own unless told otherwise."""
    injected = render(LIBRARY)
    found = advantages(rewards)
    rollouts = tuple(
        Rollout(
            id=f"{name}-r{i}",
            group_id=name,
            task_id=TASK.id,
            replicate=i,
            trajectory=Trajectory(
                messages=(
                    Message(role="system", content=system_prompt(injected, "You are terse.")),
                    Message(role="user", content=TASK.question),
                ),
                answer=answers[i] if answers else f"answer {i}",
            ),
            scores={"graded": Score(value=0.5, reason="the form is not kept")},
            reward=reward,
            advantage=found[i],
            injected=injected.labels,
            model="rollout-model",
        )
        for i, reward in enumerate(rewards)
    )
    fields = {
        "id": name,
        "run_id": "r0",
        "task_id": TASK.id,
        "status": "informative",
        "rollouts": rollouts,
    } | more
    return Group.read(fields)


FENCE = re.compile(r'<data id="(\w+)">\n(.*?)\n</data id="\1">', re.DOTALL)


class Reader:
    """A model that knows nothing but its prompt: what it says is made of what it was shown.

    Stage 1: the last line of the attempt and the measured outcome. Stage 2: each attempt's summary as its "why";
    deletes the first lesson of the library and adds what the best attempts have said.
    """

    name = "reader"

    def __init__(self, context_length: int = 8192) -> None:
        self.context_length = context_length
        self.prompts: dict[str, list[str]] = {"summarise": [], "contrast": [], "consolidate": [], "retry": []}
        self.running = self.most_running = 0
        self.order: list[str] = []

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, replicates: Sequence[int] = (0,)
    ) -> list[Completion | str]:
        system, user = messages[0].content, messages[1].content
        stage = {"You sum": "summarise", "You com": "contrast", "Several": "consolidate"}[system[:7]]
        stage = "retry" if len(messages) > 2 else stage
        self.prompts[stage].append(user)
        self.order.append(stage)
        assert sampling.json_schema is not None
        json.loads(sampling.json_schema)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        try:
            return [Completion(text=getattr(self, stage)(system, user))]
        except ConnectionError as e:
            return [str(e)]

    def summarise(self, system: str, user: str) -> str:
        domain, question, *_, attempt = [
            text for _, text in FENCE.findall(user.split("Its outcome:", maxsplit=1)[0])
        ]
        did = re.search(r"it did (better|worse|as well)", user)
        assert did, "the outcome is missing"
        used = re.findall(r"\[(G\d+)\] Answer", user)
        return json.dumps(
            {
                "summary": f"{attempt.splitlines()[-1]} did {did[1]} on {question.split()[-4]}",
                "key_decision": f"said {attempt.splitlines()[-1]}",
                "root_cause": "too long" if did[1] == "worse" else "",
                "used_experiences": used,
                "domain": domain,
            }
        )

    def contrast(self, system: str, user: str) -> str:
        attempts = re.findall(
            r"^(R\d+): reward ([-\d.e]+); it did (\w+).*?\nIts summary:\n<data id=\"\w+\">\n(.*?)\n",
            user,
            re.M | re.S,
        )
        verdicts = {"better": "better", "worse": "worse", "as": "par"}
        said = [
            {"rollout": r, "verdict": verdicts[v], "why": w, "deciding_step": "step 1"}
            for r, _, v, w in attempts
        ]
        operations = [
            {"op": "DELETE", "ids": [i], "text": None} for i in re.findall(r"^\[(E-\d+)\]", user, re.M)[:1]
        ]
        best = max(attempts, key=lambda a: float(a[1]))
        operations += [
            {
                "op": "add",
                "ids": [],
                "text": f"Do as in: {best[3]}",
                "kind": "convention",
                "rationale": best[0],
            }
        ]
        return json.dumps({"semantic_advantages": said, "operations": operations})

    def consolidate(self, system: str, user: str) -> str:
        return json.dumps({"actions": []})

    def retry(self, system: str, user: str) -> str:
        return "no"


async def extract(
    groups: Sequence[tuple[Task, Group]],
    library: Sequence[Experience],
    model: Reader,
    *,
    beside: Sequence[Draft] = (),
    **more: object,
) -> Learned:
    """Teach from all informative groups at once, then consolidate."""
    one = Teacher(library, model, **more)  # type: ignore[arg-type]
    taught = await all_home(one.teach(task, group) for task, group in groups if group.status == "informative")
    strengths = {g.id: mean_deviation([r.reward for r in g.rollouts]) for _, g in groups}
    return await one.consolidate(taught, beside=beside, strengths=strengths)


def learn(*groups: Group, model: Reader | None = None, **more: object) -> Learned:
    pairs = [(TASK, g) for g in groups]
    return asyncio.run(extract(pairs, LIBRARY, model or Reader(), run_id="r0", **more))  # type: ignore[arg-type]


def summed(group: Group, model: Reader, *, withhold_answer: bool = False) -> list[Summary | Unsummarised]:
    return asyncio.run(summarise(TASK, group, LIBRARY, model, withhold_answer=withhold_answer))


def contrasted(model: Reader, group: Group | None = None, *, withhold_answer: bool = False) -> Contrast:
    group = group or make_group([1.0, 0.0])
    summaries = summed(group, model, withhold_answer=withhold_answer)
    return asyncio.run(contrast(TASK, group, summaries, LIBRARY, model, withhold_answer=withhold_answer))


# ---- the whole ----


def test_a_group_teaches_what_its_better_rollouts_did() -> None:
    result = learn(make_group([1.0, 0.0, 0.0], ["Paris", "It is Paris.", "Lyon"]))
    delete, new = result.drafts
    assert delete.operation == Delete(experience_id="E-0007")
    assert new.operation == Add(
        text="Do as in: Paris did better on France?", kind="convention", domain="capitals"
    )
    assert (new.extractor, new.learned_on, new.group_ids) == ("llm", "rollout-model", ("g1",))
    assert new.evidence.rollout_ids == ("g1-r0", "g1-r1", "g1-r2")
    assert json.loads(new.raw_reply)["operations"][1]["text"] == new.text
    assert result.learned == ("g1",)
    assert result.calls == {"summarise": 3, "contrast": 1}
    assert result.adds_up


def test_a_lesson_of_a_group_of_several_models_names_them_all() -> None:
    group = make_group([1.0, 0.0])
    mixed = [r.model_copy(update={"model": name}) for r, name in zip(group.rollouts, "ba", strict=True)]
    result = learn(group.model_copy(update={"rollouts": tuple(mixed)}))
    assert {draft.learned_on for draft in result.drafts} == {"a, b"}


def test_each_rollout_gets_its_semantic_advantage() -> None:
    result = learn(make_group([1.0, 0.0, 0.5], ["a", "b", "c"]))
    assert {i: (a.verdict, a.why, a.by) for i, a in result.advantages.items()} == {
        "g1-r0": ("better", "a did better on France?", "model"),
        "g1-r1": ("worse", "b did worse on France?", "model"),
        "g1-r2": ("par", "c did as well on France?", "model"),
    }


def test_zero_informative_groups_cost_zero_calls() -> None:
    model = Reader()
    near = [
        Draft(operation=Add(text=t))
        for t in ("Answer with one word only.", "Answer with one single word only.")
    ]
    same = make_group([1.0, 1.0], status="uninformative", reason="all right")
    result = learn(same, make_group([None, None], name="g2", status="failed"), model=model, beside=near)
    assert (model.order, result.calls) == ([], {})
    assert (result.learned, result.failed) == ((), {})
    assert result.drafts == tuple(near)


def test_every_informative_group_is_learned_from_or_failed() -> None:
    class Picky(Reader):
        def contrast(self, system: str, user: str) -> str:
            return "no" if "answer 9" in user else super().contrast(system, user)

    bad = make_group([1.0, 0.0], ["answer 8", "answer 9"], name="g2")
    result = learn(
        make_group([1.0, 0.0]), bad, make_group([0.0], name="g3", status="uninformative"), model=Picky()
    )
    assert result.learned == ("g1",)
    assert result.failed == {"g2": "the reply holds no JSON"}
    assert len(result.drafts) == 2, "the good group is not taken along"
    assert result.quarantined[0].group_ids == ("g2",)
    assert result.adds_up


class DownAt(Reader):
    """Cannot be used any more from one stage on; calls about a "slow" answer are still under way then."""

    def __init__(self, stage: str, error: Exception) -> None:
        super().__init__()
        self.stage, self.error = stage, error
        self.begun = self.ended = 0

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, replicates: Sequence[int] = (0,)
    ) -> list[Completion | str]:
        self.begun += 1
        try:
            if "slow" in messages[1].content:
                for _ in range(100):  # comes home long after the others have failed
                    await asyncio.sleep(0)
            return await super().complete(messages, sampling, replicates)
        finally:
            self.ended += 1

    def __getattribute__(self, name: str) -> object:
        if name == object.__getattribute__(self, "__dict__").get("stage"):
            raise self.error
        return super().__getattribute__(name)


@pytest.mark.parametrize("stage", ["summarise", "contrast", "consolidate", "retry"])
@pytest.mark.parametrize("kind", [BudgetError, ModelUnavailableError, InputError, TrustError])
def test_a_model_that_cannot_be_used_ends_the_extraction_and_no_group_is_written_off(
    stage: str, kind: type[WinnowError]
) -> None:
    model = DownAt(stage, kind("Not now."))
    if stage == "retry":
        model.summarise = lambda system, user: "no"  # type: ignore[method-assign]
    groups = [make_group([1.0, 0.0, 0.5], name=f"g{i}") for i in range(3)]
    if stage != "consolidate":  # which begins when all else has ended
        groups.append(make_group([1.0, 0.0], ["slow", "slow too"], name="g3"))
    near = [Draft(operation=Add(text=f"Answer with one {w} only.")) for w in ("word", "single word")]

    async def main() -> None:
        with pytest.raises(WinnowError) as found:
            async with asyncio.timeout(20):
                await extract([(TASK, g) for g in groups], LIBRARY, model, run_id="r0", beside=near)
        assert (type(found.value), str(found.value)) == (kind, "Not now.")
        assert model.begun == model.ended > 0, "what was under way has come home"
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_a_group_whose_every_reply_fails_is_named_with_the_reason_and_takes_no_other_along() -> None:
    class Flaky(Reader):
        def summarise(self, system: str, user: str) -> str:
            if "broken" in user:
                raise ConnectionError("The endpoint timed out.")
            return super().summarise(system, user)

    bad = make_group([1.0, 0.0], ["broken", "broken too"])
    result = learn(bad, make_group([1.0, 0.0], name="g2"), model=Flaky())
    assert "The endpoint timed out." in result.failed["g1"]
    assert [u.reason for t in result.taught for u in t.unsummarised] == ["The endpoint timed out."] * 2
    assert result.learned == ("g2",)


def test_a_group_does_not_wait_for_the_summaries_of_the_others() -> None:
    class SlowForOne(Reader):
        async def complete(
            self, messages: Sequence[Message], sampling: Sampling, replicates: Sequence[int] = (0,)
        ) -> list[Completion | str]:
            if "slow" in messages[1].content and "contrast" not in self.order:
                await first_contrast.wait()
            return await super().complete(messages, sampling, replicates)

        def contrast(self, system: str, user: str) -> str:
            first_contrast.set()
            return super().contrast(system, user)

    first_contrast = asyncio.Event()
    model = SlowForOne()
    slow = make_group([1.0, 0.0], ["slow", "slow too"], name="g1")
    result = asyncio.run(
        asyncio.wait_for(
            extract([(TASK, slow), (TASK, make_group([1.0, 0.0], name="g2"))], LIBRARY, model, run_id="r"), 20
        )
    )
    assert result.learned == ("g1", "g2"), "and the order of the results is that of the groups"
    assert model.most_running > 1


def test_the_same_replies_give_the_same_result_whatever_comes_first() -> None:
    class Shuffled(Reader):
        async def complete(
            self, messages: Sequence[Message], sampling: Sampling, replicates: Sequence[int] = (0,)
        ) -> list[Completion | str]:
            for _ in range(random.randrange(20)):
                await asyncio.sleep(0)
            return await super().complete(messages, sampling, replicates)

    groups = [make_group([1.0, 0.0, 0.5], name=f"g{i}") for i in range(4)]
    assert len({learn(*groups, model=Shuffled()).canonical() for _ in range(5)}) == 1


def test_drafts_of_the_evidence_extractor_are_consolidated_with_the_models() -> None:
    ours = Draft(operation=Delete(experience_id="E-0007"), rationale="9 of 9 losers", group_ids=("g0",))
    result = learn(make_group([1.0, 0.0]), beside=[ours])
    assert [d.extractor for d in result.drafts] == ["evidence", "llm"]
    assert result.drafts[0].group_ids == ("g0", "g1")
    assert result.counts == {
        "operations in": 3,
        "proposed": 2,
        "joined": 1,
        "superseded": 0,
        "quarantined": 0,
    }


def test_of_a_conflict_between_groups_the_wider_spread_wins() -> None:
    class Modifier(Reader):
        def contrast(self, system: str, user: str) -> str:
            best = max(re.findall(r"reward ([\d.]+)", user))
            return json.dumps({"operations": [{"op": "modify", "id": "E-0007", "text": f"Reach {best}."}]})

    result = learn(make_group([0.6, 0.5]), make_group([1.0, 0.0], name="g2"), model=Modifier())
    assert [d.operation for d in result.drafts] == [Modify(experience_id="E-0007", text="Reach 1.")]
    assert result.superseded[0].draft.group_ids == ("g1",)


def test_progress_is_told_to_the_end() -> None:
    told: list[tuple[str, int, int]] = []
    learn(make_group([1.0, 0.0]), progress=lambda *a: told.append(a))
    assert ("Summarising rollouts", 2, 2) in told
    assert ("Contrasting groups", 1, 1) in told
    assert told[-1] == ("Consolidating", 1, 1)


def test_in_whatever_order_groups_are_finished_the_batch_is_the_same() -> None:
    groups = [make_group([1.0, 0.0, 0.5], name=f"g{i}") for i in (1, 2, 10)]

    async def main(order: Sequence[int]) -> Learned:
        one = Teacher(LIBRARY, Reader(), run_id="r0")
        taught = [await one.teach(TASK, groups[i]) for i in order]
        return await one.consolidate(taught, strengths={})

    results = [asyncio.run(main(order)) for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0))]
    assert len({r.canonical() for r in results}) == 1
    assert results[0].learned == ("g1", "g2", "g10")


def test_what_a_group_taught_holds_no_trajectory() -> None:
    group = make_group([1.0, 0.0])
    huge = Trajectory(steps=(Step(tool="read", output="x" * 1_000_000, success=True),), answer="done")
    rollouts = tuple(r.model_copy(update={"trajectory": huge}) for r in group.rollouts)
    taught = learn(group.model_copy(update={"rollouts": rollouts})).taught[0]
    assert len(taught.canonical()) < 10_000


# ---- stage 1 ----


def test_the_summary_prompt_holds_all_that_the_stage_needs() -> None:
    model = Reader()
    summed(make_group([1.0, 0.0]), model)
    prompt = model.prompts["summarise"][0]
    for part in (
        TASK.question,
        "Paris",
        "[G0] Write a whole paragraph.",
        "answer 0",
        "reward 1; it did better than",
    ):
        assert part in prompt
    assert "the form is not kept" in prompt, "the verifier's reason"
    assert prompt.count("Write a whole paragraph.") == 1, "injected lessons are shown once"
    assert "You are terse." in prompt, "what else the system prompt held is shown"
    assert "32 words" in prompt


def test_a_withheld_answer_is_in_no_prompt() -> None:
    model = Reader()
    contrasted(model, withhold_answer=True)
    shown = [prompt for prompts in model.prompts.values() for prompt in prompts]
    assert len(shown) == 3
    for prompt in shown:
        assert "(withheld)" in prompt
        assert "Paris" not in prompt
        assert "the form is not kept" not in prompt, "the verifier's reason may tell it"


def test_used_and_ignored_experiences_are_told_apart_by_their_ids() -> None:
    first, _ = summed(make_group([1.0, 0.0]), Reader())
    assert isinstance(first, Summary)
    assert (first.used, first.ignored, first.domain) == (("E-0008",), ("E-0007",), "capitals")


def test_unscored_rollouts_take_no_part() -> None:
    model = Reader()
    assert [s.rollout_id for s in summed(make_group([1.0, None, 0.0]), model)] == ["g1-r0", "g1-r2"]
    assert len(model.prompts["summarise"]) == 2


def test_attempts_that_read_the_same_share_a_call_and_each_has_its_summary() -> None:
    model = Reader()
    found = summed(make_group([1.0, 0.0, 1.0], ["Paris", "Lyon", "Paris"]), model)
    assert len(model.prompts["summarise"]) == 2
    assert [s.rollout_id for s in found] == ["g1-r0", "g1-r1", "g1-r2"]


class Long(Reader):
    """Always says too much."""

    def summarise(self, system: str, user: str) -> str:
        return json.dumps(
            {"summary": "It read the file first and then " + "looked. " * 20 + "and more " * 40}
        )

    retry = summarise


def test_a_summary_that_is_too_long_is_asked_for_again_with_the_count() -> None:
    class OnceLong(Long):
        def retry(self, system: str, user: str) -> str:
            return json.dumps({"summary": "Short now."})

    first, _ = summed(make_group([1.0, 0.0]), OnceLong())
    assert isinstance(first, Summary)
    assert (first.text, first.shortened) == ("Short now.", False)


def test_a_summary_that_stays_too_long_ends_visibly_at_a_sentence_and_its_reply_is_kept() -> None:
    first, _ = summed(make_group([1.0, 0.0]), Long())
    assert isinstance(first, Summary)
    assert count_words(first.text) <= 32
    assert first.text.endswith("looked. [...]")
    assert first.shortened
    assert "and more and more" in first.raw_reply


def test_tool_trajectories_may_have_64_words() -> None:
    group = make_group([1.0, 0.0])
    step = Step(tool="read_json", parameters={"path": "a"}, output="ok", success=True)
    with_tools = group.model_copy(
        update={
            "rollouts": tuple(
                r.model_copy(update={"trajectory": r.trajectory.model_copy(update={"steps": (step,)})})
                for r in group.rollouts
            )
        }
    )
    model = Long()
    first, _ = summed(with_tools, model)
    assert isinstance(first, Summary)
    assert 32 < count_words(first.text) <= 64
    assert "[step 1] read_json: worked" in model.prompts["summarise"][0]


@pytest.mark.parametrize(
    "text", ["word " * 200, "w" * 5000 + " end of it" * 50, "词" * 100, "One. " + "two " * 90, "a, b; " * 60]
)
def test_no_shortened_text_is_over_the_limit(text: str) -> None:
    short = shorten(text, MAX_WORDS)
    assert count_words(short) <= MAX_WORDS
    assert short.endswith("[...]")
    assert len(short) > 10


def test_a_rollout_without_a_usable_summary_is_named_and_the_group_goes_on() -> None:
    class Forgetful(Reader):
        def summarise(self, system: str, user: str) -> str:
            if "answer 1" in user:
                raise ConnectionError("The endpoint timed out.")
            return super().summarise(system, user)

    result = learn(make_group([1.0, 0.0, 0.0]), model=Forgetful())
    assert [(u.rollout_id, u.reason) for t in result.taught for u in t.unsummarised] == [
        ("g1-r1", "The endpoint timed out.")
    ]
    assert {i: (a.verdict, a.by) for i, a in result.advantages.items()} == {
        "g1-r0": ("better", "model"),
        "g1-r1": ("worse", "measurement"),
        "g1-r2": ("worse", "model"),
    }
    assert "it has no summary: The endpoint timed out." in result.advantages["g1-r1"].why
    assert any("g1-r1" in note for note in result.notes)
    assert result.learned == ("g1",)


def acting(*steps: Step, end: str = "stop") -> str:
    """What a summary prompt shows of an attempt with these steps."""
    group = make_group([1.0, 0.0])
    trajectory = Trajectory(steps=steps, answer="done", finish_reason=end)
    rollouts = (group.rollouts[0].model_copy(update={"trajectory": trajectory}), group.rollouts[1])
    model = Reader()
    summed(group.model_copy(update={"rollouts": rollouts}), model)
    return model.prompts["summarise"][0]


FAILED = Step(
    tool="fetch",
    parameters={"url": "a"},
    success=False,
    error="TimeoutError: slow",
    duration_s=2.5,
    retries=2,
)


def test_a_step_is_shown_with_parameters_outcome_error_duration_and_retries() -> None:
    shown = acting(FAILED, Step(tool="read_json", parameters={"path": "b"}, output="[1, 2]", success=True))
    head = "[step 1] fetch: failed after 2.5 s, 2 of its own retries included: TimeoutError: slow"
    assert head in shown
    assert 'parameters: {"url": "a"}' in shown
    assert "[step 2] read_json: worked\n" in shown
    assert "output: [1, 2]" in shown


@pytest.mark.parametrize(
    ("following", "said"),
    [
        (
            [FAILED.model_copy(update={"success": True, "error": None})],
            "it tried the same call again, which worked",
        ),
        (
            [FAILED.model_copy(update={"parameters": {"url": "b"}})],
            "it tried the tool with other parameters again, which failed",
        ),
        ([Step(tool="search")], "it switched to search, which outcome not recorded"),
        ([], "it gave up, no further call"),
    ],
)
def test_what_followed_a_failure_is_shown(following: list[Step], said: str) -> None:
    assert f"then: {said}\n" in acting(FAILED, *following)


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("step limit", "(stopped at the step limit, before it had ended by itself)"),
        ("time limit", "(stopped at the time limit, before it had ended by itself)"),
        ("gate", "(the gate did not let this answer through)"),
        ("length", "(cut off at the token limit)"),
        ("content_filter", "(ended: content_filter)"),
    ],
)
def test_an_end_that_was_not_the_attempts_own_is_shown(end: str, said: str) -> None:
    assert said in acting(end=end)
    assert said not in acting(end="stop")


def test_the_contrast_shows_the_calls_of_each_attempt_with_their_errors() -> None:
    group = make_group([1.0, 0.0])
    trajectory = Trajectory(
        steps=(FAILED, Step(tool="ask", success=True)), answer="done", finish_reason="step limit"
    )
    rollouts = (group.rollouts[0], group.rollouts[1].model_copy(update={"trajectory": trajectory}))
    model = Reader()
    contrasted(model, group.model_copy(update={"rollouts": rollouts}))
    said = "Calls: fetch failed (TimeoutError: slow) -> ask worked -> stopped at the step limit"
    assert said in model.prompts["contrast"][0]


# ---- condensing ----


def agent(steps: int, size: int, failed: int = -1) -> Rollout:
    made = tuple(
        Step(
            tool=f"tool_{i % 3}",
            parameters={"n": i},
            output=f"<head {i}> " + "lorem ipsum " * (size // 12) + f" <tail {i}>",
            success=i != failed,
            error="KeyError: 'name'" if i == failed else None,
        )
        for i in range(steps)
    )
    return Rollout(
        id="r", group_id="g", task_id="t", replicate=0, trajectory=Trajectory(steps=made, answer="the end")
    )


def test_a_trajectory_that_fits_is_shown_whole() -> None:
    rollout = agent(3, 100)
    text = condense(TASK, rollout, [], 5_000)
    assert "left out" not in text
    assert all(step.output in text for step in rollout.trajectory.steps)


def test_a_long_trajectory_keeps_head_and_tail_of_every_step_and_its_end() -> None:
    text = condense(TASK, agent(12, 50_000, failed=5), [], 3_000)
    assert estimate_tokens(text) <= 3_000
    for i in range(12):
        assert f"[step {i + 1}] tool_{i % 3}" in text
        assert f"<head {i}>" in text
        assert f"<tail {i}>" in text
    assert text.count("characters left out") == 12
    assert text.endswith("the end")
    assert estimate_tokens(text) > 2_000, "the room that there is is used"


def test_of_very_many_steps_the_middle_is_counted_and_failures_stay_longer() -> None:
    text = condense(TASK, agent(2_000, 600, failed=60), [], 4_000)
    assert estimate_tokens(text) <= 4_000
    assert "[step 1] " in text
    assert "[step 2000] " in text
    assert "[step 61] tool_0: failed" in text
    assert "KeyError" in text
    left_out = sum(int(n) for n in re.findall(r"\[\.\.\. (\d+) messages or steps left out", text))
    assert left_out + len(re.findall(r"^\[step \d+\]", text, re.MULTILINE)) == 2_000


@pytest.mark.parametrize("tokens", [300, 40, 5, -100])
def test_even_the_smallest_room_gets_a_marked_text(tokens: int) -> None:
    text = condense(TASK, agent(30, 3_000), [], tokens)
    assert "left out" in text
    assert estimate_tokens(text) <= max(tokens, 30)


@pytest.mark.parametrize("context_length", [2_048, 4_096, 16_384])
def test_prompt_and_reply_fit_the_context_whatever_the_trajectory(context_length: int) -> None:
    model = Reader(context_length)
    huge = [agent(200, 2_000), agent(3, 200_000)]
    group = make_group([1.0, 0.0])
    rollouts = tuple(
        r.model_copy(update={"trajectory": big.trajectory})
        for r, big in zip(group.rollouts, huge, strict=True)
    )
    task = TASK.model_copy(update={"question": "why? " * 20_000})
    found = asyncio.run(summarise(task, group.model_copy(update={"rollouts": rollouts}), LIBRARY, model))
    assert all(isinstance(s, Summary) for s in found)
    for prompt in model.prompts["summarise"]:
        assert estimate_tokens(prompt) + min(1_000, context_length // 3) < context_length
        assert "left out" in prompt


# ---- stage 2 ----


def test_the_contrast_prompt_holds_all_that_the_stage_needs() -> None:
    model = Reader()
    contrasted(model)
    prompt = model.prompts["contrast"][0]
    for part in (
        TASK.question,
        "Paris",
        "[E-0007] (strategy, confidence 0.50) Write a whole paragraph.",
        "R1: reward 1; it did better than its group.",
        "R2: reward 0; it did worse than its group.",
        "answer 0 did better on France?",
        "Root cause: too long",
        "Lessons followed: E-0008",
        "each of R1, R2",
    ):
        assert part in prompt


class Says(Reader):
    """Gives one reply at stage 2, and another one when asked again."""

    def __init__(self, reply: object, again: str = "no") -> None:
        super().__init__()
        self.reply = reply if isinstance(reply, str) else json.dumps(reply)
        self.again = again

    def contrast(self, system: str, user: str) -> str:
        return self.reply

    def retry(self, system: str, user: str) -> str:
        return self.again


def test_what_is_more_than_three_operations_is_quarantined_and_a_bad_one_takes_no_place() -> None:
    good = [{"op": "add", "text": f"Lesson {i}."} for i in range(4)]
    found = contrasted(
        Says({"operations": [good[0], {"op": "modify", "id": "E-0099", "text": "x"}, "?", *good[1:]]})
    )
    assert [d.text for d in found.drafts] == ["Lesson 0.", "Lesson 1.", "Lesson 2."]
    reasons = [q.reason for q in found.quarantined]
    assert [r.split(":")[0] for r in reasons] == ["operation 2", "operation 3", "operation 6"]
    assert "3 operations already" in reasons[2]
    assert all("Lesson 3." in q.raw for q in found.quarantined)
    assert found.operations_in == 6


def test_a_missing_semantic_advantage_is_noted() -> None:
    found = contrasted(Says({"semantic_advantages": [{"rollout": "[r2]", "verdict": "Worse", "why": "w"}]}))
    assert [(a.rollout_id, a.verdict, a.why, a.by) for a in found.advantages] == [
        ("g1-r0", "better", "reward 1 against a mean of 0.5; the model gave no reason", "measurement"),
        ("g1-r1", "worse", "w", "model"),
    ]
    assert any("no semantic advantage for g1-r0" in note for note in found.notes)


def test_the_measured_sign_stands_against_the_models_verdict() -> None:
    found = contrasted(Says({"semantic_advantages": [{"rollout": 1, "verdict": "worse", "why": "w"}]}))
    assert (found.advantages[0].verdict, found.advantages[0].said) == ("better", "worse")
    assert any("measured as better" in note for note in found.notes)


@pytest.mark.parametrize(
    "reply",
    [
        [{"rollout": "R1", "verdict": "better", "why": "w"}, {"op": "delete", "id": "E-0007"}],
        {
            "semantic_advantages": {"R1": {"verdict": "better", "why": "w"}},
            "operations": {"op": "delete", "id": "G0"},
        },
        {
            "Semantic Advantages": [{"Rollout": "g1-r0", "why": "w"}],
            "OPERATIONS": [{"Op": "Delete", "Ids": "[E-0007]"}],
        },
        {
            "semantic_advantages": {"rollout": "R1", "why": "w"},
            "operations": [{"op": "remove", "ids": ["E-0007"]}],
        },
    ],
)
def test_a_contrast_is_read_in_any_wrapping(reply: object) -> None:
    found = contrasted(Says(reply))
    assert [(a.rollout_id, a.verdict, a.why) for a in found.advantages if a.by == "model"] == [
        ("g1-r0", "better", "w")
    ]
    assert [d.operation for d in found.drafts] == [Delete(experience_id="E-0007")]
    assert found.quarantined == ()


def test_one_bare_operation_is_read_too() -> None:
    assert contrasted(Says({"op": "ADD", "text": "Look."})).drafts[0].text == "Look."


def test_an_unreadable_reply_is_asked_for_again_then_quarantined_with_both() -> None:
    assert len(contrasted(Says("no", again='{"operations": [{"op": "add", "text": "a"}]}')).drafts) == 1
    found = contrasted(Says("first try", again="second try"))
    assert (found.error, found.operations_in) == ("the reply holds no JSON", 1)
    assert "first try" in found.quarantined[0].raw
    assert "second try" in found.quarantined[0].raw


def test_without_two_summaries_that_differ_there_is_no_contrast_call() -> None:
    model = Reader()
    group = make_group([1.0, 0.0])
    gone = Unsummarised(rollout_id="g1-r1", reason="The endpoint timed out.")
    one = summed(group, model)[0]
    found = asyncio.run(contrast(TASK, group, [one, gone], LIBRARY, model))
    assert model.prompts["contrast"] == []
    assert "The endpoint timed out." in found.error


def test_an_id_that_the_model_was_not_shown_is_quarantined_even_if_it_is_live() -> None:
    library = [Experience(id=f"E-{i:04}", text="Lesson.", confidence=0.5) for i in range(60)]
    library += [Experience(id="E-0900", text="Weak.", confidence=0.05)]
    group = make_group([1.0, 0.0])
    model = Says({"operations": [{"op": "delete", "id": "E-0900"}, {"op": "delete", "id": "E-0001"}]})
    found = asyncio.run(contrast(TASK, group, summed(group, model), library, model))
    assert [d.operation for d in found.drafts] == [Delete(experience_id="E-0001")]
    assert "E-0900" in found.quarantined[0].reason
    assert any("11 experiences of the library were not shown" in note for note in found.notes)


def test_of_a_large_library_the_injected_come_first_and_then_the_tasks_domain() -> None:
    library = [Experience(id=f"E-1{i:03}", text="x", domain="other", confidence=0.9) for i in range(60)]
    library += [Experience(id="E-2000", text="x", domain="capitals", confidence=0.1), LIBRARY[0]]
    assert [e.id for e in relevant(TASK, make_group([1.0, 0.0]), library)][:3] == [
        "E-0007",
        "E-2000",
        "E-1000",
    ]


def test_a_large_library_is_searched_by_whoever_is_asked_and_the_injected_are_always_shown() -> None:
    library = [Experience(id=f"E-1{i:03}", text=f"Lesson {i}.", domain="capitals") for i in range(80)]
    asked: list[tuple[str, int]] = []

    def last_ones(query: str, experiences: Sequence[Experience], k: int) -> Sequence[Experience]:
        asked.append((query, k))
        return list(experiences)[::-1][:k]

    group = make_group([1.0, 0.0])
    found = relevant(TASK, group, [*library, LIBRARY[0]], last_ones)
    assert [e.id for e in found[:3]] == ["E-0007", "E-1079", "E-1078"]
    assert (len(found), asked) == (50, [(TASK.question, 49)])


def test_without_embeddings_the_lessons_that_share_the_tasks_words_come_first() -> None:
    library = [Experience(id=f"E-1{i:03}", text=f"Count {i} lions.", domain="capitals") for i in range(60)]
    library.append(
        Experience(id="E-2000", text="Which capital: name the city.", domain="capitals", confidence=0.1)
    )
    assert relevant(TASK, make_group([1.0, 0.0]), library)[0].id == "E-2000"


def test_the_errors_that_the_attempts_met_are_part_of_the_search() -> None:
    library = [Experience(id=f"E-1{i:03}", text=f"Count {i} lions.", domain="capitals") for i in range(60)]
    library.append(Experience(id="E-2000", text="On TimeoutError wait.", domain="capitals", confidence=0.1))
    group = make_group([1.0, 0.0])
    steps = Trajectory(steps=(FAILED,), answer="a")
    met = group.model_copy(update={"rollouts": (group.rollouts[0].model_copy(update={"trajectory": steps}),)})
    assert relevant(TASK, met, library)[0].id == "E-2000"
    assert relevant(TASK, group, library)[0].id != "E-2000"


@pytest.mark.parametrize(("context_length", "size"), [(4_096, 8), (8_192, 16), (16_384, 16)])
def test_the_contrast_prompt_shrinks_to_the_context_and_names_every_attempt(
    context_length: int, size: int
) -> None:
    group = make_group([i / size for i in range(size)], status="informative")
    summaries = [
        Summary(rollout_id=r.id, text="It said so. " * 10, verdict="better" if i >= size // 2 else "worse",
                key_decision="a decision " * 15, root_cause="a cause " * 15)
        for i, r in enumerate(group.rollouts)
    ]  # fmt: skip
    library = [Experience(id=f"E-1{i:03}", text="A lesson of some words. " * 4) for i in range(50)]
    model = Reader(context_length)
    task = TASK.model_copy(update={"question": "why? " * 20_000, "answer": "because " * 20_000})
    found = asyncio.run(contrast(task, group, summaries, library, model))
    (prompt,) = model.prompts["contrast"]
    assert not found.error
    assert re.findall(r"^(R\d+): reward", prompt, re.M) == [f"R{i}" for i in range(1, size + 1)]
    assert estimate_tokens(prompt) + min(3_000, context_length // 3) < context_length
    assert "left out" in prompt
    assert len(found.advantages) == size


def test_a_lesson_that_quotes_its_tasks_answer_says_so_to_the_reviewer() -> None:
    drafts = contrasted(
        Says({"operations": [{"op": "add", "text": "Say Paris."}, {"op": "add", "text": "Say a name."}]})
    ).drafts
    assert "answer of its own task" in drafts[0].rationale
    assert "answer of its own task" not in drafts[1].rationale


def test_the_deciding_step_is_linked_where_there_is_one() -> None:
    group = make_group([1.0, 0.0])
    rollouts = tuple(r.model_copy(update={"trajectory": agent(4, 10).trajectory}) for r in group.rollouts)
    said = [
        {"rollout": "R1", "why": "w", "deciding_step": "step 3: tool_2"},
        {"rollout": "R2", "why": "w", "deciding_step": 9},
    ]
    found = contrasted(Says({"semantic_advantages": said}), group.model_copy(update={"rollouts": rollouts}))
    assert [(a.step, a.deciding_step) for a in found.advantages] == [(3, "step 3: tool_2"), (None, "9")]


def test_evidence_names_the_best_first_then_the_worst() -> None:
    found = evidence_of(make_group([0.5, 0.0, 1.0, 0.4]))
    assert found.rollout_ids[0] == "g1-r2"
    assert found.rollout_ids[2] == "g1-r1"


# ---- nothing vanishes ----

FAULTS = (
    "", "{", "null", "[]", "I am sorry.", '{"operations": "none"}', '{"operations": [1, null, {"op": "merge"}]}',
    '{"summary": 7, "operations": {"op": "UPDATE", "id": "[G0]", "text": "x"}}', '{"summary": "s", "actions": [3]}',
    json.dumps({"summary": "w " * 200, "operations": [{"op": "ADD", "text": "w " * 200}] * 5, "text": "w " * 90}),
    '{"semantic_advantages": [{"rollout": [], "verdict": {}}], "operations": [{"op": "delete", "id": "E-0007"}]}',
    '{"operations": [{"op": "add", "text": "half \\ud800"}], "summary": "half \\ud800", "text": "half \\ud800"}',
)  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_under_random_faults_groups_and_operations_add_up(seed: int) -> None:
    rng = random.Random(seed)

    class Faulty(Reader):
        async def complete(
            self, messages: Sequence[Message], sampling: Sampling, replicates: Sequence[int] = (0,)
        ) -> list[Completion | str]:
            fault = rng.random()
            if fault < 0.15:
                return ["The endpoint timed out."]
            staged = messages[0].content.startswith(("You sum", "You com"))
            if fault < 0.5 or not staged or len(messages) > 2:
                return [Completion(text=rng.choice(FAULTS))]
            good = await super().complete(messages, sampling, replicates)
            return [
                Completion(text=c.text[: rng.choice((9999, 40))]) for c in good if isinstance(c, Completion)
            ]

    groups = [make_group([1.0, 0.0, None, 0.5], name=f"g{i}") for i in range(4)]
    groups.append(make_group([1.0, 1.0], name="g9", status="uninformative"))
    result = learn(*groups, model=Faulty())
    assert result.adds_up, result.counts
    assert sorted((*result.learned, *result.failed)) == sorted(g.id for g in groups[:4])
    assert all(result.failed.values())
    assert all(q.reason for q in result.quarantined)
    named = [s.rollout_id for t in result.taught for s in (*t.summaries, *t.unsummarised)]
    assert sorted(named) == sorted(r.id for g in groups[:4] for r in g.rollouts if r.reward is not None)
    assert all(count_words(s.text) <= 32 for t in result.taught for s in t.summaries)
    result.canonical().encode()
