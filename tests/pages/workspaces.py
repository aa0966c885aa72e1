"""Workspaces for tests of the pages, made through the store: no model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from core.experience import Add, Delete, Evidence, Finding, Merge, Modify, Operation, Proposal
from core.rollout import Extraction, Group, Message, Rollout, Score, Step, Task, Trajectory, Usage
from core.settings import RewardConfig, RunConfig, VerifierSpec
from core.settling import settle
from core.workspace import Workspace

AT = "2026-11-29T18:30:00Z"
LESSON = (
    "When only a number is asked for, answer with the number alone: no sentence, no unit, no final period."
)


def finding(label: str = "answered with a number only", p: float = 0.004) -> Finding:
    return Finding(
        feature=label.replace(" ", "_"),
        label=label,
        winners_with=31,
        winners=36,
        losers_with=4,
        losers=40,
        odds_ratio=41.2,
        p=p / 4,
        p_corrected=p,
        groups=9,
    )


def tasks() -> list[Task]:
    asked = {
        "sums": ("What is {a} + {b}? Answer with the number only. ({split})", "numeric"),
        "capitals": ("Name the capital of country {a}. One word. ({split})", "text"),
        "weekdays": ("Which weekday is {a} days after Monday? Answer with one word. ({split})", "text"),
    }
    return [
        Task(
            id=f"{domain}-{split}-{i}",
            question=question.format(a=10 + i, b=7 * i, split=split),
            answer=str(10 + 8 * i),
            domain=domain,
            split=split,
            verifier=VerifierSpec(kind=kind),
        )
        for domain, (question, kind) in asked.items()
        for split, count in (("train", 6), ("trial", 3), ("final", 4))
        for i in range(count)
    ]


def rollout(group_id: str, task: Task, i: int, value: float | None, **fields: object) -> Rollout:
    answer = f"{task.answer}" if (value or 0) > 0.9 else f"The answer is {task.answer}, I think."
    messages = (
        Message(
            role="system",
            content="Lessons from earlier attempts. Follow the ones that apply:\n[G0] Read twice.",
        ),
        Message(role="user", content=task.question),
        Message(role="assistant", content=answer),
    )
    given: dict[str, object] = {
        "id": f"{group_id}-{i}",
        "group_id": group_id,
        "task_id": task.id,
        "replicate": i,
        "trajectory": Trajectory(
            messages=messages, answer=answer, finish_reason="length" if i == 5 else "stop"
        ),
        "scores": {}
        if value is None
        else {task.verifier.kind: Score(value=value, parts={"content": 1.0, "form": value})},
        "usage": Usage(calls=1, prompt_tokens=64, completion_tokens=9, cost_usd=0.0002),
        "injected": {"G0": "E-0001"},
        "model": "stub-model",
        "duration_s": 0.8,
        "error": "the endpoint answered 503 three times" if value is None else None,
    }
    return Rollout.model_validate({**given, **fields})


def steps(i: int) -> tuple[Step, ...]:
    """Tool calls of a scripted agent, some of which fail."""
    return (
        Step(
            tool="list_files",
            parameters={"folder": "reports"},
            output="2026-q1.json\n2026-q2.json",
            success=True,
        ),
        Step(
            tool="read_json",
            parameters={"path": "reports/2026-q2.json", "key": "total"},
            output='{"total": 1841}' if i % 2 else "",
            success=bool(i % 2),
            error=None if i % 2 else "KeyError: 'total'",
            duration_s=0.4,
        ),
        Step(tool="answer", parameters={"value": 1841}, output="ok " * 2_000, success=None),
    )


PATTERNS: tuple[Sequence[float | None], ...] = (
    (1, 1, 0, 0.5, 1, 0),
    (1, 0.5, 0.5, 0, 0, 0),
    (1, 1, 1, 1, 1, 1),
    (0, 0, 0, 0, 0, 0),
    (1, 1, 1, 0.5, 1, 1),
    (0.5, None, 0, 0.5, 1, 0),
    (None, None, None, None, None, None),
)


def add_run(
    ws: Workspace, given: Sequence[Task], *, unfinished: int = 0, agent: bool = False, seed: int = 0
) -> str:
    """A run of one group a task, all but the last `unfinished` of them sampled."""
    runs = ws.store.runs
    run_id = runs.create(
        RunConfig(group_size=6, seed=seed),
        given,
        [0] * len(given),
        request=f"request {len(given)} {seed} {agent}",
        kind="recorded" if agent else "sampled",
        library_version=ws.store.versions.head(),
        model="stub-model",
        note="agent.jsonl" if agent else "",
        actor="ann",
    )
    waiting = ws.store.groups.waiting(run_id)
    for n, (place, task) in enumerate(zip(waiting[: len(given) - unfinished], given, strict=False)):
        values = PATTERNS[n % len(PATTERNS)]
        more = [
            {"trajectory": Trajectory(steps=steps(i), answer="1841")} if agent else {}
            for i in range(len(values))
        ]
        made = tuple(rollout(place.id, task, i, v, **more[i]) for i, v in enumerate(values))
        ws.store.groups.save(
            settle(Group(id=place.id, run_id=run_id, task_id=task.id, rollouts=made), RewardConfig())
        )
    if unfinished:
        runs.set_status(run_id, "running", "ann")
    else:
        extraction = Extraction(
            suggested=9, proposed=6, joined=2, superseded=0, quarantined=1, notes=("capitals taught little",)
        )
        runs.save_extraction(run_id, extraction)
        runs.set_status(run_id, "done", "ann")
    return run_id


def propose(ws: Workspace, operation: Operation, run_id: str | None = None, **fields: object) -> str:
    evidence = Evidence(
        findings=(finding(), finding("ended without a final period", 0.031)),
        group_ids=(f"{run_id}-0001", f"{run_id}-0002") if run_id else (),
        rollout_ids=(f"{run_id}-0001-0", f"{run_id}-0001-2") if run_id else (),
        sentence="31 of 36 winners answered with a number only, 4 of 40 losers",
        features_tried=212,
        permutations=2000,
    )
    given = {
        "id": "",
        "operation": operation,
        "run_id": run_id,
        "evidence": evidence,
        "learned_on": "stub-model",
    }
    return ws.store.proposals.add([Proposal.model_validate({**given, **fields})], "ann")[0]


def publish(ws: Workspace, *operations: Operation, run_id: str | None = None, message: str = "") -> int:
    for operation in operations:
        ws.review.approve(propose(ws, operation, run_id), "ann")
    return ws.review.publish(message, "ann").number


def fill(folder: Path) -> Workspace:
    """A workspace in which every page has something to show."""
    ws = Workspace(folder)
    given = tasks()
    ws.store.tasks.add(given, list(range(1, len(given) + 1)), "tasks.jsonl", "ann")
    train = [t for t in given if t.split == "train"]
    run_id = add_run(ws, train)
    add_run(ws, train[:4], agent=True)
    add_run(ws, train[:5], unfinished=3, seed=1)
    publish(
        ws,
        Add(text=LESSON, kind="convention", domain="sums"),
        Add(text="Name the capital city itself, not the largest city of the country.", domain="capitals"),
        Add(
            text="Call list_files before read_json, so that the path is one that exists.",
            kind="tool_selection",
        ),
        run_id=run_id,
        message="First lessons",
    )
    publish(
        ws,
        Modify(
            experience_id="E-0002", text="Name the seat of government, not the largest city of the country."
        ),
        Add(
            text="Count the weekdays one by one, starting with the day after the one that is named.",
            domain="weekdays",
        ),
        run_id=run_id,
        message="Capitals, sharper",
    )
    waiting = (
        Add(
            text="Copy the digits of the sum from the working, then write nothing after them.", domain="sums"
        ),
        Modify(
            experience_id="E-0001",
            text="When only a number is asked for, answer with the digits alone: no sentence, no unit.",
        ),
        Merge(
            experience_ids=("E-0002", "E-0004"),
            text="Answer with the one word that was asked for, not with a sentence about it.",
        ),
        Delete(experience_id="E-0003"),
        Add(text="Keep it short. " * 15, domain="weekdays"),
    )
    library = ws.store.versions.library()
    for operation in waiting:
        targets = {i: library.experiences[i].text for i in _targets(operation)}
        propose(
            ws,
            operation,
            run_id,
            base_texts=targets,
            base_version=2,
            rationale="Seen in most of the better answers.",
        )
    staged = propose(
        ws, Add(text="Say the weekday in English, with a capital letter.", domain="weekdays"), run_id
    )
    ws.review.approve(staged, "ann")
    refused = propose(ws, Add(text="Answer well.", domain="sums"), run_id)
    ws.review.reject(refused, "says the obvious", "ann")
    return ws


def _targets(operation: Operation) -> tuple[str, ...]:
    if isinstance(operation, Merge):
        return operation.experience_ids
    return (operation.experience_id,) if isinstance(operation, Modify | Delete) else ()
