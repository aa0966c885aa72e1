"""The first half of an import: from files to attempts, each with its group, and told apart from those that are known.

1. Files are read one record at a time. What was read lies in a spool on disk, in small transactions, with how many
   records of each file are in it: an import that was interrupted goes on there.
2. The same attempt twice counts once: known by its content, or by an id of its own. Attempts that nothing tells apart
   (neither number nor id nor an exact duration) are attempts of their own within a file, and one in copies of it.
   What stands at a place of a file that came in before is known, though it reads otherwise now (a neighbouring file
   changed, or Winnow reads more of it): only a reward that was missing is taken from it.
3. An attempt that is known by an id of its own, and that went on since, takes the place of its earlier state.
4. Another attempt under a number that is taken, or under such an id, is a conflict: it is set aside, and told.
5. Secrets are masked before anything is written.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from core.errors import InputError, WinnowError
from core.experience import check_domain
from core.importers.attempt import Aside, Attempt, Found, Remark, Seen, TraceFormat
from core.importers.finding import Located, located, no_data, unknown
from core.importers.formats import FORMATS
from core.importers.going_on import goes_on, tells_as_much, with_scores_of
from core.importers.grouping import group_key, identity, own_task_id, question_key, small, task_key
from core.importers.masking import Masker
from core.importers.opened import DAMAGED, Opened
from core.importers.report import FileRead, ImportOptions
from core.importers.source import MAX_RAW, bounded, printable, storable
from core.packs.content import kept_name
from core.ports import Progress
from core.record import canonical_json, content_hash
from core.reward import RECORDED
from core.rollout import Step
from core.store.database import Row
from core.store.recorded import Earlier
from core.store.spool import FAULTS, Fate, Spool, Twin

CHUNK = 2**20
SMALL_FILES = 100
"""Of files of less than a chunk, one among so many is told of as progress: a folder may hold thousands."""
NO_QUESTION = "(The file tells no question.)"


class Here(Protocol):
    """What the workspace knows of attempts that came in before."""

    def rollout_of(self, identity: str) -> str | None: ...

    def rollout_of_place(self, file: str, place: str) -> str | None: ...

    def of_id(self, own_id: str) -> Earlier | None: ...

    def group_key_of(self, rollout_id: str) -> str | None: ...

    def task_of(self, key: str) -> str | None: ...

    def rollout_of_number(self, group_key: str, scope: str, repeat: int) -> str | None: ...


class Nowhere:
    """A workspace that knows nothing."""

    def rollout_of(self, identity: str) -> str | None:
        return None

    def rollout_of_place(self, file: str, place: str) -> str | None:
        return None

    def of_id(self, own_id: str) -> Earlier | None:
        return None

    def group_key_of(self, rollout_id: str) -> str | None:
        return None

    def task_of(self, key: str) -> str | None:
        return None

    def rollout_of_number(self, group_key: str, scope: str, repeat: int) -> str | None:
        return None


def _check_domain(domain: str) -> None:
    try:
        check_domain(domain)
    except ValueError as e:
        raise InputError(f"New tasks cannot be given the domain {domain[:60]!r}: {e}.") from e


def format_named(name: str) -> TraceFormat:
    """The format of a name.

    Raises:
        InputError: there is none.
    """
    for each in FORMATS:
        if each.name == name:
            return each
    raise InputError(
        f"There is no format {name!r} of recorded rollouts; use one of: {', '.join(f.name for f in FORMATS)}."
    )


def recognised(opened: Opened) -> TraceFormat | None:
    """The first format that a file is in, by its content; None where it is in none."""
    return next((each for each in FORMATS if each.recognises(opened)), None)


class _Placed(NamedTuple):
    """Where an attempt belongs."""

    task_id: str | None
    """The file's own."""
    question: str
    """Key of the question."""
    task: str
    group: str
    scope: str
    """What its number counts within: its recorded run, else the file; in a mixed group that of one model and agent."""
    content: str
    """Hash of all that it says."""
    known_as: str
    """The same; of equal records that are attempts of their own, with their number."""


class _Became(NamedTuple):
    """What becomes of an attempt."""

    fate: Fate
    rollout_id: str | None = None
    """The rollout that it is already, or that is in its place."""
    why: str = ""
    """It is a conflict."""
    changed: bool = False
    """It is known by its place or its id, and reads otherwise now: a reward that was missing is taken from it."""
    went_on: bool = False
    """It is known by its id, and goes on from what is here."""
    earlier: Earlier | None = None
    """What is here under its id, where that says something else."""
    twin: Twin | None = None
    """What was read under its id, where that says something else."""


class Gathering:
    """Reads files into a spool."""

    def __init__(self, spool: Spool, options: ImportOptions, here: Here, progress: Progress) -> None:
        """
        Args:
            spool: where to.
            options: how they are read.
            here: what is known.
            progress: told of bytes read of each file.

        Raises:
            InputError: there is no such format, or a domain cannot be called so.
        """
        self._spool, self._options, self._here, self._progress = spool, options, here, progress
        self._forced = format_named(options.format) if options.format else None
        if options.domain is not None:
            _check_domain(options.domain)
        self._masker = None if options.keep_secrets else Masker()
        self._read_as = ""
        """Hash of the file that is read, and of how."""

    def take(self, paths: Sequence[Path | str], scratch: Path) -> None:
        """Read all that is meant.

        Args:
            paths: files, folders, patterns, archives.
            scratch: where archives are unpacked.

        Raises:
            InputError: there is no such file, an archive cannot be unpacked, or the format that was named is none.
        """
        for found in located(
            paths, scratch, recognised
        ):  # a format that was named is of what an archive holds
            if isinstance(found, FileRead):
                self._spool.left(found.name, kept_name(printable(found.name)), found.became, found.reason)
            else:
                self._file(found._replace(name=kept_name(printable(found.name))))
        self._spool.settle_files()

    def _format_of(self, opened: Opened) -> TraceFormat | None:
        return self._forced or recognised(opened)

    def _file(self, file: Located) -> None:
        opened = Opened(file.path, file.name, file.root, self._options.mapping)
        path, unread = str(file.path.resolve()), "not read" if file.named else "skipped"
        try:
            reason, form = no_data(opened), None
            form = None if reason else self._format_of(opened)
        except InputError as e:
            reason = _clause(e, file.name)
        if form is None:
            reason = reason or unknown(opened)
            self._spool.left(path, file.name, unread, reason)
            return
        sha256 = _hash(opened)
        self._read_as = content_hash([sha256, form.name, dict(self._options.mapping)])
        number, there = self._spool.begin(path, file.name, sha256, self._read_as, form.title)
        if there >= 0:
            self._records(opened, form, number, there)

    def _records(self, opened: Opened, form: TraceFormat, number: int, there: int) -> None:
        """Read a file on from a record; what ends it too early is told."""
        reason = ""
        try:
            for found in islice(self._watched(opened, form, number), there, None):
                self._kept(found, opened, form, number)
                self._spool.tick(number)
        except InputError as e:
            reason = _clause(e, opened.name)
        except FAULTS:  # ours: what was not written down is read again the next time
            raise
        except Exception as e:  # noqa: BLE001  # foreign values: a fault of one reader must not stop the other files
            reason = (
                f"its reader failed ({type(e).__name__}: {e}), which is a fault of Winnow's; please report it"
            )
        reason = self._told(reason)
        if opened.encoding:
            self._spool.remark(number, f"The file was read as {opened.encoding}.")
        read = self._spool.rows("SELECT 1 FROM attempts WHERE file = ? LIMIT 1", number)
        if reason and read:  # what came before stands
            self._spool.aside(number, opened.name, "", reason, "")
        self._remember_masked()
        neighbours = [str(path) for path in opened.used]
        self._spool.end(number, neighbours, "read" if read or not reason else "not read", reason)

    def _watched(self, opened: Opened, form: TraceFormat, number: int) -> Iterator[Found]:
        size = max(opened.path.stat().st_size, 1)
        if size < CHUNK and number % SMALL_FILES != 1:
            yield from form.read(opened)
            return
        for count, found in enumerate(form.read(opened)):
            if count % 50 == 0:
                self._progress(f"reading {opened.name}", min(opened.position, size), size)
            yield found
        self._progress(f"reading {opened.name}", size, size)

    def _kept(self, found: Found, opened: Opened, form: TraceFormat, number: int) -> None:
        """Keep one record; one that cannot be kept is set aside."""
        try:
            self._record(found, opened, form, number)
        except (WinnowError, *FAULTS):
            raise
        except Exception as e:  # noqa: BLE001  # foreign values: one must not stop the others
            place = "" if isinstance(found, Remark) else found.place
            reason = f"it could not be kept ({type(e).__name__}: {e}), which is a fault of Winnow's; please report it"
            self._spool.aside(number, opened.name, place, self._told(reason), "")

    def _record(self, found: Found, opened: Opened, form: TraceFormat, number: int) -> None:
        match found:
            case Attempt():
                self._attempt(_sound(found), opened, form, number)
            case Aside():
                found = found if self._masker is None else self._masker.mask(found)
                self._spool.aside(
                    number,
                    opened.name,
                    found.place,
                    storable(found.reason),
                    storable(bounded(found.raw, MAX_RAW)),
                )
            case _:
                self._spool.remark(number, self._told(found.text))
        self._remember_masked()

    def _told(self, text: str) -> str:
        """A sentence that may quote the file, as it is stored."""
        return storable(text if self._masker is None else self._masker.mask(Remark(text=text)).text)

    def _attempt(self, attempt: Attempt, opened: Opened, form: TraceFormat, number: int) -> None:
        placed = self._place(attempt, opened, number)
        became = self._becomes(attempt, placed)
        masked = attempt
        if became.fate in ("new", "conflict") and self._masker is not None:
            masked = self._masker.mask(attempt)
        if became.twin is None:
            self._keep(attempt, masked, placed, became, opened, form, number)
            return
        beside = self._beside(became, became.twin, masked, placed.task)
        if isinstance(beside, _Became):
            self._keep(attempt, masked, placed, beside, opened, form, number)
            return
        self._spool.supersede(became.twin.seq, number)
        fate: Fate = "conflict"
        try:
            attempt, masked = with_scores_of(attempt, beside), with_scores_of(masked, beside)
            fate = self._keep(attempt, masked, placed, self._becomes(attempt, placed), opened, form, number)
        finally:
            if fate == "conflict":  # or it could not be kept at all: then the earlier state stands
                self._spool.revive(became.twin.seq)
        if fate != "conflict":
            self._spool.remark(
                number,
                "An attempt was read in an earlier state, too; the later one is taken, with the scores that only the "
                "earlier one has.",
            )

    def _keep(
        self,
        attempt: Attempt,
        masked: Attempt,
        placed: _Placed,
        became: _Became,
        opened: Opened,
        form: TraceFormat,
        number: int,
    ) -> Fate:
        """Keep an attempt with what becomes of it, which is told."""
        if became.earlier is not None:
            became = self._against(became, became.earlier, masked, placed, number)
        if became.fate == "conflict":
            raw = bounded(masked.model_dump_json(), MAX_RAW)
            self._record(Aside(place=attempt.place, reason=became.why, raw=raw), opened, form, number)
        if became.fate == "new" and not self._spool.has_task(placed.task):
            body = _task_body(masked)
            self._spool.add_task(placed.task, attempt.namespace, placed.task_id, placed.question, body)
        if became.fate == "known" and became.rollout_id:  # it stays in the group that it came into
            placed = placed._replace(group=self._here.group_key_of(became.rollout_id) or placed.group)
        row = {"file": number, "title": form.title} | _row(attempt, placed, became)
        scores = [(name, seen.value, seen.guessed) for name, seen in attempt.scores.items()]
        self._spool.add(
            row, scores, masked.model_dump_json() if became.fate == "new" or became.went_on else None
        )
        return became.fate

    def _place(self, attempt: Attempt, opened: Opened, number: int) -> _Placed:
        options = self._options
        task_id, question = own_task_id(attempt, options.task_field), question_key(attempt.question)
        task = task_key(attempt, task_id, question, options.group_by)
        file = hashlib.sha256(str(opened.path.resolve()).encode()).hexdigest()[:16]
        content, scope = identity(attempt), attempt.run or f"file {file}"
        if options.mix_models:  # numbers count anew for each model and agent
            scope = f"{scope}, {group_key(task, attempt)[:16]}"
        return _Placed(
            task_id=task_id,
            question=question,
            task=task,
            group=group_key(task, attempt, mixed=options.mix_models),
            scope=scope,
            content=content,
            known_as=self._told_apart(attempt, number, content),
        )

    def _becomes(self, attempt: Attempt, placed: _Placed) -> _Became:
        became = self._fate(attempt, placed)
        if became.fate in ("new", "conflict"):
            there = self._here.rollout_of_place(self._read_as, attempt.place)
            if there is not None:
                return _Became("known", there, changed=True)
        return became

    def _beside(self, became: _Became, twin: Twin, masked: Attempt, task: str) -> _Became | Attempt:
        """What becomes of an attempt of whose id another state was read; that one, where it is an earlier state."""
        there = Attempt.model_validate_json(self._spool.body(twin.seq))
        now = Attempt.model_validate_json(masked.model_dump_json())
        if task != twin.task or (there.model and now.model and there.model != now.model):
            return became
        if goes_on(now.trajectory, there.trajectory):
            return _Became("duplicate") if with_scores_of(there, now) is there else became
        if tells_as_much(now, there):
            return _Became("duplicate")
        return there if goes_on(there.trajectory, now.trajectory) or tells_as_much(there, now) else became

    def _against(
        self, became: _Became, earlier: Earlier, masked: Attempt, placed: _Placed, number: int
    ) -> _Became:
        """What becomes of an attempt under a known id: it went on, it is an earlier state, or it is a conflict."""
        there = earlier.rollout
        now = Attempt.model_validate_json(masked.model_dump_json()).trajectory  # as it would be read again
        scores = {name: seen.value for name, seen in masked.scores.items() if seen.value is not None}
        agree = all(scores.get(n) == value for n, value in earlier.scores.items() if value is not None)
        if now == there.trajectory:
            if masked.error != there.error:
                return became
            if all(earlier.scores.get(name) == value for name, value in scores.items()):
                return _Became("known", there.id)  # it tells the same, or less
            return _Became("known", there.id, changed=True) if agree else became
        if goes_on(now, there.trajectory):
            return _Became("known", there.id)
        if self._here.task_of(placed.task) != there.task_id or not goes_on(there.trajectory, now):
            return became
        if there.model and there.model != masked.model:
            self._spool.remark(
                number,
                "A session that went on names another model now; it stays in the group that it came into.",
            )
        rewarded = there.components.get(RECORDED) is not None and not scores
        if there.accepted is not None or rewarded:
            self._spool.remark(
                number,
                "A session that went on had been accepted, rejected or given a reward in its earlier state; that stays "
                "with it until it is said anew.",
            )
        return _Became("known", there.id, went_on=True)

    def _told_apart(self, attempt: Attempt, number: int, content: str) -> str:
        """What the attempt is known by when it comes again.

        The same content twice in a file is the same attempt where something should have told two apart.
        """
        duration = attempt.duration_s or 0.0
        measured = round(duration, 2) != duration  # no two attempts take the same time to the millisecond
        if attempt.repeat is None and attempt.own_id is None and not measured:
            times = self._spool.times(number, content)
            if times:
                self._spool.remark(
                    number,
                    "An attempt repeats another one of the file word for word, and nothing tells whether it is the "
                    "same; it counts as an attempt of its own.",
                )
                return f"{content}#{times}"
        return content

    def _fate(self, attempt: Attempt, placed: _Placed) -> _Became:
        if not attempt.ends:
            return _Became("child")
        if self._spool.has(placed.known_as):
            return _Became("duplicate")
        if rollout := self._here.rollout_of(placed.known_as):
            return _Became("known", rollout)
        if attempt.own_id is not None and (twin := self._spool.twin(attempt.own_id)):
            return _Became("conflict", why=f"another state of it is at {twin.place}", twin=twin)
        if attempt.own_id is not None and (earlier := self._here.of_id(attempt.own_id)):
            rollout = earlier.rollout.id
            why = f"it is in the workspace as {rollout}, in another state; that one stays"
            return _Became("conflict", rollout, why, earlier=earlier)
        if attempt.repeat is None:
            return _Became("new")
        what = f"attempt {attempt.repeat} of task {(attempt.task_id or attempt.question)[:60]!r}"
        numbered = (placed.group, placed.scope, attempt.repeat)
        if place := self._spool.place_of_number(*numbered):
            return _Became("conflict", why=f"{what} is already at {place}, with other content")
        if rollout := self._here.rollout_of_number(*numbered):
            why = f"{what} is in the workspace as {rollout}, with other content; that one stays"
            return _Became("conflict", rollout, why)
        return _Became("new")

    def _remember_masked(self) -> None:
        """Counts of masked secrets are added up in the spool, so that an import that goes on tells all of them."""
        if self._masker is None or not self._masker.counts:
            return
        counts = Counter(self._spool.fact("masked") or {}) + self._masker.counts
        self._spool.set_fact("masked", dict(counts))
        self._masker.counts.clear()


def _row(attempt: Attempt, placed: _Placed, became: _Became) -> Row:
    """What is kept beside an attempt to count, group and find it by."""
    return {
        "place": attempt.place,
        "namespace": attempt.namespace,
        "task": placed.task,
        "task_id": placed.task_id,
        "grp": placed.group,
        "scope": placed.scope,
        "repeat": attempt.repeat,
        "own_id": attempt.own_id,
        "content": placed.content,
        "identity": placed.known_as,
        "model": attempt.model,
        "agent": attempt.agent,
        "fate": became.fate,
        "named": attempt.reward,
        "own": int(attempt.task is not None),
        "broken": int(attempt.error is not None),
        "rollout_id": became.rollout_id,
        "changed": int(became.changed),
        "went_on": int(became.went_on),
        "orphans": attempt.orphans,
        **_steps(attempt.trajectory.steps),
        **attempt.usage.model_dump(),
    }


def _sound(attempt: Attempt) -> Attempt:
    """The attempt with nothing that cannot be stored: no number that is not finite, no NUL in the question."""
    changes: dict[str, object] = {}
    if not attempt.question.strip() or "\x00" in attempt.question:
        changes["question"] = attempt.question.replace("\x00", "\ufffd").strip() or NO_QUESTION
    if attempt.expected and "\x00" in attempt.expected:
        changes["expected"] = attempt.expected.replace("\x00", "\ufffd")
    if attempt.duration_s is not None and not math.isfinite(attempt.duration_s):
        changes["duration_s"] = None
    if not math.isfinite(attempt.usage.cost_usd):
        changes["usage"] = attempt.usage.model_copy(update={"cost_usd": 0.0})
    if odd := [
        n for n, seen in attempt.scores.items() if seen.value is not None and not math.isfinite(seen.value)
    ]:
        changes["scores"] = attempt.scores | {
            n: Seen(raw=str(attempt.scores[n].value)) for n in odd
        }  # it is not graded, which is not 0
    return attempt.model_copy(update=changes) if changes else attempt


def _task_body(attempt: Attempt) -> str:
    """What is kept of a task, as JSON."""
    own = None if attempt.task is None else attempt.task.model_dump(mode="json")
    return canonical_json(
        {
            "question": attempt.question,
            "system": attempt.system,
            "expected": attempt.expected,
            "metadata": small(attempt.task_metadata),
            "task": own,
        }
    )


def _steps(steps: Sequence[Step]) -> dict[str, int]:
    succeeded = sum(s.success is True for s in steps)
    failed = sum(s.success is False for s in steps)
    no_result = sum(s.success is None and not s.output for s in steps)
    unknown = len(steps) - succeeded - failed - no_result
    return {"succeeded": succeeded, "failed": failed, "no_result": no_result, "unknown": unknown}


def _hash(opened: Opened) -> str:
    """Of what is in a file: compressed, it is the same file. Of one whose compression is damaged, of its bytes."""
    with suppress(*DAMAGED), opened.stream() as file:
        return _digest_of(file)
    with opened.path.open("rb") as file:
        return _digest_of(file)


def _digest_of(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while chunk := file.read(CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def _clause(error: WinnowError, name: str) -> str:
    """What an error says, as a clause that does not name the file again."""
    text = str(error).rstrip(".")
    for lead, instead in ((f"{name} ", "it "), (f"{name!r} ", "it "), (f"{name}: ", "")):
        if text.startswith(lead):
            text = instead + text.removeprefix(lead)
    return storable(text)
