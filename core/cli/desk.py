"""What every command shares: the workspace, the two ways of answering, exit codes, progress."""

from __future__ import annotations

import functools
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import click
from pydantic import BaseModel

from core.errors import ApplyError, BusyError, InputError, ModelError, WinnowError
from core.experience import Proposal, text_of

if TYPE_CHECKING:
    from pathlib import Path

    from core.workspace import Workspace

MAX_CONFIG_BYTES = 2**20
"""Of a file with settings."""

DONE, SET_ASIDE, REFUSED, UNFINISHED, FAULT = 0, 1, 2, 3, 4


MAKING = {
    "app",
    "demo",
    "endpoints add",
    "library propose",
    "pack import",
    "proof",
    "restore",
    "rollouts import",
    "tasks import",
}
"""Commands with which a workspace begins; all others need one that is there, so that a mistyped name makes none."""


class Desk:
    """One call of the command line."""

    def __init__(self, folder: str | None, as_json: bool) -> None:
        self.folder = folder
        self.as_json = as_json
        self.code = DONE

    @functools.cached_property
    def workspace(self) -> Workspace:
        """The workspace that is meant; made where there is none by the commands that begin one.

        Raises:
            InputError: there is none, and the command does not make one; or the folder cannot be used.
        """
        from core.workspace import Workspace, workspace_path

        folder = workspace_path(self.folder)
        if not self.there and not folder.is_file() and _command() not in MAKING:
            raise InputError(
                f"There is no workspace in {folder}. Name another one with --workspace; `winnow demo` or"
                " `winnow tasks import FILE` makes one."
            )
        return Workspace(folder)

    @property
    def there(self) -> bool:
        """Whether there is a workspace already."""
        from core.workspace import workspace_path
        from core.workspace.workspace import DATABASE

        return (workspace_path(self.folder) / DATABASE).is_file()

    @functools.cached_property
    def who(self) -> str:
        from core.importers.source import storable
        from core.workspace.workspace import whoami

        return storable(whoami())

    def answer(self, result: object, *lines: str, set_aside: bool = False) -> None:
        """Give the result: as JSON on standard output, or as lines for a person."""
        if set_aside:
            self.code = SET_ASIDE
        if self.as_json:
            click.echo(json.dumps(plain(result), ensure_ascii=False, indent=2))
        else:
            for line in lines:
                click.echo(line)

    def progress(self, what: str, done: int, total: int) -> None:
        """A `Progress` on standard error: a bar on a terminal, a line each tenth elsewhere."""
        _show_progress(what, done, total)

    def fail(self, error: Exception) -> NoReturn:
        """End with a fault of Winnow's own, which is told with its trace; nothing half-done is kept."""
        traceback.print_exception(error)
        message = f"Winnow itself failed ({type(error).__name__}: {error}); please report the lines above."
        click.echo(f"winnow: {message}", err=True)
        if self.as_json:
            click.echo(json.dumps({"error": message}, ensure_ascii=False))
        sys.exit(FAULT)

    def refuse(self, error: WinnowError) -> NoReturn:
        """End with the error's one sentence."""
        click.echo(f"winnow: {error}", err=True)
        if self.as_json:
            click.echo(json.dumps({"error": str(error)}, ensure_ascii=False))
        sys.exit(REFUSED if isinstance(error, InputError | ApplyError) else UNFINISHED)


Command = Callable[..., None]


def verb(group: click.Group | None, name: str) -> Callable[[Command], click.Command]:
    """Make a function a command that takes --workspace and --json; its first argument is the `Desk`."""

    def wrap(function: Command) -> click.Command:
        @click.option("--json", "as_json", is_flag=True, help="Answer with one JSON value.")
        @click.option(
            "--workspace",
            metavar="DIR",
            help="Folder of the workspace; default $WINNOW_WORKSPACE or .winnow/.",
        )
        @functools.wraps(function)
        def call(workspace: str | None, as_json: bool, **options: object) -> None:
            desk = Desk(workspace, as_json)
            try:
                _check_text({"--workspace": workspace, **options})
                function(desk, **options)
            except (InputError, ApplyError, ModelError, BusyError) as e:
                desk.refuse(e)
            except BrokenPipeError:  # whoever read has enough
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                sys.exit(DONE)
            except click.ClickException:  # of its own options
                raise
            except Exception as e:  # noqa: BLE001  # a fault of ours: scripts must be able to tell it from "done"
                desk.fail(e)
            except KeyboardInterrupt:
                click.echo(
                    "\nStopped. What was finished is kept; the same command goes on from there.", err=True
                )
                sys.exit(UNFINISHED)
            sys.exit(desk.code)

        command: click.Command = click.command(name)(call)
        if group is not None:
            group.add_command(command)
        return command

    return wrap


def _command() -> str:
    """The command that runs, by its words: "tasks import"."""
    words, context = [], click.get_current_context()
    while context.parent is not None:
        words.append(context.info_name or "")
        context = context.parent
    return " ".join(reversed(words))


def _check_text(options: dict[str, object]) -> None:
    """Refuse what the shell passed on and is no text: no file, database or terminal can hold it."""
    from core.importers.source import has_half_surrogates

    for name, given in options.items():
        for value in given if isinstance(given, list | tuple) else (given,):
            if isinstance(value, str | os.PathLike) and has_half_surrogates(str(value)):
                raise InputError(f"What was given for {_called(name)} is not UTF-8 text.")


def _called(name: str) -> str:
    """An option or argument as the command line names it."""
    parameters = click.get_current_context().command.params
    found = next((p for p in parameters if p.name == name), None)
    return found.get_error_hint(click.get_current_context()) if found else name


def foreign_file(path: Path, most: int) -> bytes:
    """The bytes of a file that was named to be read and remembered.

    Raises:
        InputError: there is none, it has more than `most` bytes, or its name, which is kept, looks like a secret.
    """
    from core.importers.source import bytes_of
    from core.packs.content import holds_secret

    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    if holds_secret(path.name):
        raise InputError("The file's name looks like a secret (a key, token or password): rename it first.")
    return bytes_of(path, most)


def plain(value: object) -> Any:
    """A JSON value of a record, of a list of them, or of something that is one already.

    A proposal has its `effective_text` with it: the reviewer's own, else the proposed one; null for a delete.
    """
    if isinstance(value, BaseModel):
        told = value.model_dump(mode="json")
        inner = {name: getattr(value, name) for name in type(value).model_fields if name in told}
        told |= {name: plain(v) for name, v in inner.items() if _holds_records(v)}
        if isinstance(value, Proposal):
            told["effective_text"] = text_of(value.effective)
        return told
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value


def _holds_records(value: object) -> bool:
    return isinstance(value, BaseModel) or (
        isinstance(value, list | tuple) and any(isinstance(v, BaseModel) for v in value)
    )


def table(rows: Iterable[Sequence[object]], headers: Sequence[str]) -> list[str]:
    """Columns that line up, as wide as they need to be; the last one runs on."""
    cells = [[one_line(str(c)) for c in row] for row in rows]
    widths = [max(len(h), *(len(r[i]) for r in cells)) if cells else len(h) for i, h in enumerate(headers)]
    lines = [headers, *cells]
    return [
        "  ".join([*(c.ljust(w) for c, w in zip(line[:-1], widths, strict=False)), line[-1]])
        for line in lines
    ]


def one_line(text: str, width: int = 90) -> str:
    """A text on one line without control characters: a terminal obeys those."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def visible(text: str) -> str:
    """A text with its line breaks, but with every other control character made visible."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def hidden(text: str) -> list[str]:
    """A warning for each kind of invisible character in a text: a reader cannot approve what nobody sees."""
    found = dict.fromkeys(c for c in text if not c.isprintable() and c not in "\n\t")
    return [f"Warning: the text holds an invisible character, U+{ord(c):04X}." for c in found]


def plural(count: int, noun: str, many: str = "") -> str:
    """`1 task`, `2 tasks`."""
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"


_shown: dict[str, int] = {}


def _show_progress(what: str, done: int, total: int) -> None:
    if sys.stderr.isatty():
        width = 30
        filled = width * done // total if total else 0
        bar = (
            f"{what:<10} [{'#' * filled}{'.' * (width - filled)}] {done:,}/{total:,}"
            if total
            else f"{what} {done:,}"
        )
        click.echo(f"\r{bar}", err=True, nl=total > 0 and done >= total)
        return
    tenth = 10 * done // total if total else done
    if _shown.get(what) != tenth:
        _shown[what] = tenth
        click.echo(f"{what}: {done:,}" + (f" of {total:,}" if total else ""), err=True)
