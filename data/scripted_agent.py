"""A scripted agent with good and bad habits: no model is involved, but its tool calls are really carried out.

What the tools return or raise is what they returned or raised. Scripted are only the choices of the agent:
its habits are drawn from a seeded generator, and so is what it says where it did not look. Tools read and
compute, none of them writes.
"""

from __future__ import annotations

import ast
import csv
import json
import operator
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data.office import Errand

MODEL = "scripted-agent"
SOURCE = "scripted agent, no model involved"
SHOWN = 400
"""Characters that read_text shows of a file."""

SYSTEM = """You answer questions about the files of a small office. Tools:
list_files() names all files.
read_text(path) shows the first 400 characters of a file.
read_header(path) names the columns of a CSV file.
query_csv(path, column, where_column, where_value) gives the values of a column in the rows chosen.
read_json(path, key) gives the value at a dotted key; without key it names all keys.
search_text(path, word, ignore_case) counts the lines that hold a word.
calculator(expression) computes sums, differences, products and quotients."""


class Tools:
    """The tools of one folder. Each returns text or raises."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def call(self, tool: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Carry out one call and return its step, as `core.rollout.Step` reads it.

        The time is not stored: it is below a millisecond and would differ each time the file is made.
        """
        try:
            output, error = getattr(self, tool)(**parameters), None
        except OSError as e:  # strerror, because the whole message names the temporary folder
            output, error = "", f"{type(e).__name__}: {e.strerror}: {parameters['path']}"
        except (KeyError, ValueError) as e:
            output, error = "", f"{type(e).__name__}: {e}"
        return {
            "tool": tool,
            "parameters": parameters,
            "output": output,
            "success": error is None,
            "error": error,
            "duration_s": None,
        }

    def list_files(self) -> str:
        return "\n".join(sorted(p.name for p in self.folder.iterdir()))

    def read_text(self, path: str) -> str:
        text = (self.folder / path).read_text("utf-8")
        return text if len(text) <= SHOWN else f"{text[:SHOWN]}\n... ({len(text) - SHOWN} characters more)"

    def read_header(self, path: str) -> str:
        return (self.folder / path).read_text("utf-8").partition("\n")[0]

    def query_csv(self, path: str, column: str, where_column: str, where_value: str) -> str:
        with (self.folder / path).open(encoding="utf-8", newline="") as file:
            return ", ".join(row[column] for row in csv.DictReader(file) if row[where_column] == where_value)

    def read_json(self, path: str, key: str = "") -> str:
        content = json.loads((self.folder / path).read_text("utf-8"))
        if not key:
            return "\n".join(dotted(content))
        for part in key.split("."):
            content = content[part]
        return json.dumps(content)

    def search_text(self, path: str, word: str, ignore_case: bool = False) -> str:
        flags = re.IGNORECASE if ignore_case else 0
        lines = (self.folder / path).read_text("utf-8").splitlines()
        return f"{sum(re.search(re.escape(word), line, flags) is not None for line in lines)} matching lines"

    def calculator(self, expression: str) -> str:
        return str(compute(ast.parse(expression, mode="eval").body))


OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def compute(node: ast.expr) -> int | float:
    """Numbers and the four operations, nothing else.

    Raises:
        ValueError: the expression holds something else.
    """
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            result: int | float = OPERATORS[type(op)](compute(left), compute(right))
            return result
    raise ValueError(f"{ast.unparse(node)} is no sum")


def dotted(content: dict[str, Any], prefix: str = "") -> list[str]:
    """Every key, nested ones joined by dots."""
    found = []
    for key, value in content.items():
        found += dotted(value, f"{prefix}{key}.") if isinstance(value, dict) else [prefix + key]
    return found


@dataclass(frozen=True)
class Habits:
    """What the agent tends to do; each is drawn anew for every attempt."""

    lists_first: bool
    """Names the files before opening one; else it guesses a name."""
    looks_up_keys: bool
    """Reads the columns or keys before using one; else it often guesses one."""
    fitting_tool: bool
    """read_json or search_text; else read_text, which shows the beginning only."""
    calculates: bool
    """Uses the calculator; else it adds in its head, mostly wrong."""
    ignores_case: bool
    brief: bool
    """Answers with the number alone; else in a sentence."""
    after_error: str
    """look (list files, columns or keys), retry (the same call again) or give_up."""
    breaks_off: bool
    """The attempt ends before its answer."""


def draw_habits(rng: random.Random) -> Habits:
    return Habits(
        lists_first=rng.random() < 0.5,
        looks_up_keys=rng.random() < 0.55,
        fitting_tool=rng.random() < 0.6,
        calculates=rng.random() < 0.55,
        ignores_case=rng.random() < 0.55,
        brief=rng.random() < 0.6,
        after_error=rng.choices(("look", "retry", "give_up"), (0.45, 0.4, 0.15))[0],
        breaks_off=rng.random() < 0.06,
    )


class BrokenOffError(Exception):
    """The attempt ended before its answer."""


class GaveUpError(Exception):
    """The agent stopped looking."""


@dataclass
class Attempt:
    """One attempt at one errand: the steps so far, and what was said."""

    errand: Errand
    tools: Tools
    habits: Habits
    rng: random.Random
    steps: list[dict[str, Any]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)

    def run(self) -> tuple[str, str | None]:
        """Work until there is an answer; (answer, why it broke off)."""
        areas = {"tables": self.sum_up, "settings": self.look_up, "logs": self.count}
        try:
            said = self.phrase(areas[self.errand.area]())
        except GaveUpError:
            said = "I could not find it."
        except BrokenOffError:
            return "", "broken off: the tool server was stopped (scripted)"
        self.messages.append({"role": "assistant", "content": said})
        return said, None

    # --- the three kinds of errand ---

    def sum_up(self) -> str:
        path = self.open_file("read_header") if self.habits.looks_up_keys else None
        chooser, value = self.errand.where
        column = self.errand.key if path or self.rng.random() < 0.3 else self.errand.guessed_key

        def query(path: str, column: str) -> dict[str, Any]:
            call = {"path": path, "column": column, "where_column": chooser, "where_value": value}
            return self.call("query_csv", call)

        path = path or self.file_name()
        step = query(path, column)
        for _ in range(2):
            if step["success"]:
                break
            if "FileNotFound" in step["error"]:
                path = self.recover(step, "list_files", {}) or path
            else:
                self.recover(step, "read_header", {"path": path})
                column = self.errand.key
            step = query(path, column)
        return self.add_up([int(number) for number in self.checked(step)["output"].split(", ")])

    def add_up(self, numbers: list[int]) -> str:
        if self.habits.calculates:
            return str(self.call("calculator", {"expression": " + ".join(map(str, numbers))})["output"])
        off = 0 if self.rng.random() < 0.2 else self.rng.choice((-100, -20, -10, -1, 1, 10, 20, 100))
        return str(sum(numbers) + off)

    def look_up(self) -> str:
        if not self.habits.fitting_tool:
            path = self.open_file("read_text")
            if self.rng.random() < 0.75:
                return self.guess_from(self.steps[-1]["output"])
            return str(self.checked(self.call("read_json", {"path": path, "key": self.errand.key}))["output"])
        if self.habits.looks_up_keys:
            path, key = self.open_file("read_json"), self.errand.key
        else:
            path = self.file_name()
            key = self.errand.key if self.rng.random() < 0.3 else self.errand.guessed_key
        step = self.call("read_json", {"path": path, "key": key})
        for _ in range(2):
            if step["success"]:
                break
            if "FileNotFound" in step["error"]:
                path = self.recover(step, "list_files", {}) or path
            else:
                self.recover(step, "read_json", {"path": path})
                key = self.errand.key
            step = self.call("read_json", {"path": path, "key": key})
        return str(self.checked(step)["output"])

    def count(self) -> str:
        if not self.habits.fitting_tool:
            self.open_file("read_text")
            seen = self.steps[-1]["output"].lower().count(self.errand.key)
            return str(seen + self.rng.choice((0, 0, 1, 3)))
        call: dict[str, Any] = {"word": self.errand.key}
        if self.habits.ignores_case:
            call["ignore_case"] = True
        self.open_file("search_text", **call)
        return str(self.steps[-1]["output"]).split()[0]

    # --- what they share ---

    def file_name(self) -> str:
        """The file to open: the right one after a look at the list, else mostly a guess."""
        if self.habits.lists_first and not self.steps:
            self.call("list_files", {})
        looked = any(step["tool"] == "list_files" for step in self.steps)
        return self.errand.file if looked or self.rng.random() < 0.2 else self.errand.guessed_file

    def open_file(self, tool: str, **parameters: Any) -> str:
        """Call a tool on the file, and recover once where the name was wrong; returns the path that worked."""
        path = self.file_name()
        step = self.call(tool, {"path": path, **parameters})
        if not step["success"]:
            path = self.recover(step, "list_files", {}) or path
            self.checked(self.call(tool, {"path": path, **parameters}))
        return path

    def recover(self, failed: dict[str, Any], tool: str, parameters: dict[str, Any]) -> str:
        """React to an error; returns the right path if the files were listed."""
        if self.habits.after_error == "give_up":
            raise GaveUpError
        if self.habits.after_error == "retry":
            self.call(failed["tool"], failed["parameters"])
            if self.rng.random() < 0.75:
                raise GaveUpError
        self.call(tool, parameters)
        return self.errand.file if tool == "list_files" else ""

    def checked(self, step: dict[str, Any]) -> dict[str, Any]:
        if not step["success"]:
            raise GaveUpError
        return step

    def guess_from(self, text: str) -> str:
        """A number that happens to stand in what was shown."""
        return self.rng.choice(re.findall(r"\d+", text) or ["10"])

    def phrase(self, found: str) -> str:
        wordy = ("The answer is {}.", "I found {} in the file.", "According to the file it is {}, I think.")
        return found if self.habits.brief else self.rng.choice(wordy).format(found)

    def call(self, tool: str, parameters: dict[str, Any]) -> dict[str, Any]:
        if self.habits.breaks_off and len(self.steps) == 2:
            raise BrokenOffError
        step = self.tools.call(tool, parameters)
        self.steps.append(step)
        shown = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
        self.messages += [
            {"role": "assistant", "content": f"{tool}({shown})"},
            {"role": "tool", "content": step["error"] or step["output"], "name": tool},
        ]
        return step
