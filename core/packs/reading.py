"""Libraries from elsewhere: a pack, or one of the forms that other systems write. `READERS` lists them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from json import JSONDecoder

from core.errors import InputError, PackError, UnknownFormError
from core.packs import agent_yaml, csv_table, json_map, playbook
from core.packs.check import read_pack
from core.packs.foreign import Claims, ForeignLibrary, Reading, text_of_file


@dataclass(frozen=True)
class Reader:
    """One form that a library may come in."""

    form: str
    about: str
    recognises: Callable[[str], bool]
    """Whether a text file has this form; readers are asked in the order of `READERS`."""
    read: Callable[[bytes], ForeignLibrary]


def _read_zip(data: bytes) -> ForeignLibrary:
    pack = read_pack(data)
    reading = Reading()
    for e in pack.experiences:
        claims = Claims(
            kind=e.kind,
            domain=e.domain,
            confidence=e.confidence,
            uses=e.uses,
            wins=e.wins,
            learned_on=e.learned_on,
        )
        reading.lesson(reading.entry("experience", e.id), e.id, e.text, claims)
    return reading.done("a pack", name=pack.name, version=pack.version.number)


READERS: dict[str, Reader] = {
    reader.form: reader
    for reader in (
        Reader("pack", "an experience pack of Winnow (zip)", lambda text: False, _read_zip),
        Reader("json", "a JSON object {id: text}", json_map.recognises, json_map.read),
        Reader("playbook", "ACE playbook text", playbook.recognises, playbook.read),
        Reader("agent-yaml", "agent YAML of youtu-agent", agent_yaml.recognises, agent_yaml.read),
        Reader("csv", "a table with a column of texts", csv_table.recognises, csv_table.read),
    )
}


HEAD = 200_000
"""Characters in which the first record of a file of tasks or rollouts ends."""

ASKED = frozenset(("question", "problem", "prompt"))
"""What tasks, and no lessons, have."""


def read_library(data: bytes, form: str | None = None) -> tuple[str, ForeignLibrary]:
    """Read a library in the form that is named, or else recognised by its content.

    Returns:
        The form, and what the file holds.

    Raises:
        InputError: there is no such form.
        UnknownFormError: none was named, and the content is that of none.
        PackError: one sentence with the first fault of the file.
    """
    if form is not None and form not in READERS:
        raise InputError(f"There is no form {form!r} of libraries; there are: {', '.join(READERS)}.")
    form = form or _form_of(data)
    return form, READERS[form].read(data)


def _form_of(data: bytes) -> str:
    if data.startswith(b"PK"):
        return "pack"
    if not data.strip():
        raise PackError("The file is empty.")
    text = text_of_file(data, "library of lessons")
    if other := _other(text):
        raise PackError(f"The file holds {other[0]} and no lessons: {other[1]} reads it.")
    for reader in READERS.values():
        if reader.recognises(text):
            return reader.form
    raise UnknownFormError(f"The file is in no form that Winnow knows ({', '.join(READERS)}).")


def _other(text: str) -> tuple[str, str] | None:
    """What a file holds that is meant for another command, told by its first record, and that command."""
    head = text[:HEAD].lstrip(" \t\r\n[")
    try:
        record, _ = JSONDecoder().raw_decode(head)
    except (ValueError, RecursionError):
        record = None
    cells = head.partition("\n")[0].split(",")
    names = set(record) if isinstance(record, dict) else {cell.strip(' "\r').lower() for cell in cells}
    if "winnow_rollout" in names:
        return "recorded rollouts", "winnow rollouts import"
    if names & ASKED and not csv_table.recognises(text):
        return "tasks", "winnow tasks import"
    return None
