"""The command line: `winnow COMMAND`, or `python -m core COMMAND`."""

from __future__ import annotations

import importlib
import json
from typing import Any

import click

COMMANDS = {
    "demo": ("core.cli.demo:demo", "Run the whole loop on the sample project with the embedded model."),
    "app": ("core.cli.app:app", "Serve the web app on this machine."),
    "tasks": ("core.cli.tasks:tasks", "Import tasks, list them, see the rows that were set aside."),
    "rollouts": ("core.cli.rollouts:rollouts", "Import rollouts that were recorded elsewhere."),
    "endpoints": ("core.cli.endpoints:endpoints", "Add, test and list the models that Winnow may ask."),
    "run": ("core.cli.run:run", "Sample groups of rollouts, score them, and propose lessons."),
    "runs": ("core.cli.runs:runs", "List runs; show one, its groups, a group, a rollout."),
    "rescore": ("core.cli.rescore:rescore", "Make rewards and advantages anew; no rollout is touched."),
    "jobs": ("core.cli.jobs:jobs", "List background work; pause, resume, cancel, requeue it."),
    "worker": ("core.cli.jobs:worker", "Do the background work of a workspace in the foreground."),
    "sandbox": ("core.cli.sandbox:sandbox", "Say what is confined when code runs here, and what may run."),
    "spend": ("core.cli.spend:spend", "What was sent and what it cost, by run, endpoint, day or stage."),
    "review": ("core.cli.review:review", "Decide on proposals: approve, edit, reject, defer, undo."),
    "publish": ("core.cli.publish:publish", "Publish what was approved as a new version of the library."),
    "rollback": ("core.cli.publish:rollback", "Make a new version that reads as an earlier one did."),
    "library": ("core.cli.library:library", "Show experiences, where they came from, and versions."),
    "label": ("core.cli.label:label", "Point names such as `production` at versions."),
    "audit": (
        "core.cli.audit:audit",
        "Look for lessons to delete, merge or compress; everything becomes a proposal.",
    ),
    "prior": ("core.cli.prior:prior", "Token priors: derive, list, show, export, import."),
    "objective": (
        "core.cli.objective:objective",
        "How far a version of the library moves the model, by task.",
    ),
    "usage": (
        "core.cli.usage:usage",
        "Read back how shipped lessons did, so that they keep earning or losing.",
    ),
    "proof": (
        "core.cli.proof:proof",
        "Prove, as registered beforehand, whether the loop helps on final tasks.",
    ),
    "eval": ("core.cli.eval:evaluation", "Measure what lessons are worth on tasks that taught nothing."),
    "pack": ("core.cli.pack:pack", "Export a version for your agents; verify a pack."),
    "backup": ("core.cli.care:backup", "Copy a workspace, consistently, while it is used."),
    "restore": (
        "core.cli.care:restore",
        "Put a backup in place of a workspace; what was there is kept beside it.",
    ),
    "doctor": (
        "core.cli.care:doctor",
        "Check a workspace: integrity, log against tables, orphans, model files.",
    ),
    "redact": ("core.cli.care:redact", "Remove a secret or personal data everywhere, and prove it."),
    "log": ("core.cli.log:log", "Show who did what and when."),
    "dump": ("core.cli.log:dump", "Print the workspace in a canonical form, without times."),
}
"""Command -> where it is, and its one line of help: so that `winnow --help` loads none of them."""

MANUAL = """Curate experience libraries: short lessons from groups of rollouts that make a frozen model do better.

\b
The loop, end to end:
  winnow tasks import tasks.jsonl        tasks with a checkable outcome
  winnow run --group-size 8              G rollouts each, scored; proposals with evidence
  winnow review list                     what waits for a person
  winnow review approve P-0001           exact text; reject, edit, defer, undo
  winnow publish -m "First lessons"      all approved proposals, atomically, as a version
  winnow pack export -o lessons.zip      the same text that runs are injected with
Without any key it runs on an embedded model: try `winnow demo`.

\b
Every command takes --workspace DIR (or the variable WINNOW_WORKSPACE; default .winnow/ in the current
folder) and --json (one JSON value on standard output; progress goes to standard error).

\b
Exit codes: 0 done; 1 done, with something set aside; 2 refused, nothing was changed;
3 not finished (endpoint not available, cap reached, paused, waiting for a review, workspace busy):
the same command goes on;
4 a fault of Winnow itself, with its trace.
"""


AS_JSON = "core.cli.as_json"


def _refuse(error: click.ClickException, as_json: bool) -> None:
    """One JSON value on standard output; click itself tells a person, on standard error."""
    if as_json:
        click.echo(json.dumps({"error": error.format_message()}, ensure_ascii=False))


class LazyGroup(click.Group):
    """Loads a command's module when it is used: heavy libraries are nobody's business before that."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        asked = "--json" in (args[: args.index("--")] if "--" in args else args)
        try:
            made = super().make_context(info_name, args, parent, **extra)
        except click.ClickException as e:
            _refuse(e, asked)
            raise
        made.meta[AS_JSON] = asked
        return made

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; what click refuses, a wrong option or argument, is told as JSON where that is asked for."""
        try:
            return super().invoke(ctx)
        except click.ClickException as e:
            _refuse(e, bool(ctx.meta.get(AS_JSON)))
            raise

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, help_line) in COMMANDS.items()])


def _tell_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if not asked:
        return
    from importlib import metadata

    try:
        click.echo(f"winnow, version {metadata.version('winnow')}")
    except metadata.PackageNotFoundError:
        click.echo("winnow, run from its source without being installed: no version")
    ctx.exit()


@click.group(
    cls=LazyGroup,
    help=MANUAL,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_tell_version,
    help="Show the version and exit.",
)
def main() -> None:
    pass
