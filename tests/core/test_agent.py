"""Agent: every call is a step, limits end an attempt without an error, and nothing is told to anyone else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from core.agent import Agent
from core.errors import (
    BudgetError,
    InputError,
    ModelError,
    ModelUnavailableError,
    SandboxError,
    StoppedError,
    TrustError,
)
from core.evidence.tool_features import tool_features
from core.ports import Program, Ran
from core.settings import AgentConfig, VerifierSpec
from tests.loop_time import loop_time
from tests.scripted_agent import KEY, SAMPLING, TASK, FakeSandbox, Reply, Scripted, attempted, calls, says

FILES = AgentConfig(tools=("files",))
LIST = ("list_files", {})


@pytest.fixture
def trusting(tmp_path: Path) -> dict[str, str]:
    """An environment whose trust file lets agents run Python."""
    file = tmp_path / "trust.toml"
    file.write_text('run_code = ["agents"]\n')
    return {**os.environ, "WINNOW_TRUST": str(file)}


def told(endpoint: Scripted, request: int = -1) -> list[str]:
    """What the tools said, as the model saw it in a request."""
    return [m["content"] for m in endpoint.requests[request]["messages"] if m["role"] == "tool"]


def test_every_tool_call_is_a_step_in_the_order_of_the_calls() -> None:
    write = ("write_file", {"path": "a.txt", "text": "four"})
    attempt, endpoint = attempted(
        [calls(LIST, write, ("read_file", {"path": "a.txt"}), text="Let me see."), says("4")], FILES
    )
    steps = attempt.trajectory.steps
    assert [s.tool for s in steps] == ["list_files", "write_file", "read_file"]
    assert [s.success for s in steps] == [True, True, True]
    assert steps[1].parameters == write[1]
    assert steps[2].output == "four", "the calls of one reply take effect in their order"
    assert all(s.duration_s is not None and s.duration_s >= 0 for s in steps)
    assert attempt.trajectory.answer == "4"
    assert attempt.trajectory.finish_reason == "stop"
    assert attempt.error is None
    assert attempt.usage.calls == len(endpoint.requests) == 2


def test_the_whole_conversation_is_kept_and_calls_can_be_read_in_it() -> None:
    attempt, _ = attempted([calls(LIST, text="Let me see."), says("4")], FILES)
    assert [(m.role, m.content) for m in attempt.trajectory.messages] == [
        ("system", "Use your tools."),
        ("user", TASK.question),
        ("assistant", "Let me see.\n[calls list_files with {}]"),
        ("tool", "The folder is empty."),
        ("assistant", "4"),
    ]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (("read_file", {"path": "none.txt"}), "FileNotFoundError: there is no file 'none.txt'"),
        (("read_file", {"path": 7}), "wrong arguments: path: it should be text."),
        (("read_file", {"file": "a"}), "wrong arguments: path: it is missing (and 1 more)."),
        (("read_file", '{"path": '), "the arguments are no JSON"),
        (("read_file", '["a"]'), "the arguments are no JSON object"),
        (("read_file", '{"path": NaN}'), "the arguments are no JSON: NaN is no JSON"),
        (("read_file", "[" * 100_000), "the arguments are no JSON"),
        (("no such tool!", {"a": 1}), "there is no tool 'no such tool!'; there are: list_files"),
        (("", {}), "there is no tool '(no name)'"),
        (("x" * 5000, {}), "there is no tool 'xxx"),
    ],
)
def test_a_call_that_cannot_work_is_a_failed_step_that_the_model_can_recover_from(
    call: tuple[str, Any], error: str
) -> None:
    attempt, endpoint = attempted([calls(call), calls(LIST), says("4")], FILES)
    failed, fine = attempt.trajectory.steps
    assert failed.success is False
    assert failed.error
    assert failed.error.startswith(error)
    assert told(endpoint, 1) == [f"Error: {failed.error}"]
    assert fine.success
    assert attempt.trajectory.answer == "4"
    sent = endpoint.requests[1]["messages"][-2]["tool_calls"][0]["function"]
    assert 0 < len(sent["name"]) <= 64, "servers refuse a conversation with a name that no function can have"
    assert sent["arguments"].startswith("{"), "and one with arguments that are no JSON"


def test_recovery_after_an_error_can_be_read_from_the_steps() -> None:
    attempt, _ = attempted(
        [calls(("read_file", {"path": "x"})), calls(("read_file", {"path": "x"})), calls(LIST), says("4")],
        FILES,
    )
    names = {feature.name for feature in tool_features(TASK.question, attempt.trajectory)}
    assert {"error=FileNotFoundError", "recovery=retry_same", "recovery=switch_tool"} <= names


def test_python_and_the_file_tools_share_a_folder_that_is_gone_afterwards(trusting: dict[str, str]) -> None:
    folders: list[Path] = []

    def run(program: Program) -> Ran:
        assert program.folder
        folders.append(Path(program.folder))
        (folders[-1] / "made.txt").write_text("by a program")
        return Ran(ended="done", exit_code=0, stdout="written")

    attempt, _ = attempted(
        [calls(("python", {"code": "..."})), calls(("read_file", {"path": "made.txt"})), says("4")],
        AgentConfig(tools=("python", "files")),
        sandbox=FakeSandbox(run),
        environ=trusting,
    )
    assert [s.output for s in attempt.trajectory.steps] == ["written", "by a program"]
    assert not folders[0].exists()


@pytest.mark.parametrize(
    ("ran", "error"),
    [
        (
            Ran(ended="error", exit_code=1, stderr="Traceback ...\nZeroDivisionError: division by zero\n"),
            "ZeroDivisionError: division by zero",
        ),
        (Ran(ended="time"), "TimeoutError: the program was stopped after 30 s"),
        (Ran(ended="memory"), "MemoryError: the program was stopped at its memory limit"),
        (Ran(ended="output", stdout="y" * 50), "the program was stopped because it printed too much"),
        (Ran(ended="error", exit_code=9), "the program ended with exit code 9"),
    ],
)
def test_what_stops_a_program_is_the_error_of_its_step(
    ran: Ran, error: str, trusting: dict[str, str]
) -> None:
    script = [calls(("python", {"code": "1/0"})), says("4")]
    sandbox = FakeSandbox(lambda _: ran)
    attempt, _ = attempted(script, AgentConfig(), sandbox=sandbox, environ=trusting)
    (step,) = attempt.trajectory.steps
    assert (step.success, step.error) == (False, error)
    assert ran.stdout in step.output


def test_code_that_cannot_be_confined_here_ends_the_run(trusting: dict[str, str]) -> None:
    def refuse(_: Program) -> Ran:
        raise SandboxError("Code cannot be confined here.")

    with pytest.raises(SandboxError, match="cannot be confined here"):
        attempted(
            [calls(("python", {"code": "1"}))], AgentConfig(), sandbox=FakeSandbox(refuse), environ=trusting
        )


def test_what_the_owner_did_not_allow_is_refused_before_anything_starts(tmp_path: Path) -> None:
    nothing = {"WINNOW_TRUST": str(tmp_path / "none.toml")}
    with pytest.raises(TrustError, match="run_code"):
        attempted([says("4")], AgentConfig(), sandbox=FakeSandbox(), environ=nothing)
    with pytest.raises(TrustError, match="mcp"):
        attempted([says("4")], AgentConfig(tools=("mcp:notes",)), environ=nothing)
    with pytest.raises(InputError, match="There is no tool 'browser'"):
        attempted([says("4")], AgentConfig(tools=("browser",)), environ=nothing)


# -- limits -------------------------------------------------------------------------------------


def test_at_the_step_limit_the_agent_gives_its_best_answer_without_tools() -> None:
    config = AgentConfig(tools=("files",), max_steps=2)
    attempt, endpoint = attempted([calls(LIST), calls(LIST, LIST), says("4")], config)
    assert len(attempt.trajectory.steps) == 2
    assert told(endpoint)[-1].startswith("Not run. You may call no more tools")
    assert "tools" not in endpoint.requests[-1]
    assert "final answer now" in endpoint.requests[-1]["messages"][-1]["content"]
    assert (attempt.trajectory.answer, attempt.trajectory.finish_reason) == ("4", "step limit")
    assert attempt.error is None


def test_an_agent_that_needs_exactly_its_steps_reached_no_limit() -> None:
    attempt, _ = attempted([calls(LIST, LIST), says("4")], AgentConfig(tools=("files",), max_steps=2))
    assert attempt.trajectory.finish_reason == "stop"


def test_a_model_that_calls_tools_for_ever_still_comes_to_an_end() -> None:
    config = AgentConfig(tools=("files",), max_steps=3)
    attempt, endpoint = attempted([calls(LIST, text="still looking")], config)
    assert len(attempt.trajectory.steps) == 3
    assert len(endpoint.requests) == 5, "three steps, the refused one, and the last turn"
    assert (attempt.trajectory.answer, attempt.trajectory.finish_reason) == ("still looking", "step limit")


def test_a_tool_that_takes_all_the_time_leaves_some_for_an_answer(
    trusting: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    monkeypatch.setattr(
        "core.agent.course.LAST_TURN", 0.95
    )  # the last turn is in time on a busy machine, too
    release = threading.Event()

    def hang(_: Program) -> Ran:
        release.wait(60)
        return Ran(ended="done")

    async def run_and_release(agent: Agent) -> Any:
        from tests.scripted_agent import PROMPT

        try:
            return await agent.attempt(TASK, PROMPT, SAMPLING, 0)
        finally:
            release.set()

    attempt, endpoint = attempted(
        [calls(("python", {"code": "hang()"})), says("4")],
        AgentConfig(time_limit_s=40),
        sandbox=FakeSandbox(hang),
        environ=trusting,
        also=run_and_release,
    )
    (step,) = attempt.trajectory.steps
    assert step.error == "TimeoutError: stopped, because the time of the whole attempt is up"
    assert "tools" not in endpoint.requests[-1]
    assert (attempt.trajectory.answer, attempt.trajectory.finish_reason) == ("4", "time limit")
    assert attempt.error is None
    assert attempt.duration_s < 40


def test_a_model_that_takes_all_the_time_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    time, choose = loop_time(monkeypatch), Scripted.choose

    def thinking(endpoint: Scripted, request: dict[str, Any], number: int) -> Reply:
        if number == 2:
            time.set_forward(60)  # all of its time
        return choose(endpoint, request, number)

    monkeypatch.setattr(Scripted, "choose", thinking)
    config = AgentConfig(tools=("files",), time_limit_s=60)
    attempt, _ = attempted([calls(LIST, text="so far: 4"), says("5", delay_s=40)], config)
    assert (attempt.trajectory.answer, attempt.trajectory.finish_reason) == ("so far: 4", "time limit")
    assert attempt.error is None
    assert 60 <= attempt.duration_s < 60 + 40


def test_a_full_context_ends_the_calls_before_the_endpoint_refuses() -> None:
    attempt, endpoint = attempted([calls(LIST, tokens=90), says("4")], FILES, context_length=300)
    assert attempt.trajectory.steps == ()
    assert "as long as it may be" in endpoint.requests[-1]["messages"][-1]["content"]
    assert (attempt.trajectory.answer, attempt.trajectory.finish_reason) == ("4", "length")


def test_an_answer_that_was_cut_says_so() -> None:
    attempt, _ = attempted([says("The answer is", tokens=100, finish="length")], FILES)
    assert (attempt.trajectory.answer, attempt.trajectory.finish_reason) == ("The answer is", "length")


def test_an_answer_that_was_cut_before_its_first_word_is_an_empty_answer_and_no_error() -> None:
    attempt, _ = attempted([Reply(None, tokens=100, finish="length")], FILES)
    assert (attempt.trajectory.answer, attempt.trajectory.finish_reason) == ("", "length")
    assert attempt.error is None


# -- gates --------------------------------------------------------------------------------------

DIGITS = AgentConfig(tools=("files",), gates=(VerifierSpec(kind="regex", options={"pattern": "[0-9]+"}),))


def test_a_gate_tells_the_agent_why_and_lets_the_better_answer_through() -> None:
    attempt, endpoint = attempted([says("four"), says("4")], DIGITS)
    assert "the answer does not match the pattern" in endpoint.requests[-1]["messages"][-1]["content"]
    assert attempt.trajectory.messages[-2].content == endpoint.requests[-1]["messages"][-1]["content"]
    assert (attempt.trajectory.answer, attempt.trajectory.finish_reason) == ("4", "stop")


def test_a_gate_tells_it_once() -> None:
    attempt, endpoint = attempted([says("four"), says("quatre"), says("4")], DIGITS)
    assert len(endpoint.requests) == 2
    assert (attempt.trajectory.answer, attempt.trajectory.finish_reason) == ("quatre", "gate")
    assert attempt.error is None


def test_a_gate_cannot_give_the_right_answer_away() -> None:
    config = AgentConfig(tools=("files",), gates=(VerifierSpec(kind="exact"),))
    with pytest.raises(InputError, match="a gate is not told the right answer"):
        attempted([says("5")], config)


# -- what goes wrong on the way to the model ----------------------------------------------------


def client_that_raises(error: BaseException) -> Any:
    import httpx2

    class Transport(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            raise error

    return httpx2.AsyncClient(transport=Transport())


@pytest.mark.parametrize("kind", [BudgetError, ModelUnavailableError, StoppedError, InputError, TrustError])
def test_what_ends_the_run_comes_out_as_itself_through_both_sdks(kind: type[Exception]) -> None:
    error = kind("The cap is reached.")
    with pytest.raises(kind) as caught:
        attempted([], FILES, http_client=client_that_raises(error))
    assert caught.value is error


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ModelError("The reply could not be read."), "The reply could not be read."),
        (RuntimeError("a bug"), "RuntimeError: a bug."),
    ],
)
def test_what_concerns_one_rollout_is_data(error: Exception, sentence: str) -> None:
    attempt, _ = attempted([], FILES, http_client=client_that_raises(error))
    assert attempt.error == sentence
    assert attempt.trajectory.finish_reason is None


def test_what_was_done_before_an_endpoint_failed_is_kept() -> None:
    attempt, _ = attempted([calls(LIST), Reply("out of order", status=500)], FILES)
    assert attempt.error
    assert "out of order" in attempt.error
    assert [s.tool for s in attempt.trajectory.steps] == ["list_files"]
    assert attempt.trajectory.messages[-1].role == "tool"


def test_a_reply_of_half_surrogates_and_control_characters_is_kept_in_a_form_that_can_be_stored() -> None:
    hostile = calls(("write_file", '{"path": "a", "text": "\\ud800\\u0000"}'), text="\ud83d\x07")
    attempt, _ = attempted([hostile, says("4\udfff")], FILES)
    assert attempt.trajectory.answer == "4\N{REPLACEMENT CHARACTER}"
    assert attempt.trajectory.steps[0].success
    assert attempt.trajectory.canonical().encode()  # would raise


# -- nothing is told to anyone else -------------------------------------------------------------


def test_with_a_key_in_the_environment_nothing_is_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-developer-0123456789")
    asked: set[str] = set()
    connect, look_up = socket.socket.connect, socket.getaddrinfo

    def watched(self: socket.socket, address: Any) -> Any:
        asked.add(f"{address[0]}:{address[1]}")
        return connect(self, address)

    def looked_up(host: Any, *rest: Any, **more: Any) -> Any:
        asked.add(str(host))
        return look_up(host, *rest, **more)

    monkeypatch.setattr(socket.socket, "connect", watched)
    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    attempt, endpoint = attempted([calls(LIST), says("4")], FILES)

    import agents
    from agents.tracing import get_trace_provider

    agents.flush_traces()  # as at the end of the process
    assert attempt.trajectory.answer == "4"
    place = endpoint.base_url.removeprefix("http://").removesuffix("/v1")
    assert asked <= {place, "127.0.0.1"}
    assert get_trace_provider()._multi_processor._processors == ()  # type: ignore[attr-defined]
    with agents.trace("something else in this process") as trace:
        assert trace.trace_id == "no-op"
    assert all(KEY in head and "sk-of-the-developer" not in head for head in endpoint.headers)


def test_the_log_of_the_sdk_says_nothing(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    attempted([calls(("nothing", {"secret": 1})), Reply("out of order", status=500)], FILES)
    assert capfd.readouterr().err == ""
    assert not [r for r in caplog.records if r.name.startswith(("openai.agents", "mcp"))]


def test_the_command_line_does_not_load_the_sdk() -> None:
    import subprocess
    import sys

    code = "import core.agent, sys; print([m for m in ('agents', 'openai', 'mcp', 'httpx2') if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
