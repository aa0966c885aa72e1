"""Agent YAML as youtu-agent reads it: the lessons in the agent's instructions, labelled `[G0]`, `[G1]`, ...

It is loaded through OmegaConf, which looks up `${name}` in every string, so that is escaped here. Whoever reads the
file with a plain YAML reader sees the escapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from core.errors import InputError, PackError
from core.injection import HEADER, read_injection
from core.packs.content import PackContent, lessons_of, slug
from core.packs.foreign import ForeignLibrary, Reading, text_of_file
from core.packs.prompt import prompt_text
from core.packs.yaml_text import escape_interpolation, unescape_interpolation, yaml_string

FORM = "agent YAML"
MAX_BYTES = 4 * 2**20
MAX_DEPTH = 50
MAX_EVENTS = 200_000

_LABEL = re.compile(r"^[ \t]*\[(G\d{1,9})\][.:]?(?:[ \t]+|$)", re.MULTILINE | re.ASCII)
_KEY = re.compile(r"^[ \t]*[\"']?instructions[\"']?[ \t]*:", re.MULTILINE)


def write(content: PackContent) -> bytes:
    """Three keys that fit any agent: its name, its instructions; the injected text, character for character."""
    text = prompt_text(lessons_of(content))
    lines = [
        "# Lessons by Winnow, for OmegaConf: a backslash before ${ keeps it from being looked up.",
        "agent:",
        f"  name: {yaml_string(slug(content.name))}",
        f"  instructions: {yaml_string(escape_interpolation(text))}",
    ]
    return ("\n".join(lines) + "\n").encode()


def recognises(text: str) -> bool:
    return _KEY.search(text) is not None


def read(data: bytes) -> ForeignLibrary:
    """The labelled lessons of all instructions in the file; what stands before the first label is no lesson.

    Raises:
        PackError: it is not YAML that can be trusted, or holds no lesson.
    """
    if len(data) > MAX_BYTES:
        raise PackError(f"The YAML has {len(data)} bytes; at most {MAX_BYTES} are read.")
    reading = Reading()
    for number, instructions in enumerate(_instructions(text_of_file(data, FORM)), 1):
        for label, text in _labelled(unescape_interpolation(instructions)):
            place = f"lesson {label}" if number == 1 else f"lesson {label} of instructions {number}"
            reading.lesson(place, label, text)
    return reading.done(FORM)


def _labelled(instructions: str) -> list[tuple[str, str]]:
    start = instructions.find(f"{HEADER}\n[G0] ")
    if start >= 0:
        return [(f"G{i}", text) for i, text in enumerate(read_injection(instructions[start:]))]
    parts = _LABEL.split(instructions)
    return [(label, text.strip()) for label, text in zip(parts[1::2], parts[2::2], strict=True)]


def _instructions(text: str) -> Iterator[str]:
    """Every text under a key `instructions`, however deep, in the order of the file."""
    yaml = _yaml()
    try:
        waiting = [_composed(text)]
        while waiting:
            node = waiting.pop()
            if isinstance(node, yaml.MappingNode):
                for key, value in node.value:
                    if key.value == "instructions" and isinstance(value, yaml.ScalarNode):
                        yield value.value
                waiting += [value for _, value in reversed(node.value)]
            elif isinstance(node, yaml.SequenceNode):
                waiting += reversed(node.value)
    except (yaml.YAMLError, RecursionError, ValueError) as e:
        raise PackError("The file is not YAML that can be read.") from e


def _composed(text: str) -> Any:
    """The nodes of a document: nothing is constructed, and nothing is multiplied by aliases."""
    yaml = _yaml()
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=loader)):
        if isinstance(event, yaml.AliasEvent):
            raise PackError("The file uses aliases of YAML, which are refused.")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH or count > MAX_EVENTS:
            raise PackError("The file is YAML that is nested too deep or too large.")
    return yaml.compose(text, Loader=loader)


def _yaml() -> Any:
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError as e:
        raise InputError("Reading YAML needs the package PyYAML: pip install pyyaml.") from e
    return yaml
