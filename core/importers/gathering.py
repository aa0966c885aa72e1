"""The first half of an import: from files to attempts in a spool, each with its group and with what becomes of it.

1. Files are read one record at a time. What was read lies in a spool on disk, in small transactions, with how many
   records of each file are in it: an import that was interrupted goes on there.
2. What becomes of an attempt is decided in `fates`. Of several states of one, the last is kept, with the scores that
   only an earlier one has. A conflict is set aside, and told.
3. Secrets are masked before anything is written.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import IO

from core.errors import InputError, WinnowError
from core.experience import check_domain
from core.importers.attempt import Aside, Attempt, Found, Remark, TraceFormat
from core.importers.entry import row_of, sound, task_body
from core.importers.fates import Became, Fates, Here, Placed, Reading
from core.importers.finding import Located, located, no_data, unknown
from core.importers.formats import FORMATS
from core.importers.going_on import with_scores_of
from core.importers.masking import Masker
from core.importers.opened import DAMAGED, Opened
from core.importers.report import FileRead, ImportOptions
from core.importers.source import MAX_RAW, bounded, printable, storable
from core.packs.content import kept_name
from core.ports import Progress
from core.record import content_hash
from core.store.spool import FAULTS, Fate, Spool

CHUNK = 2**20
READS_OTHERWISE = (
    "An attempt came in before from the same place of the same file, and reads otherwise now (by another mapping, say):"
    " only a reward is taken from it; its question, its answer and all else stay as they came in."
)
SMALL_FILES = 100
"""Of files of less than a chunk, one among so many is told of as progress: a folder may hold thousands."""


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
        self._fates = Fates(spool, options, here)

    def take(self, paths: Sequence[Path | str], scratch: Path) -> None:
        """Read all that is meant.

        Args:
            paths: files, folders, patterns, archives.
            scratch: where archives are unpacked.

        Raises:
            InputError: there is no such file, an archive cannot be unpacked, or the format that was named is none.
        """
        # A format that was named is that of what an archive holds, and not the archive's.
        for found in located(paths, scratch, recognised):
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
        # Whatever the mapping, its records are the same attempts; {} is what files without one were known by.
        read_as = content_hash([sha256, form.name, {}])
        number, there = self._spool.begin(path, file.name, sha256, read_as, form.title)
        if there >= 0:
            self._records(Reading(opened, form, number, read_as), there)

    def _records(self, reading: Reading, there: int) -> None:
        """Read a file on from a record; what ends it too early is told."""
        reason, opened, number = "", reading.opened, reading.number
        try:
            for found in islice(self._watched(reading), there, None):
                self._kept(found, reading)
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

    def _watched(self, reading: Reading) -> Iterator[Found]:
        opened, records = reading.opened, reading.form.read(reading.opened)
        size = max(opened.path.stat().st_size, 1)
        if size < CHUNK and reading.number % SMALL_FILES != 1:
            yield from records
            return
        for count, found in enumerate(records):
            if count % 50 == 0:
                self._progress(f"reading {opened.name}", min(opened.position, size), size)
            yield found
        self._progress(f"reading {opened.name}", size, size)

    def _kept(self, found: Found, reading: Reading) -> None:
        """Keep one record; one that cannot be kept is set aside."""
        try:
            self._record(found, reading)
        except (WinnowError, *FAULTS):
            raise
        except Exception as e:  # noqa: BLE001  # foreign values: one must not stop the others
            place = "" if isinstance(found, Remark) else found.place
            reason = f"it could not be kept ({type(e).__name__}: {e}), which is a fault of Winnow's; please report it"
            self._spool.aside(reading.number, reading.opened.name, place, self._told(reason), "")

    def _record(self, found: Found, reading: Reading) -> None:
        match found:
            case Attempt():
                self._attempt(sound(found), reading)
            case Aside():
                found = found if self._masker is None else self._masker.mask(found)
                self._spool.aside(
                    reading.number,
                    reading.opened.name,
                    found.place,
                    storable(found.reason),
                    storable(bounded(found.raw, MAX_RAW)),
                )
            case _:
                self._spool.remark(reading.number, self._told(found.text))
        self._remember_masked()

    def _told(self, text: str) -> str:
        """A sentence that may quote the file, as it is stored."""
        return storable(text if self._masker is None else self._masker.mask(Remark(text=text)).text)

    def _attempt(self, attempt: Attempt, reading: Reading) -> None:
        placed = self._fates.place(attempt, reading)
        became = self._fates.becomes(attempt, placed, reading)
        masked = attempt
        if became.fate in ("new", "conflict") and self._masker is not None:
            masked = self._masker.mask(attempt)
        if became.twin is None:
            self._keep(attempt, masked, placed, became, reading)
            return
        beside = self._fates.beside(became, became.twin, masked, placed.task)
        if isinstance(beside, Became):
            self._keep(attempt, masked, placed, beside, reading)
            return
        self._spool.supersede(became.twin.seq, reading.number)
        fate: Fate = "conflict"
        try:
            attempt, masked = with_scores_of(attempt, beside), with_scores_of(masked, beside)
            became_now = self._fates.becomes(attempt, placed, reading)
            fate = self._keep(attempt, masked, placed, became_now, reading)
        finally:
            if fate == "conflict":  # or it could not be kept at all: then the earlier state stands
                self._spool.revive(became.twin.seq)
        if fate != "conflict":
            self._spool.remark(
                reading.number,
                "An attempt was read in an earlier state, too; the later one is taken, with the scores that only the "
                "earlier one has.",
            )

    def _keep(
        self, attempt: Attempt, masked: Attempt, placed: Placed, became: Became, reading: Reading
    ) -> Fate:
        """Keep an attempt with what becomes of it, which is told."""
        if became.earlier is not None:
            became = self._fates.against(became, became.earlier, masked, placed, reading.number)
        if became.fate == "conflict":
            raw = bounded(masked.model_dump_json(), MAX_RAW)
            self._record(Aside(place=attempt.place, reason=became.why, raw=raw), reading)
        if became.fate == "new" and not self._spool.has_task(placed.task):
            body = task_body(masked)
            self._spool.add_task(placed.task, attempt.namespace, placed.task_id, placed.question, body)
        if became.by_place:
            self._spool.remark(reading.number, READS_OTHERWISE)
        if became.fate == "known" and became.rollout_id:  # it stays in the group that it came into
            placed = placed._replace(group=self._here.group_key_of(became.rollout_id) or placed.group)
        row = {"file": reading.number, "title": reading.form.title} | row_of(attempt, placed, became)
        scores = [(name, seen.value, seen.guessed) for name, seen in attempt.scores.items()]
        self._spool.add(
            row, scores, masked.model_dump_json() if became.fate == "new" or became.went_on else None
        )
        return became.fate

    def _remember_masked(self) -> None:
        """Counts of masked secrets are added up in the spool, so that an import that goes on tells all of them."""
        if self._masker is None or not self._masker.counts:
            return
        counts = Counter(self._spool.fact("masked") or {}) + self._masker.counts
        self._spool.set_fact("masked", dict(counts))
        self._masker.counts.clear()


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
