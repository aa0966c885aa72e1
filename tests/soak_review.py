"""`python -m tests.soak_review`: many processes review and publish on one workspace; nothing may be lost or done twice.

Each process is a reviewer: it takes the next proposal, decides on it in one of several ways, and publishes now and then
on the version that it saw. What each of them was told is held against the tables afterwards, and the tables against the
log.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from core.errors import ApplyError, BusyError, InputError, StaleVersionError
from core.store.replay import compare
from core.workspace import Workspace
from tests.make import propose


@dataclass
class Told:
    """What one reviewer was told."""

    name: str
    decided: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Status and text of each proposal as this reviewer left it."""
    published: list[int] = field(default_factory=list)
    taken: int = 0
    """So often somebody else took a proposal that had just been put back."""
    moved: int = 0
    """So often somebody else had published in between."""
    troubles: list[str] = field(default_factory=list)
    longest_s: float = 0.0
    """The longest single command."""


def prepare(folder: Path, proposals: int) -> None:
    workspace = Workspace(folder)
    propose(workspace, *(f"Lesson number {i} says this." for i in range(proposals)))


def review(folder: Path, name: str, seed: int, decisions: int, publishes: int) -> Told:
    """Decide so many times and publish so many times; both are spread over the whole."""
    workspace, rng, told = Workspace(folder), random.Random(seed), Told(name)
    while len(told.decided) < decisions or len(told.published) < publishes:
        started = time.monotonic()
        try:
            if len(told.decided) < decisions:
                _decide(workspace, name, rng, told)
            due = len(told.decided) * publishes >= decisions * (len(told.published) + 1)
            if due or len(told.decided) >= decisions:
                _publish(workspace, name, told)
        except Exception as e:  # noqa: BLE001  # a trouble is what this looks for
            told.troubles.append(f"{type(e).__name__}: {e}")
            return told
        told.longest_s = max(told.longest_s, time.monotonic() - started)
    return told


def _decide(workspace: Workspace, name: str, rng: random.Random, told: Told) -> None:
    found = workspace.review.next(name, minutes=60)
    assert found is not None, "the proposals ran out"
    way = rng.choice(("approve", "approve", "approve", "edit", "reject", "defer", "undo"))
    if way == "approve":
        done = workspace.review.approve(found.id, name, revision=found.revision)
    elif way == "edit":
        done = workspace.review.approve(found.id, name, text=f"{found.id} as {name} would say it.")
    elif way == "reject":
        done = workspace.review.reject(found.id, f"{name} says no", name)
    elif way == "defer":
        done = workspace.review.defer(found.id, "later", name)
    else:
        deferred = workspace.review.defer(found.id, "later", name)
        undone = workspace.review.undo(found.id, name, revision=deferred.revision)
        try:
            done = workspace.review.reject(found.id, "after all, no", name, revision=undone.revision)
        except (ApplyError, BusyError, InputError):  # it was free for a moment, and somebody else took it
            told.taken += 1
            return
    told.decided[found.id] = (done.status, done.effective.text)  # type: ignore[union-attr]


def _publish(workspace: Workspace, name: str, told: Told) -> None:
    """Publish on the version that was seen; where there is nothing to publish, propose and approve something."""
    parent = workspace.store.versions.head()
    try:
        version = workspace.review.publish(f"{name}, no. {len(told.published) + 1}", name, parent=parent)
    except StaleVersionError:
        told.moved += 1
        return
    except InputError:  # somebody else has just published all there was
        [own] = propose(workspace, f"Lesson of {name}, number {len(told.published)} and {parent}.")
        told.decided[own] = ("approved", workspace.review.approve(own, name).effective.text)  # type: ignore[union-attr]
        return
    except ApplyError as e:
        told.troubles.append(f"publish: {e}")
        raise
    told.published.append(version.number)


def at_once(folder: Path, processes: int, decisions: int, publishes: int) -> list[Told]:
    """Let so many reviewers, each a process, make so many decisions each and so many publishes in all."""
    prepare(folder, processes * decisions)
    shares = [publishes // processes + (i < publishes % processes) for i in range(processes)]
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        work = [pool.submit(review, folder, f"reviewer {i}", i, decisions, n) for i, n in enumerate(shares)]
        return [w.result() for w in work]


def wrong(folder: Path, told: Sequence[Told]) -> list[str]:
    """What is not as the reviewers were told, or not as the log tells."""
    found = [f"{t.name}: {trouble}" for t in told for trouble in t.troubles]
    store = Workspace(folder).store
    by_id = {p.id: p for p in store.proposals.every()}
    times = Counter(i for t in told for i in t.decided)
    found += [f"{i} was given to {n} reviewers" for i, n in times.items() if n > 1]
    for t in told:
        for proposal_id, (status, text) in t.decided.items():
            now = by_id[proposal_id]
            expected = (status,) if status != "approved" else ("approved", "published")
            if now.status not in expected or now.effective.text != text or now.decided_by != t.name:  # type: ignore[union-attr]
                found.append(f"{t.name} left {proposal_id} as {status}: {text!r}, but it is {now!r}")
    published = sorted(n for t in told for n in t.published)
    versions = {v.number: v for v in store.versions.newest(10**9)}
    if published != list(range(1, store.versions.head() + 1)):
        found.append(
            f"the reviewers published {published}, but the newest version is {store.versions.head()}"
        )
    taken = Counter(i for v in versions.values() for i in v.proposal_ids)
    found += [f"{i} was published {n} times" for i, n in taken.items() if n > 1]
    texts = Counter(e.text for e in store.versions.library())
    wanted = Counter(p.effective.text for p in by_id.values() if p.status == "published")  # type: ignore[union-attr]
    if texts != wanted:
        found.append(f"the library differs from what was published: {texts - wanted}, {wanted - texts}")
    with closing(sqlite3.connect(folder / "winnow.db")) as db:
        found += [f"integrity: {row}" for (row,) in db.execute("PRAGMA integrity_check") if row != "ok"]
    return found + compare(store)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--decisions", type=int, default=200, help="of each process")
    parser.add_argument("--publishes", type=int, default=50, help="of all of them together")
    options = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "workspace"
        told = at_once(folder, options.processes, options.decisions, options.publishes)
        found = wrong(folder, told)
    sys.stdout.write(
        f"{options.processes} processes, {sum(len(t.decided) for t in told)} decisions, "
        f"{sum(len(t.published) for t in told)} publishes, {sum(t.moved for t in told)} refused since the library had "
        f"moved, longest command {max(t.longest_s for t in told):.2f} s, {time.monotonic() - started:.0f} s in all; "
        f"wrong: {len(found)}\n"
    )
    for line in found[:20]:
        sys.stdout.write(line[:500] + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
