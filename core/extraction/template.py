"""Prompts: `.md` files that anyone can review, filled in literally.

1. Values go in as they are and once, so that nothing in a value is ever a placeholder.
2. Text written by others goes in behind a fence that it cannot close (`fence`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files

from core.rollout import Message

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_PART = re.compile(r"^## (system|user)[ \t]*\n", re.MULTILINE)


@cache
def _template(name: str) -> tuple[tuple[str, str], ...]:
    text = (files("core.extraction") / "prompts" / f"{name}.md").read_text(encoding="utf-8")
    _, *parts = _PART.split(text)
    return tuple((parts[i], parts[i + 1].strip()) for i in range(0, len(parts), 2))


@cache
def placeholders(name: str) -> frozenset[str]:
    """Names of all placeholders of a template."""
    return frozenset(found for _, part in _template(name) for found in _PLACEHOLDER.findall(part))


def prompt(name: str, **values: str) -> list[Message]:
    """The messages of a template with its placeholders filled in, each exactly as given.

    Raises:
        ValueError: a placeholder got no value, or a value has no placeholder.
    """
    if odd := placeholders(name) ^ set(values):
        raise ValueError(f"prompt {name}: {', '.join(sorted(odd))} must be both in the template and given")
    return [
        Message(role="user" if role == "user" else "system", content=_PLACEHOLDER.sub(_fill(values), part))
        for role, part in _template(name)
    ]


def _fill(values: Mapping[str, str]) -> Callable[[re.Match[str]], str]:
    return lambda found: values[found[1]]


def fence(text: str) -> str:
    """Untrusted text between two lines that it cannot contain: their mark is made from the text itself."""
    mark = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
    return f'<data id="{mark}">\n{text}\n</data id="{mark}">'
