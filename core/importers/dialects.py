"""Messages as foreign files write them, read into ours: chat messages, content blocks, response items, parts.

1. Read are OpenAI chat messages, Anthropic's content blocks, items of OpenAI's Responses, messages of `parts`, and
   `from`/`value` pairs; they may be mixed. A call may stand in a message, in a block, or be an item of its own, and
   may be JSON in a string.
2. Calls of one turn of the assistant share its number. A result is paired with a call of the newest calling turn by
   id, else with an older call by id, else, when it has no id, with the first call of the turn without a result.
   A result that fits no call is an orphan: it stays a message.
3. A call without a result has neither output nor success; a result of which nothing was recorded (null) is none.
4. What a tool's result says of its success is told by `told`; that nothing says "error" is no success. An empty output
   that was recorded is one: tools that fail say so.
5. Pictures and the like are marks ("[image]"), with their address where it is short; nothing is kept in base64.
6. The answer is the last thing that the assistant said in words.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from core.importers.getting import as_dict, as_int, as_json, as_list, as_said, as_text
from core.importers.json_text import parsed, written
from core.importers.source import bounded
from core.record import unchecked
from core.rollout import Message, Step

MAX_ERROR = 500
"""Characters of what is kept as a step's error; the whole is its output."""

MAX_ADDRESS = 200
"""Characters of an address of a picture that is kept."""

_ROLES: dict[str, Literal["system", "user", "assistant", "tool"]] = {
    "user": "user",
    "system": "system",
    "developer": "system",
    "assistant": "assistant",
    "ai": "assistant",
    "gpt": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "function_call": "assistant",
    "tool": "tool",
    "function": "tool",
    "function_response": "tool",
    "observation": "tool",
    "toolresult": "tool",
    "tool_result": "tool",
    "ipython": "tool",
}
"""Every other role is somebody who speaks to the agent: a user."""

_CALLS = {
    *("tool_use", "server_tool_use", "mcp_tool_use"),
    *("tool_call", "server_tool_call", "toolcall", "tool-call"),
}
_RESULTS = {
    *("tool_result", "mcp_tool_result", "web_search_tool_result", "web_fetch_tool_result"),
    *("code_execution_tool_result", "bash_code_execution_tool_result"),
    *("text_editor_code_execution_tool_result", "tool_search_tool_result"),
    *("tool_call_response", "server_tool_call_response", "tool-result"),
}
_THOUGHTS = {"thinking", "redacted_thinking", "reasoning", "thought"}
_MEDIA = {
    *("image", "image_url", "input_image", "audio", "input_audio", "video", "video_url"),
    *("file", "input_file", "document", "blob", "uri"),
}
_TEXTS = {"text", "input_text", "output_text", "summary_text", "reasoning_text", "refusal"}
_BLOCKS = _TEXTS | _CALLS | _RESULTS | _THOUGHTS | _MEDIA
_KINDS = {kind: kind for kind in _BLOCKS}

_CALL_IDS = ("call_id", "toolCallId", "tool_call_id", "id")
_RESULT_IDS = ("tool_call_id", "tool_use_id", "call_id", "toolCallId")
_ARGUMENTS = ("arguments", "input", "args", "parameters", "action", "code", "server_tool_call")
_FLAGS = ("is_error", "isError", "error", "status")
_CODES = ("exit_code", "exitCode", "returncode", "return_code")
_CODE_PLACES = (*_CODES, "details", "metadata", "content")
_CONTENTS = ("content", "parts", "value", "text")
_WORDS = ("text", "content", "refusal")
_OUTPUTS = ("output", "content", "result", "response", "server_tool_call_response")

new_message, new_step = unchecked(Message), unchecked(Step)

_BASE64 = re.compile(r"data:([\w.+-]+)/[\w.+-]+(?:;[\w=.+-]+)*;base64,[A-Za-z0-9+/=_-]{64,}")

_FAILED = re.compile(
    r"\s*(?:"
    r"(?:Error|ERROR)(?: (?:executing|calling|running|in|while|from|code|occurred)\b[^\n:]{0,80})?:"
    r"|[\w.]*(?:Error|Exception): "
    r"|Exit [Cc]ode:? *-?[1-9]\d*\b"
    r"|Traceback \(most recent call last\)"
    r"|<returncode>-?[1-9]\d*</returncode>"
    r'|\{\s*"status"\s*:\s*"(?:error|failed|failure)"'
    r'|\{\s*"(?:error|exception)"\s*:(?!\s*(?:null|""|false|\{\}|\[\]))'
    r'|\{\s*"(?:success|ok)"\s*:\s*false'
    r")"
)
_WENT_WELL = re.compile(
    r"\s*(?:Exit [Cc]ode:? *0\b|<returncode>0</returncode>"
    r'|\{\s*"status"\s*:\s*"(?:success|ok)"|\{\s*"(?:success|ok)"\s*:\s*true)'
)


class Told(NamedTuple):
    """What a tool's result says of its success, and on which rung of the ladder it was found."""

    success: bool | None
    error: str | None
    rung: Literal["", "flag", "exit code", "text"]


UNTOLD = Told(None, None, "")


class Conversation(NamedTuple):
    """The messages of one attempt, read."""

    messages: tuple[Message, ...]
    steps: tuple[Step, ...]
    """In the order of the calls."""
    answer: str
    orphans: int
    """Results for which there is no call."""

    @property
    def silent(self) -> bool:
        """Whether nothing is recorded of what the model did: no turn of its, though an empty one, and no call."""
        return not self.steps and all(message.role != "assistant" for message in self.messages)


def conversation(items: Iterable[Any]) -> Conversation:
    """Read the messages of one attempt, in any mixture of the dialects; what is no message is left out.

    Args:
        items: messages or items as they stand in the file: objects, JSON in strings, or anything else.
    """
    reader = _Reader()
    for item in items:
        reader.take(item)
    return reader.conversation()


def told(output: str | None, flag: bool | None = None, exit_code: Any = None) -> Told:
    """Whether a tool call succeeded, by the best evidence there is.

    An exit code other than 0 is believed over a flag that says that all went well. Text counts only where it
    begins as errors do, or where there is none, and only without flag and code.

    Args:
        output: what the tool returned; None where no output was recorded, which is not an empty one.
        flag: whether the file marks the result as an error; None where it has no such mark.
        exit_code: of the tool's process; a number, perhaps written as text; None where it has none.
    """
    code = None if exit_code is None else as_int(exit_code)
    if flag:
        return Told(False, error_text(output or "") or "the tool failed", "flag")
    if code is not None:
        error = None if code == 0 else error_text(output or "") or f"exit code {code}"
        return Told(code == 0, error, "exit code")
    if flag is False:
        return Told(True, None, "flag")
    if output is None:
        return UNTOLD
    if _FAILED.match(output):
        return Told(False, error_text(output), "text")
    went_well = not output.strip() or _WENT_WELL.match(output)
    return Told(True, None, "text") if went_well else UNTOLD


def error_text(output: str) -> str:
    """What is kept of an output as a step's error."""
    return bounded(output.strip(), MAX_ERROR)


def arguments_of(raw: Any) -> dict[str, Any]:
    """The arguments of a call as an object: nothing is {}; what is no JSON object stays whole, under "arguments"."""
    value = raw
    if isinstance(raw, str):
        try:
            value = parsed(raw) if raw.strip() else None
        except (ValueError, RecursionError):
            return {"arguments": as_text(raw)}
    plain = as_json(value)
    if plain is None:
        return {}
    return plain if isinstance(plain, dict) else {"arguments": plain}


def text_of_content(content: Any) -> str:
    """What a content says in words: a string, blocks or parts of it, or null (""); other JSON is told as JSON.

    Thoughts, calls and results of tools are not among its words; pictures are marks.
    """
    return _words_in(content, _kinds_of(content) if isinstance(content, list) else [])


def _words_in(content: Any, kinds: list[str]) -> str:
    """The same, where the kinds of its blocks are known; none where it has no blocks."""
    if isinstance(content, str):
        return _without_base64(as_text(content))
    blocks, kinds = (content, kinds) if isinstance(content, list) else ([content], [_kind(content)])
    if not _BLOCKS.isdisjoint(kinds) or all(isinstance(b, str) for b in blocks):
        return _without_base64("\n".join(filter(None, map(_words_of, blocks, kinds))))
    return _without_base64(as_said(content))


def _kinds_of(blocks: list[Any]) -> list[str]:
    """The kind of each block of a content."""
    return [_kind(b) for b in blocks]


def _kind(block: Any) -> str:
    """The type of a block or an item; "" of what has none. A block of nothing but `text` is one of text."""
    if not isinstance(block, dict):
        return ""
    kind = block.get("type")
    if isinstance(kind, str):
        return _KINDS.get(kind) or kind.lower()
    return "text" if block.keys() == {"text"} else ""


def _words_of(block: Any, kind: str) -> str:
    if kind in _TEXTS:
        return as_text(block.get("text") or block.get("content") or _first(block, _WORDS))
    if kind in _MEDIA:
        return _mark(kind, block)
    return "" if kind in _BLOCKS else as_said(block)


def _mark(kind: str, block: dict[str, Any]) -> str:
    """A mark in place of a picture, a sound or a file: what it is, and its address unless the bytes are in it."""
    what = kind.removeprefix("input_").removesuffix("_url")
    for holder in (block, as_dict(block.get(kind)), as_dict(block.get("source"))):
        for key in ("url", "image_url", "path", "uri", "file_id", "image", "file_name", "filename", kind):
            address = holder.get(key)
            if isinstance(address, str) and 0 < len(address) <= MAX_ADDRESS and address[:5] != "data:":
                return f"[{what} {as_text(address)}]"
    return f"[{what}]"


def _without_base64(text: str) -> str:
    return _BASE64.sub(r"[\1]", text) if ";" in text and ";base64," in text else text


def _thoughts_in(blocks: Any, kinds: list[str]) -> str:
    """What blocks of reasoning, among blocks of these kinds, say in readable text."""
    if _THOUGHTS.isdisjoint(kinds):
        return ""
    keys = ("thinking", "reasoning", "text", "thought", "summary", "content")
    told = zip(blocks, kinds, strict=True)
    found = [text_of_content(_first(b, keys)) for b, kind in told if kind in _THOUGHTS]
    return "\n".join([text for text in found if text])


def _first(holder: dict[str, Any], keys: tuple[str, ...]) -> Any:
    """The first member that is there and not empty; else one that is empty; else None."""
    empty = None
    for key in keys:
        if value := holder.get(key):
            return value
        empty = value if empty is None else empty
    return empty


def _object_in(value: Any) -> dict[str, Any] | None:
    """The JSON object that a string holds; None where it holds none."""
    if isinstance(value, str) and value.lstrip()[:1] == "{":
        try:
            found = parsed(value)
        except (ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None
    return None


def _role_of(item: dict[str, Any]) -> Literal["system", "user", "assistant", "tool"]:
    named = item.get("role") or item.get("from") or item.get("type")
    if not isinstance(named, str):
        return "user"
    return _ROLES.get(named) or _ROLES.get(named.lower()) or "user"


@dataclass(slots=True)
class _Call:
    """A call while its result is waited for."""

    tool: str
    parameters: dict[str, Any]
    turn: int
    fault: str
    """Why the harness could not read the call itself; "" where it could."""
    output: str | None = None
    """None while there is no result."""
    told: Told = UNTOLD

    def step(self) -> Step:
        outcome = self.told
        if self.fault and outcome.success is None:
            outcome = Told(False, error_text(self.fault), "flag")
        return new_step(
            tool=self.tool,
            parameters=self.parameters,
            output=self.output or "",
            success=outcome.success,
            error=outcome.error,
            turn=self.turn,
            told_by=outcome.rung,
        )


@dataclass(slots=True)
class _Reader:
    """Takes items one after the other."""

    messages: list[Message] = field(default_factory=list)
    calls: list[_Call] = field(default_factory=list)
    words: list[str] | None = None
    """Lines of the assistant's message that is being put together; None between its turns."""
    turn: int = -1
    called: int = -1
    """The newest turn with a call."""
    answer: str = ""
    orphans: int = 0
    waiting: deque[_Call] = field(default_factory=deque)
    """Calls of the newest calling turn, in order."""
    by_id: dict[str, deque[_Call]] = field(default_factory=dict)
    """Of these, by id."""
    older: dict[str, deque[_Call]] = field(default_factory=dict)
    """Calls of earlier turns, by id, the newest turn's first."""

    def take(self, item: Any) -> None:
        if isinstance(item, str):
            item = _object_in(item) or {"role": "user", "content": item}
        if not isinstance(item, dict):
            return
        if item.get("role"):
            self._message(item)
            return
        kind = _kind(item)
        if kind.endswith("_call"):
            self._speak("", "")
            self._call(item)
            if item.get("output") is not None or item.get(
                "error"
            ):  # a server's own tool: the result is in the call
                self._result(item, _first(item, _OUTPUTS), inside=True)
        elif kind.endswith("_call_output"):
            self._end_turn()
            self._result(item, _first(item, _OUTPUTS))
        elif kind == "reasoning":
            self._speak("", _thoughts_in([item], [kind]))
        else:
            self._message(item)

    def conversation(self) -> Conversation:
        self._end_turn()
        steps = tuple(map(_Call.step, self.calls))
        return Conversation(tuple(self.messages), steps, self.answer, self.orphans)

    def _message(self, item: dict[str, Any]) -> None:
        role = _role_of(item)
        content = item.get("content") or item.get("parts") or _first(item, _CONTENTS)
        if isinstance(content, dict) and _kind(content) in _BLOCKS:
            content = [content]
        kinds = _kinds_of(content) if isinstance(content, list) else []
        if role == "assistant":
            self._assistant(item, content, kinds)
            return
        self._end_turn()
        if kinds and not _RESULTS.isdisjoint(kinds):
            for block, kind in zip(content, kinds, strict=True):
                if kind in _RESULTS:
                    self._result(block, _first(block, _OUTPUTS))
            if _RESULTS.issuperset(kinds):
                return
        elif role == "tool":
            self._result(item, content)
            return
        if words := _words_in(content, kinds):
            self.messages.append(new_message(role="system" if role == "system" else "user", content=words))

    def _assistant(self, item: dict[str, Any], content: Any, kinds: list[str]) -> None:
        """A message is a turn; as an item of a response it goes on with the items beside it."""
        alone = item.get("type") != "message"
        if alone:
            self._end_turn()
        if item.get("from") == "function_call":
            self._speak("", "")
            self._call(content)
        else:
            self._said(item, content, kinds)
        if alone:
            self._end_turn()

    def _said(self, item: dict[str, Any], content: Any, kinds: list[str]) -> None:
        """Thoughts, words and calls of one message of the assistant."""
        thoughts = item.get("reasoning_content") or item.get("reasoning")
        thought = _thoughts_in(content, kinds) if kinds else ""
        if isinstance(thoughts, str):
            thought = as_text(thoughts)
        words = _words_in(content, kinds) if content else ""
        self._speak(words or as_text(item.get("refusal")), thought)
        if item.get("tool_calls"):
            for call in as_list(item["tool_calls"]):
                self._call(call)
        if isinstance(item.get("function_call"), dict):
            self._call(item["function_call"])
        for block, kind in zip(content, kinds, strict=True) if kinds else ():
            if kind in _CALLS:
                self._call(block)
            elif kind in _RESULTS:
                self._result(block, _first(block, _OUTPUTS), inside=True)

    def _speak(self, text: str, thought: str) -> None:
        if self.words is None:
            self.words = []
            self.turn += 1
        if thought:
            self.words.append(f"[thinks] {thought}")
        if text:
            self.words.append(text)
            self.answer = text

    def _end_turn(self) -> None:
        if self.words is not None:
            self.messages.append(new_message(role="assistant", content="\n".join(self.words)))
            self.words = None

    def _call(self, raw: Any) -> None:
        """One call, as an object or as JSON in a string; its name and arguments may stand in `function`."""
        item = raw if isinstance(raw, dict) else _object_in(raw) or {"arguments": raw}
        inner = as_dict(item.get("function"))
        tool = as_text(inner.get("name")) or as_text(
            _first(item, ("name", "toolName", "tool_name", "function"))
        )
        given = _first(item if inner.keys().isdisjoint(_ARGUMENTS) else inner, _ARGUMENTS)
        if item.get("type") == "custom_tool_call" and isinstance(given, str):
            given = {"input": given}  # free text by definition
        call = _Call(
            tool=tool or _named_by_kind(item) or "unknown",
            parameters=arguments_of(given),
            turn=self.turn,
            fault=as_text(item["parse_error"]) if "parse_error" in item else "",
        )
        self._await(call, _id_of(item, _CALL_IDS))
        if self.words is not None:
            self.words.append(f"[calls {call.tool} with {_without_base64(written(call.parameters))}]")

    def _await(self, call: _Call, call_id: str) -> None:
        self.calls.append(call)
        if call.turn != self.called:
            self.called = call.turn
            for known, calls in self.by_id.items():
                if calls:
                    self.older.setdefault(known, deque()).extendleft(reversed(calls))
            self.waiting.clear()
            self.by_id.clear()
        self.waiting.append(call)
        if call_id:
            self.by_id.setdefault(call_id, deque()).append(call)

    def _result(self, item: dict[str, Any], content: Any, *, inside: bool = False) -> None:
        """The result of a call: it becomes the call's, and a message of its own.

        Args:
            item: the message, block or item that holds it.
            content: what the tool returned.
            inside: whether it stands within the assistant's turn, which goes on after it.
        """
        output = text_of_content(content) if content is not None else ""
        recorded = bool(output) or _is_recorded(item, content)
        outcome = told(output if recorded else None, _flag_of(item), _code_of(item))
        if outcome.success is False and (reason := _reason_of(item)):
            outcome = outcome._replace(error=error_text(reason))
        call = self._awaited(item)
        if call is None:
            self.orphans += 1
        else:
            call.output, call.told = output, outcome
        name = call.tool if call else as_text(_first(item, ("name", "toolName", "tool_name")))
        if inside and self.words is not None:
            self.words.append(f"[result of {name or 'a tool'}: {output}]")
        else:
            self.messages.append(new_message(role="tool", content=output, name=name or None))

    def _awaited(self, item: dict[str, Any]) -> _Call | None:
        """The call that a result belongs to; None for an orphan."""
        call_id = _id_of(item, _RESULT_IDS)
        known = call_id or as_text(item.get("id"))  # of the call in some formats, of the message in others
        for calls in (self.by_id.get(known), self.older.get(known)):
            if (call := _unanswered(calls)) is not None:
                return call
        return None if call_id else _unanswered(self.waiting)


def _named_by_kind(item: dict[str, Any]) -> str:
    """The tool of a call that is an item of its own kind: of `web_search_call` it is web_search."""
    kind = _kind(item)
    return kind.removesuffix("_call") if kind.endswith("_call") else ""


def _unanswered(calls: deque[_Call] | None) -> _Call | None:
    """Take the first call without a result, and those before it."""
    while calls:
        if (call := calls.popleft()).output is None:
            return call
    return None


def _id_of(item: dict[str, Any], keys: tuple[str, ...]) -> str:
    """The id that a call and its result share; "" without one."""
    for key in keys:
        if (value := item.get(key)) is not None and (text := as_text(value)):
            return text
    return ""


def _is_recorded(item: dict[str, Any], content: Any) -> bool:
    """Whether an empty output was recorded as one: nothing was where it is null, or where the tool still runs.

    A result among Anthropic's blocks need not have a content: the tool returned nothing.
    """
    if item.get("status") in ("in_progress", "incomplete"):
        return False
    return content is not None or _kind(item) == "tool_result"


def _flag_of(item: dict[str, Any]) -> bool | None:
    """Whether a result is marked as an error; None without a mark."""
    inner = item.get("content")
    if isinstance(inner, dict) and as_text(inner.get("type")).endswith(
        "_error"
    ):  # a tool of the provider's own
        return True
    if item.keys().isdisjoint(_FLAGS):
        return None
    for key in ("is_error", "isError", "error"):
        value = item.get(key)
        if isinstance(value, bool):
            return value
    if isinstance(item.get("error"), str | dict) and item["error"]:
        return True
    return True if item.get("status") in ("error", "failed") else None


def _reason_of(item: dict[str, Any]) -> str:
    """What the error itself says, where the result has one beside its output."""
    error = item.get("error")
    return (
        as_text(error.get("message") if isinstance(error, dict) else error)
        if not isinstance(error, bool)
        else ""
    )


def _code_of(item: dict[str, Any]) -> Any:
    """The exit code that a result tells; None without one."""
    if item.keys().isdisjoint(_CODE_PLACES):
        return None
    for holder in (item, item.get("details"), item.get("metadata"), item.get("content")):
        if isinstance(holder, dict) and (code := _first(holder, _CODES)) is not None:
            return code
    return None
