"""What this machine's owner allows: which variables may be read as keys, and what code may run.

The list lives in a TOML file outside every workspace, so that neither an imported file nor the web app can
change it (DESIGN section 4, Trust; docs/trust.md):

    # ~/.config/winnow/trust.toml
    key_variables = ["MY_COMPANY_KEY"]                  # may be read as keys
    key_hosts = { MY_COMPANY_KEY = ["llm.example.org"] }   # and may be sent to these hosts only
    run_code = ["verifiers", "agents"]                  # whose Python code may run in the sandbox
    functions = ["my_checks:score"]                     # may be imported and called as verifiers

    [mcp.notes]                                         # tools that agents may be given
    command = ["notes-server", "--stdio"]

The names in `KEY_VARIABLES`, and all that begin with `WINNOW_KEY_`, are allowed without a file; the file adds to
them. Nothing else is allowed without it. A key is a plain string that lives in the client that sends it and
nowhere else: whatever a server says about it passes through `scrub` before anyone sees it.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import stat
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, Self, cast
from urllib.parse import quote

from pydantic import Field, model_validator

from core.errors import InputError, TrustError
from core.record import Record

KEY_VARIABLES = (
    "ANTHROPIC_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "CEREBRAS_API_KEY",
    "COHERE_API_KEY",
    "DASHSCOPE_API_KEY",
    "DEEPINFRA_API_KEY",
    "DEEPSEEK_API_KEY",
    "FIREWORKS_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GROQ_API_KEY",
    "HF_TOKEN",
    "MISTRAL_API_KEY",
    "MOONSHOT_API_KEY",
    "NVIDIA_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "PERPLEXITY_API_KEY",
    "SAMBANOVA_API_KEY",
    "TOGETHER_API_KEY",
    "XAI_API_KEY",
    "ZAI_API_KEY",
)
"""Variables whose only purpose is to hold a key of a model provider."""

KEY_PREFIX = "WINNOW_KEY_"

HIDDEN = "[key]"
"""Stands where a key, or a part of one, was."""

FRAGMENT = 8
"""So many characters of a key in a row are not shown (shorter runs occur by chance)."""


CodeUse = Literal["verifiers", "agents"]
"""Whose Python code it is: tests that a task brings with the answers they run, or what an agent writes."""

Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
"""The name of an environment variable."""

Host = Annotated[str, Field(pattern=r"^(\*\.)?[a-z0-9][a-z0-9.-]*$|^[0-9a-f:]+$")]
"""A host in lower case; `*.example.org` stands for all below it."""


class McpServer(Record):
    """A server of tools: a program that is started, or an address that is asked."""

    command: tuple[str, ...] = ()
    """The program and its arguments; it is started as it stands, without a shell and without a sandbox."""
    environment: tuple[Variable, ...] = ()
    """Variables that the program gets besides the usual harmless ones."""
    url: str | None = None
    key_variable: Variable | None = None
    """Holds the key that is sent to the address."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if bool(self.command) == bool(self.url):
            raise ValueError('give either `command = ["PROGRAM", ...]` or `url = "https://..."`')
        if self.url and not self.url.startswith(("https://", "http://")):
            raise ValueError("`url` must start with https:// or http://")
        if self.url and self.environment:
            raise ValueError("`environment` belongs to a `command`")
        if self.command and self.key_variable:
            raise ValueError("`key_variable` belongs to a `url`; a `command` gets its keys by `environment`")
        return self

    def passed_on(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        """The variables of `environment` that are set.

        Raises:
            InputError: one of them is not.
        """
        for name in self.environment:
            if name not in environ:
                raise InputError(f"The environment variable {name}, which an MCP server needs, is not set.")
        return {name: environ[name] for name in self.environment}

    def key(self, environ: Mapping[str, str] = os.environ) -> str | None:
        """The key that goes to its address (naming it in the table allows it for that address alone)."""
        return None if self.key_variable is None else _value_of(self.key_variable, environ)


class Trust(Record):
    """The content of the trust file. Unknown entries are refused, so a typo never goes unnoticed."""

    key_variables: tuple[str, ...] = ()
    """Environment variables that may be read as keys, besides the built-in ones."""
    key_hosts: dict[Variable, tuple[Host, ...]] = Field(default_factory=dict)
    """Hosts that a key may be sent to, by its variable; a variable that is not here may go to every endpoint."""
    run_code: tuple[CodeUse, ...] = ()
    """Whose Python code may run in the sandbox."""
    functions: tuple[Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")], ...] = ()
    """Functions `module:function` that may be imported and called as verifiers, in this process and unconfined."""
    mcp: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")], McpServer] = Field(
        default_factory=dict
    )
    """Servers of tools that agents may be given, by name."""

    def allows_key(self, name: str) -> bool:
        """Whether the environment variable may be read as a key."""
        known = (*KEY_VARIABLES, *self.key_variables, *self.key_hosts)
        return name in known or name.startswith(KEY_PREFIX)

    def allows_host(self, name: str, host: str | None) -> bool:
        """Whether the key in a variable may be sent to a host; a bound key goes to no unnamed one."""
        hosts = self.key_hosts.get(name)
        return hosts is None or (host is not None and any(_matches(h, host.lower()) for h in hosts))


def _matches(pattern: str, host: str) -> bool:
    return host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern


def trust_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the trust file is looked for: `WINNOW_TRUST`, else the user's configuration folder."""
    if chosen := environ.get("WINNOW_TRUST"):
        return Path(chosen)
    if sys.platform == "win32" and (folder := environ.get("APPDATA")):
        return Path(folder) / "winnow" / "trust.toml"
    folder = environ.get("XDG_CONFIG_HOME", "")
    # The XDG rule: a relative path there is to be ignored.
    base = Path(folder) if os.path.isabs(folder) else Path(environ.get("HOME") or Path.home()) / ".config"
    return base / "winnow" / "trust.toml"


def load_trust(environ: Mapping[str, str] = os.environ) -> Trust:
    """Read the trust file; without one, the built-in list alone holds.

    Raises:
        TrustError: the file cannot be read or understood, or everyone may write to it.
    """
    path = trust_path(environ)
    try:
        with path.open("rb") as file:
            if os.name == "posix" and os.fstat(file.fileno()).st_mode & stat.S_IWOTH:
                raise TrustError(
                    f"The trust file {path} may be changed by every user of this machine: chmod o-w it."
                )
            data = tomllib.load(file)
    except FileNotFoundError:
        return Trust()
    except OSError as e:
        raise TrustError(f"The trust file {path} cannot be read: {e.strerror or e}.") from e
    except ValueError as e:  # bad TOML, or not UTF-8
        raise TrustError(f"The trust file {path} is not valid TOML: {e}.") from e
    try:
        return Trust.read(data, where=f"The trust file {path}")
    except InputError as e:
        raise TrustError(str(e)) from e


def check_allowed(name: str, environ: Mapping[str, str] = os.environ) -> None:
    """Refuse an environment variable that may not be read as a key.

    Raises:
        TrustError: this machine's owner did not allow it; the sentence names the file and the line to add.
    """
    trust = load_trust(environ)
    if not trust.allows_key(name):
        line = f"key_variables = {json.dumps([*trust.key_variables, name])}"
        raise _refusal(f"The environment variable {name} may not be read as a key", line, trust, environ)


def read_key(name: str, environ: Mapping[str, str] = os.environ, *, host: str | None = None) -> str:
    """The key in an environment variable, if this machine's owner allows that it is read as one.

    Args:
        name: of the variable.
        environ: where it is looked up.
        host: where the key will be sent; a key that is bound to hosts is not given without one.

    Raises:
        TrustError: the variable is not allowed; the sentence names the file and the line to add.
        InputError: the variable is unset or empty, or holds what no HTTP header can carry.
    """
    check_allowed(name, environ)
    trust = load_trust(environ)
    if not trust.allows_host(name, host):
        bound = {**trust.key_hosts, name: (*trust.key_hosts[name], (host or "HOST").lower())}
        table = ", ".join(f"{variable} = {json.dumps(hosts)}" for variable, hosts in bound.items())
        what = f"The key in {name} may not be sent to {host or 'an unnamed host'}"
        raise _refusal(what, f"key_hosts = {{ {table} }}", trust, environ)
    return _value_of(name, environ)


def check_code(use: CodeUse, environ: Mapping[str, str] = os.environ) -> None:
    """Refuse to run the Python code of verifiers, or of agents.

    Raises:
        TrustError: this machine's owner did not allow it; the sentence names the file and the line to add.
    """
    trust = load_trust(environ)
    if use not in trust.run_code:
        line = f"run_code = {json.dumps([*trust.run_code, use])}"
        raise _refusal(f"Python code of {use} may not run on this machine", line, trust, environ)


def load_function(reference: str, environ: Mapping[str, str] = os.environ) -> Callable[..., object]:
    """Import a verifier function `module:function`, if this machine's owner allows it.

    The module is looked for where Python looks (installed, or on PYTHONPATH), never in a workspace.

    Raises:
        TrustError: it is not allowed; nothing was imported. The sentence names the file and the line to add.
        InputError: it is allowed but cannot be imported, or is no function.
    """
    trust = load_trust(environ)
    if reference not in trust.functions:
        line = f"functions = {json.dumps([*trust.functions, reference])}"
        raise _refusal(f"The function {reference!r} may not be called", line, trust, environ)
    module, _, name = reference.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
    except Exception as e:  # a module runs when it is imported: anything may come out
        raise InputError(f"The function {reference!r} cannot be imported: {type(e).__name__}: {e}.") from e
    if not callable(function):
        raise InputError(f"{reference!r} is no function.")
    return cast("Callable[..., object]", function)


def mcp_server(name: str, environ: Mapping[str, str] = os.environ) -> McpServer:
    """The server of tools of that name, if this machine's owner allows one.

    Raises:
        TrustError: there is none; the sentence names the file and the lines to add.
    """
    trust = load_trust(environ)
    if server := trust.mcp.get(name):
        return server
    raise TrustError(
        f"Agents may not use an MCP server {name!r}: to allow it, put the table [mcp.{name}] with the "
        f'line command = ["PROGRAM", "ARGUMENT"] or url = "https://..." into {trust_path(environ)}.'
    )


def _refusal(what: str, line: str, trust: Trust, environ: Mapping[str, str]) -> TrustError:
    where = f"{trust_path(environ)}{', above its [tables]' if trust.mcp else ''}"
    return TrustError(f"{what}: to allow it, put the line {line} into {where}.")


def _value_of(name: str, environ: Mapping[str, str]) -> str:
    key = environ.get(name, "").strip()
    if not key:
        raise InputError(f"The environment variable {name} is not set: put the endpoint's key into it.")
    if not key.isascii() or not key.isprintable():
        raise InputError(f"The environment variable {name} holds characters that no key can have.")
    return key


def scrub(text: str, secrets: Iterable[str]) -> str:
    """The text without the secrets: whole, escaped, in part, or masked as providers echo them.

    >>> scrub("Incorrect API key provided: sk-ab****wxyz.", ["sk-abcdefgh-wxyz"])
    'Incorrect API key provided: [key].'
    """
    for secret in secrets:
        if not secret:
            continue
        for form in sorted({secret, quote(secret, safe=""), json.dumps(secret)[1:-1]}, key=len, reverse=True):
            text = _without(text, form)
        text = _MASKED.sub(partial(_unless_echo, secret), text)
        text = _without_fragments(text, secret)
    return text


_MASKED = re.compile(
    r"(?P<head>[\w\-/+=]*?)(?:[*•…]{2,}|…|\.{3,}|[xX]{4,})(?P<tail>[\w\-/+=*•…]*)",
)
"""Something with its middle hidden: `sk-ab****wxyz`, `sk-ab...wxyz`."""


def _without(text: str, form: str) -> str:
    if len(form) >= 4:
        return text.replace(form, HIDDEN)
    # So short a key would tear ordinary words apart.
    return re.sub(rf"(?<!\w){re.escape(form)}(?!\w)", lambda _: HIDDEN, text)


def _unless_echo(secret: str, found: re.Match[str]) -> str:
    head, tail = found["head"], found["tail"]
    echo = (len(head) >= 2 and secret.startswith(head)) or (len(tail) >= 2 and secret.endswith(tail))
    return HIDDEN if echo else found[0]


def _without_fragments(text: str, secret: str) -> str:
    """Hide every run of at least `FRAGMENT` characters that the text shares with the secret."""
    pieces = {secret[i : i + FRAGMENT] for i in range(len(secret) - FRAGMENT + 1)}
    kept: list[str] = []
    hidden_to = 0
    for i, character in enumerate(text):
        if text[i : i + FRAGMENT] in pieces:
            if i >= hidden_to:
                kept.append(HIDDEN)
            hidden_to = i + FRAGMENT
        if i >= hidden_to:
            kept.append(character)
    return "".join(kept)
