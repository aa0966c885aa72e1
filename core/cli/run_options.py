"""The options of `winnow run`, and how they and a file become the configuration of a run."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args

import click

from core.cli.desk import MAX_CONFIG_BYTES
from core.errors import InputError
from core.importers.source import bytes_of
from core.rollout import SPLITS
from core.settings import Component, Gate, Preset, Role, RunConfig, VerifierSpec
from core.workspace.planning import CAPS

Options = dict[str, Any]

NESTED = {
    "reward": "reward.preset",
    "reward_weights": "reward.weights",
    "verifiers": "reward.verifiers",
    "agent_tools": "agent.tools",
    "max_steps": "agent.max_steps",
    "fetch_hosts": "agent.fetch_hosts",
    "resample_temperature": "resample.temperature",
    "resample_attempts": "resample.attempts",
}
"""Option -> where it goes in a `RunConfig`; the others go by their own name."""

ROLE_OF: dict[str, Role] = {
    "endpoint": "rollout",
    "extraction_endpoint": "extraction",
    "judge_endpoint": "judge",
}

OPTIONS = (
    click.option("--config", "file", metavar="FILE", type=click.Path(path_type=Path),
                 help="TOML or JSON with the settings of a run (- = JSON on standard input); options override it."),
    click.option("--endpoint", help="Who is asked; default: the endpoint with the role 'rollout'."),
    click.option("--extraction-endpoint",
                 help="Who draws lessons beside the evidence extractor; default: the role."),
    click.option("--judge-endpoint", help="Who is asked by verifiers of the kind 'judge'; default: the role."),
    click.option("--group-size", "-g", type=int, show_default="8", help="Rollouts of each task."),
    click.option("--split", type=click.Choice(SPLITS), show_default="train"),
    click.option("--domain", "domains", multiple=True, help="Only tasks of this domain (may be repeated)."),
    click.option("--limit", type=int, help="At most so many tasks of each domain."),
    click.option("--temperature", type=float, show_default="0.7"),
    click.option("--top-p", type=float, show_default="0.95"),
    click.option("--max-tokens", type=int, show_default="64", help="Tokens of one reply."),
    click.option("--stop", multiple=True, help="Stop a reply at this text (may be repeated)."),
    click.option("--seed", type=int, show_default="0"),
    click.option("--epochs", type=int, show_default="1", help="How often every task is used."),
    click.option("--batch-size", type=int, show_default="40", help="Tasks of one batch."),
    click.option("--gate", type=click.Choice(get_args(Gate)), show_default="none",
                 help="Between batches: collect, wait for a review, publish all valid proposals, or try them on trial "
                 "tasks and publish those that were measured to help."),
    click.option("--library-version", metavar="VERSION",
                 help="Inject this version, a number or a label; default: the newest."),
    click.option("--prior", metavar="ID", help="Add this token prior to the logits of each reply."),
    click.option("--reward", type=click.Choice(get_args(Preset)), show_default="verified",
                 help="What the reward is made of."),
    click.option("--weight", "reward_weights", metavar="PART=X", multiple=True,
                 help=f"With --reward own: weight of {', '.join(get_args(Component))} (may be repeated)."),
    click.option("--verifier", "verifiers", metavar="NAME=KIND|FILE", multiple=True,
                 help="A verifier of every task besides its own, or a file with several (may be repeated)."),
    click.option("--agent-tool", "agent_tools", metavar="TOOL", multiple=True,
                 help="Make each rollout an agent with this tool: python, fetch, files, mcp:NAME (may be repeated)."),
    click.option("--max-steps", type=int, show_default="12", help="Tool calls of an agent."),
    click.option("--fetch-host", "fetch_hosts", metavar="HOST", multiple=True,
                 help="A host that the tool `fetch` may ask (may be repeated)."),
    click.option("--resample-temperature", type=float, help="Sample anew at this where a group taught nothing."),
    click.option("--resample-attempts", type=int, help="At most so often for each task; default 1."),
    click.option("--rollout-timeout", "rollout_timeout_s", type=float, metavar="S",
                 help="Seconds of one rollout, its retries and waits included."),
    click.option("--withhold-answer", is_flag=True, default=None,
                 help="Keep the right answers from the extraction model."),
    click.option("--max-calls", type=int, help="Cap on requests."),
    click.option("--max-tokens-total", type=int, help="Cap on tokens."),
    click.option("--max-cost-usd", type=float, help="Cap on money."),
)  # fmt: skip


def run_options(function: Callable[..., None]) -> Callable[..., None]:
    """Put the options before a command."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def given(options: Mapping[str, object]) -> Options:
    """The options that were given, by the name of the setting."""
    return {name: value for name, value in options.items() if value is not None and value != ()}


def refuse_but_caps(file: Path | None, options: Mapping[str, object]) -> Options:
    """The caps that were given beside --resume, which takes nothing else.

    Raises:
        InputError: a file or another option was given.
    """
    wanted = given(options)
    if file:
        raise InputError("--config cannot be given with --resume; leave it out.")
    if other := sorted(wanted.keys() - CAPS):
        named = {p.name: p.opts[0] for p in click.get_current_context().command.params}
        raise InputError(
            f"{named[other[0]]} cannot be given with --resume, which takes the caps only "
            "(--max-calls, --max-tokens-total, --max-cost-usd); leave it out."
        )
    return wanted


def read_config(
    file: Path | None,
    options: Mapping[str, object],
    roles: Mapping[Role, str | None],
    version_of: Callable[[str], int],
) -> RunConfig:
    """The configuration of a run: the file, options over it, and the endpoints' roles where neither says who is asked.

    Args:
        file: TOML or JSON.
        options: of the command line.
        roles: who is asked where nothing else says so.
        version_of: the number of a version that is named by number or label.

    Raises:
        InputError: the file cannot be read, or a setting is not one.
    """
    settings = read_options(file) if file else {}
    for name, value in given(options).items():
        _put(settings, NESTED.get(name, name), _value(name, value))
    agent = settings.get("agent")
    if isinstance(agent, dict) and "tools" not in agent:
        raise InputError(
            "These settings are for agents: say which tools they have, such as --agent-tool files."
        )
    reward = settings.get("reward")
    if isinstance(reward, dict) and reward.get("weights") and "preset" not in reward:
        reward["preset"] = "own"
    if isinstance(named := settings.get("library_version"), str):
        settings["library_version"] = version_of(named)
    for name, role in ROLE_OF.items():
        settings.setdefault(name, roles[role])
    return RunConfig.read(settings, where=str(file) if file else "run")


def _value(name: str, value: object) -> object:
    if name == "reward_weights":
        return {key: _number(key, text) for key, text in map(_pair, _texts(value))}
    if name == "verifiers":
        found: Options = {}
        for text in _texts(value):
            found |= _verifiers(text)
        return found
    return value


def _texts(value: object) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()


def _verifiers(text: str) -> Options:
    if Path(text).suffix.lower() in (".json", ".toml"):
        return {
            name: VerifierSpec.read(spec, where=f"{text}: {name}").model_dump()
            for name, spec in read_options(Path(text)).items()
        }
    name, kind = _pair(text)
    return {name: {"kind": kind}}


def _pair(text: str) -> tuple[str, str]:
    name, mark, value = text.partition("=")
    if not (name and mark and value):
        raise InputError(f"{text!r} is not NAME=VALUE.")
    return name, value


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as e:
        raise InputError(f"--weight {name}={text}: {text!r} is not a number.") from e


def _put(settings: Options, path: str, value: object) -> None:
    *above, last = path.split(".")
    for name in above:
        if not isinstance(settings.get(name), dict):
            settings[name] = {}
        settings = settings[name]
    settings[last] = value


def read_options(file: Path) -> Options:
    """A TOML or JSON file that holds one object."""
    try:
        piped = str(file) == "-"
        text = sys.stdin.read() if piped else bytes_of(file, MAX_CONFIG_BYTES).decode()
        found = json.loads(text) if piped or file.suffix.lower() == ".json" else tomllib.loads(text)
    except OSError as e:
        raise InputError(f"{file} cannot be read: {e.strerror or e}.") from e
    except ValueError as e:  # JSONDecodeError, TOMLDecodeError, UnicodeDecodeError
        raise InputError(f"{file} is neither TOML nor JSON as its name says: {e}.") from e
    if not isinstance(found, dict):
        raise InputError(f"{file} must hold one object with the settings by name.")
    return found
