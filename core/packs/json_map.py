"""JSON `{id: text}`, the form that the reference systems keep their experiences in."""

from __future__ import annotations

import json

from core.packs.content import PackContent, lessons_of


def write(content: PackContent) -> bytes:
    texts = {experience.id: experience.text for experience in lessons_of(content)}
    return (json.dumps(texts, ensure_ascii=False, indent=2) + "\n").encode()
