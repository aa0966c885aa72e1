"""SKILL.md: the injected text under the front matter that skill readers look for (name, description)."""

from __future__ import annotations

import json
import re

from core.packs.content import PackContent, lessons_of, slug
from core.packs.markdown import code_span
from core.packs.prompt import prompt_text

MAX_DESCRIPTION = 1024

# What YAML does not take as it is, or takes as a line break, and JSON leaves alone.
_NOT_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def write(content: PackContent) -> bytes:
    lessons = lessons_of(content)
    domains = ", ".join(sorted({" ".join(e.domain.split()) for e in lessons}))
    tail = f" (Experience library {content.name}, version {content.version.number}: {len(lessons)} lessons.)"
    about = f"Lessons from earlier attempts; read them before work of this sort: {domains or 'none'}."
    parts = [
        "---",
        f"name: {_yaml_string(slug(content.name))}",
        f"description: {_yaml_string(about[: MAX_DESCRIPTION - len(tail)] + tail)}",
        "---",
        "",
        f"# Lessons of {code_span(content.name)}, version {content.version.number}",
        "",
        prompt_text(lessons),
        "",
    ]
    return "\n".join(parts).encode()


def _yaml_string(text: str) -> str:
    """A JSON string is a YAML string, too, once the few characters that YAML forbids are escaped."""
    quoted = json.dumps(text, ensure_ascii=False)
    return _NOT_YAML.sub(lambda match: f"\\u{ord(match.group()):04x}", quoted)
