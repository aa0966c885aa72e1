"""What must hold of a command that is killed, whichever one it is and whenever it dies.

1. The database files are sound, as SQLite sees them.
2. What is in the tables, the log included, is what was there before or what is there after an undisturbed run (in the
   canonical form of `store.dump()`).
3. The doctor finds nothing: schema, rows, references, indexes, the log against the tables.
4. The same command, given again, comes to the end of an undisturbed run.

`suffer` kills one of the `ORDEALS` at many instants and says what does not hold; a few of them in `make test`
(`tests/core/test_killed_commands.py`), hundreds in `make soak` (`tests/soak_care.py`).
"""

from __future__ import annotations

import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from core.audits import UNUSED_EPOCHS
from core.experience import Delete, Modify
from core.packs import EXPORTERS
from core.workspace import Workspace
from core.workspace.care import Care
from core.workspace.checkup import Checkup
from tests.core.test_packs import HOSTILE, content
from tests.core.test_redact import SECRET, in_files, plant
from tests.killing import Launcher, chosen, fresh_copy, unsound
from tests.make import propose, publish, ticking

MOST_DRAWN = 3
"""So many times as many runs as kills at most."""
State = tuple[str, ...]
"""What is in the tables, a line a row."""


def _nothing_more(folder: Path) -> list[str]:
    return []


class Ordeal(NamedTuple):
    """A command, and the workspace that it is tried on."""

    prepare: Callable[[Workspace], list[str]]
    """Fills a workspace, and puts other files beside its folder; gives the command without its `--workspace`."""
    stdin: str = ""
    twice: bool = True
    """Whether the command, given again when it had come to its end, changes nothing more."""
    passing: tuple[str, ...] = ()
    """What the doctor may find before the command was given again."""
    lasting: tuple[str, ...] = ()
    """What it may find even then: left-overs, which `--fix` removes."""
    also: Callable[[Path], list[str]] = _nothing_more
    """What else is wrong with a folder where the command came to its end."""


@dataclass
class Suffered:
    """What the kills of one command found."""

    changes: int
    """That the undisturbed command makes."""
    took_s: float
    """From its first change to its end; the shortest that was seen."""
    found: Counter[str] = field(default_factory=Counter)
    """Kills by how they went: "killed" or "ended before", and the state that they left: "old", "new"."""
    wrong: list[str] = field(default_factory=list)


def suffer(
    name: str, folder: Path, launcher: Launcher, *, at_changes: int, kills: int, seed: int
) -> Suffered:
    """Kill a command at seeded instants, on a fresh copy of its workspace each time.

    Args:
        name: in `ORDEALS`.
        folder: an empty one.
        launcher: what starts the command.
        at_changes: so many kills right before one of its changes on disk; fewer where it makes fewer.
        kills: so many in all; the others come at random times from its first change to its end. Where such a time comes
            after the end, another one is drawn.
        seed: of both.
    """
    ordeal = ORDEALS[name]
    base, copy = folder / "base", folder / "copy"
    workspace = Workspace(base, clock=ticking())
    command = [*ordeal.prepare(workspace), "--workspace", str(copy)]
    workspace.store.tasks._database.close()

    old = _state(fresh_copy(base, copy))
    calm = launcher.run(command, stdin=ordeal.stdin)
    new = _state(copy)
    suffered = Suffered(calm.changes, calm.took_s)
    suffered.wrong += [
        f"undisturbed: {line}" for line in [*_troubles(ordeal, copy, done=True), *ordeal.also(copy)]
    ]
    if calm.code != 0:
        suffered.wrong.append(f"undisturbed: exit code {calm.code}: {calm.said}")
    rng, instants = random.Random(seed), chosen(calm.changes, at_changes, seed)
    for attempt in range(MOST_DRAWN * kills):
        if suffered.found["killed"] == kills:
            break
        at_change = attempt < len(instants)
        how = {"before": instants[attempt]} if at_change else {"after_s": rng.uniform(0, suffered.took_s)}
        fresh_copy(base, copy)
        ended = launcher.run(command, stdin=ordeal.stdin, **how)  # type: ignore[arg-type]
        if not ended.killed:
            suffered.took_s = min(suffered.took_s, ended.took_s)
        now = _state(copy)
        state = "old" if now == old else "new" if now == new else "NEITHER"
        suffered.found.update(("killed" if ended.killed else "ended before", state))
        wrong = ["neither old nor new"] if state == "NEITHER" else []
        if at_change and not ended.killed:
            wrong.append(f"not killed: {ended.said}")
        wrong += _troubles(ordeal, copy, done=False)
        if ordeal.twice or now == old:
            again = launcher.run(command, stdin=ordeal.stdin)
            if _state(copy) != new:
                wrong.append(f"given again, it comes to another end (exit code {again.code}): {again.said}")
            wrong += [
                f"given again: {line}" for line in [*_troubles(ordeal, copy, done=True), *ordeal.also(copy)]
            ]
        suffered.wrong += [f"{how}: {line}" for line in wrong]
    return suffered


def _state(folder: Path) -> State:
    """The dump without what differs from one run to the next: days, salts, and what restoring adds to the log.

    Whether a redaction was proved is left to the doctor.
    """
    store = Workspace(folder).store
    dump = store.dump()
    store.tasks._database.close()
    added = ("workspace.restored", "was given before a restore")
    lines = [line for line in dump.splitlines() if not any(mark in line for mark in added)]
    lines = [re.sub(r'"(hash|salt|proved_at)":("[^"]*"|null)', r'"\1":""', line) for line in lines]
    return tuple(re.sub(r"\[redacted \d{4}-\d\d-\d\d #", "[redacted DAY #", line) for line in lines)


def _troubles(ordeal: Ordeal, folder: Path, *, done: bool) -> list[str]:
    expected = ordeal.lasting if done else (*ordeal.passing, *ordeal.lasting)
    found = Checkup(Care(folder)).check()
    unexpected = [one for one in found if not one.what.startswith(expected)] if expected else found
    return [*unsound(folder), *(f"the doctor: {one.what} ({one.where})" for one in unexpected)]


# -- the commands ------------------------------------------------------------------------------------

LEFT_OVER = "a left-over of a command that was killed"


def _reviewed(workspace: Workspace) -> None:
    """Two versions, and decisions of each kind that wait to be published."""
    publish(workspace, "First lesson.", "Second lesson.", "Third lesson.")
    publish(workspace, Modify(experience_id="E-0001", text="Changed."), Delete(experience_id="E-0002"))
    ids = propose(
        workspace,
        "Fourth lesson.",
        Modify(experience_id="E-0003", text="Changed, too."),
        "Fifth lesson, 漢字.",
    )
    workspace.review.approve_all(ids, "ann")


def _publish(workspace: Workspace) -> list[str]:
    _reviewed(workspace)
    return ["publish", "-m", "New"]


def _rollback(workspace: Workspace) -> list[str]:
    _reviewed(workspace)
    return ["rollback", "1", "-m", "Back"]


def _import(workspace: Workspace) -> list[str]:
    publish(workspace, "Read the file first.", "Ask once.")
    texts = [*HOSTILE, "Read the FILE first", *(f"Lesson {i} of many." for i in range(10))]
    file = workspace.folder.parent / "lessons.json"
    file.write_bytes(EXPORTERS["json"].write(content(*texts)))
    return ["pack", "import", str(file), "--domain", "sums"]


def _audit(workspace: Workspace) -> list[str]:
    publish(workspace, *(f"Read {n} files." for n in range(1, 9)))
    return ["audit", "unused", "--epoch", str(2 * UNUSED_EPOCHS)]


def _compress(workspace: Workspace) -> list[str]:
    publish(workspace, *(f"Read {n} files." for n in range(1, 9)))
    return ["audit", "compress", "--strategy", "importance", "--to", "3", "--epoch", "1"]


def _redact(workspace: Workspace) -> list[str]:
    plant(workspace, SECRET)
    return ["redact", "--yes", "--reason", "it leaked"]


def _still_there(folder: Path) -> list[str]:
    return [f"the text is in {name}" for name in in_files(folder, SECRET)]


def _backup(workspace: Workspace) -> list[str]:
    publish(workspace, "Read the file first.")
    return ["backup"]


def _broken_backups(folder: Path) -> list[str]:
    """Backups that cannot be restored; or that there is none."""
    backups = sorted((folder / "backups").glob("winnow-*.zip"))
    for path in backups:
        with tempfile.TemporaryDirectory() as name:
            Care(Path(name) / "w", ticking()).restore(path, "ann")
    return [] if backups else ["there is no backup"]


def _restore(workspace: Workspace) -> list[str]:
    publish(workspace, "Read the file first.")
    made = Care(workspace.folder, ticking()).backup(workspace.folder.parent / "b.zip", "ann")
    publish(workspace, "A lesson that came after the backup.")
    return ["restore", str(made.path)]


ORDEALS = {
    "publish": Ordeal(_publish, twice=False),
    "rollback": Ordeal(_rollback, twice=False),
    "import": Ordeal(_import),
    "redact": Ordeal(
        _redact,
        stdin=SECRET,
        passing=("a redaction after which the files were not found clean",),
        lasting=(LEFT_OVER,),
        also=_still_there,
    ),
    "audit": Ordeal(_audit),
    "compress": Ordeal(_compress),
    "backup": Ordeal(_backup, lasting=(LEFT_OVER,), also=_broken_backups),
    "restore": Ordeal(_restore, lasting=(LEFT_OVER,)),
}
