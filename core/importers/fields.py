"""One foreign value as one field of a task. What cannot be one raises ValueError with a clause that says why."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from pydantic import JsonValue

from core.importers.source import has_half_surrogates, plain
from core.record import canonical_json
from core.settings import VerifierSpec
from core.verifiers import normalise, numbers_in

_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
_NUMBER_ALONE = re.compile(r"[\s$€£¥+\-−]*[\d.,'’_\s]+(?:[eE][+-]?\d+)?\s*%?")
_WORKED = re.compile(r"(?:^|\n)\s*####\s*(\S[^\n]*?)\s*$")


def text_of(value: Any, field: str) -> str | None:
    """A short value as text: white space around is dropped, nothing left is None, 3.0 is "3"."""
    match value:
        case None:
            return None
        case str():
            text = value.strip()
        case bool():
            text = "true" if value else "false"
        case float() if not math.isfinite(value):
            raise ValueError(f"the {field} is not a number (NaN or infinity)")
        case float() if value.is_integer() and abs(value) < 1e15:
            text = str(int(value))
        case dict() | list() | tuple():
            raise ValueError(
                f"the {field} is {'an object' if isinstance(value, dict) else 'a list'}, not a text"
            )
        case _:
            text = str(plain(value))
    return _clean(text, field) or None


def _clean(text: str, field: str) -> str:
    if has_half_surrogates(text):
        raise ValueError(f"the {field} holds bytes or half characters that are not Unicode")
    if (found := _CONTROL.search(text)) is not None:
        raise ValueError(f"the {field} holds the control character U+{ord(found[0]):04X}")
    return text


def question_of(value: Any) -> tuple[str, dict[str, JsonValue]]:
    """The question, and what surrounds it: of a chat the last user message; the rest is metadata."""
    if isinstance(value, str) and re.match(r"\s*\[\s*\{", value):
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError):
            parsed = None
        if _is_chat(parsed):
            value = parsed
    if not _is_chat(value):
        question = text_of(value, "question")
        if question is None:
            raise ValueError("the question is empty")
        return question, {}
    asked = [i for i, m in enumerate(value) if m["role"] == "user"]
    if not asked:
        raise ValueError("the messages hold none from the user")
    question = _clean(_content(value[asked[-1]]).strip(), "question")
    if not question:
        raise ValueError("the question is empty")
    context: dict[str, JsonValue] = {}
    if system := "\n\n".join(_content(m) for m in value if m["role"] == "system"):
        context["system"] = plain(system)
    if earlier := [plain(m) for m in value[: asked[-1]] if m["role"] != "system"]:
        context["earlier_messages"] = earlier
    return question, context


def _is_chat(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(m, dict) and isinstance(m.get("role"), str) and "content" in m for m in value)
    )


def _content(message: dict[str, Any]) -> str:
    content = message["content"]
    if isinstance(content, list):
        return "\n".join(str(p.get("text") or "") for p in content if isinstance(p, dict))
    return content if isinstance(content, str) else ""


def answer_of(value: Any) -> str | None:
    """The right answer: a text or a number, or a list of one; an object is taken as JSON text."""
    if isinstance(value, dict) and isinstance(value.get("text"), list):
        value = list(dict.fromkeys(map(str, value["text"])))  # as SQuAD writes it
    if isinstance(value, list):
        if len(value) > 1:
            raise ValueError(
                f"the answer is a list of {len(value)}; give one answer, or a verifier that needs none"
            )
        value = value[0] if value else None
    if isinstance(value, dict | list):
        return _clean(canonical_json(plain(value)), "answer")
    return text_of(value, "answer")


def is_number(text: str) -> bool:
    """Whether a text is one number and nothing else."""
    return _NUMBER_ALONE.fullmatch(text) is not None and len(numbers_in(text)) == 1


def final_number(text: str) -> str | None:
    """The number after the last `####` of a worked solution, as GSM8K writes it; None where there is none."""
    match = _WORKED.search(text)
    return match[1] if match and is_number(match[1]) else None


def verifier_of(value: Any) -> VerifierSpec | None:
    """A verifier as a kind, as {"kind", "options"}, or as either in JSON text."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as e:
            raise ValueError("the verifier is not JSON") from e
    if isinstance(value, dict):
        # Parquet gives every row of a nested column all members, the missing ones as null.
        value = {k: v for k, v in value.items() if v is not None}
        if not isinstance(value.get("kind"), str) or set(value) - {"kind", "options"}:
            raise ValueError('the verifier is no {"kind": ..., "options": {...}}')
        if not isinstance(value.get("options", {}), dict):
            raise ValueError("the options of the verifier are no object")
        return VerifierSpec(kind=value["kind"], options=plain(value.get("options", {})))
    kind = text_of(value, "verifier")
    return VerifierSpec(kind=kind) if kind else None


def choices_of(value: Any, answer: str | None) -> tuple[list[str], str | None, list[str]]:
    """(choices, answer among them, texts of the choices) of one row.

    Where the answer is one of the texts the texts are the choices; where it is a label (A, B, ...) the labels
    are; a whole number that is neither counts the texts from 0.
    """
    labels, texts = _labels_and_texts(value)
    if len(texts) < 2:
        raise ValueError("there are fewer than two choices")
    if answer is None:
        return texts, None, texts
    form = normalise(answer)
    if form in {normalise(t) for t in texts}:
        return texts, answer, texts
    if form in {normalise(label) for label in labels}:
        return labels, answer, texts
    if re.fullmatch(r"\d{1,3}", answer) and int(answer) < len(texts):
        return texts, texts[int(answer)], texts
    raise ValueError(f"the answer {answer[:60]!r} is none of the choices")


def _labels_and_texts(value: Any) -> tuple[list[str], list[str]]:
    if isinstance(value, str):
        value = _list_in(value)
    labels: list[Any] = []
    if isinstance(value, dict) and isinstance(value.get("text"), list):
        labels, value = value.get("label") or [], value["text"]  # as ARC writes it
    elif isinstance(value, dict):
        filled = {k: v for k, v in value.items() if v is not None}
        labels, value = list(filled), list(filled.values())
    if not isinstance(value, list):
        raise ValueError("the choices are no list")
    texts = [text for v in value if (text := text_of(v, "choice"))]
    if len(labels) != len(texts):
        labels = [chr(ord("A") + i) for i in range(len(texts))] if len(texts) <= 26 else []
    return [str(label) for label in labels], texts


def _list_in(text: str) -> Any:
    """A cell that holds a list: as JSON, or parted by | or ;."""
    if text.lstrip()[:1] in {"[", "{"}:
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as e:
            raise ValueError("the choices are not JSON") from e
    return text.split("|" if "|" in text else ";")
