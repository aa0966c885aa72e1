"""An OpenAI-compatible server for tests: real HTTP on loopback, seeded replies, seeded faults.

In a test:

    with StubServer(faults=[Fault("status", 429, {"Retry-After": "2"})]) as stub:
        ...                      # stub.base_url; stub.requests has every body and header; stub.stats() the counts

As a process of its own, which outlives a client that is killed:

    python -m tests.stub_server --port-file port --latency-ms 50 --seed 1 --rate-429 0.2 --reply-characters 20000

Replies depend only on the request and on seed + i (i = position among the `n` choices), so the same replicate always
gets the same text, asked for alone or together. Faults depend on the seed, the request and how often it was seen.
`GET /stub/stats` gives the counts, `GET /stub/requests` the bodies where they are kept, `POST /stub/reset` clears both.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import os
import random
import re
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self

from tests.stub_http import Connection, Request

MODEL = "stub-model"
TEACHER = "stub-teacher"

FaultKind = Literal["status", "malformed", "truncated", "dropped", "empty", "wrong_types", "partial", "slow"]


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong."""

    kind: FaultKind
    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    message: str = "The server is having trouble."
    code: str = ""
    factor: float = 10.0
    """"slow": so many times the latency."""
    keep: tuple[int, ...] = (0,)
    """"partial": positions of the choices that are sent."""


@dataclass(frozen=True)
class Asked:
    """What the reply function sees: one replicate of one request."""

    messages: list[dict[str, Any]]
    seed: int
    """Of this replicate: the request's seed + its position."""
    body: dict[str, Any]

    @property
    def system(self) -> str:
        return "\n".join(str(m["content"]) for m in self.messages if m["role"] == "system")

    @property
    def user(self) -> str:
        """The last user message."""
        return next((str(m["content"]) for m in reversed(self.messages) if m["role"] == "user"), "")

    @property
    def rng(self) -> random.Random:
        """Seeded with the messages and the seed."""
        return random.Random(f"{self.seed} {json.dumps(self.messages, sort_keys=True)}")


ReplyFunction = Callable[[Asked], str]


@dataclass(frozen=True)
class Received:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: dict[str, Any]


CAPITALS = {
    "france": "Paris", "italy": "Rome", "spain": "Madrid", "japan": "Tokyo", "norway": "Oslo", "egypt": "Cairo",
    "germany": "Berlin", "austria": "Vienna", "portugal": "Lisbon", "greece": "Athens", "poland": "Warsaw",
    "kenya": "Nairobi", "peru": "Lima", "chile": "Santiago", "cuba": "Havana", "ireland": "Dublin",
}  # fmt: skip


def solver(asked: Asked) -> str:
    """A model that is partly right: each question has its own difficulty, each seed its own luck and manner.

    Knows sums, differences and products of two numbers, and some capitals; other questions get one of two made-up
    words, "right" for them being the first. With an injected experience ("[G0] ...") it is right more often.
    """
    answer, wrong = _solve(asked.user)
    hardness = random.Random(asked.user).choice([0.15, 0.4, 0.6, 0.85])
    if "[G0]" in asked.system:
        hardness *= 0.6
    rng = asked.rng
    said = wrong if rng.random() < hardness else answer
    return rng.choice(
        [said, said, f"{said}.", f"The answer is {said}.", f"I think that it is {said}, all in all."]
    )


def _solve(question: str) -> tuple[str, str]:
    rng = random.Random(question)
    if found := re.search(r"(-?\d+)\s*([+*x×-]|plus|minus|times)\s*(-?\d+)", question):
        a, b = int(found[1]), int(found[3])
        value = a + b if found[2] in "+plus" else a - b if found[2] in "-minus" else a * b
        return str(value), str(value + rng.choice([-2, -1, 1, 2, 10]))
    if found := re.search(r"capital (?:city )?of (?:the )?(\w+)", question, re.IGNORECASE):
        right = CAPITALS.get(found[1].lower(), f"{found[1]} City")
        return right, rng.choice([c for c in CAPITALS.values() if c != right])
    word = hashlib.sha256(question.encode()).hexdigest()
    return word[:6], word[6:12]


def teacher(asked: Asked) -> str:
    """An extraction model that answers from its prompt alone: a lesson for each group, some alike, one that misfits."""
    if "semantic_advantages" in asked.system:
        labels = sorted(set(re.findall(r"\bR\d+\b", asked.user)))
        manner = asked.rng.choice(["the number alone", "the bare number", "digits, and no word beside them"])
        text = f"When asked for a sum, answer with {manner}."
        return json.dumps({
            "semantic_advantages": [{"rollout": w, "verdict": "better", "why": manner} for w in labels],
            "operations": [
                {"op": "add", "ids": [], "text": text, "kind": "convention"},
                {"op": "modify", "ids": ["E-0099"], "text": "No such lesson.", "kind": "strategy"},
            ],
        })  # fmt: skip
    if '"actions"' in asked.system:
        merged = {"action": "merge", "drafts": ["D1", "D2"], "text": "When asked for a sum, give the number."}
        return json.dumps({"actions": [merged]})
    return json.dumps({"summary": f"Answered at once, {asked.rng.choice(['tersely', 'at length'])}."})


def by_stage(asked: Asked) -> str:
    """The teacher where a stage of the extraction asks, else the solver."""
    return solver(asked) if kind_of(asked.messages) == "rollout" else teacher(asked)


@cache
def _prose(characters: int) -> str:
    words = random.Random(0).choices(
        ["so", "then", "it", "was", "read", "again", "and", "the", "first", "line", "still", "held"],
        k=characters,
    )
    return " ".join(words)


def longwinded(reply: ReplyFunction, characters: int) -> ReplyFunction:
    """The same replies of the solver, each after so many characters of prose of its own."""

    def padded(asked: Asked) -> str:
        if kind_of(asked.messages) != "rollout":
            return reply(asked)
        start = asked.rng.randrange(3 * characters)
        return f"{_prose(characters)[start : start + characters]}.\n{reply(asked)}"

    return padded


class StubServer:
    """The server, in a thread of its own. Use as a context manager.

    Args:
        reply: gives the text of one replicate.
        latency_s: between request and reply.
        seed: of the faults drawn by rate.
        rates: probability of each fault by name: "429", "5xx", or a `FaultKind` other than "status".
        faults: queued for the next requests, one each (None = no fault), before any rate applies.
        key: when given, requests without it are answered 401, with a part of the key that came, as providers do.
        model: when given, other models are answered 404.
        largest_n: a larger `n` is answered 400.
        usage: "all" counts all choices, "first" only the first (as llama.cpp does), "none" sends no usage.
        ignores_n: always send one choice.
    """

    def __init__(
        self,
        reply: ReplyFunction = solver,
        *,
        latency_s: float = 0.0,
        seed: int = 0,
        rates: Mapping[str, float] | None = None,
        faults: Iterable[Fault | None] = (),
        key: str | None = None,
        model: str | None = None,
        largest_n: int = 128,
        usage: Literal["all", "first", "none"] = "all",
        ignores_n: bool = False,
        port: int = 0,
    ) -> None:
        self.reply = reply
        self.latency_s = latency_s
        self.seed = seed
        self.rates = dict(rates or {})
        self.faults: deque[Fault | None] = deque(faults)
        self.key = key
        self.model = model
        self.largest_n = largest_n
        self.usage = usage
        self.ignores_n = ignores_n
        self.port = port
        self.requests: list[Received] = []
        """Every chat request, in the order of arrival."""
        self.keeps_requests = True
        self._connections: set[Connection] = set()
        self._ready = threading.Event()
        self.reset()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def reset(self) -> None:
        self.requests.clear()
        self._counts: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()
        self._callers: set[Connection] = set()
        self._in_flight = 0
        self._in_flight_max = 0
        self._seen: Counter[str] = Counter()
        self._asked: Counter[str] = Counter()
        self._answered: Counter[str] = Counter()

    def stats(self) -> dict[str, Any]:
        """Counts since the start or the last reset.

        calls: chat requests; answered: those that got a whole good reply, kinds: these by what they were for;
        faults: by kind; connections: those that calls came over; replies: choices sent;
        asked_again / answered_again: replicates asked for / answered more
        than once, each further time counted.
        """
        return {
            "calls": self._counts["calls"],
            "answered": self._counts["answered"],
            "kinds": dict(self._kinds),
            "replies": sum(self._answered.values()),
            "replicates": len(self._asked),
            "asked_again": sum(n - 1 for n in self._asked.values()),
            "answered_again": sum(n - 1 for n in self._answered.values()),
            "repeats": {k: n for k, n in self._asked.items() if n > 1},
            "faults": {
                k.removeprefix("fault "): n for k, n in self._counts.items() if k.startswith("fault ")
            },
            "connections": len(self._callers),
            "open_connections": len(self._connections),
            "in_flight": self._in_flight,
            "in_flight_max": self._in_flight_max,
            "tokens": self._counts["tokens"],
        }

    # -- life ---------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=lambda: asyncio.run(self.serve()), daemon=True)
        self._thread.start()
        if not self._ready.wait(10):
            raise RuntimeError("the stub server did not start")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def serve(self, port_file: Path | None = None, for_s: float | None = None) -> None:
        """Serve until stopped, or for so many seconds."""
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        server = await self._loop.create_server(
            lambda: Connection(self._request, self._connections.add, self._connections.discard),
            "127.0.0.1",
            self.port,
        )
        self.port = server.sockets[0].getsockname()[1]
        if port_file:  # whole or not at all: somebody is waiting for it
            part = port_file.with_suffix(".part")
            part.write_text(str(self.port))
            os.replace(part, port_file)
        self._ready.set()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), for_s)
        server.close()
        await asyncio.sleep(0)  # a connection that was just accepted is known by then
        for connection in list(self._connections):
            connection.abort()
        await asyncio.sleep(0)

    # -- requests -----------------------------------------------------------------------------

    def _request(self, request: Request, connection: Connection) -> None:
        match request.method, request.path:
            case "POST", "/v1/chat/completions":
                self._chat(Received(request.path, request.headers, json.loads(request.body)), connection)
            case _, "/v1/models":
                connection.send(200, {"object": "list", "data": [{"id": self.model or MODEL}]})
            case _, "/stub/stats":
                connection.send(200, self.stats())
            case _, "/stub/requests":
                connection.send(200, {"requests": [r.body for r in self.requests]})
            case "POST", "/stub/reset":
                self.reset()
                connection.send(200, {})
            case _:
                connection.send(404, _error("Not found."))

    def _chat(self, received: Received, connection: Connection) -> None:
        self._counts["calls"] += 1
        self._callers.add(connection)
        self._in_flight += 1
        self._in_flight_max = max(self._in_flight_max, self._in_flight)
        if self.keeps_requests:
            self.requests.append(received)
        identities = [_identity(received.body, i) for i in range(received.body.get("n", 1))]
        self._asked.update(identities)
        fault = self._fault(identities[0])
        if fault:
            self._counts[f"fault {fault.status if fault.kind == 'status' else fault.kind}"] += 1
        wait_s = self.latency_s * (fault.factor if fault and fault.kind == "slow" else 1)
        if wait_s:
            self._loop.call_later(wait_s, self._answer, received, identities, fault, connection)
        else:
            self._answer(received, identities, fault, connection)

    def _answer(
        self, received: Received, identities: list[str], fault: Fault | None, connection: Connection
    ) -> None:
        self._in_flight -= 1
        if not connection.open:
            return
        body, n = received.body, len(identities)
        if refusal := self._refusal(received, n):
            connection.send(*refusal)
            return
        positions = list(range(1 if self.ignores_n else n))
        match fault.kind if fault else None:
            case "status":
                assert fault
                connection.send(fault.status, _error(fault.message, fault.code), fault.headers)
                return
            case "dropped":
                connection.abort()
                return
            case "malformed":
                connection.send(200, b'{"id": "chatcmpl-1", "choices": [{"index": 0, "mess')
                return
            case "truncated":
                whole = json.dumps(self._completion(body, range(n))).encode()
                connection.send(200, whole[: len(whole) // 2], length=len(whole))
                return
            case "wrong_types":
                choices = [{"index": i, "message": {"content": 7}} for i in range(n)]
                connection.send(200, {"choices": choices})
                return
            case "partial":
                assert fault
                positions = [i for i in positions if i in fault.keep]
        completion = self._completion(body, positions, silent=bool(fault and fault.kind == "empty"))
        self._counts["answered"] += 1  # before it is sent: who has read a reply finds it counted
        self._kinds[kind_of(body["messages"])] += 1
        self._counts["tokens"] += completion.get("usage", {}).get("total_tokens", 0)
        self._answered.update(identities[i] for i in positions)
        connection.send(200, completion)

    def _refusal(self, received: Received, n: int) -> tuple[int, dict[str, Any]] | None:
        sent = received.headers.get("authorization", "").removeprefix("Bearer ")
        if self.key is not None and sent != self.key:
            shown = f"{sent[:8]}{'*' * 12}{sent[-4:]}"
            return 401, _error(
                f"Incorrect API key provided: {shown}. Find yours on our page.", "invalid_api_key"
            )
        if self.model is not None and received.body.get("model") != self.model:
            return 404, _error(f"The model `{received.body.get('model')}` does not exist.", "model_not_found")
        if n > self.largest_n:
            return 400, _error(
                f"Field 'n': Value must be between 1 <= value <= {self.largest_n}, but got {n}"
            )
        return None

    def _fault(self, identity: str) -> Fault | None:
        if self.faults:
            return self.faults.popleft()
        if not self.rates:
            return None
        self._seen[identity] += 1
        draw = random.Random(f"{self.seed} {identity} {self._seen[identity]}").random()
        for name, rate in self.rates.items():
            if draw < rate:
                if name == "429":
                    return Fault(
                        "status", 429, {"Retry-After": "0.05"}, "Rate limit reached.", "rate_limit_exceeded"
                    )
                return Fault("status", 503) if name == "5xx" else Fault(name)  # type: ignore[arg-type]
            draw -= rate
        return None

    # -- replies ------------------------------------------------------------------------------

    def _completion(
        self, body: dict[str, Any], positions: Iterable[int], silent: bool = False
    ) -> dict[str, Any]:
        choices: list[dict[str, Any]] = []
        counts: list[int] = []
        for i in positions:
            asked = Asked(body["messages"], int(body.get("seed") or 0) + i, body)
            text = "" if silent else _fitted(self.reply(asked), body.get("response_format"))
            text, reason, tokens = _cut(text, body)
            message = {"role": "assistant", "content": text}
            choices.append({"index": i, "message": message, "finish_reason": reason})
            counts.append(tokens)
        result: dict[str, Any] = {"id": "chatcmpl-stub", "object": "chat.completion", "created": 0}
        result |= {"model": body.get("model", MODEL), "choices": choices}
        if self.usage != "none":
            prompt = sum(len(str(m["content"]).split()) for m in body["messages"])
            count = sum(counts) if self.usage == "all" else sum(counts[:1])
            result["usage"] = {
                "prompt_tokens": prompt,
                "completion_tokens": count,
                "total_tokens": prompt + count,
            }
        if self.usage == "first":
            result["timings"] = {"predicted_n": sum(counts[:1])}
        return result


@cache
def _openings() -> tuple[tuple[str, str], ...]:
    """How the system prompt of each stage begins, from the templates themselves; of `retry`, its user message."""
    found = []
    for template in sorted((Path(__file__).parents[1] / "core" / "extraction" / "prompts").glob("*.md")):
        part = template.read_text(encoding="utf-8").split("## system\n")[-1].split("## user\n")
        found.append(
            (
                template.stem,
                (part[0] if "retry" not in template.stem else part[1]).split("{{")[0].split("\n")[0],
            )
        )
    return tuple(found)


def kind_of(messages: list[dict[str, Any]]) -> str:
    """What a request is for: the name of a stage's template, or "rollout"."""
    first, last = str(messages[0]["content"]), str(messages[-1]["content"])
    return next(
        (name for name, opening in _openings() if (last if name == "retry" else first).startswith(opening)),
        "rollout",
    )


def _identity(body: dict[str, Any], position: int) -> str:
    """Of one replicate: the whole request, but for `n`."""
    facts = {k: v for k, v in body.items() if k != "n"} | {"seed": int(body.get("seed") or 0) + position}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def _cut(text: str, body: dict[str, Any]) -> tuple[str, str, int]:
    """The text up to a stop word or `max_tokens` words, why it ended, and its tokens (words)."""
    stop = body.get("stop") or []
    for word in [stop] if isinstance(stop, str) else stop:
        text = text.split(word, maxsplit=1)[0]
    count = len(text.split())
    limit = body.get("max_tokens") or count
    if count > limit:
        return "".join(re.findall(r"\s*\S+", text)[:limit]), "length", limit
    return text, "stop", count


def _fitted(text: str, response_format: Any) -> str:
    """The text as a value of the JSON schema that was asked for, unless it is JSON already."""
    if not isinstance(response_format, dict) or response_format.get("type") != "json_schema":
        return text
    with contextlib.suppress(ValueError):
        if isinstance(json.loads(text), dict | list):
            return text
    return json.dumps(_instance(response_format["json_schema"]["schema"], text))


def _instance(schema: dict[str, Any], text: str) -> Any:
    match schema.get("enum", [None])[0] or schema.get("type"):
        case "object":
            return {k: _instance(v, text) for k, v in schema.get("properties", {}).items()}
        case "array":
            return [_instance(schema.get("items", {}), text)]
        case "integer" | "number":
            return 1
        case "boolean":
            return True
        case "string":
            return text
        case first:
            return first


def _error(message: str, code: str = "") -> dict[str, Any]:
    return {
        "error": {"message": message, "type": "invalid_request_error", "param": None, "code": code or None}
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", type=Path, help="the port is written here once it is open")
    parser.add_argument("--latency-ms", type=float, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--for-s", type=float, default=900, help="ends by itself after so many seconds")
    parser.add_argument("--keep-requests", action="store_true", help="a long run fills the memory with them")
    parser.add_argument("--key", default=None)
    parser.add_argument(
        "--reply-characters", type=int, default=0, help="of prose before each solver's answer"
    )
    parser.add_argument("--usage", choices=["all", "first", "none"], default="all")
    parser.add_argument("--largest-n", type=int, default=128)
    kinds = ["429", "5xx", "malformed", "truncated", "dropped", "empty", "wrong_types", "partial", "slow"]
    for kind in kinds:
        parser.add_argument(f"--rate-{kind.replace('_', '-')}", dest=f"rate_{kind}", type=float, default=0)
    options = parser.parse_args()
    stub = StubServer(
        longwinded(by_stage, options.reply_characters) if options.reply_characters else by_stage,
        latency_s=options.latency_ms / 1000,
        seed=options.seed,
        rates={k: rate for k in kinds if (rate := getattr(options, f"rate_{k}"))},
        key=options.key,
        usage=options.usage,
        largest_n=options.largest_n,
        port=options.port,
    )
    stub.keeps_requests = options.keep_requests
    asyncio.run(stub.serve(options.port_file, options.for_s))


if __name__ == "__main__":
    main()
