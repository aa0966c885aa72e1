"""Inside the sandbox: load an answer's code, then count the tests that it passes. Sent there by `python.py`."""

from __future__ import annotations

import ast
import json
import os
import sys
import types
import unittest
from collections.abc import Iterator
from typing import Any

IMPORTS = (ast.Import, ast.ImportFrom)
DEFINES = (
    *IMPORTS,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Assign,
    ast.AnnAssign,
    ast.AugAssign,
)


class BrokenTestsError(Exception):
    """The tests cannot do their work here, whatever the answer is."""


def main() -> None:
    job = json.loads(sys.stdin.read())
    out = os.dup(1)
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  until the process ends
    module = types.ModuleType("answer")
    sys.modules["answer"] = module
    try:
        exec(compile(job["answer"], "answer.py", "exec", dont_inherit=True), module.__dict__)
    except BaseException as e:  # noqa: BLE001  a SystemExit too: the code is not ours
        results = [(False, f"loading the code: {described(e)}")]
        total = len(list(statements(job["tests"]))) or 1
    else:
        try:
            results = list(run(job["tests"], module.__dict__))
            total = len(results)
        except BrokenTestsError as e:
            results, total = [(False, str(e))], 0
    failures = [why for passed, why in results if not passed]
    report = {
        "passed": sum(p for p, _ in results),
        "total": total,
        "failure": failures[0] if failures else "",
    }
    os.write(out, f"\n{job['mark']} {json.dumps(report)}\n".encode())
    os._exit(0)  # threads of the answer need not end


def statements(tests: str) -> Iterator[ast.stmt]:
    """The top-level statements of the tests, without strings that only say something."""
    for statement in ast.parse(tests).body:
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            yield statement


def run(tests: str, names: dict[str, Any]) -> Iterator[tuple[bool, str]]:
    """(passed, why not) of each test, in order."""
    before = set(names)
    for statement in statements(tests):
        code = compile(ast.Module([statement], []), "tests.py", "exec", dont_inherit=True)
        try:
            exec(code, names)
        except BaseException as e:
            if isinstance(e, ImportError) and isinstance(statement, IMPORTS) and e.name != "answer":
                raise BrokenTestsError(f"the tests cannot import what they need: {described(e)}") from e
            yield False, f"{ast.unparse(statement)[:200]}: {described(e)}"
        else:
            if not isinstance(statement, DEFINES):
                yield True, ""
    for name in [n for n in names if n not in before]:
        found = names[name]
        if isinstance(found, types.FunctionType) and name.startswith("test"):
            yield called(name, found)
        elif isinstance(found, type) and issubclass(found, unittest.TestCase):
            for case in unittest.defaultTestLoader.loadTestsFromTestCase(found):
                result = unittest.TestResult()
                case.run(result)
                trouble = [text for _, text in result.failures + result.errors]
                why = f"{case}: {trouble[0].strip().rpartition(chr(10))[2]}" if trouble else ""
                yield not trouble, why


def called(name: str, test: types.FunctionType) -> tuple[bool, str]:
    try:
        test()
    except BaseException as e:  # noqa: BLE001
        return False, f"{name}: {described(e)}"
    return True, ""


def described(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:300]
    except BaseException:  # noqa: BLE001  its own __str__ may raise
        return "an error that cannot be shown"


if __name__ == "__main__":
    main()
