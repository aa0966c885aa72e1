"""Code that passes the tests of its task."""

from __future__ import annotations

import ast
import json
import re
import secrets
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Literal

from pydantic import Field

from core.errors import SandboxError
from core.ports import Limits, Program, Ran
from core.rollout import Score, Task, Trajectory
from core.verifiers.check import Check, quote
from core.verifiers.outside import Outside

TESTS = "tests"
"""Where a task's metadata hold its tests, unless the options do."""

MAX_TESTS = 100_000
"""Characters."""

_BLOCK = re.compile(r"^[ \t]*```[ \t]*(\w*)[^\n`]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)
_NO_SANDBOX = "Python tests need the sandbox, and none was given"


class PythonTests(Check):
    """The share of the tests that the answer's code passes, or 1 only where it passes them all.

    The code is the last Python block of the answer, or the whole answer where it has none. Tests are Python, one
    text or a list of texts: a test is each top-level statement that is no definition, import or assignment
    (`assert f(2) == 4`, `check(f)`), each function `test_...`, each method of a `unittest.TestCase`.
    Both run in one process in the sandbox: code that sets out to cheat its tests can, as everywhere.
    """

    tests: str | tuple[str, ...] | None = None
    """None = the task's metadata bring them under "tests"."""
    credit: Literal["share", "all"] = "share"
    time_s: float = Field(default=10.0, gt=0, le=600)
    """Of code and tests together."""
    memory_mb: int = Field(default=512, ge=64, le=16384)

    @property
    def needs_answer(self) -> bool:
        return False

    def ready(self, task: Task) -> None:
        _checked(_one_text(self.tests if self.tests is not None else task.metadata.get(TESTS)))

    def missing(self, outside: Outside) -> str:
        if outside.sandbox is None:
            return f"{_NO_SANDBOX}."
        try:
            outside.sandbox.run(Program(code=""))
        except SandboxError as e:
            return str(e)
        return ""

    async def judge_trajectory(self, task: Task, trajectory: Trajectory, outside: Outside) -> Score:
        if outside.sandbox is None:
            return Score(reason=f"not judged: {_NO_SANDBOX}")
        code = _code_of(trajectory.answer)
        if not code.strip():
            return Score(value=0.0, reason="the answer holds no code")
        mark = secrets.token_hex(8)
        tests = _one_text(self.tests if self.tests is not None else task.metadata.get(TESTS))
        program = Program(
            code=_harness(),
            stdin=json.dumps({"answer": code, "tests": tests, "mark": mark}),
            limits=Limits(time_s=self.time_s, memory_mb=self.memory_mb),
        )
        try:
            ran = await outside.call(outside.sandbox.run, program)
        except SandboxError as e:
            return Score(reason=f"not judged: {e}")
        return self._verdict(ran, mark)

    def _verdict(self, ran: Ran, mark: str) -> Score:
        stopped = {
            "time": f"its code did not end in {self.time_s:g} s",
            "memory": f"its code needed more than {self.memory_mb} MB or too many threads",
            "output": "its code wrote too much",
        }
        if why := stopped.get(ran.ended):
            return Score(value=0.0, reason=why)
        report = _report(ran.stdout, mark)
        if report is None:
            last = ran.stderr.strip().rpartition("\n")[2]
            how = f"exit code {ran.exit_code}{': ' + quote(last, 200) if last else ''}"
            return Score(
                value=0.0, reason=f"its code ended the process before the tests were through ({how})"
            )
        passed, total, failure = report["passed"], report["total"], quote(report["failure"], 300)
        if not total:
            return Score(reason=f"not judged: {failure if report['failure'] else 'the tests test nothing'}")
        share = passed / total
        value = share if self.credit == "share" else float(passed == total)
        return Score(
            value=value, reason="" if share == 1 else f"{passed} of {total} tests passed; first: {failure}"
        )


def _one_text(tests: Any) -> str:
    """Raises ValueError where they are no text and no list of texts."""
    if isinstance(tests, list | tuple) and all(isinstance(test, str) for test in tests):
        return "\n".join(tests)
    if isinstance(tests, str):
        return tests
    raise ValueError(
        f"it has no tests: give them as option 'tests' or in the task's metadata under {TESTS!r}"
    )


@lru_cache(maxsize=256)
def _checked(tests: str) -> None:
    """Raises ValueError where the tests are no Python, or too much of it."""
    if len(tests) > MAX_TESTS:
        raise ValueError(f"its tests have more than {MAX_TESTS:,} characters")
    try:
        body = ast.parse(tests).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        raise ValueError(f"its tests are no Python: {e}") from e
    if not body:
        raise ValueError("its tests are empty")


def _code_of(answer: str) -> str:
    blocks = [(name.lower(), body) for name, body in _BLOCK.findall(answer)]
    python = [body for name, body in blocks if name in ("python", "py", "python3")]
    return str((python or [body for _, body in blocks] or [answer])[-1])


@cache
def _harness() -> str:
    return (files("core.verifiers") / "python_child.py").read_text(encoding="utf-8")


def _report(stdout: str, mark: str) -> dict[str, Any] | None:
    found = re.search(rf"^{mark} (\{{.*\}})$", stdout, re.MULTILINE)
    return None if found is None else dict(json.loads(found[1]))
