"""What this machine's owner allows: which environment variables may be read as keys.

The list lives in a TOML file outside every workspace, so that neither an imported file nor the web app can
change it (DESIGN section 4, Trust):

    # ~/.config/winnow/trust.toml
    key_variables = ["MY_COMPANY_KEY"]

The names in `KEY_VARIABLES`, and all that begin with `WINNOW_KEY_`, are allowed without a file; the file adds to
them. A key is a plain string that lives in the client that sends it and nowhere else: whatever a server says
about it passes through `scrub` before anyone sees it.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import tomllib
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from urllib.parse import quote

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


class Trust(Record):
    """The content of the trust file. Unknown entries are refused, so a typo never goes unnoticed."""

    key_variables: tuple[str, ...] = ()
    """Environment variables that may be read as keys, besides the built-in ones."""

    def allows_key(self, name: str) -> bool:
        """Whether the environment variable may be read as a key."""
        return name in KEY_VARIABLES or name in self.key_variables or name.startswith(KEY_PREFIX)


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
        names = json.dumps([*trust.key_variables, name])
        raise TrustError(
            f"The environment variable {name} may not be read as a key: to allow it, put the line "
            f"key_variables = {names} into {trust_path(environ)}."
        )


def read_key(name: str, environ: Mapping[str, str] = os.environ) -> str:
    """The key in an environment variable, if this machine's owner allows that it is read as one.

    Raises:
        TrustError: the variable is not allowed; the sentence names the file and the line to add.
        InputError: the variable is unset or empty, or holds what no HTTP header can carry.
    """
    check_allowed(name, environ)
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
