"""The Agents SDK: the only module that knows it. It runs the turns; `Course` keeps the record and the limits.

What the SDK would do besides is off: no trace is made or exported, nothing is logged, nothing is stored at the
provider, and no request is made again here (that is the client's business).
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import agents
from agents.exceptions import ModelBehaviorError
from agents.items import ModelResponse, TResponseInputItem, TResponseStreamEvent
from agents.models.interface import Model, ModelTracing
from agents.run_config import ToolErrorFormatterArgs, ToolExecutionConfig
from agents.tool_context import ToolContext
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputRefusal,
    ResponseOutputText,
)

from core.agent.course import Course
from core.agent.tool import Tool, clean
from core.errors import WinnowError
from core.ports import Sampling
from core.rollout import Message

if TYPE_CHECKING:
    from openai import AsyncOpenAI


def silence() -> None:
    """Switch off what the SDK tells others: traces (it exports them whenever it finds a key), and its log."""
    agents.set_trace_processors([])
    agents.set_tracing_disabled(True)
    for name in ("openai.agents", "mcp"):  # what they log holds prompts and outputs
        logger = logging.getLogger(name)
        logger.propagate = False
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())


async def converse(
    course: Course,
    tools: Sequence[Tool],
    messages: Sequence[Message],
    client: AsyncOpenAI,
    model_name: str,
    sampling: Sampling,
    objection: Callable[[str], Awaitable[str]],
) -> bool:
    """Let the model work until it gives an answer; `course` holds all that happened, however this ends.

    Args:
        course: the record.
        tools: what the model may call.
        messages: the prompt.
        client: asks the endpoint.
        model_name: as the endpoint knows it.
        sampling: how each reply is asked for.
        objection: why an answer is not let through; empty where it is. The model is told once.

    Returns:
        Whether the answer was let through.
    """
    agent = agents.Agent[None](
        name="rollout",
        instructions="\n\n".join(m.content for m in messages if m.role == "system") or None,
        model=_Watched(
            agents.OpenAIChatCompletionsModel(model=model_name, openai_client=client),
            course,
            sampling.max_tokens,
        ),
        model_settings=_settings(sampling),
        tools=[_function(tool, course) for tool in tools],
    )

    async def missing(about: ToolErrorFormatterArgs[Any]) -> str | None:
        return await course.work(course.call(about.call_id)) if about.kind == "tool_not_found" else None

    config = agents.RunConfig(
        tracing_disabled=True,
        # One after the other: the calls of a reply take effect in their order.
        tool_execution=ToolExecutionConfig(max_function_tool_concurrency=1),
        tool_not_found_behavior="return_error_to_model",
        tool_error_formatter=missing,
    )
    prompt: list[TResponseInputItem] = [
        {"role": "assistant" if m.role == "assistant" else "user", "content": m.content}
        for m in messages
        if m.role != "system"
    ]
    result = await agents.Runner.run(agent, prompt, run_config=config, max_turns=None)
    why = await objection(course.answer)
    if why and course.limit is None:
        course.ask(why)
        again: list[TResponseInputItem] = [*result.to_input_list(), {"role": "user", "content": why}]
        await agents.Runner.run(agent, again, run_config=config, max_turns=None)
        why = await objection(course.answer)
    return not why


def _settings(sampling: Sampling) -> agents.ModelSettings:
    return agents.ModelSettings(
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        max_tokens=sampling.max_tokens,
        extra_args={"stop": list(sampling.stop)} if sampling.stop else None,
    )


def _function(tool: Tool, course: Course) -> agents.FunctionTool:
    async def invoke(context: ToolContext[Any], _: str) -> str:
        return await course.work(course.call(context.tool_call_id))

    return agents.FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=dict(tool.schema),
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


class _Watched(Model):
    """The model, with everything that goes in and out of it seen by the course.

    Calls get ids of ours, since a model may use one twice; arguments that are no JSON go back to it as JSON, and
    names as names may be, since servers refuse the whole conversation otherwise.
    """

    def __init__(self, model: Model, course: Course, max_tokens: int) -> None:
        self._model = model
        self._course = course
        self._max_tokens = max_tokens

    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],
        model_settings: agents.ModelSettings,
        tools: list[agents.Tool],
        output_schema: Any,
        handoffs: list[Any],
        tracing: ModelTracing,
        **about: Any,
    ) -> ModelResponse:
        last_word = self._course.last_word()
        if last_word is not None:
            self._course.ask(last_word)
            input = [*input, {"role": "user", "content": last_word}]
            tools = []
        try:
            response = await self._model.get_response(
                system_instructions,
                input,
                model_settings,
                tools,
                output_schema,
                handoffs,
                ModelTracing.DISABLED,
                **about,
            )
        except ModelBehaviorError as e:
            if "finish_reason='length'" not in str(e):
                raise
            # Cut before a word was said: an empty answer, as with any other model call.
            usage = agents.Usage(requests=1, output_tokens=self._max_tokens)
            response = ModelResponse(output=[], usage=usage, response_id=None)
        except Exception as e:
            raise ours(e) or e from e
        said, calls = _read(response)
        if last_word is not None:
            calls = []
        made = self._course.reply(
            said,
            [(c.name, c.arguments) for c in calls],
            # An endpoint that does not count: guessed from what was sent.
            tokens=response.usage.total_tokens or len(_json(input)) // 3,
            next_tokens=self._max_tokens,
            # The SDK does not pass on why a reply ended; one that used all of its tokens was cut.
            cut=response.usage.output_tokens >= self._max_tokens,
        )
        rest = [
            i for i in response.output if not isinstance(i, ResponseFunctionToolCall | ResponseOutputMessage)
        ]
        response.output = [*rest, *([_message(said)] if said or not calls else [])]
        for call, item in zip(made, calls, strict=True):
            item.call_id = item.id = call.id
            item.name = re.sub(r"[^A-Za-z0-9_-]", "_", call.tool)[:64]
            item.arguments = _json(call.parameters)
            response.output.append(item)
        return response

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[TResponseStreamEvent]:
        raise NotImplementedError("replies are not streamed")


def ours(error: BaseException | None) -> WinnowError | None:
    """The error of ours that lies behind one of the libraries between the transport and here."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, WinnowError):
            return error
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None


def _read(response: ModelResponse) -> tuple[str, list[ResponseFunctionToolCall]]:
    """What the model said, a refusal included, and what it calls."""
    said: list[str] = []
    for item in response.output:
        if isinstance(item, ResponseOutputMessage):
            said += [p.refusal if isinstance(p, ResponseOutputRefusal) else p.text for p in item.content]
    calls = [item for item in response.output if isinstance(item, ResponseFunctionToolCall)]
    return clean("".join(said)), calls


def _message(text: str) -> ResponseOutputMessage:
    part = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(
        id="message", content=[part], role="assistant", status="completed", type="message"
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
