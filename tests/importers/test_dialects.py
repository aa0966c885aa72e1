"""Messages in foreign dialects become messages and steps; success is what says so, or a result that is empty."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.importers.dialects import Conversation, arguments_of, conversation, text_of_content, told
from core.importers.getting import as_int, as_json, as_number, as_seen, as_text, at
from core.rollout import Message, Step

CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "How warm is it in Rome?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "21 degrees"},
    {"role": "assistant", "content": "21 degrees."},
]
BLOCKS = [
    {"role": "user", "content": [{"type": "text", "text": "How warm is it in Rome?"}]},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Rome"}}],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "21 degrees"}]}
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "21 degrees."}]},
]
ITEMS = [
    {
        "role": "user",
        "content": [{"type": "input_text", "text": "How warm is it in Rome?"}],
        "type": "message",
    },
    {"type": "reasoning", "summary": [], "encrypted_content": "xyz"},
    {
        "type": "function_call",
        "id": "fc_9",
        "call_id": "c1",
        "name": "weather",
        "arguments": '{"city": "Rome"}',
    },
    {"type": "function_call_output", "call_id": "c1", "output": "21 degrees"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "21 degrees."}]},
]
PARTS = [
    {"role": "user", "parts": [{"type": "text", "content": "How warm is it in Rome?"}]},
    {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Rome"}}],
    },
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "21 degrees"}]},
    {"role": "assistant", "parts": [{"type": "text", "content": "21 degrees."}]},
]
PAIRS = [
    {"from": "human", "value": "How warm is it in Rome?"},
    {"from": "function_call", "value": '{"name": "weather", "arguments": {"city": "Rome"}}'},
    {"from": "observation", "value": "21 degrees"},
    {"from": "gpt", "value": "21 degrees."},
]
STRINGS = [json.dumps(item) for item in CHAT]


@pytest.mark.parametrize("items", [CHAT, BLOCKS, ITEMS, PARTS, PAIRS, STRINGS])
def test_every_dialect_tells_the_same_story(items: list[Any]) -> None:
    read = conversation(items)
    assert [(s.tool, s.parameters, s.output, s.success, s.turn) for s in read.steps] == [
        ("weather", {"city": "Rome"}, "21 degrees", None, 0)
    ]
    assert read.answer == "21 degrees."
    assert read.orphans == 0
    told_so = [(m.role, m.content) for m in read.messages if m.role != "system"]
    assert told_so == [
        ("user", "How warm is it in Rome?"),
        ("assistant", '[calls weather with {"city": "Rome"}]'),
        ("tool", "21 degrees"),
        ("assistant", "21 degrees."),
    ]


def _calls(*ids: str | None, **more: Any) -> dict[str, Any]:
    calls = [{"id": i, "function": {"name": f"tool {n}", "arguments": "{}"}} for n, i in enumerate(ids)]
    return {"role": "assistant", "content": "", "tool_calls": calls, **more}


def _result(content: str, call_id: str | None = None, **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def _outputs(read: Conversation) -> list[str]:
    return [step.output for step in read.steps]


def test_a_block_that_is_not_in_a_list_is_one() -> None:
    bare = [{**m, "content": m["content"][0]} for m in BLOCKS]
    assert conversation(bare) == conversation(BLOCKS)


def test_parallel_calls_share_a_turn_and_the_next_one_has_another() -> None:
    read = conversation(
        [_calls("a", "b"), _result("1", "a"), _result("2", "b"), _calls("c"), _result("3", "c")]
    )
    assert [s.turn for s in read.steps] == [0, 0, 1]


def test_items_of_one_response_share_a_turn() -> None:
    items: list[dict[str, Any]] = [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Two calls."}]},
        {"type": "function_call", "call_id": "a", "name": "x", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "y", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "b", "output": "2"},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
        {"type": "function_call", "call_id": "c", "name": "z", "arguments": ""},
    ]
    read = conversation(items)
    assert [(s.tool, s.output, s.turn) for s in read.steps] == [("x", "1", 0), ("y", "2", 0), ("z", "", 1)]
    assert read.answer == "Two calls."


def test_results_are_paired_by_id_within_the_turn_not_by_their_order() -> None:
    assert _outputs(conversation([_calls("a", "b"), _result("of b", "b"), _result("of a", "a")])) == [
        "of a",
        "of b",
    ]


def test_an_id_that_comes_again_in_a_later_turn_means_the_later_call() -> None:
    read = conversation([_calls("a"), _result("first", "a"), _calls("a"), _result("second", "a")])
    assert _outputs(read) == ["first", "second"]
    assert read.orphans == 0


def test_an_unanswered_call_does_not_take_the_result_of_a_later_call_with_its_id() -> None:
    read = conversation([_calls("a"), _calls("a"), _result("of the second", "a"), _result("late", "a")])
    assert _outputs(read) == ["late", "of the second"]


def test_results_without_ids_are_paired_by_position_within_the_turn() -> None:
    read = conversation([_calls(None, None), _result("1"), _result("2"), _calls(None), _result("3")])
    assert _outputs(read) == ["1", "2", "3"]


def test_an_id_of_the_result_message_itself_is_not_taken_for_that_of_a_call() -> None:
    read = conversation([_calls("a"), {"role": "tool", "id": "message 7", "content": "1"}])
    assert _outputs(read) == ["1"]
    assert read.orphans == 0


def test_a_call_without_a_result_is_no_success() -> None:
    [step] = conversation([_calls("a")]).steps
    assert (step.success, step.output, step.told_by) == (None, "", "")


_BLOCK_CALL = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "x", "input": {}}]}
_ITEM_CALL = {"type": "function_call", "call_id": "a", "name": "x", "arguments": "{}"}


def _in_block(**result: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", **result}]}


@pytest.mark.parametrize(
    "items",
    [
        [_calls("a"), _result("", "a")],
        [_calls(None), _result("")],
        [_calls("a"), {"role": "tool", "tool_call_id": "a", "content": []}],
        [_calls("a"), {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": ""}]}],
        [_BLOCK_CALL, _in_block(content="")],
        [_BLOCK_CALL, _in_block()],
        [_ITEM_CALL, {"type": "function_call_output", "call_id": "a", "output": ""}],
        [{"type": "mcp_call", "id": "a", "name": "x", "arguments": "{}", "output": ""}],
        [
            {"role": "assistant", "parts": [{"type": "tool_call", "id": "a", "name": "x", "arguments": {}}]},
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": "a", "response": ""}]},
        ],
        [{"from": "function_call", "value": '{"name": "x"}'}, {"from": "observation", "value": ""}],
    ],
)
def test_an_empty_output_that_was_recorded_is_a_result_and_a_success(items: list[Any]) -> None:
    [step] = conversation(items).steps
    assert (step.output, step.success, step.told_by) == ("", True, "text")


@pytest.mark.parametrize(
    "items",
    [
        [_calls("a"), {"role": "tool", "tool_call_id": "a", "content": None}],
        [_calls("a"), {"role": "tool", "tool_call_id": "a"}],
        [_ITEM_CALL, {"type": "function_call_output", "call_id": "a", "output": None}],
        [_ITEM_CALL, {"type": "function_call_output", "call_id": "a", "output": "", "status": "in_progress"}],
        [_ITEM_CALL],
        [{"type": "mcp_call", "id": "a", "name": "x", "arguments": "{}", "output": None, "error": None}],
    ],
)
def test_where_no_output_was_recorded_there_is_no_result(items: list[Any]) -> None:
    read = conversation(items)
    [step] = read.steps
    assert (step.output, step.success, step.told_by) == ("", None, "")
    assert read.orphans == 0


def test_a_result_of_which_nothing_was_recorded_leaves_its_call_to_nobody_else() -> None:
    null = {"role": "tool", "tool_call_id": None, "content": None}
    assert _outputs(conversation([_calls(None, None), null, _result("2")])) == ["", "2"]


def test_a_result_without_a_call_is_kept_as_a_message_and_counted() -> None:
    read = conversation([_calls("a"), _result("whose?", "z")])
    assert read.orphans == 1
    assert read.steps[0].success is None
    assert read.messages[-1].content == "whose?"


def test_a_second_result_of_the_same_call_does_not_overwrite_the_first() -> None:
    read = conversation([_calls("a"), _result("first", "a"), _result("again", "a")])
    assert _outputs(read) == ["first"]
    assert read.orphans == 1


def test_a_call_that_the_harness_could_not_read_failed() -> None:
    call = {"id": "a", "function": "bash", "arguments": {}, "parse_error": "no JSON"}
    [step] = conversation([{"role": "assistant", "content": "", "tool_calls": [call]}]).steps
    assert (step.tool, step.success, step.error) == ("bash", False, "no JSON")


def test_the_reason_in_a_typed_error_is_the_error_of_the_step() -> None:
    error = {"type": "timeout", "message": "it took too long"}
    [step] = conversation([_calls("a"), _result("", "a", error=error)]).steps
    assert (step.success, step.error, step.told_by) == (False, "it took too long", "flag")


def test_thoughts_are_kept_apart_from_words_and_are_never_the_answer() -> None:
    said = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "42"}]
    read = conversation([{"role": "assistant", "content": said}])
    assert read.answer == "42"
    assert read.messages[0].content == "[thinks] Hm.\n42"


def test_a_servers_own_tool_carries_its_result_in_the_call() -> None:
    items = [{"type": "mcp_call", "id": "m", "name": "search", "arguments": "{}", "output": "found"}]
    [step] = conversation(items).steps
    assert (step.tool, step.output) == ("search", "found")


def test_tools_of_the_provider_tell_their_success_in_the_content_of_the_result() -> None:
    ran = {"type": "bash_code_execution_result", "stdout": "", "stderr": "no", "return_code": 1}
    fetched = {"type": "web_fetch_tool_result_error", "error_code": "unavailable"}
    blocks = [
        {"type": "server_tool_use", "id": "a", "name": "bash", "input": {"command": "x"}},
        {"type": "bash_code_execution_tool_result", "tool_use_id": "a", "content": ran},
        {"type": "server_tool_use", "id": "b", "name": "bash", "input": {"command": "y"}},
        {"type": "bash_code_execution_tool_result", "tool_use_id": "b", "content": {**ran, "return_code": 0}},
        {"type": "server_tool_use", "id": "c", "name": "web_fetch", "input": {"url": "z"}},
        {"type": "web_fetch_tool_result", "tool_use_id": "c", "content": fetched},
        {"type": "text", "text": "Done."},
    ]
    read = conversation([{"role": "assistant", "content": blocks}])
    assert [(s.tool, s.success, s.told_by) for s in read.steps] == [
        ("bash", False, "exit code"),
        ("bash", True, "exit code"),
        ("web_fetch", False, "flag"),
    ]
    assert (read.answer, read.orphans) == ("Done.", 0)


def test_parts_of_a_server_s_own_tool_are_a_call_and_its_result() -> None:
    parts = [
        {
            "type": "server_tool_call",
            "id": "a",
            "name": "search",
            "server_tool_call": {"type": "web", "query": "x"},
        },
        {
            "type": "server_tool_call_response",
            "id": "a",
            "server_tool_call_response": {"type": "web", "hits": 2},
        },
        {"type": "text", "content": "Found."},
    ]
    read = conversation([{"role": "assistant", "parts": parts}])
    [step] = read.steps
    assert (step.tool, step.parameters) == ("search", {"type": "web", "query": "x"})
    assert (json.loads(step.output), read.answer) == ({"type": "web", "hits": 2}, "Found.")


def test_pictures_become_marks_and_their_bytes_are_not_kept() -> None:
    inline = "data:image/png;base64," + "QUJD" * 500
    content = [
        {"type": "text", "text": "See:"},
        {"type": "image_url", "image_url": {"url": inline}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD" * 500}},
        {"type": "image", "image": "attachment://3f2a"},
    ]
    assert text_of_content(content) == "See:\n[image]\n[image]\n[image attachment://3f2a]"
    assert text_of_content(f"before {inline} after") == "before [image] after"


def test_a_tools_json_is_kept_whole_even_where_it_looks_like_blocks() -> None:
    output = [{"type": "flight", "number": 7}, {"type": "train", "number": 8}]
    assert json.loads(text_of_content(output)) == output
    assert json.loads(text_of_content({"text": "a", "score": 1})) == {"text": "a", "score": 1}


@pytest.mark.parametrize(
    ("raw", "read"),
    [
        ('{"a": 1}', {"a": 1}),
        ({"a": 1}, {"a": 1}),
        ("", {}),
        (None, {}),
        ('{"a": ', {"arguments": '{"a": '}),
        ("ls -la", {"arguments": "ls -la"}),
        ("[1, 2]", {"arguments": [1, 2]}),
        ('{"a": NaN}', {"a": None}),
    ],
)
def test_arguments_become_an_object_and_nothing_of_them_is_lost(raw: Any, read: dict[str, Any]) -> None:
    assert arguments_of(raw) == read


@pytest.mark.parametrize(
    ("output", "flag", "code", "success", "rung"),
    [
        ("all well", None, None, None, ""),
        ("all well", False, None, True, "flag"),
        ("all well", True, 0, False, "flag"),
        ("all well", False, 2, False, "exit code"),
        ("Error: gone", None, 0, True, "exit code"),
        ("Error: gone", None, "1", False, "exit code"),
        ("Error: gone", None, None, False, "text"),
        ("ValueError: gone", None, None, False, "text"),
        ("Exit code: 127\nnot found", None, None, False, "text"),
        ("Exit code: 0\nfine", None, None, True, "text"),
        ("Traceback (most recent call last):\n  File", None, None, False, "text"),
        ('{"status": "error", "message": "x"}', None, None, False, "text"),
        ('{"error": null, "rows": []}', None, None, None, ""),
        ("Errors found: 0", None, None, None, ""),
        ("The page says Error: gone", None, None, None, ""),
        ("", None, None, True, "text"),
        ("\n", None, None, True, "text"),
        ("", True, None, False, "flag"),
        ("", None, 1, False, "exit code"),
        (None, None, None, None, ""),
        (None, False, None, True, "flag"),
        (None, None, 1, False, "exit code"),
    ],
)
def test_success_is_read_from_the_best_evidence_and_else_unknown(
    output: str | None, flag: bool | None, code: Any, success: bool | None, rung: str
) -> None:
    read = told(output, flag, code)
    assert (read.success, read.rung) == (success, rung)
    assert (read.error is not None) == (success is False)


_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "role",
                    "content",
                    "type",
                    "tool_calls",
                    "function",
                    "id",
                    "name",
                    "arguments",
                    "output",
                    "error",
                ]
            ),
            inner
            | st.sampled_from(["assistant", "tool", "text", "tool_use", "tool_result", "function_call"]),
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(st.lists(_ANYTHING, max_size=6))
def test_no_foreign_value_raises(items: list[Any]) -> None:
    read = conversation(items)
    assert [Step.model_validate_json(step.model_dump_json()) for step in read.steps] == [*read.steps]
    assert [Message.model_validate_json(m.model_dump_json()) for m in read.messages] == [*read.messages]


def test_what_is_nested_too_deeply_is_cut_and_does_not_raise() -> None:
    deep: Any = "bottom"
    for _ in range(5000):
        deep = [deep]
    assert "nested too deeply" in text_of_content({"a": deep})
    assert "nested too deeply" in json.dumps(as_json({"a": deep}))


@pytest.mark.parametrize(
    ("value", "number", "raw", "guessed"),
    [
        (0.5, 0.5, "", False),
        (True, 1.0, "", False),
        (float("nan"), None, "nan", False),
        ("0.25", 0.25, "0.25", False),
        ("C", 1.0, "C", True),
        ("Incorrect", 0.0, "Incorrect", True),
        ("50%", 0.5, "50%", True),
        ("N/A", None, "N/A", False),
        ("nan", None, "nan", False),
        ("inf", None, "inf", False),
        ("partly", None, "partly", False),
        ("", None, "", False),
        (None, None, "", False),
        ([1], None, "[1]", False),
        (10**400, None, str(10**400)[:200], False),
    ],
)
def test_a_score_is_read_or_ungraded_and_never_silently_0(
    value: Any, number: float | None, raw: str, guessed: bool
) -> None:
    read = as_seen(value)
    assert (read.value, read.raw, read.guessed) == (number, raw, guessed)


def test_getters_take_any_type() -> None:
    foreign: tuple[Any, ...] = ("a\x00\ud800", 43.0, 43, True, None, [], float("nan"))
    assert [as_text(v) for v in foreign] == ["a\ufffd\ufffd", "43", "43", "true", "", "", "nan"]
    assert [as_number(v) for v in (1, True, "1", float("inf"), 10**400)] == [1.0, None, None, None, None]
    assert [as_int(v) for v in (1, True, "12", 3.0, 3.5, "x", 10**30)] == [1, None, 12, 3, None, None, None]
    assert at({"a": [{"b": 1}]}, "a", -1, "b") == 1
    assert at([1], 5) is None
    assert at({"a": 1}, "a", "b") is None
