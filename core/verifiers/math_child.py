"""The process in which math-verify works: a line of JSON in, a line of JSON out. Run as a script, by `math_pool`."""

from __future__ import annotations

import json
import logging
import re
import signal
import sys
from typing import Any

MEMORY = 1 << 30

_COMMAND = re.compile(r"\\(?:text|mathrm|mathbf)\s*\{[^{}]*\}|\\[A-Za-z]+")
_WORD = re.compile(r"[^\W\d_]{2,}")


def main() -> None:
    """Answer jobs until standard input ends."""
    _bound()
    logging.disable(logging.CRITICAL)  # math-verify warns that nobody limits its time; we do
    from math_verify import parse, verify

    _say("ready")
    for line in sys.stdin:
        job = json.loads(line)
        # Should whoever asked be gone, nobody else ends what never ends.
        _end_in(int(job["time_s"]) + 2)
        gold, answer = (_read(parse, job[name]) for name in ("gold", "answer"))
        equal = bool(
            gold
            and answer
            and verify(
                gold, answer, float_rounding=job["decimals"], timeout_seconds=None, raise_on_error=False
            )
        )
        _end_in(0)
        _say(json.dumps({"gold": _shown(gold), "answer": _shown(answer), "equal": equal}))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _end_in(seconds: int) -> None:
    """0 = never mind."""
    if sys.platform != "win32":
        signal.alarm(seconds)


def _bound() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ValueError, OSError):
        return  # macOS knows no such limit


def _read(parse: Any, text: str) -> list[Any]:
    """What math-verify finds in a text.

    One that is nothing but an expression is put between dollar signs, else only its first number would be read (of
    `1+x^2` the 1).
    """
    return list(parse(f"${text.strip()}$" if _is_bare(text) else text, parsing_timeout=None))


def _is_bare(text: str) -> bool:
    """Whether a text is an expression and nothing else: no words but those of LaTeX."""
    if len(text) > 200 or "$" in text or "\\boxed" in text or "\\(" in text or "\\[" in text:
        return False
    rest = _COMMAND.sub(" ", text.strip())
    return any(c.isalnum() for c in text) and "\n" not in rest and not _WORD.search(rest)


def _shown(parsed: list[Any]) -> str | None:
    """What was understood: the piece of text that was read, as math-verify gives it beside the expression."""
    return str(parsed[-1])[:200] if parsed else None


if __name__ == "__main__":
    main()
