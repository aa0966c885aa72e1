"""SKILL.md: the injected text under the front matter that skill readers look for (name, description)."""

from __future__ import annotations

from core.packs.content import PackContent, lessons_of, slug
from core.packs.markdown import code_span
from core.packs.prompt import prompt_text
from core.packs.yaml_text import yaml_string

MAX_DESCRIPTION = 1024


def write(content: PackContent) -> bytes:
    lessons = lessons_of(content)
    domains = ", ".join(sorted({" ".join(e.domain.split()) for e in lessons}))
    tail = f" (Experience library {content.name}, version {content.version.number}: {len(lessons)} lessons.)"
    about = f"Lessons from earlier attempts; read them before work of this sort: {domains or 'none'}."
    parts = [
        "---",
        f"name: {yaml_string(slug(content.name))}",
        f"description: {yaml_string(about[: MAX_DESCRIPTION - len(tail)] + tail)}",
        "---",
        "",
        f"# Lessons of {code_span(content.name)}, version {content.version.number}",
        "",
        prompt_text(lessons),
        "",
    ]
    return "\n".join(parts).encode()
