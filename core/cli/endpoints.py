"""`winnow endpoints`."""

from __future__ import annotations

import json
from typing import get_args

import click

from core.cli.desk import Desk, table, verb
from core.errors import InputError
from core.settings import Endpoint, Role


@click.group()
def endpoints() -> None:
    """The models that Winnow may ask. Keys stay in environment variables; only their names are kept."""


@verb(endpoints, "add")
@click.argument("name")
@click.option("--base-url", required=True, help="Such as http://127.0.0.1:8000/v1.")
@click.option("--model", required=True)
@click.option("--key-env", metavar="VAR", help="Name of the environment variable that holds the key.")
@click.option(
    "--context-length", type=int, default=8192, show_default=True, help="Tokens of prompt and reply together."
)
@click.option(
    "--injection-tokens", type=int, help="Tokens that lessons may take; default a quarter of the context."
)
@click.option("--price-in", type=float, default=0.0, help="US dollars for a million prompt tokens.")
@click.option("--price-out", type=float, default=0.0, help="US dollars for a million completion tokens.")
@click.option("--concurrency", type=int, default=8, show_default=True, help="Requests in flight at once.")
@click.option("--requests-per-minute", type=int, metavar="N", help="Most requests in any 60 seconds.")
@click.option(
    "--tokens-per-minute",
    type=int,
    metavar="N",
    help="Most tokens in any 60 seconds, prompt and reply together.",
)
@click.option(
    "--timeout", "timeout_s", type=float, default=120.0, show_default=True, help="Seconds for one request."
)
@click.option("--retries", type=int, default=4, show_default=True)
@click.option("--sends-n", is_flag=True, help="One request may ask for several replies.")
@click.option("--no-seed", is_flag=True, help="The endpoint takes no seed.")
@click.option("--json-schema", is_flag=True, help="The endpoint enforces JSON schemas.")
@click.option(
    "--bias-range",
    type=float,
    default=100.0,
    show_default=True,
    help="Largest bias of a token; 0: takes none.",
)
@click.option(
    "--bias-entries", type=int, default=300, show_default=True, help="Most tokens in one logit_bias."
)
@click.option(
    "--logprobs", is_flag=True, help="It gives log-probabilities with token ids, as llama.cpp does."
)
@click.option("--grammar", is_flag=True, help="It takes llama.cpp grammars with token ids.")
@click.option("--tokenizer", metavar="FILE", help="The model's tokenizer.json, for token priors.")
@click.option("--extra", default="{}", metavar="JSON", help="Further fields of the request body.")
def add(desk: Desk, name: str, no_seed: bool, extra: str, **settings: object) -> None:
    """Add an OpenAI-compatible endpoint, or change the one of that NAME."""
    try:
        more = json.loads(extra)
    except ValueError as e:
        raise InputError(f"--extra is not valid JSON: {e}.") from e
    endpoint = Endpoint.read(
        {"name": name, "sends_seed": not no_seed, "extra": more, **settings}, where=f"endpoint {name}"
    )
    desk.workspace.models.save(endpoint, desk.who)
    desk.answer(endpoint, f"Endpoint {name} is kept. Try it: winnow endpoints test {name}")


@verb(endpoints, "list")
def list_endpoints(desk: Desk) -> None:
    """List endpoints and their roles."""
    models = desk.workspace.models
    roles = models.roles()
    rows = []
    for e in models.all():
        held = ", ".join(r for r, n in roles.items() if n == e.name) or "-"
        rows.append(
            (e.name, e.model, e.base_url or "(served on first use)", e.key_env or "-", e.context_length, held)
        )
    lines = table(rows, ("name", "model", "base URL", "key variable", "context", "roles"))
    desk.answer({"endpoints": models.all(), "roles": roles}, *lines)


@verb(endpoints, "test")
@click.argument("name")
def test(desk: Desk, name: str) -> None:
    """Ask an endpoint a few short questions and tell what it can do; one that only embeds is given a text."""
    held = [role for role, holder in desk.workspace.models.roles().items() if holder == name]
    if held == ["embedding"]:
        made = desk.workspace.models.test_embedder()
        desk.answer(
            made, f"{name} gives vectors of {made.dimension} numbers in {made.latency_s:.2f} s: {made.model}."
        )
        return
    result = desk.workspace.models.test(name)
    if result.problem:
        desk.answer(result, f"{name}: {result.problem}")
        desk.code = 3
        return
    can = [
        f"several replies to a request: {_word(result.sends_n)}",
        f"same seed, same reply: {_word(result.sends_seed)}",
        f"JSON schema enforced: {_word(result.json_schema)}",
    ]
    desk.answer(result, f"{name} answers as {result.model} in {result.latency_s or 0:.2f} s.", *can)


def _word(value: bool | None) -> str:
    return "not known" if value is None else "yes" if value else "no"


@verb(endpoints, "remove")
@click.argument("name")
def remove(desk: Desk, name: str) -> None:
    """Forget an endpoint."""
    desk.workspace.models.remove(name, desk.who)
    desk.answer({"removed": name}, f"Endpoint {name} is forgotten; runs that used it stay as they are.")


@verb(endpoints, "role")
@click.argument("role", type=click.Choice(get_args(Role)))
@click.argument("name", required=False)
def role(desk: Desk, role: str, name: str | None) -> None:
    """Give a ROLE (rollout, extraction, judge, embedding) to endpoint NAME; without a name, to none.

    Without an endpoint, rollouts come from the embedded model and vectors from the embedded all-MiniLM-L6-v2. Vectors
    of different models are kept apart: a change has them computed anew, and changing back costs nothing.
    """
    desk.workspace.models.set_role(role, name, desk.who)  # type: ignore[arg-type]  # click checked it
    holder = desk.workspace.models.roles()[role]  # type: ignore[index]
    desk.answer({"role": role, "endpoint": holder}, f"{role}: {holder or 'nobody'}")
