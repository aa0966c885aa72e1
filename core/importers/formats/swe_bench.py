"""What SWE-bench says of patches: its reports, which runs of agents stand beside, and which instance a file is about.

1. A report of a run lists ids (`resolved_ids`, `unresolved_ids`, ...; older ones `resolved`, `generated`, ...); the
   report of an instance says `{"<id>": {"resolved": true, ...}}`.
2. An empty patch, and one that does not apply, resolves nothing: 0. An evaluation that failed says nothing.
3. A report beside a trajectory counts, or one folder up where its folder is named after the instance. In the folder
   above several runs it would say nothing of any one of them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from core.importers.attempt import Remark, Seen
from core.importers.dialects import Conversation
from core.importers.getting import as_list, as_text, at
from core.importers.opened import Opened

_RESOLVED = ("resolved_ids", "resolved")
_NOT_RESOLVED = (
    "unresolved_ids",
    "empty_patch_ids",
    "unresolved",
    "no_generation",
    "generated",
    "applied",
    "no_apply",
)
_NOT_EVALUATED = (
    "error_ids",
    "incomplete_ids",
    "install_fail",
    "reset_failed",
    "test_errored",
    "test_timeout",
)
_INSTANCE = re.compile(r"[A-Za-z0-9_.-]+__[A-Za-z0-9_.-]+-\d+")
_ENDINGS = (".gz", ".json", ".jsonl", ".traj")

OUR_OWN = "winnow-"
"""How folders begin that are made for what was uploaded or unpacked."""

MAX_REPORT = 32_000_000
"""Bytes of a report; a larger file is not looked at."""
MOST_FILES = 60
"""Files of a folder that are looked at; in a fuller one only those that are named as reports are."""


class Verdicts(NamedTuple):
    """What the reports beside a file say."""

    resolved: dict[str, bool]
    """By instance id; an instance of which nothing is said, or not the same everywhere, is not there."""
    remarks: tuple[Remark, ...] = ()

    def scores(self, instance: str | None) -> dict[str, Seen]:
        """The score of an attempt at an instance; nothing where nothing is said of it."""
        known = self.resolved.get(instance or "")
        return {} if known is None else {"resolved": Seen(value=float(known))}


def rewards_of_report(value: Any) -> dict[str, float] | None:
    """1 or 0 for each instance that a report of SWE-bench says something of; None for what is no such report."""
    if not isinstance(value, dict):
        return None
    if any(isinstance(value.get(k), list) for k in _RESOLVED):
        not_told = _ids(value, _NOT_EVALUATED)
        rewards = {i: 0.0 for i in _ids(value, _NOT_RESOLVED) if i not in not_told}
        return rewards | dict.fromkeys(_ids(value, _RESOLVED), 1.0)
    if value and all(isinstance(at(v, "resolved"), bool) for v in value.values()):
        return {as_text(k): float(v["resolved"]) for k, v in value.items()}
    return None


def verdicts(opened: Opened) -> Verdicts:
    """What the reports beside a file say, or those one folder up."""
    folders = [opened.path.parent]
    if opened.path.parent.name == stem_of(opened.path):
        folders.append(opened.path.parent.parent)
    for folder in folders:
        found = list(_reports(folder, opened)) if folder.is_relative_to(opened.root) else []
        if found:
            return _joined(found, opened)
    return Verdicts({})


def stem_of(path: Path) -> str:
    """The name of a file without its endings: `a__b-1.traj.json` is a__b-1."""
    name = path.name
    while name.endswith(_ENDINGS):
        name = name.rsplit(".", 1)[0]
    return name


def instance_of(opened: Opened) -> str | None:
    """The instance that a file is named after: as its folder is, or as the instances of SWE-bench are."""
    stem = stem_of(opened.path)
    return as_text(stem) if stem == opened.path.parent.name or _INSTANCE.fullmatch(stem) else None


def run_of(opened: Opened) -> str:
    """The run that a file belongs to: the name of the folder around it, or around the folder of its instance.

    It does not depend on which folder was named for the import. A folder that an upload was put into is no run.
    """
    folder = opened.path.parent
    folder = folder.parent if folder.name == stem_of(opened.path) else folder
    ours = folder == opened.root and any(part.startswith(OUR_OWN) for part in folder.parts)
    return "" if ours else as_text(folder.name)


def namespace_of(instance: str | None) -> str:
    """Ids as SWE-bench and its kin give them are unique among all of them; of others nothing is known."""
    return "SWE-bench" if _INSTANCE.fullmatch(instance or "") else ""


def id_of(talk: Conversation, *facts: str) -> str:
    """An id that an attempt keeps when a report comes to stand beside it: a digest of what was said and done.

    How it is made never changes: workspaces know by it what came in.

    Args:
        talk: all of it, with how long each step took.
        facts: what else may tell apart two attempts that went the same way: the run, how it ended, its costs.
    """
    parts = [*facts]
    for message in talk.messages:
        parts += (message.role, message.content)
    parts += [str(step.duration_s) for step in talk.steps]
    told = "\0".join((*parts, "")).encode("utf-8", "replace")
    return hashlib.blake2b(told, digest_size=16).hexdigest()


def _ids(report: dict[str, Any], lists: tuple[str, ...]) -> set[str]:
    return {text for name in lists for i in as_list(report.get(name)) if (text := as_text(i))}


def _reports(folder: Path, opened: Opened) -> Iterator[tuple[Path, dict[str, float]]]:
    names = [p for p in sorted(folder.glob("*.json")) if p != opened.path and not _is_none(p.name)]
    if len(names) > MOST_FILES:
        names = [p for p in names if re.search("report|result|eval", p.name)][:MOST_FILES]
    for path in names:
        try:
            data = path.read_bytes() if path.stat().st_size <= MAX_REPORT else b""
            rewards = rewards_of_report(json.loads(data)) if b'"resolved' in data else None
        except (OSError, ValueError, RecursionError):
            continue
        if rewards is not None:
            yield path, rewards


def _is_none(name: str) -> bool:
    """Whether a file is known by its name to be no report: predictions, trajectories."""
    return name.endswith(".traj.json") or "preds" in name


def _joined(found: list[tuple[Path, dict[str, float]]], opened: Opened) -> Verdicts:
    resolved: dict[str, bool] = {}
    unsure: set[str] = set()
    for path, rewards in found:
        opened.used.add(path.resolve())
        for instance, reward in rewards.items():
            if resolved.setdefault(instance, reward == 1.0) != (reward == 1.0):
                unsure.add(instance)
    names = ", ".join(path.name for path, _ in found[:3])
    remarks = [Remark(text=f"Whether an instance was resolved was read from {names}.")]
    if unsure:
        remarks.append(Remark(text=f"The reports {names} disagree on some instances, which stay ungraded."))
    return Verdicts({i: known for i, known in resolved.items() if i not in unsure}, tuple(remarks))
