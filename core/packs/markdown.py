"""Foreign text inside Markdown, so that it stays text: fences and code spans that it cannot break out of."""

from __future__ import annotations

import re


def fence(text: str) -> str:
    """The text in a fenced block whose fence is longer than any run of backticks in it.

    >>> print(fence("a ```` b"))
    `````text
    a ```` b
    `````
    """
    marks = "`" * max(3, _longest(text) + 1)
    return f"{marks}text\n{text}\n{marks}"


def code_span(text: str) -> str:
    """The text on one line as a code span.

    >>> code_span("a|b"), code_span("x ` y"), code_span("")
    ('`a|b`', '``x ` y``', '–')
    """
    line = " ".join(text.split())
    if not line:
        return "–"
    marks = "`" * (_longest(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{marks}{pad}{line}{pad}{marks}"


def _longest(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
