"""A user's own function."""

from __future__ import annotations

import asyncio
import inspect
import math
import threading
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import Field

from core.errors import InputError
from core.rollout import Score, Task, Trajectory
from core.verifiers.check import Check
from core.verifiers.outside import Outside

MAX_HANGING = 8
"""Calls that may still be running after their time was up: a thread cannot be ended from outside."""

_NO_FUNCTIONS = "functions of one's own were not made available here"
_hanging = threading.BoundedSemaphore(MAX_HANGING)


class Function(Check):
    """What `module:function` says of f(task, trajectory), both as plain dictionaries.

    It gives a number from 0 to 1, a bool, None where it cannot tell, or {"score": ..., "reason": ..., "parts": {...}}.
    It runs in this process with all that this process may do: that is why the trust file must name it.
    """

    function: str = Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
    time_s: float = Field(default=30.0, gt=0, le=3600)

    @property
    def needs_answer(self) -> bool:
        return False

    def missing(self, outside: Outside) -> str:
        if outside.load_function is None:
            return f"{_NO_FUNCTIONS}."
        try:
            outside.load_function(self.function)
        except InputError as e:
            return str(e)
        return ""

    async def judge_trajectory(self, task: Task, trajectory: Trajectory, outside: Outside) -> Score:
        if outside.load_function is None:
            return Score(reason=f"not judged: {_NO_FUNCTIONS}")
        try:
            function = await outside.call(outside.load_function, self.function)
        except InputError as e:
            return Score(reason=f"not judged: {e}")
        given = task.model_dump(mode="json"), trajectory.model_dump(mode="json")
        try:
            result = await _in_its_own_thread(function, *given, time_s=self.time_s)
        except TimeoutError as e:
            return Score(reason=f"not judged: {self.function} {e}")
        except Exception as e:  # noqa: BLE001  theirs: whatever it raises, the attempt is not wrong for it
            return Score(reason=f"{self.function} raised {type(e).__name__}: {str(e)[:200]!r}")
        return self._read(result)

    def _read(self, result: Any) -> Score:
        if isinstance(result, Mapping):
            if odd := set(result) - {"score", "reason", "parts"}:
                return self._odd(f"a dictionary with {', '.join(map(repr, sorted(map(str, odd))))}")
            reason, parts = result.get("reason") or "", result.get("parts") or {}
            if not isinstance(parts, Mapping) or not all(_is_score(part) for part in parts.values()):
                return self._odd("parts that are no numbers from 0 to 1")
            result, reason = result.get("score"), str(reason)[:2000]
            parts = {str(name): float(part) for name, part in parts.items()}
        else:
            reason, parts = "", {}
        if result is None:
            return Score(reason=reason or f"{self.function} could not tell", parts=parts)
        if not _is_score(result):
            if inspect.iscoroutine(result):
                result.close()
            return self._odd(f"{str(result)[:60]!r} ({type(result).__name__})")
        value = float(result)
        return Score(
            value=value,
            reason=reason or ("" if value == 1 else f"{self.function} gave {value:g}"),
            parts=parts,
        )

    def _odd(self, what: str) -> Score:
        return Score(reason=f"{self.function} gave {what}, and not a number from 0 to 1")


def _is_score(value: Any) -> bool:
    # numpy's numbers are no `int` or `float`, but know how to become one.
    if isinstance(value, str | bytes) or not hasattr(value, "__float__"):
        return False
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return math.isfinite(number) and 0 <= number <= 1


async def _in_its_own_thread(function: Callable[..., object], *given: object, time_s: float) -> object:
    """Call a function that may never come back, without tying up one of the executor's threads.

    Raises:
        TimeoutError: it did not come back in time, or too many that were called before never did.
    """
    if not _hanging.acquire(blocking=False):
        raise TimeoutError(f"was not called: {MAX_HANGING} calls of functions have not come back")
    loop = asyncio.get_running_loop()
    came: asyncio.Future[object] = loop.create_future()

    def settle(result: object, error: BaseException | None) -> None:
        if came.done():
            return
        if error is not None:
            came.set_exception(error if isinstance(error, Exception) else RuntimeError(f"{error!r}"))
        else:
            came.set_result(result)

    def work() -> None:
        result: object = None
        error: BaseException | None = None
        try:
            result = function(*given)
        except BaseException as e:  # noqa: BLE001  a SystemExit of theirs must not end the thread unseen
            error = e
        finally:
            _hanging.release()
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=work, daemon=True, name="winnow-function").start()
    try:
        return await asyncio.wait_for(came, time_s)
    except TimeoutError as e:
        raise TimeoutError(f"did not come back in {time_s:g} s") from e
