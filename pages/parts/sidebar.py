"""What stands under the navigation on every page: how far the loop is."""

from __future__ import annotations

from pages.parts import safe, session
from pages.parts.safe import Markup, markup


def sidebar() -> None:
    ws = session.workspace()
    ws.ensure_worker()
    now = ws.overview()
    run = now.newest_run
    lines = [
        _line("Library", f"v{now.version} · {now.experiences} lesson{'s' * (now.experiences != 1)}"),
        _line("Waiting for review", now.waiting_review, "wait" if now.waiting_review else ""),
    ]
    if now.staged:
        lines.append(_line("Staged", now.staged, "wait"))
    if run and run.status not in ("done", "failed", "cancelled"):
        lines.append(_line(f"Run {run.id}", f"{run.tally.total - run.tally.waiting} of {run.tally.total}"))
    safe.html(
        '<div class="w-side">{lines}<span class="path" title="Workspace folder">{folder}</span></div>',
        lines=safe.joined(lines),
        folder=ws.folder,
    )


def _line(name: str, value: object, look: str = "") -> Markup:
    return markup(
        '<div class="{look}"><span>{name}</span><b>{value}</b></div>', look=look, name=name, value=value
    )
