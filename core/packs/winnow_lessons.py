"""Lessons for a frozen model, shipped by Winnow: this one file, and nothing but Python's standard library.

    import winnow_lessons

    lessons = winnow_lessons.load()
    injection = lessons.inject(domain="capitals", budget_tokens=2000)
    ...                                     # injection.text goes into the system prompt
    lessons.log(
        "usage.jsonl", injection, task="t-1", outcome=1.0, followed=injection.cited(reply), model="my-model"
    )

`winnow usage import usage.jsonl` reads the log back, so that lessons keep earning or losing confidence. It holds ids,
checksums and outcomes, never a prompt or a reply. For a contrast it takes several attempts at one task under one
configuration: give them the same `task`.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import uuid
import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

EMBEDDED: str | None = None
"""A pack.json as text; with None, the file pack.json beside this one is read."""

HEADER = "Lessons from earlier attempts. Follow the ones that apply:"
INDENT = "    "
GENERAL = "general"
"""The domain whose lessons go with every task."""

MAX_BYTES = 32 * 2**20
"""Of a pack.json in a zip."""
WHOLE_LIBRARY = 50
TOP_K = 5
CONFIDENCE_WEIGHT = 0.2
CAPS = {"convention": 2, "tool_selection": 2, "failure_pattern": 1}

_EXPORT = "`winnow pack export --form loader` writes this module with the lessons in it"
_BREAK = re.compile("(\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])")
_LETTERS = re.compile("[A-Z]?[a-z]+|[A-Z]+")
_SINGLES = re.compile(r"[!-/:-@\[-`{-~\d\n\t\r]| (?=\d)", re.ASCII)
_CITED = re.compile(r"\[(G\d+)\]", re.ASCII)


@dataclass(frozen=True)
class Lesson:
    """One lesson of the pack."""

    id: str
    text: str
    kind: str
    domain: str
    confidence: float

    @property
    def mark(self) -> str:
        """Names the text in a log without telling it."""
        return hashlib.sha256(self.text.encode("utf-8")).hexdigest()[:16]


@dataclass(frozen=True)
class Injection:
    """The text for the system prompt, and which lesson stands behind each label."""

    text: str = ""
    labels: dict[str, Lesson] = field(default_factory=dict)
    domain: str | None = None

    def cited(self, reply: str) -> list[str]:
        """Labels of the injected lessons that a reply names, e.g. ["G0"]."""
        found = dict.fromkeys(_CITED.findall(reply))
        return [label for label in found if label in self.labels]


class Lessons:
    """The lessons of one pack."""

    def __init__(self, pack: dict[str, Any], sha256: str = "") -> None:
        if str(pack.get("schema_version", "")).partition(".")[0] != "1":
            raise ValueError("this is no pack.json of format 1")
        self.name = str(pack["name"])
        self.version = int(pack["version"]["number"])
        self.sha256 = sha256
        """Of the pack.json that the lessons were read from."""
        self.lessons = tuple(
            Lesson(e["id"], e["text"], e["kind"], e["domain"], float(e["confidence"]))
            for e in pack["experiences"]
        )

    def inject(
        self,
        domain: str | None = None,
        budget_tokens: int | None = None,
        count_tokens: Callable[[str], int] | None = None,
    ) -> Injection:
        """The text that Winnow itself injects for a task of a domain under a token budget.

        Args:
            domain: of the task: its own lessons and the general ones are taken; None takes those of all domains.
            budget_tokens: that the text may take; None takes the library whole, however long.
            count_tokens: of your model's tokenizer; without one, tokens are estimated.
        """
        count = count_tokens or estimate_tokens
        candidates = [e for e in self.lessons if domain is None or e.domain in (domain, GENERAL)]
        candidates.sort(key=_id_order)
        whole = budget_tokens is None or (
            len(candidates) <= WHOLE_LIBRARY
            and (not candidates or count(render(candidates)) <= budget_tokens)
        )
        if not whole:
            candidates = _from_top(candidates, budget_tokens or 0, count)
        labels = {f"G{i}": e for i, e in enumerate(candidates)}
        return Injection(render(candidates), labels, domain)

    def log(
        self,
        path: str | os.PathLike[str],
        injection: Injection,
        task: str = "",
        outcome: float | None = None,
        followed: Iterable[str] | None = None,
        model: str = "",
    ) -> None:
        """Append one attempt to a usage log (JSON lines); several processes may write to one file.

        Args:
            path: of the log.
            injection: what was injected.
            task: which task it was; attempts at one task are compared with each other.
            outcome: from 0 (failed) to 1 (solved); None where it is not known, which is not the same as 0.
            followed: labels or ids of the lessons that the attempt cited or followed; None where nobody looked.
            model: that answered.
        """
        if outcome is not None and not 0 <= outcome <= 1:
            raise ValueError("an outcome lies in [0, 1], or is None")
        entry = {
            "winnow_usage": 1,
            "entry": uuid.uuid4().hex,
            "at": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),  # noqa: UP017  # Python 3.9, too
            "pack": {"name": self.name, "version": self.version, "sha256": self.sha256},
            "domain": injection.domain,
            "task": str(task),
            "model": str(model),
            "injected": {e.id: e.mark for e in injection.labels.values()},
            "followed": None if followed is None else _ids(followed, injection),
            "outcome": None if outcome is None else float(outcome),
        }
        line = json.dumps(entry, ensure_ascii=True, separators=(",", ":")) + "\n"
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(handle, line.encode("ascii"))
        finally:
            os.close(handle)


def load(path: str | os.PathLike[str] | None = None) -> Lessons:
    """The lessons of the pack at `path` (its zip or its pack.json).

    Without one it is the embedded lessons, else those of the pack.json beside this file.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no pack.
    """
    if path is None and EMBEDDED is not None:
        data = EMBEDDED.encode("utf-8")
    else:
        data = _read(path or os.path.join(os.path.dirname(os.path.abspath(__file__)), "pack.json"))
    try:
        pack = json.loads(data.decode("utf-8"))
    except ValueError:
        pack = None
    if not isinstance(pack, dict):
        raise ValueError(f"{path or 'pack.json'} is no pack of Winnow; {_EXPORT}")
    return Lessons(pack, hashlib.sha256(data).hexdigest())


def _read(path: str | os.PathLike[str]) -> bytes:
    """A pack.json, also out of the zip of a pack."""
    if os.path.isdir(path) or not os.path.exists(path):
        raise FileNotFoundError(f"there is no file {path}; {_EXPORT}")
    with open(path, "rb") as file:
        if file.read(4) != b"PK\x03\x04":
            file.seek(0)
            return file.read()
        try:
            with zipfile.ZipFile(file) as archive, archive.open("pack.json") as member:
                data = member.read(MAX_BYTES + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, RuntimeError) as e:
            raise ValueError(f"{path} is a zip without a pack.json that can be read; {_EXPORT}") from e
    if len(data) > MAX_BYTES:
        raise ValueError(f"the pack.json in {path} has more than {MAX_BYTES} bytes; that much is not read")
    return data


def render(lessons: Sequence[Lesson]) -> str:
    """The header and a line `[G0] text` for each lesson; empty where there is none."""
    lines = [f"[G{i}] " + _BREAK.sub(r"\1" + INDENT, e.text) for i, e in enumerate(lessons)]
    return "\n".join([HEADER, *lines]) if lines else ""


def estimate_tokens(text: str) -> int:
    """About how many tokens a text takes; meant to be rather too high."""
    runs = sum(max(1.2, len(run) / (2.0 if run.isupper() else 3.2)) for run in _LETTERS.findall(text))
    singles = len(_SINGLES.findall(text))
    other = sum(len(c.encode("utf-8", "replace")) for c in text if not c.isascii())
    return math.ceil(runs + singles + 0.9 * other)


def _from_top(candidates: Sequence[Lesson], budget: int, count: Callable[[str], int]) -> list[Lesson]:
    """The most confident first, at most TOP_K and at most CAPS of a kind, as long as they fit the budget."""
    chosen: list[Lesson] = []
    kinds: dict[str, int] = {}
    ranked = sorted(candidates, key=lambda e: (-round(CONFIDENCE_WEIGHT * e.confidence, 5), *_id_order(e)))
    for lesson in ranked:
        if len(chosen) >= TOP_K:
            break
        if kinds.get(lesson.kind, 0) >= CAPS.get(lesson.kind, TOP_K):
            continue
        if count(render([*chosen, lesson])) > budget:
            continue
        chosen.append(lesson)
        kinds[lesson.kind] = kinds.get(lesson.kind, 0) + 1
    return chosen


def _id_order(lesson: Lesson) -> tuple[int, str]:
    return len(lesson.id), lesson.id


def _ids(named: Iterable[str], injection: Injection) -> list[str]:
    by_id = {e.id: e for e in injection.labels.values()}
    found = {(injection.labels[n] if n in injection.labels else by_id[n]).id: None for n in named}
    return list(found)
