"""Every part of every prompt matters: the stand-in teacher learns something else where one is missing or wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest

from core.advantage import advantages, mean_deviation
from core.experience import Add, Experience, targets_of
from core.extraction import asking, compress, contrast_prompt, near_duplicates, summarise, template
from core.extraction.draft import Draft
from core.extraction.with_model import Learned, Teacher
from core.injection import render, system_prompt
from core.ports import Completion, Sampling
from core.rollout import Group, Message, Rollout, Score, Step, Task, Trajectory
from core.words import count_words
from tests import teacher

TASK = Task(id="t1", question="Which column holds the name of the city?", answer="name", domain="tables")
LIBRARY = [
    Experience(id="E-0007", text="Answer with one word only.", domain="tables"),
    Experience(id="E-0008", text="Explain everything thoroughly.", domain="tables"),
    Experience(id="E-0009", text="For tables tasks, reply with the bare answer.", domain="tables"),
]
LONG = "When a table is asked for " + "and its columns are many " * 8 + "read the head of it."


@dataclass
class Stand:
    """The teacher as a `ChatModel`; `manner` may spoil its replies."""

    manner: Callable[[teacher.Question], str] = teacher.answer
    context_length: int = 16_000
    name: str = "teacher"
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, replicates: Sequence[int] = (0,)
    ) -> list[Completion | str]:
        request = Request([m.model_dump() for m in messages], sampling.seed)
        self.asked.append((messages[0].content, messages[-1].content))
        return [Completion(text=self.manner(request))]


@dataclass
class Request:
    messages: list[dict[str, Any]]
    seed: int


def agent_group(name: str, rewards: Sequence[float | None]) -> Group:
    """Attempts with tools: the better ones recover from an error, the worse ones give up."""
    injected = render(LIBRARY)
    found = advantages(rewards)
    error = Step(
        tool="read_json", parameters={"path": "a"}, success=False, error="KeyError: 'city'", duration_s=0.2
    )
    good = Step(
        tool="read_json", parameters={"path": "a", "head": 3}, output="city,name", success=True, retries=1
    )

    def rollout(i: int, reward: float | None) -> Rollout:
        better = bool(reward and reward > 0.5)
        return Rollout(
            id=f"{name}-r{i}",
            group_id=name,
            task_id=TASK.id,
            replicate=i,
            trajectory=Trajectory(
                messages=(
                    Message(role="system", content=system_prompt(injected, "You are terse.")),
                    Message(role="user", content=TASK.question),
                ),
                steps=(error, good) if better else (error,),
                answer="name" if better else f"I have explained it thoroughly {i}, and it is the city column",
                finish_reason="stop" if better else "step limit",
            ),
            scores={"exact": Score(value=reward, reason="" if better else "another word was asked for")},
            reward=reward,
            extrinsic=reward,
            advantage=found[i],
            error=None if reward is not None else "The endpoint timed out.",
            injected=injected.labels,
            model="m",
        )

    rollouts = tuple(rollout(i, r) for i, r in enumerate(rewards))
    return Group(id=name, run_id="R1", task_id=TASK.id, status="informative", rollouts=rollouts)


GROUPS = [
    agent_group("g1", [1.0, 0.0, None]),
    agent_group("g2", [1.0, 0.0, 0.25]),
    agent_group("g10", [0.75, 0.0]),
]


async def _learn(model: Stand, groups: Sequence[Group], seed: int) -> Learned:
    teaches = Teacher(LIBRARY, model, run_id="R1", seed=seed)
    taught = [await teaches.teach(TASK, g) for g in groups]
    strengths = {g.id: mean_deviation([r.reward for r in g.rollouts]) for g in groups}
    long = Draft(operation=Add(text=LONG, domain="tables"), group_ids=("g0",))
    return await teaches.consolidate(taught, beside=[long], strengths=strengths)


def learn(model: Stand | None = None, groups: Sequence[Group] = GROUPS, seed: int = 1) -> Learned:
    return asyncio.run(_learn(model or Stand(), groups, seed))


def essence(learned: Learned) -> str:
    """What was learned, without the raw replies."""
    dumped = json.loads(learned.canonical())

    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: bare(v) for k, v in value.items() if k not in ("raw_reply", "raw")}
        return [bare(v) for v in value] if isinstance(value, list) else value

    return json.dumps(bare(dumped), sort_keys=True)


MODULES: dict[str, tuple[ModuleType, ...]] = {
    "summarise": (summarise,),
    "contrast": (contrast_prompt,),
    "consolidate": (near_duplicates,),
    "compress": (compress,),
    "retry": (asking,),
}
GARBLED = {
    "limit": "5", "max_words": "6", "max_operations": "1", "words": "2", "labels": "R9, D9", "error": "",
    "outcome": "reward 0.5; it did as well as its group.", "answer": template.fence("zebra"),
    "domain": template.fence("zoology"), "lessons": template.fence("[G2] Answer with one word only."),
    "library": template.fence("[E-0001] (strategy, domain zoology) Feed the lions."),
    "drafts": template.fence("[D7] (add, domain zoology, from 1 groups) Feed the lions."),
    "lesson": template.fence("Feed the lions. " * 20), "question": template.fence("Who feeds the lions?"),
    "attempt": template.fence("[final answer]\nlions"),
    "attempts": 'R1: reward 1; it did better than its group.\nIts summary:\n<data id="a">\nlions\n</data id="a">',
}  # fmt: skip


def cases() -> Iterator[tuple[str, str]]:
    for name in MODULES:
        for key in sorted(template.placeholders(name)):
            yield name, key


@pytest.mark.parametrize("how", ["missing", "wrong"])
@pytest.mark.parametrize(("name", "key"), list(cases()))
def test_a_part_of_a_prompt_that_is_missing_or_wrong_changes_what_is_learned(
    name: str, key: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoilt(template_name: str, **values: str) -> list[Message]:
        if template_name == name:
            values[key] = "" if how == "missing" else GARBLED[key]
        return template.prompt(template_name, **values)

    def first_try_fails(asked: teacher.Question) -> str:
        return "no" if len(asked.messages) == 2 else teacher.answer(asked)

    model = Stand(first_try_fails if name == "retry" else teacher.answer)
    plain = essence(learn(Stand(model.manner)))
    for module in MODULES[name]:
        monkeypatch.setattr(module, "prompt", spoilt)
    assert essence(learn(model)) != plain


def test_the_teacher_makes_use_of_all_stages_operations_and_kinds() -> None:
    every = [learn(seed=seed) for seed in range(12)]
    assert all(set(one.calls) == {"summarise", "contrast", "compress", "consolidate"} for one in every)
    assert all(not one.failed and not one.quarantined and one.adds_up for one in every)
    operations = [o for one in every for t in one.taught for o in json.loads(t.raw_reply)["operations"]]
    assert {o["op"] for o in operations} == {"add", "modify", "delete", "merge"}
    assert {o["kind"] for o in operations} == {"strategy", "tool_selection", "failure_pattern", "convention"}
    actions = [a["action"] for one in every for a in json.loads(one.raw_reply)["actions"]]
    assert {"modify", "merge"} <= set(actions)


@pytest.mark.parametrize("manner", teacher.MANNERS)
def test_y01_to_y07_no_manner_of_a_model_loses_a_group_or_an_operation(manner: str) -> None:
    learned = learn(Stand(teacher.with_manners(1.0, manner)))
    _accounted_for(learned, GROUPS)


@pytest.mark.parametrize("seed", range(25))
def test_whatever_a_model_does_groups_and_operations_add_up(seed: int) -> None:
    learned = learn(Stand(teacher.with_manners(0.4)), seed=seed)
    _accounted_for(learned, GROUPS)


def _accounted_for(learned: Learned, groups: Sequence[Group]) -> None:
    assert learned.adds_up, learned.counts
    assert sorted((*learned.learned, *learned.failed)) == sorted(g.id for g in groups)
    assert list(learned.advantages) == [r.id for g in groups for r in g.rollouts]
    assert all(a.why for a in learned.advantages.values())
    assert all(q.reason and q.raw is not None for q in learned.quarantined)
    live = {e.id for e in LIBRARY}
    for draft in learned.drafts:
        assert set(targets_of(draft.operation)) <= live
    for t in learned.taught:
        assert all(count_words(s.text) <= 64 for s in t.summaries)
        assert {*(s.rollout_id for s in t.summaries), *(s.rollout_id for s in t.unsummarised)} == {
            r.id for g in groups if g.id == t.group_id for r in g.rollouts if r.outcome == "scored"
        }
    learned.canonical().encode()


@pytest.mark.parametrize(
    "manner",
    ["fenced", "fenced without a tag", "thinking aloud", "other keys", "upper-case names", "bracketed ids",
     "delete without text", "trailing commas", "a list", "other names"],
)  # fmt: skip
def test_a_manner_that_leaves_the_meaning_intact_teaches_the_same(manner: str) -> None:
    spoilt = learn(Stand(teacher.with_manners(1.0, manner)))
    plain = learn()
    assert [d.operation for d in spoilt.drafts] == [d.operation for d in plain.drafts]
    assert not spoilt.quarantined
    assert spoilt.calls == plain.calls
