"""Vectors from an endpoint: batches, retries, caps and books; vectors of different models never meet."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.embedder import MiniLM
from core.errors import BudgetError, InputError, ModelUnavailableError, StoppedError
from core.experience import Add
from core.llm import Access, Budget, Terms, fixed_address
from core.llm.embeddings import BATCH_BYTES, BATCH_TEXTS, OpenAIEmbedder, _batches, space_of
from core.ports import Embedder
from core.rollout import Usage
from core.settings import Endpoint
from core.workspace import Workspace
from core.workspace.nearest import Nearest
from tests.make import make_experience, publish
from tests.stub_http import Connection, Request

Answer = Callable[[list[str]], tuple[int, Any]]


def vector(text: str, dimension: int) -> list[float]:
    """Not of unit length; another one for another text."""
    return [byte - 127.5 for byte in hashlib.sha256(text.encode()).digest()[:dimension]]


class EmbeddingServer:
    """An OpenAI-compatible embeddings endpoint on loopback, in a thread of its own.

    Args:
        dimension: of its vectors.
        largest: a batch of more texts is answered 400.
        faults: queued for the next requests, one each: gives status and body; None = none.
    """

    def __init__(
        self, dimension: int = 8, *, largest: int = 2048, faults: Sequence[Answer | None] = ()
    ) -> None:
        self.dimension = dimension
        self.largest = largest
        self.faults = list(faults)
        self.batches: list[list[str]] = []
        self.bodies: list[dict[str, Any]] = []
        self._ready = threading.Event()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def texts(self) -> list[str]:
        return [text for batch in self.batches for text in batch]

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        there: set[Connection] = set()
        server = await self._loop.create_server(
            lambda: Connection(self._answer, there.add, there.discard), "127.0.0.1", 0
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for connection in list(there):
            connection.abort()

    def _answer(self, request: Request, connection: Connection) -> None:
        if request.path != "/v1/embeddings":
            connection.send(404, {"error": {"message": "Not found."}})
            return
        body = json.loads(request.body)
        texts = body["input"]
        self.batches.append(texts)
        self.bodies.append(body)
        if fault := self.faults.pop(0) if self.faults else None:
            connection.send(*fault(texts))
        elif len(texts) > self.largest or not all(t.strip() for t in texts):
            connection.send(400, {"error": {"message": "The input is not what this server takes."}})
        else:
            connection.send(200, reply([vector(t, self.dimension) for t in texts]))


def reply(vectors: Sequence[object]) -> dict[str, Any]:
    """In an order of the server's own: only `index` says which is which."""
    data = [{"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(vectors)]
    return {"data": data[::-1], "usage": {"prompt_tokens": 5 * len(data), "total_tokens": 5 * len(data)}}


def status(code: int) -> Answer:
    return lambda texts: (code, {"error": {"message": "No."}})


def holding(value: float) -> Answer:
    return lambda texts: (200, json.dumps(reply([[value] * 8 for _ in texts])).encode())


def endpoint(server: EmbeddingServer, **settings: Any) -> Endpoint:
    known = {"name": "vectors", "model": "tiny", "base_url": server.base_url, "retries": 2}
    return Endpoint(**{**known, **settings})


def embedder(server: EmbeddingServer, terms: Terms | None = None, **settings: Any) -> OpenAIEmbedder:
    one = endpoint(server, **settings)
    return OpenAIEmbedder(one, fixed_address(one), terms or Terms(sleep=no_sleep))


async def no_sleep(seconds: float) -> None:
    await asyncio.sleep(0)


def in_role(workspace: Workspace, server: EmbeddingServer, **settings: Any) -> Endpoint:
    one = endpoint(server, **settings)
    workspace.models.save(one, "ann")
    workspace.models.set_role("embedding", one.name, "ann")
    return one


# -- the embedder -------------------------------------------------------------------------------------


def test_vectors_are_unit_and_in_the_order_of_the_texts() -> None:
    with EmbeddingServer() as server:
        made: Embedder = embedder(server)
        found = made.embed(["b", "a", "b"])
    expected = np.array([vector(t, 8) for t in "bab"])
    assert found == pytest.approx(expected / np.linalg.norm(expected, axis=1, keepdims=True), abs=1e-6)
    assert (found.dtype, made.dimension) == (np.float32, 8)


def test_empty_texts_are_not_sent_and_are_like_nothing() -> None:
    with EmbeddingServer() as server:
        found = embedder(server).embed(["", "a", " \n"])
        assert server.texts == ["a"]
    assert [bool(row.any()) for row in found] == [False, True, False]


def test_no_text_at_all_costs_no_more_than_to_learn_the_dimension() -> None:
    with EmbeddingServer() as server:
        made = embedder(server)
        made.embed(["a"])
        assert made.embed([]).shape == (0, 8)
        assert len(server.batches) == 1
        assert embedder(server).embed(["", ""]).shape == (2, 8)


def test_a_server_that_takes_fewer_at_once_is_asked_in_smaller_batches() -> None:
    texts = [f"text {i}" for i in range(100)]
    with EmbeddingServer(largest=10) as server:
        found = embedder(server, concurrency=1).embed(texts)
        assert max(len(b) for b in server.batches[3:]) <= 16
        assert found == pytest.approx(_unit(texts), abs=1e-6)


def _unit(texts: Sequence[str]) -> Any:
    raw = np.array([vector(t, 8) for t in texts])
    return raw / np.linalg.norm(raw, axis=1, keepdims=True)


def test_what_may_pass_is_tried_again_and_what_may_not_is_said() -> None:
    with EmbeddingServer(faults=[status(500), status(429)]) as server:
        assert embedder(server).embed(["a"]).shape == (1, 8)
        assert len(server.batches) == 3
    with (
        EmbeddingServer(faults=[status(401)]) as server,
        pytest.raises(ModelUnavailableError, match="asks for a key"),
    ):
        embedder(server).embed(["a"])


@pytest.mark.parametrize(
    "fault",
    [
        holding(float("nan")),
        holding(float("inf")),
        lambda texts: (200, reply([[1.0]] * (len(texts) - 1))),
        lambda texts: (200, reply([["x"] * 8] * len(texts))),
        lambda texts: (200, reply([[1.0] * (4 + i) for i in range(len(texts))])),
        lambda texts: (200, reply([[]] * len(texts))),
        lambda texts: (200, {"data": [{"index": 0, "embedding": [1.0]}] * len(texts)}),
        lambda texts: (200, b"not json"),
        lambda texts: (200, b"[1]"),
        lambda texts: (200, {"data": None}),
    ],
)
def test_a_reply_that_holds_no_usable_vectors_is_asked_for_again_and_never_kept(
    workspace: Workspace, fault: Answer
) -> None:
    with EmbeddingServer(faults=[fault] * 2) as server:
        in_role(workspace, server, retries=1)
        made = workspace.models.embedder()
        with pytest.raises(ModelUnavailableError, match="vectors answered with"):
            workspace.store.embeddings.embed(["a", "b"], made)
        assert len(server.batches) == 2
        assert workspace.store.embeddings.models() == {}
        assert workspace.store.embeddings.embed(["a", "b"], made).shape == (2, 8)


def test_a_long_text_is_cut_at_what_the_endpoint_takes() -> None:
    with EmbeddingServer() as server:
        embedder(server, context_length=256).embed(["é" * 1000])
        assert server.texts == ["é" * 128]


def test_settings_of_the_endpoint_go_along_but_not_in_place_of_our_own() -> None:
    with EmbeddingServer() as server:
        embedder(server, extra={"dimensions": 8, "user": None}).embed(["a"])
        assert server.bodies[0] == {
            "model": "tiny",
            "input": ["a"],
            "encoding_format": "float",
            "dimensions": 8,
        }
        with pytest.raises(InputError, match="extra may not set input"):
            embedder(server, extra={"input": "x"})


def test_it_can_be_asked_from_inside_of_an_event_loop() -> None:
    async def inside(made: OpenAIEmbedder) -> Any:
        return made.embed(["a"])

    with EmbeddingServer() as server:
        assert asyncio.run(inside(embedder(server))).shape == (1, 8)


@given(st.lists(st.integers(0, 2 * BATCH_BYTES), max_size=300), st.integers(1, 70))
def test_every_text_is_in_one_batch_in_its_order(sizes: list[int], most: int) -> None:
    batches = list(_batches(sizes, most))
    assert [p for batch in batches for p in batch] == list(range(len(sizes)))
    for batch in batches:
        assert len(batch) <= most
        assert len(batch) == 1 or sum(sizes[p] for p in batch) <= BATCH_BYTES


# -- caps, wishes and books ---------------------------------------------------------------------------


def test_the_cap_of_the_run_holds_and_what_came_is_counted_on_it() -> None:
    budget = Budget(max_calls=2)
    with EmbeddingServer() as server:
        made = embedder(server, Terms(budget=budget), concurrency=1)
        made.embed(["a"])
        assert (budget.spent.calls, budget.spent.prompt_tokens) == (1, 5)
        with pytest.raises(BudgetError, match="cap of 2 calls"):
            made.embed([f"text {i}" for i in range(3 * BATCH_TEXTS)])
        assert (len(server.batches), budget.spent.calls) == (2, 2)


def test_what_embedders_in_threads_and_requests_of_the_run_take_is_counted_to_the_last_call() -> None:
    """They add to one budget; an addition that another one overwrites would be lost."""
    budget, threads, times = Budget(), 4, 400
    one, interval = Usage(calls=1, prompt_tokens=3), sys.getswitchinterval()

    async def requests() -> None:
        for _ in range(times):
            async with budget.hold(one) as hold:
                hold.settle(one)

    work: list[Callable[[], object]] = [
        lambda: asyncio.run(requests()),
        *[lambda: [budget.add(one) for _ in range(times)]] * threads,
        lambda: [budget.taken() for _ in range(times)],
    ]
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(len(work)) as pool:
            for done in [pool.submit(part) for part in work]:
                done.result()
    finally:
        sys.setswitchinterval(interval)
    assert (budget.spent.calls, budget.spent.prompt_tokens) == (5 * times, 15 * times)
    assert budget.held == Usage()


def test_embedders_in_threads_of_one_run_book_all_that_they_took() -> None:
    with EmbeddingServer() as server:
        budget = Budget()
        own = [embedder(server, Terms(budget=budget)) for _ in range(4)]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda n: [own[n].embed([f"text {n} {i}"]) for i in range(5)], range(4)))
        assert budget.spent.calls == len(server.batches) == 20


def test_nothing_is_sent_once_the_work_is_to_stop() -> None:
    with EmbeddingServer() as server:
        with pytest.raises(StoppedError):
            embedder(server, Terms(wishes=lambda: "pause")).embed(["a"])
        assert server.batches == []


def test_what_it_took_is_booked_under_its_own_stage_and_its_run(workspace: Workspace) -> None:
    with EmbeddingServer() as server:
        in_role(workspace, server, price_in=2.0)

        async def in_a_run() -> Access:
            async with workspace.models.access(Budget(max_calls=5), "R7") as access:
                Nearest(workspace.store, workspace.models, access).embed(["a", "b"])
                return access

        access = asyncio.run(in_a_run())
    (row,) = workspace.store.spending.by("stage")
    assert (row.label, row.usage.calls, row.usage.prompt_tokens) == ("embedding", 1, 10)
    assert row.usage.cost_usd == pytest.approx(2.0 * 10 / 1e6)
    assert workspace.store.spending.of_run("R7") == row.usage == access.terms.budget.spent


def test_vectors_that_came_before_a_failure_are_not_paid_for_again(workspace: Workspace) -> None:
    texts = [f"text {i}" for i in range(3 * BATCH_TEXTS)]
    with EmbeddingServer(faults=[None, status(400), None]) as server:
        in_role(workspace, server, concurrency=1)
        made = workspace.models.embedder()
        server.faults[1] = lambda sent: (404, {"error": {"message": "The model does not exist."}})
        with pytest.raises(ModelUnavailableError, match="knows no model"):
            workspace.store.embeddings.embed(texts, made)
        server.batches.clear()
        server.faults.clear()
        found = workspace.store.embeddings.embed(texts, made)
        assert server.texts == texts[BATCH_TEXTS:]
    assert found == pytest.approx(_unit(texts), abs=1e-6)


# -- what is kept -------------------------------------------------------------------------------------


class Fixed:
    """An embedder of one dimension that counts what it is asked."""

    def __init__(self, name: str, dimension: int, value: float = 1.0) -> None:
        self.name, self.dimension, self.value = name, dimension, value
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> Any:
        self.asked += texts
        return np.full((len(texts), self.dimension), self.value, dtype=np.float32)


def test_ten_thousand_texts_are_embedded_in_batches_once(workspace: Workspace) -> None:
    texts = [f"lesson number {i % 9_000}" for i in range(10_000)]
    with EmbeddingServer() as server:
        in_role(workspace, server, concurrency=2)
        found = workspace.store.embeddings.embed(texts, workspace.models.embedder())
        asked = len(server.batches)
        assert sorted(server.texts) == sorted(set(texts))
        assert max(map(len, server.batches)) == BATCH_TEXTS
        again = workspace.store.embeddings.embed(texts, workspace.models.embedder())
        assert len(server.batches) == asked
    assert found.shape == (10_000, 8)
    assert (found == again).all()
    assert (found[0] == found[9_000]).all()


def test_it_is_known_how_many_texts_have_no_vector_yet(workspace: Workspace) -> None:
    texts = [f"Lesson {i}." for i in range(3)]
    workspace.store.embeddings.embed(texts[:1], Fixed("tiny", 3))
    assert workspace.store.embeddings.missing([*texts, texts[2]], "tiny") == 2
    assert workspace.store.embeddings.missing(texts, "another model") == 3


def test_another_model_is_computed_anew_and_the_former_one_is_still_there(workspace: Workspace) -> None:
    small, large = Fixed("small", 4), Fixed("large", 6)
    for made in (small, large, small):
        assert workspace.store.embeddings.embed(["a", "b"], made).shape == (2, made.dimension)
    assert (small.asked, large.asked) == (["a", "b"], ["a", "b"])
    assert workspace.store.embeddings.models() == {"large": 6, "small": 4}


def test_vectors_of_another_dimension_under_the_same_name_are_refused_and_nothing_is_kept(
    workspace: Workspace,
) -> None:
    workspace.store.embeddings.embed(["a"], Fixed("small", 4))
    before = workspace.store.dump()
    with pytest.raises(ModelUnavailableError, match="another model under the same name"):
        workspace.store.embeddings.embed(["a", "b"], Fixed("small", 6))
    assert workspace.store.dump() == before


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_no_vector_is_kept_that_is_no_number(workspace: Workspace, bad: float) -> None:
    with pytest.raises(ModelUnavailableError, match="no number"):
        workspace.store.embeddings.embed(["a"], Fixed("broken", 4, bad))
    assert workspace.store.embeddings.models() == {}


def test_a_server_that_changed_its_model_is_told_apart_before_anything_is_mixed(workspace: Workspace) -> None:
    with EmbeddingServer() as server:
        in_role(workspace, server)
        workspace.store.embeddings.embed(["a"], workspace.models.embedder())
        server.dimension = 12
        with pytest.raises(ModelUnavailableError, match=r"vectors of 12 numbers, but those of tiny have 8"):
            workspace.store.embeddings.embed(["a", "b"], workspace.models.embedder())
        assert len(server.batches) == 2, "asking again would not help"
        assert workspace.store.spending.by("stage")[0].usage.calls == 2
        in_role(workspace, server, model="tiny-2")
        assert workspace.store.embeddings.embed(["a", "b"], workspace.models.embedder()).shape == (2, 12)
    assert sorted(workspace.store.embeddings.models().values()) == [8, 12]


def test_all_that_vectors_depend_on_is_in_the_name_that_they_are_kept_under() -> None:
    one = Endpoint(name="a", model="m", base_url="http://127.0.0.1:1/v1")
    spaces = [
        space_of(one.model_copy(update=change))
        for change in (
            {},
            {"model": "n"},
            {"base_url": "http://127.0.0.1:2/v1"},
            {"extra": {"dimensions": 64}},
        )
    ]
    assert len(set(spaces)) == 4
    assert space_of(one.model_copy(update={"name": "b", "price_in": 1.0, "timeout_s": 5})) == spaces[0]


def test_a_comparison_stays_with_the_model_that_it_began_with(workspace: Workspace) -> None:
    lessons = [make_experience(1, "a"), make_experience(2, "b")]
    with EmbeddingServer(8) as first, EmbeddingServer(12) as second:
        in_role(workspace, first)
        nearest = Nearest(workspace.store, workspace.models)
        assert nearest("a", lessons, 1) == lessons[:1]
        in_role(workspace, second)
        assert nearest.embed(["c"]).shape == (1, 8)
        assert nearest("b", lessons, 1) == lessons[1:]
        anew = Nearest(workspace.store, workspace.models)
        assert anew.embed(["c"]).shape == (1, 12)
        assert anew("b", lessons, 1) == lessons[1:]
        assert sorted(set(second.texts)) == ["a", "b", "c"]


def test_a_library_is_looked_up_once_for_all_tasks_of_a_run(workspace: Workspace) -> None:
    texts = [f"lesson {i}" for i in range(5)]
    with EmbeddingServer() as server:
        in_role(workspace, server)
        nearest = Nearest(workspace.store, workspace.models)
        assert nearest.embed(texts) is nearest.embed(list(texts))
        assert nearest.embed(texts[:3]).shape == (3, 8)
        assert nearest.embed(texts).shape == (5, 8)
        assert sorted(server.texts) == texts


# -- roles --------------------------------------------------------------------------------------------


def test_without_a_role_the_embedded_model_embeds(workspace: Workspace) -> None:
    assert isinstance(workspace.models.embedder(), MiniLM)
    assert workspace.models.roles()["embedding"] == "embedded"
    with EmbeddingServer() as server:
        in_role(workspace, server)
        assert isinstance(workspace.models.embedder(), OpenAIEmbedder)
        workspace.models.set_role("embedding", None, "ann")
        assert isinstance(workspace.models.embedder(), MiniLM)
        in_role(workspace, server)
        workspace.models.remove("vectors", "ann")
        assert isinstance(workspace.models.embedder(), MiniLM)


def test_the_command_tries_an_endpoint_that_only_embeds(workspace: Workspace, capsys: Any) -> None:
    from core.cli.endpoints import endpoints

    with EmbeddingServer() as server:
        in_role(workspace, server)
        with pytest.raises(SystemExit):
            endpoints.main(
                ["test", "vectors", "--json", "--workspace", str(workspace.folder)], standalone_mode=False
            )
    told = json.loads(capsys.readouterr().out)
    assert (told["dimension"], told["model"]) == (8, f"tiny at {server.base_url}")


def test_a_run_retrieves_with_the_vectors_of_the_endpoint(workspace: Workspace) -> None:
    from core.memory import select

    publish(workspace, *(Add(text=f"Lesson number {i}.", domain="sums") for i in range(51)))
    library = list(workspace.store.versions.library())
    with EmbeddingServer() as server:
        in_role(workspace, server)
        nearest = Nearest(workspace.store, workspace.models)
        chosen = select(library, "Lesson number 7.", domain="sums", budget_tokens=1000, embed=nearest.embed)
        assert chosen.experiences[0].text == "Lesson number 7."
        assert len(server.texts) == 51, "the question says the same as a lesson, and no text is sent twice"
