"""What an export tells and what it keeps to itself: origin by choice, local paths never."""

from __future__ import annotations

import re
from typing import Literal

from core.experience import Experience
from core.record import Record

Tells = Literal["texts", "facts", "origin"]
"""How much a form can hold: texts alone; kind, domain, counts and model besides; where lessons came from besides."""

HIDDEN = "(local path)"

# Accounts that are nobody's: machines in the cloud, containers, and examples in a text.
_NOBODY = "user|username|name|you|me|ubuntu|root|runner|agent|app|vscode|ec2-user"
_HOME = re.compile(
    r"(?:file:/{2,3})?(?:(?<![\w.])/(?:home|Users)/|\b[A-Za-z]:[\\/]+Users[\\/]+)"
    rf"(?!(?:{_NOBODY})(?![\w.-]))[\w.][\w.-]*(?:[\\/]+[^\s\\/\"'`<>|,;:()]*)*"
)
_FOLDERS = re.compile(r"\A(?:file:/{2,3})?(?:[A-Za-z]:[\\/]|[\\/~.])(?:.*[\\/])?(?=[^\\/]+$)", re.DOTALL)


class Redaction(Record):
    """What stays in an export and what goes; shown before anything is handed on."""

    provenance: Literal["included", "redacted", "not in this form"]
    kept: tuple[str, ...]
    left_out: tuple[str, ...]
    paths: int = 0
    """Local paths that were replaced."""


def names_a_home(text: str) -> bool:
    """Whether a text holds a path into somebody's home folder.

    >>> names_a_home("see /home/ada/notes.txt"), names_a_home("write to /home/user/out.txt or /etc/hosts")
    (True, False)
    """
    return _HOME.search(text) is not None


def without_homes(text: str) -> str:
    r"""The text with a mark in place of each path into a home folder.

    >>> without_homes(r"kept in C:\Users\ada\w, done")
    'kept in (local path), done'
    """
    return _HOME.sub(HIDDEN, text)


def without_folders(model: str) -> str:
    """The name of a model without the folders that its file lies in; a name such as `org/model` stays.

    >>> without_folders("/srv/models/small.gguf"), without_folders("org/model-7b")
    ('small.gguf', 'org/model-7b')
    """
    return _FOLDERS.sub("", model)


def without_paths(experience: Experience) -> Experience:
    return experience.model_copy(update={"learned_on": without_folders(experience.learned_on)})
