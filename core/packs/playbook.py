"""ACE playbook text: sections, and a line `[id] helpful=3 harmful=1 :: text` for each lesson.

Programs that read playbooks take them line by line, so a text of several lines must stay on one. A playbook of ours
says so in its first line and writes a line break as its picture (U+2424 for a line feed, ...); U+241B makes the picture
after it a mere picture. Playbooks of others hold their texts as they are; lines that follow a lesson belong to it.
"""

from __future__ import annotations

import re

from core.errors import PackError
from core.experience import Experience
from core.packs.content import PackContent, lessons_of
from core.packs.foreign import Claims, ForeignLibrary, Reading, text_of_file

FORM = "an ACE playbook"
MARK = "<!-- winnow playbook 1: \u2424 stands for a line break -->"

_ESCAPE = "\u241b"
_PICTURES = {
    "\n": "\u2424",
    "\r": "\u240d",
    "\v": "\u240b",
    "\f": "\u240c",
    "\x1c": "\u241c",
    "\x1d": "\u241d",
    "\x1e": "\u241e",
    "\x85": "\u2425",
    "\u2028": "\u2426",
    "\u2029": "\u2421",
}
_BREAKS = {picture: character for character, picture in _PICTURES.items()}
_TO_WRITE = re.compile("[" + "".join([*_PICTURES, *_BREAKS, _ESCAPE]) + "]")
_TO_READ = re.compile(f"{_ESCAPE}(.)|[{''.join(_BREAKS)}]")

_LESSON = re.compile(
    r"[ \t]*(?:[-*][ \t]+)?\[([^\]\n]{1,1000})\][ \t]*helpful=(\d{1,9})[ \t]+harmful=(\d{1,9})[ \t]*::[ \t]?(.*)",
    re.ASCII,
)
_ALMOST = re.compile(r"[ \t]*(?:[-*][ \t]+)?\[[^\]\n]*\][ \t]*(?:helpful|harmful)[ \t]*=")
_HEADING = re.compile(r"#{1,6}[ \t]+(.*)")
_OUR_HEADING = re.compile(r"(\w+): (.*)")
_KINDS = (
    (re.compile(r"mistake|pitfall|error|failure|avoid", re.IGNORECASE), "failure_pattern"),
    (re.compile(r"\btools?\b|\bapis?\b", re.IGNORECASE), "tool_selection"),
)


def write(content: PackContent) -> bytes:
    """Sections are kind and domain, in the order of their first lessons; helpful is wins, harmful the other uses."""
    sections: dict[str, list[str]] = {}
    for e in lessons_of(content):
        lines = sections.setdefault(f"## {e.kind}: {_on_one_line(e.domain)}", [])
        lines.append(f"[{e.id}] {_counts(e)} :: {_on_one_line(e.text)}")
    parts = [f"{heading}\n" + "\n".join(lines) + "\n" for heading, lines in sections.items()]
    return "\n".join([MARK, *parts]).encode()


def _counts(experience: Experience) -> str:
    return f"helpful={experience.wins} harmful={max(experience.uses - experience.wins, 0)}"


def recognises(text: str) -> bool:
    return text.startswith(MARK) or any(_LESSON.match(line) for line in text.split("\n"))


def read(data: bytes) -> ForeignLibrary:
    """The lessons of a playbook, ours or another's.

    Raises:
        PackError: it is no text, or holds no lesson.
    """
    text = text_of_file(data, FORM)
    reading = Reading()
    if text.startswith(MARK):
        _read_ours(text, reading)
    else:
        _read_theirs(text.replace("\r\n", "\n"), reading)
    return reading.done(FORM)


def _read_ours(text: str, reading: Reading) -> None:
    kind = domain = ""
    for number, raw in enumerate(text.split("\n")[1:], 2):
        line = raw.removesuffix("\r")  # every other return is written as its picture
        heading = _HEADING.fullmatch(line)
        lesson = _LESSON.fullmatch(line)
        if heading:
            named = _OUR_HEADING.fullmatch(heading[1])
            kind, domain = (named[1], _as_it_was(named[2])) if named else ("", "")
        elif lesson:
            claims = _counted(lesson, Claims(kind=kind, domain=domain))
            reading.lesson(f"line {number}", lesson[1], _as_it_was(lesson[4]), claims)
        elif line.strip():
            reading.set_aside(f"line {number}", "it is no line `[id] helpful=N harmful=N :: text`", line)
    reading.lessons.sort(key=lambda e: (len(e.their_id), e.their_id))  # as in the library, not by section


def _read_theirs(text: str, reading: Reading) -> None:
    section = ""
    started: tuple[int, re.Match[str]] | None = None
    more: list[str] = []

    def finish() -> None:
        if started:
            number, lesson = started
            claims = _counted(lesson, Claims(kind=_kind(section), section=section))
            reading.lesson(f"line {number}", lesson[1].strip(), "\n".join([lesson[4], *more]).strip(), claims)

    for number, line in enumerate(text.split("\n"), 1):
        heading, lesson = _HEADING.fullmatch(line.strip()), _LESSON.fullmatch(line)
        if heading or lesson or _ALMOST.match(line):
            finish()
            started, more = (number, lesson) if lesson else None, []
            section = heading[1].strip() if heading else section
            if not heading and not lesson:
                reading.set_aside(f"line {number}", "its counters cannot be read", line)
        elif started:
            more.append(line)
        elif line.strip():
            reading.set_aside(f"line {number}", "it stands before any lesson of its section", line)
    finish()


def _counted(lesson: re.Match[str], claims: Claims) -> Claims:
    helpful, harmful = int(lesson[2]), int(lesson[3])
    return claims._replace(uses=helpful + harmful, wins=helpful)


def _kind(section: str) -> str:
    return next((kind for pattern, kind in _KINDS if pattern.search(section)), "strategy")


def _on_one_line(text: str) -> str:
    return _TO_WRITE.sub(lambda found: _PICTURES.get(found[0], _ESCAPE + found[0]), text)


def _as_it_was(line: str) -> str:
    if line.endswith(_ESCAPE) and not line.endswith(_ESCAPE * 2):
        raise PackError("The playbook ends a line in the middle of an escaped character.")
    return _TO_READ.sub(lambda found: found[1] or _BREAKS[found[0]], line)
