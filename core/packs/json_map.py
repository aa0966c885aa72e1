"""JSON `{id: text}`, the form that the reference systems keep their experiences in."""

from __future__ import annotations

import json
from typing import Any

from core.errors import PackError
from core.packs.content import PackContent, lessons_of, no_key_twice
from core.packs.foreign import ForeignLibrary, Reading, text_of_file

FORM = "JSON {id: text}"


def write(content: PackContent) -> bytes:
    texts = {experience.id: experience.text for experience in lessons_of(content)}
    return (json.dumps(texts, ensure_ascii=False, indent=2) + "\n").encode()


def recognises(text: str) -> bool:
    return text.lstrip().startswith("{")


def read(data: bytes) -> ForeignLibrary:
    """The lessons of such a file; they may also stand under a key `experiences`, as in a saved step of a run.

    Raises:
        PackError: it is not such a file.
    """
    value = parse_strictly(text_of_file(data, FORM))
    if isinstance(value, dict) and isinstance(value.get("experiences"), dict):
        value = value["experiences"]
    if not isinstance(value, dict):
        raise PackError("The file is JSON, but not an object {id: text}.")
    reading = Reading()
    for their_id, text in value.items():
        place = reading.entry("entry", their_id)
        if isinstance(text, str):
            reading.lesson(place, their_id, text)
        else:
            reading.set_aside(place, "it is no text", json.dumps(text, ensure_ascii=True)[:4_000])
    return reading.done(FORM)


def parse_strictly(text: str) -> Any:
    """The JSON value of a text.

    Raises:
        PackError: it is not JSON, or a key comes twice.
    """
    try:
        return json.loads(text, object_pairs_hook=no_key_twice)
    except RecursionError as e:
        raise PackError("The file is JSON that is nested too deep.") from e
    except ValueError as e:
        raise PackError(f"The file is not JSON that can be read: {e}.") from e
