"""What is said to a model, and what is read from its reply.

1. A prompt is a `.md` template; values go in literally and once, so nothing in a value is ever a placeholder.
2. Text written by others goes in behind a fence that it cannot close (`fence`).
3. Reading is tolerant about the wrapping: code fences, text around the JSON, trailing commas, one object in
   place of a list, operation names in any case, ids in brackets.
4. Reading is strict about the content: an operation that does not fit is refused with one sentence that says
   why, alone, and never becomes another operation.
5. A reply that cannot be used is asked for once more, with the reader's complaint; the cut-off one, too:
   half a JSON value is never patched up.
6. A reply that failed is data; what stops every call (a bad key, a spent budget) is raised, and ends the run.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from core.errors import AnswerError, InputError, WinnowError
from core.experience import KINDS, Add, Delete, Kind, Merge, Modify
from core.ports import ChatModel, Completion, Sampling
from core.rollout import Message

T = TypeVar("T")

ECHO_CHARACTERS = 2_000
"""How much of an unusable reply is shown to the model when it is asked again."""

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_PART = re.compile(r"^## (system|user)[ \t]*\n", re.MULTILINE)

# ---- asking ---------------------------------------------------------------------------------------------


@cache
def _template(name: str) -> tuple[tuple[str, str], ...]:
    text = (files("core.extraction") / "prompts" / f"{name}.md").read_text(encoding="utf-8")
    _, *parts = _PART.split(text)
    return tuple((parts[i], parts[i + 1].strip()) for i in range(0, len(parts), 2))


def placeholders(name: str) -> set[str]:
    """Names of all placeholders of a template."""
    return {found for _, part in _template(name) for found in _PLACEHOLDER.findall(part)}


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


def clip(text: str, characters: int) -> str:
    """Head and tail of a text, with a visible mark between them; whole where that is not shorter."""
    half = max(1, characters // 2)
    left_out = len(text) - 2 * half
    mark = f" [... {left_out:,} characters left out ...] "
    return text if left_out <= len(mark) else text[:half] + mark + text[-half:]


@dataclass(frozen=True)
class Answer(Generic[T]):
    """What came of asking: a value, a complaint, or both (a value that is usable but not as asked)."""

    value: T | None
    raw: str = ""
    """The reply as it came; both replies where it was asked for twice in vain."""
    error: str = ""
    replied: bool = True
    """False where there was no reply at all: that is not asked for again here (the endpoint's retries did)."""


async def ask(
    model: ChatModel,
    messages: Sequence[Message],
    sampling: Sampling,
    read: Callable[[Completion], tuple[T, str]],
    *,
    stage: str,
    calls: Counter[str],
    retry: bool = True,
) -> Answer[T]:
    """Ask for one reply, and once more with the complaint where it cannot be used.

    Args:
        model: who is asked.
        messages: the prompt.
        sampling: how.
        read: gives the value and "" or what is wrong with it; raises `AnswerError` or `InputError`
            where there is none.
        stage: under which name the call is counted in `calls`; a second call is counted as "retry".
        calls: is counted up.
        retry: whether there may be a second call.

    Raises:
        ModelUnavailableError: the endpoint cannot be used at all.
        BudgetError: the cap of the run would be passed.
        InputError: the key's variable is not set, or (TrustError) may not be read.
    """
    first = await _ask_once(model, messages, sampling, read, stage, calls)
    if not first.error or not first.replied or not retry:
        return first
    echo = Message(role="assistant", content=clip(first.raw, ECHO_CHARACTERS) or "(an empty reply)")
    again = [*messages, echo, *prompt("retry", error=first.error)]
    second = await _ask_once(model, again, sampling, read, "retry", calls)
    if second.value is None:
        raw = f"{first.raw}\n\n--- asked again ({first.error}) ---\n\n{second.raw}"
        return Answer(first.value, raw, first.error if first.value is not None else second.error)
    return second


async def _ask_once(
    model: ChatModel,
    messages: Sequence[Message],
    sampling: Sampling,
    read: Callable[[Completion], tuple[T, str]],
    stage: str,
    calls: Counter[str],
) -> Answer[T]:
    replies = await model.complete(messages, sampling)  # what it raises concerns every other call as well
    calls[stage] += 1
    reply = replies[0] if replies else "The endpoint gave no reply."
    if isinstance(reply, str):
        return Answer(None, error=reply, replied=False)
    if reply.cached:
        calls["cached"] += 1
    try:
        value, complaint = read(reply)
    except (AnswerError, InputError) as e:
        return Answer(None, reply.text, str(e))
    return Answer(value, reply.text, complaint)


async def all_of(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of what is asked for at the same time, in the order of `work`.

    Raises:
        WinnowError: the first one that came up, alone; what else was under way is cancelled and has ended.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
    except* WinnowError as several:
        raise _first_of_all(several) from None
    return [task.result() for task in tasks]


def _first_of_all(several: BaseExceptionGroup[WinnowError]) -> WinnowError:
    first = several.exceptions[0]
    return _first_of_all(first) if isinstance(first, BaseExceptionGroup) else first


def reply_tokens(context_length: int, wanted: int) -> int:
    """How many tokens a reply may have: what is wanted, at most a third of the context."""
    return max(32, min(wanted, context_length // 3))


def schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON Schema of an object that has exactly these properties (as strict endpoints ask for)."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


# ---- reading JSON ---------------------------------------------------------------------------------------

_FENCED = re.compile(r"```[^\n`]*\n(.*?)(?:\n[ \t]*)?```", re.DOTALL)
_THOUGHT = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.IGNORECASE)
# A string that never closes reaches to the end: else each of its quotes would be tried anew, in quadratic time.
_STRING = r'"(?:[^"\\]|\\(?:.|\Z))*(?:"|\Z)'
_STRING_OR_COMMA = re.compile(_STRING + r"|,(?=\s*[}\]])", re.DOTALL)
_STRING_OR_BRACKET = re.compile(_STRING + r"|[{}\[\]]", re.DOTALL)
_OPENING = re.compile(r'\{\s*(?:"|$)|\[\s*(?:[{"\[]|$)')
"""How JSON begins, and prose hardly ever does."""
_RESTARTS = 20
"""How many brackets of prose that never close are stepped over."""


def read_json(reply: Completion, keys: Iterable[str] = ()) -> Any:
    """The JSON value of a reply, whatever is written around it.

    Args:
        reply: as it came.
        keys: a value that holds one of these (of several values in one reply) is the one that is meant; the
            last such value wins, since models correct themselves.

    Raises:
        AnswerError: there is none; says where the reader gave up, keeps the reply.
    """
    text = _without_thoughts(reply.text).strip().removeprefix("\ufeff")
    if not text:
        raise AnswerError("the reply is empty", reply.text)
    wanted = {key.casefold() for key in keys}
    best: tuple[bool, Any] | None = None
    for candidate in _candidates(text):
        try:
            value = _parsed(candidate)
        except ValueError:
            continue
        if isinstance(value, (dict, list)):
            meant = bool(wanted & _keys_of(value))
            if best is None or meant or not best[0]:
                best = (meant, value)
            if candidate is text:  # the whole reply is JSON: nothing else can be meant
                break
    if best is None or (_cut_off(text) and not (best[0] and reply.finish_reason != "length")):
        raise AnswerError(_complaint(text, reply), reply.text)
    return best[1]


def _without_thoughts(text: str) -> str:
    """The text without its <think> ... </think> parts; one that never closes is left as it is."""
    kept: list[str] = []
    end, opened = 0, None
    for tag in _THOUGHT.finditer(text):
        if not tag[1]:
            opened = tag.start() if opened is None else opened
        elif opened is not None:
            kept.append(text[end:opened])
            end, opened = tag.end(), None
    return "".join([*kept, text[end:]])


def _cut_off(text: str) -> bool:
    """Whether the text ends inside of a JSON value; a complete value that lies inside is only a part of it."""
    try:
        _parsed(text)
    except ValueError:
        return any(end is None and _OPENING.match(text, start) for start, end in _brackets(text))
    return False


def _candidates(text: str) -> Iterator[str]:
    yield text
    yield from _spans(text)
    for found in _FENCED.finditer(text):
        yield found[1].strip()


def _spans(text: str) -> Iterator[str]:
    """The outermost bracketed parts of a text, in order."""
    return (text[start:end] for start, end in _brackets(text) if end is not None)


def _brackets(text: str) -> Iterator[tuple[int, int | None]]:
    """Start and end of each outermost bracket; None where it never closes.

    Nothing is looked for inside of JSON that never closes: that is a reply that was cut off.
    """
    position, restarts = 0, 0
    while restarts < _RESTARTS and (found := re.compile(r"[{\[]").search(text, position)):
        end = _closing(text, found.start())
        yield found.start(), end
        if end is None and _OPENING.match(text, found.start()):
            return
        restarts += end is None
        position = end or found.end()


def _closing(text: str, start: int) -> int | None:
    depth = 0
    for found in _STRING_OR_BRACKET.finditer(text, start):
        if (c := found[0]) in "{[":
            depth += 1
        elif c in "}]":
            depth -= 1
            if depth == 0:
                return found.end()
    return None


def _parsed(text: str) -> Any:
    try:
        value = _loads(text)
    except ValueError:
        value = _loads(_STRING_OR_COMMA.sub(lambda m: "" if m[0] == "," else m[0], text))
    if isinstance(value, str) and value.strip()[:1] in ("{", "["):  # JSON in a JSON string
        value = _loads(value)
    return value


def _loads(text: str) -> Any:
    try:
        return json.loads(text, strict=False, parse_constant=lambda _: None)
    except RecursionError as e:
        raise ValueError("the JSON is nested too deeply") from e


def _keys_of(value: Any) -> set[str]:
    items = value if isinstance(value, list) else [value]
    return {str(key).casefold() for item in items[:100] if isinstance(item, dict) for key in item}


def _complaint(text: str, reply: Completion) -> str:
    if reply.finish_reason == "length":
        return "the reply was cut off at the token limit before its JSON was complete; answer more briefly"
    found = _FENCED.search(text)
    body = found[1] if found else text[m.start() :] if (m := re.search(r"[{\[]", text)) else ""
    if not body:
        return "the reply holds no JSON"
    try:
        _parsed(body)
    except ValueError as e:
        return f"the JSON is not valid: {e}"
    return "the reply holds no JSON object"


# ---- reading values -------------------------------------------------------------------------------------


def lowered(item: Mapping[Any, Any]) -> dict[str, Any]:
    """The same mapping with keys in one form: "Experience ID" -> "experience_id"."""
    return {re.sub(r"[\s-]+", "_", str(key).strip().casefold()): value for key, value in item.items()}


def first_of(item: Mapping[str, Any], *keys: str) -> Any:
    """The first value that is there and not null."""
    return next((item[key] for key in keys if item.get(key) is not None), None)


def plain(value: Any) -> str:
    """A value as text that can be stored: "" for null; no NUL, no half surrogate pairs."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.replace("\x00", "").encode("utf-8", "replace").decode().strip()


def listed(value: Any) -> list[Any]:
    """A list, where one thing or none may have been given in its place."""
    if value is None or (isinstance(value, str) and value.strip().casefold() in _NOTHING):
        return []
    return list(value) if isinstance(value, list) else [value]


_NOTHING = {"", "none", "null", "n/a", "-", "[]", "no", "nothing"}


def labels_in(value: Any) -> list[str]:
    """Ids or labels without brackets and quotes, in order, each once; beside brackets nothing else counts.

    >>> labels_in("E-0007 and [G1] are alike"), labels_in("E-0007 and G1, G1")
    (['G1'], ['E-0007', 'G1'])
    >>> labels_in([3, "`R2`", None]), labels_in("none")
    (['3', 'R2'], [])
    """
    found: list[str] = []
    for entry in listed(value):
        if isinstance(entry, Mapping):
            entry = first_of(lowered(entry), "id", "label", "rollout", "draft")  # noqa: PLW2901
        if isinstance(entry, str):
            bracketed = re.findall(r"\[([^\]]+)\]", entry)
            found += re.split(r"[,;\s]+", " ".join(bracketed) or entry)
        elif isinstance(entry, int) and not isinstance(entry, bool):
            found.append(str(entry))
        elif entry is not None:
            found.append(json.dumps(entry))
    stripped = [name.strip().strip("[](){}<>\"'`#.:").strip() for name in found]
    return list(dict.fromkeys(name for name in stripped if name.casefold() not in _NOTHING | {"and"}))


# ---- reading operations ---------------------------------------------------------------------------------

_OPERATIONS = {
    **dict.fromkeys(("add", "create", "new", "insert"), "add"),
    **dict.fromkeys(("modify", "update", "edit", "change", "replace", "revise"), "modify"),
    **dict.fromkeys(("delete", "remove"), "delete"),
    **dict.fromkeys(("merge", "combine"), "merge"),
}


@dataclass(frozen=True)
class Known:
    """What the operations of one reply may refer to."""

    ids: frozenset[str]
    """The live experiences that the model was shown."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Which experience stood behind an injected label: {"G0": "E-0007"}."""
    domain: str = "general"
    """Domain of the task: what is added belongs to it."""

    def resolve(self, name: str) -> str:
        """The id that is meant.

        Raises:
            InputError: none; an unknown id never becomes an add.
        """
        if name in self.ids:
            return name
        folded = {e.casefold(): e for e in sorted(self.ids)}
        label = self.labels.get(name.upper(), "")
        for candidate in (folded.get(name.casefold(), ""), label):
            if candidate in self.ids:
                return candidate
        raise InputError(f"it names {plain(name)[:80]!r}, which is no live experience that was shown")


def read_operation(item: Any, known: Known) -> tuple[Add | Modify | Delete | Merge, str]:
    """One operation of a reply, and its rationale.

    Raises:
        InputError: it does not fit; one sentence says why.
    """
    if not isinstance(item, Mapping):
        raise InputError("an operation must be an object")
    entry = lowered(item)
    said = plain(first_of(entry, "op", "operation", "action", "type"))
    op = _OPERATIONS.get(said.strip("[]`*. ").casefold())
    if op is None:
        raise InputError(f"unknown operation {said[:80]!r}" if said else "the operation has no name")
    ids = _ids_of(entry, op, known)
    kind, remark = _kind_of(entry)
    rationale = " ".join(filter(None, (plain(first_of(entry, "rationale", "reason", "why")), remark)))
    if op == "delete":
        return Delete(experience_id=ids[0]), rationale
    text = first_of(entry, "text", "content", "new_text", "experience", "lesson")
    if text is not None and not isinstance(text, str):
        raise InputError(f"the text of the {op} is no text")
    if text is None or text.strip().casefold() in _NOTHING:
        raise InputError(f"the {op} has no text")
    try:
        return _built(op, ids, text.strip(), kind, known.domain), rationale
    except ValidationError as e:
        reason = e.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        raise InputError(f"the {op} cannot be stored: {reason}") from e


def _built(op: str, ids: list[str], text: str, kind: Kind | None, domain: str) -> Add | Modify | Merge:
    if op == "add":
        return Add(text=text, kind=kind or "strategy", domain=domain)
    if op == "modify":
        return Modify(experience_id=ids[0], text=text, kind=kind)
    return Merge(experience_ids=tuple(ids), text=text)


def _ids_of(entry: Mapping[str, Any], op: str, known: Known) -> list[str]:
    keys = ("id", "ids", "experience_id", "experience_ids", "target", "targets", "target_id", "merged_ids")
    names = list(dict.fromkeys(name for key in keys for name in labels_in(entry.get(key))))
    if op == "add":  # an id made up for the new lesson is ours to give; a live one means something else
        if clash := [name for name in names if name in known.ids or name in known.labels]:
            raise InputError(f"an add names the live experience {clash[0]!r}: perhaps modify was meant")
        return []
    ids = list(dict.fromkeys(known.resolve(name) for name in names))
    if op == "merge" and len(ids) < 2:
        raise InputError(f"a merge needs at least two live experiences, and this one names {len(ids)}")
    if op != "merge" and len(ids) != 1:
        raise InputError(f"a {op} needs the id of one experience, and this one names {len(ids)}")
    return ids


def _kind_of(entry: Mapping[str, Any]) -> tuple[Kind | None, str]:
    said = plain(first_of(entry, "kind", "category"))
    form = re.sub(r"[\s-]+", "_", said.strip().casefold())
    for kind in KINDS:
        if kind == form:
            return kind, ""
    return None, f"(The model called its kind {said[:40]!r}, which is none of ours.)" if said else ""
