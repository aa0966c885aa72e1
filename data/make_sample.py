"""Make the sample project: tasks that a small model gets partly right, and recorded tool-use rollouts.

    python data/make_sample.py           writes data/sample/
    python data/make_sample.py --check   makes it again and compares it byte for byte

What comes out, from one seed and always the same:

- tasks.jsonl: the families of `families.py`, each with 40 train, 40 trial and 60 final tasks. The splits
  share no id and no question text, and labels are spread evenly over them.
- agent_rollouts.jsonl: what the scripted agent of `scripted_agent.py` did. No model is involved; its tool
  calls are really carried out, on files that are made in a temporary folder.

The sampling settings (project.json) and the measurements (README.md) are kept by hand.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

if __package__ in (None, ""):  # run as a script: only data/ itself is on the path
    sys.path.insert(0, str(Path(__file__).parents[1]))

from core.rollout import Split, Task, Trajectory
from core.verifiers import make_verifier
from data.families import FAMILIES, Family, Problem, graded, regex
from data.office import Errand, furnish
from data.scripted_agent import MODEL, SOURCE, SYSTEM, Attempt, Tools, draw_habits

SEED = 20_240
SIZES: dict[Split, int] = {"train": 40, "trial": 40, "final": 60}
GROUP = 8
"""Attempts of the scripted agent at each errand."""
SAMPLE = Path(__file__).parent / "sample"

Row = dict[str, Any]


def task_rows(seed: int = SEED) -> list[Row]:
    """Every task of every family, family by family and split by split."""
    return [row for make in FAMILIES for row in family_rows(make(), seed)]


def family_rows(family: Family, seed: int) -> list[Row]:
    """One family's tasks.

    Raises:
        ValueError: the family does not hold exactly as many problems as the splits need.
    """
    if len(family.problems) != sum(SIZES.values()):
        raise ValueError(f"{family.domain} has {len(family.problems)} problems, not {sum(SIZES.values())}")
    left = spread_out(family.problems, random.Random(f"{seed} {family.domain}"))
    rows = []
    for split, size in SIZES.items():
        mine, left = left[:size], left[size:]
        rows += [task_row(family, split, i, problem) for i, problem in enumerate(mine, start=1)]
    return rows


def spread_out(problems: Iterable[Problem], rng: random.Random) -> list[Problem]:
    """Shuffle so that every stretch holds about the same share of each answer."""
    shuffled = list(problems)
    rng.shuffle(shuffled)
    seen: Counter[str] = Counter()
    ranked = []
    for problem in shuffled:
        ranked.append((seen[problem[1]], problem))
        seen[problem[1]] += 1
    return [problem for _, problem in sorted(ranked, key=lambda pair: pair[0])]


def task_row(family: Family, split: Split, number: int, problem: Problem) -> Row:
    question, answer = problem
    return {
        "id": f"{family.domain}-{split}-{number:03}",
        "question": question,
        "answer": answer,
        "domain": family.domain,
        "split": split,
        "verifier": family.verifier(answer),
        "metadata": {},
    }


def rollout_rows(seed: int = SEED) -> list[Row]:
    """What the scripted agent did: `GROUP` attempts at every errand."""
    rng = random.Random(f"{seed} office")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        errands = furnish(folder, rng)
        tools = Tools(folder)
        return [
            rollout_row(errand_task(errand, number), errand, tools, replicate, rng)
            for number, errand in enumerate(errands, start=1)
            for replicate in range(GROUP)
        ]


def errand_task(errand: Errand, number: int) -> Row:
    content = {"kind": "numeric", "options": {"pick": "last"}}
    verifier = graded(content, regex(r"\d+"))
    verifier["options"]["content_weight"] = 0.75
    return {
        "id": f"office-{errand.area}-{number:03}",
        "question": f"{errand.question} Answer with the number only.",
        "answer": errand.answer,
        "domain": f"office-{errand.area}",
        "split": "train",
        "verifier": verifier,
        "metadata": {"source": SOURCE},
    }


def rollout_row(task: Row, errand: Errand, tools: Tools, replicate: int, rng: random.Random) -> Row:
    """One attempt, in the form that `core.importers.winnow_jsonl` reads."""
    attempt = Attempt(errand, tools, draw_habits(rng), rng)
    attempt.messages += [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": task["question"]},
    ]
    answer, error = attempt.run()
    score = None
    if error is None:
        read = Task.model_validate(task)
        score = asyncio.run(make_verifier(read.verifier).score(read, Trajectory(answer=answer)))
    return {
        "winnow_rollout": 1,
        "task": task,
        "replicate": replicate,
        "model": MODEL,
        "messages": attempt.messages,
        "steps": attempt.steps,
        "answer": answer,
        "finish_reason": None if error else "stop",
        "scores": {} if score is None else {"graded": {"value": score.value, "parts": score.parts}},
        "reward": None if score is None else score.value,
        "error": error,
        "usage": {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0, "cost_usd": 0.0},
        "metadata": {"source": SOURCE},
    }


def lines(rows: Iterable[Row]) -> bytes:
    """One JSON object a line, UTF-8."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def build(seed: int = SEED) -> dict[str, bytes]:
    """The content of each file, by its name in data/sample/."""
    return {"tasks.jsonl": lines(task_rows(seed)), "agent_rollouts.jsonl": lines(rollout_rows(seed))}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Make the sample project in data/sample/.")
    parser.add_argument("--check", action="store_true", help="compare with the files that are there")
    check = parser.parse_args(arguments).check
    stale = []
    for name, content in build().items():
        path = SAMPLE / name
        if check and (not path.exists() or path.read_bytes() != content):
            stale.append(name)
        elif not check:
            SAMPLE.mkdir(exist_ok=True)
            path.write_bytes(content)
    for name in stale:
        print(f"{name} differs from what the generator makes", file=sys.stderr)  # noqa: T201
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
