"""Which model answers: endpoints, their roles, and the clients that are made of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, get_args
from urllib.parse import urlsplit

from core.errors import InputError, NotFoundError
from core.ports import Wishes, go
from core.record import Record
from core.settings import EMBEDDED, Endpoint, Role
from core.store import Store

if TYPE_CHECKING:
    from core.llm import Access, Address, Budget, Connect, Entry, Kept, Probe
    from core.ports import Embedder


class Embedding(Record):
    """What a trial of the embedder showed."""

    model: str
    """The name that its vectors are kept under."""
    dimension: int
    """Numbers in a vector."""
    latency_s: float
    """Seconds for one short text, loading included."""


class Models:
    """The endpoints of one workspace. The embedded model is always one of them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def all(self) -> list[Endpoint]:
        """The embedded endpoint first, then the user's own by name."""
        return [embedded(), *self._store.endpoints.all()]

    def get(self, name: str) -> Endpoint:
        """One endpoint.

        Raises:
            NotFoundError: there is none of that name.
        """
        if found := self.find(name):
            return found
        known = ", ".join(e.name for e in self.all())
        raise NotFoundError(
            f"There is no endpoint {name!r}; there are: {known}. `winnow endpoints add` makes one."
        )

    def find(self, name: str) -> Endpoint | None:
        """One endpoint, or None where it was removed."""
        return embedded() if name == EMBEDDED else self._store.endpoints.find(name)

    def save(self, endpoint: Endpoint, actor: str) -> None:
        """Add an endpoint, or change the one of that name.

        Raises:
            InputError: the name is taken by the embedded model, or there is no address.
            TrustError: the variable of its key may not be read (the local configuration says which may).
        """
        from core.trust import check_allowed

        if endpoint.name == EMBEDDED:
            raise InputError(
                f"The name {EMBEDDED!r} belongs to the model that Winnow brings along; choose another one."
            )
        if not endpoint.base_url:
            raise InputError(
                f"Endpoint {endpoint.name!r} needs --base-url, such as http://127.0.0.1:8000/v1."
            )
        if endpoint.key_env:
            check_allowed(endpoint.key_env)
        self._store.endpoints.save(endpoint, actor)

    def remove(self, name: str, actor: str) -> None:
        """Forget an endpoint; runs that used it stay as they are.

        Raises:
            NotFoundError: there is none of that name.
            InputError: it is the embedded one.
        """
        if name == EMBEDDED:
            raise InputError("The embedded model cannot be removed; it is only used where you choose it.")
        self.get(name)
        self._store.endpoints.remove(name, actor)

    def roles(self) -> dict[Role, str | None]:
        """Which endpoint has which role. Rollouts and embeddings fall to the embedded models, the others to nobody."""
        chosen = self._store.endpoints.roles()
        fallback = {"rollout": EMBEDDED, "embedding": EMBEDDED}
        return {role: chosen.get(role, fallback.get(role)) for role in get_args(Role)}

    @property
    def injection_budget(self) -> int:
        """Tokens that injected lessons may take at the endpoint that makes rollouts."""
        name = self.roles()["rollout"]
        return self.get(name).injection_budget if name else self.all()[0].injection_budget

    def set_role(self, role: Role, name: str | None, actor: str) -> None:
        """Give a role to an endpoint.

        Raises:
            NotFoundError: there is none of that name.
        """
        if name is not None:
            self.get(name)
        self._store.endpoints.set_role(role, name, actor)

    def access(self, budget: Budget | None = None, run_id: str = "", wishes: Wishes = go) -> Access:
        """A run's way to the endpoints, with retries, limits, cache and books; an async context manager.

        Args:
            budget: the caps of the run; None has none.
            run_id: under which the requests are booked; empty outside of a run.
            wishes: asked before anything is sent.
        """
        from core.llm import Access, Budget, Terms

        terms = Terms(
            budget=budget or Budget(), ledger=WorkspaceLedger(self._store), run_id=run_id, wishes=wishes
        )
        return Access(self.get, terms, connection)

    def key_present(self, name: str) -> bool | None:
        """Whether the key of an endpoint can be read; None where it needs none. The key itself is not kept."""
        from core.trust import read_key

        endpoint = self.get(name)
        if endpoint.key_env is None:
            return None
        try:
            read_key(endpoint.key_env, host=urlsplit(endpoint.base_url).hostname)
        except InputError:
            return False
        return True

    def test(self, name: str) -> Probe:
        """Ask an endpoint a short question and tell what it can do."""
        from core.llm import probe

        return asyncio.run(probe(self.get(name), connect=connection, ledger=WorkspaceLedger(self._store)))

    def embedder(self, access: Access | None = None) -> Embedder:
        """Who makes vectors: the endpoint with the role "embedding", else all-MiniLM-L6-v2 on this machine.

        Whoever compares vectors takes one embedder for all of them: then they are of one model, whatever role is
        given to whom meanwhile.

        Args:
            access: of the run that it is for: its requests count against the caps of the run, and are booked under
                it. Nothing else asks for it.

        Raises:
            NotFoundError: the endpoint with the role is gone.
            InputError: it has no base URL, or sets fields that are not its own.
        """
        from core.embedder import MiniLM

        name = self.roles()["embedding"]
        if name is None or name == EMBEDDED:
            return MiniLM()
        from core.llm import Terms
        from core.llm.embeddings import OpenAIEmbedder, space_of

        endpoint = self.get(name)
        space = space_of(endpoint)
        terms = replace(access.terms if access else Terms(), ledger=VectorLedger(self._store, space))
        return OpenAIEmbedder(endpoint, connection(endpoint), terms, self._store.embeddings.dimension(space))

    def test_embedder(self) -> Embedding:
        """Have the embedder embed a short text anew, and tell what it can do.

        Raises:
            ModelUnavailableError: it cannot be had.
        """
        embedder = self.embedder()
        started = time.perf_counter()
        vectors = embedder.embed(["Read the file first."])
        took_s = time.perf_counter() - started
        return Embedding(model=embedder.name, dimension=vectors.shape[1], latency_s=took_s)


def embedded() -> Endpoint:
    """The endpoint of the model that Winnow brings along; its address is known once it is served."""
    import core.local_model as local_model

    return Endpoint(
        name=EMBEDDED,
        model=local_model.MODEL_NAME,
        context_length=local_model.CONTEXT_LENGTH,
        concurrency=2,  # one request fills all slots with n replies; a second one waits in the server
        timeout_s=300,
        sends_n=True,
        json_schema=True,
        bias_entries=1000,  # llama.cpp itself knows no limit
        logprobs=True,
        grammar=True,
        extra=dict(local_model.SAMPLING_EXTRA),
    )


class WorkspaceLedger:
    """A `core.llm.Ledger` in a workspace's store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, key: str) -> str | None:
        return self._store.calls.get(key)

    def write(self, replies: Sequence[Kept], sent: Sequence[Entry]) -> None:
        with self._store.writing():
            self._store.calls.put_many(replies)
            self._store.spending.book(sent)


class VectorLedger:
    """A `core.llm.Ledger` for the vectors of one model: by the hash of the text, each in its text form."""

    def __init__(self, store: Store, space: str) -> None:
        self._store = store
        self._space = space

    def get(self, key: str) -> str | None:
        """None: `core.store.Embeddings` asks only for vectors that are not there."""
        return None

    def write(self, replies: Sequence[Kept], sent: Sequence[Entry]) -> None:
        from core.llm.embeddings import unpacked

        with self._store.writing():
            self._store.embeddings.put(self._space, {key: unpacked(vector) for key, vector in replies})
            self._store.spending.book(sent)


def connection(endpoint: Endpoint) -> Connect:
    """How an endpoint is connected to: the embedded one is served on the first request."""
    from core.llm import fixed_address

    return _connect_embedded if endpoint.name == EMBEDDED else fixed_address(endpoint)


async def _connect_embedded() -> Address:
    import core.local_model as local_model
    from core.llm import Address

    served = await asyncio.to_thread(local_model.acquire)
    return Address(served.base_url, served.api_key)
