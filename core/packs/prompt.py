"""System-prompt text: what runs are injected with, from the same renderer."""

from __future__ import annotations

from collections.abc import Sequence

from core.experience import Experience
from core.injection import render
from core.packs.content import PackContent, lessons_of


def prompt_text(experiences: Sequence[Experience]) -> str:
    """The renderer's text, without a final line break."""
    return render(experiences).text


def write(content: PackContent) -> bytes:
    return prompt_text(lessons_of(content)).encode()
