"""What an arm is made of: how it is written down by a person, and the lessons that it gives."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from core.errors import ApplyError, InputError
from core.experience import GENERAL, Add, Delete, Experience, Merge, Modify, Operation
from core.library import Change, Draft, Library
from core.packs import read_library
from core.packs.foreign import domain_or
from core.proof import Arm, ArmKind, ArmLesson

FORMS = (
    "none, version:N, random:N, text:FILE, pack:FILE, without:E-ID, with:P-ID, majority:ARM or best_of:ARM; with a "
    "name of its own NAME=..., with a token prior ...+prior:ID, on another version ...@N"
)
NOT_YET = 10**9
"""Number of a lesson that a proposal would add: it goes by the id of the proposal instead."""

SHUFFLED = "the version's own with their words shuffled"
_HEADING = re.compile(r"#{1,6}\s+(.+)")
_BULLET = re.compile(r"(?:[-*+]|\d+[.)])\s+")


def parse_arm(
    said: str, *, read: Callable[[Path], bytes], version_of: Callable[[str], int], seed: int = 0
) -> Arm:
    """An arm as it is named on a command line, such as `version:3` or `hand=text:rules.md+prior:PR1`.

    Args:
        said: one of `FORMS`.
        read: gives the bytes of a file.
        version_of: the number of a version that is named by number or label.
        seed: of the draw of a random library.

    Raises:
        InputError: it is none of these, or its file cannot be read.
    """
    name, mark, form = said.partition("=")
    if not mark or ":" in name:
        name, form = "", said
    form, _, prior = form.partition("+prior:")
    kind, mark, of = form.partition(":")
    if (kind == "none") == bool(mark):
        raise InputError(f"{said!r} is not an arm: say {FORMS}.")
    if kind in ("text", "pack"):
        found = Path(of)
        data = read(found)
        try:
            lessons = read_text(data) if kind == "text" else read_pack(data)
        except InputError as e:
            raise InputError(f"{found.name}: {e}") from e
        fields: dict[str, object] = {"lessons": lessons}
        name = name or f"{kind}:{found.name}"
    else:
        fields = _fields(kind, of, version_of)
    made = {"name": name or said, "kind": kind, "seed": seed, "prior": prior or None, **fields}
    return Arm.read(made, where=f"the arm {said!r}")


def _fields(kind: str, of: str, version_of: Callable[[str], int]) -> dict[str, object]:
    if kind in ("majority", "best_of"):
        return {"of": of}
    of, _, on = of.partition("@")
    match kind:
        case "none":
            return {}
        case "version" | "random":
            return {"version": None if of == "newest" else version_of(of)}
        case "without":
            return {"experience_id": of.upper(), "version": version_of(on) if on else None}
        case "with":
            ids = tuple(one.strip().upper() for one in of.split(",") if one.strip())
            return {"proposal_ids": ids, "version": version_of(on) if on else None}
    raise InputError(f"There is no kind of arm {kind!r}: say {FORMS}.")


def read_text(data: bytes) -> tuple[ArmLesson, ...]:
    """The lessons of a file that a person wrote: one on each line, bullets and numbers before it left out.

    A heading (`# sums`) names the domain of the lines below it; before the first one, and below `# general`, they go
    with every task. They are rendered as every lesson is: `[G0] text`.

    Raises:
        InputError: it is no UTF-8 text, or holds no line.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise InputError("The hand-written file is not UTF-8 text.") from e
    lessons, domain = [], GENERAL
    for line in (line.strip() for line in text.splitlines()):
        if heading := _HEADING.fullmatch(line):
            domain = heading.group(1).strip()
        elif line:
            lessons.append(ArmLesson.read({"text": _BULLET.sub("", line, count=1), "domain": domain}))
    if not lessons:
        raise InputError("The hand-written file holds no lesson: write one on each line.")
    return tuple(lessons)


def read_pack(data: bytes) -> tuple[ArmLesson, ...]:
    """The lessons of a pack, or of a library in any form that can be imported.

    Raises:
        PackError: it is none of these.
    """
    _, found = read_library(data)
    return tuple(
        ArmLesson(text=one.text, kind=one.kind, domain=domain_or(one, None)) for one in found.lessons
    )


def library_of(arm: Arm, base: Library) -> Library:
    """The lessons of a sampled arm.

    Args:
        arm: which; its kind is not one that is computed.
        base: its version.

    Raises:
        InputError: what it names does not fit its version.
    """
    match arm.kind:
        case "version":
            return base
        case "random":
            return Library.of(_random(base, arm.seed), base.version)
        case "text" | "pack":
            return Library.of(_named(arm.kind, arm.lessons), base.version)
        case "without":
            return _without(arm.experience_id or "", base)
        case "with":
            return _with(arm, base)
        case _:
            return Library.of((), base.version)


def _named(kind: ArmKind, lessons: Sequence[ArmLesson]) -> Iterator[Experience]:
    for number, one in enumerate(lessons, 1):
        yield Experience(id=f"{kind}-{number:04d}", text=one.text, kind=one.kind, domain=one.domain)


def _random(base: Library, seed: int) -> Iterator[Experience]:
    """As many lessons of each domain as the version has, which say nothing about it.

    They are drawn from its other domains without replacement; where those hold too few, the domain's own lessons
    follow with their words shuffled. Lengths are about the same, so the prompt grows by about as much.
    """
    rng = random.Random(f"random library {seed}")
    number = 0
    for domain, own, others in _to_draw(base):
        drawn = [e.text for e in rng.sample(others, min(len(own), len(others)))]
        drawn += [_shuffled(e.text, rng) for e in own[len(drawn) :]]
        for text, like in zip(drawn, own, strict=True):
            number += 1
            yield Experience(id=f"random-{number:04d}", text=text, kind=like.kind, domain=domain)


def _to_draw(base: Library) -> Iterator[tuple[str, list[Experience], list[Experience]]]:
    """Each domain of a version, with its own lessons and those that may be drawn in their place."""
    live = list(base)
    for domain in sorted({e.domain for e in live}):
        own = [e for e in live if e.domain == domain]
        yield domain, own, [e for e in live if e.domain not in (domain, GENERAL)]


def made_of(arm: Arm, base: Library) -> str:
    """What a random library is made of, in a sentence; empty of other arms, and where it holds no lesson."""
    if arm.kind != "random" or not len(base):
        return ""
    shuffled = sum(max(0, len(own) - len(others)) for _, own, others in _to_draw(base))
    parts = [
        f"{n} {what}" for n, what in ((len(base) - shuffled, "of other domains"), (shuffled, SHUFFLED)) if n
    ]
    return f"Its {len(base)} lesson{'s' if len(base) > 1 else ''}: {', '.join(parts)}."


def _shuffled(text: str, rng: random.Random) -> str:
    words = text.split()
    rng.shuffle(words)
    return " ".join(words)


def _without(experience_id: str, base: Library) -> Library:
    try:
        base.live(experience_id)
    except ApplyError as e:
        raise InputError(f"It cannot be left out: {e}") from e
    return Library.of((e for e in base.experiences.values() if e.id != experience_id), base.version)


def _with(arm: Arm, base: Library) -> Library:
    draft = Draft(base, NOT_YET)
    own: dict[str, str] = {}
    for proposal_id, operation in zip(arm.proposal_ids, arm.operations, strict=True):
        try:
            touched = draft.take(Change(operation))
        except ApplyError as e:
            raise InputError(f"{proposal_id} cannot be tried on version {base.version}: {e}") from e
        if isinstance(operation, Add):  # the id that it would get may become another lesson's
            own[touched] = proposal_id
    after = draft.library().experiences.values()
    return Library.of((e.model_copy(update={"id": own.get(e.id, e.id)}) for e in after), base.version)


def reach_of(operation: Operation, base: Library) -> tuple[str, ...]:
    """The domains whose tasks an operation can change the prompt of; empty where that is every task."""
    match operation:
        case Add():
            found = {operation.domain}
        case Modify():
            found = {operation.domain or GENERAL} if operation.domain else set()
            found |= _domains([operation.experience_id], base)
        case Delete():
            found = _domains([operation.experience_id], base)
        case Merge():
            found = _domains(operation.experience_ids, base)
    return () if GENERAL in found else tuple(sorted(found))


def _domains(ids: Sequence[str], base: Library) -> set[str]:
    return {base.experiences[i].domain for i in ids if i in base.experiences}
