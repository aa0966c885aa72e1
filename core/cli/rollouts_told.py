"""An import of recorded rollouts in lines for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from core.cli.desk import one_line, plural
from core.importers.report import ImportReport

FILES, ROWS, NAMES = 10, 20, 8
"""Files that are not read, rows set aside, and models that are shown."""

BY = {"format": "", "user": "", "guess": " [guess]", "nobody": " [to be said]"}


def told_of(report: ImportReport) -> list[str]:
    """What came in, or would come in."""
    return [*_head(report), *(f"  {line}" for line in _body(report))]


def _head(report: ImportReport) -> Iterator[str]:
    would = "would come" if report.dry_run else "came"
    if report.nothing_new and not report.dry_run:
        yield (
            f"{report.source} was imported before, as {report.run_id}; nothing was changed."
            if report.known
            else (f"Nothing new came in from {report.source}.")
        )
        return
    if report.regraded and not report.added and not report.went_on:
        here = f" (it is in {report.run_id})" if report.run_id else ""
        told = "would get another reward; nothing was changed." if report.dry_run else "got another reward."
        yield f"Nothing of {report.source} is new{here}; {plural(report.regraded, 'known attempt')} {told}"
        return
    into = f" as {report.run_id}" if report.run_id and not report.dry_run else ""
    yield (
        f"{plural(report.added, 'attempt')} at {plural(report.tasks, 'task')} in {plural(report.groups, 'group')} "
        f"{would} in from {report.source}{into}; {report.informative:,} informative"
        + ("; nothing was imported." if report.dry_run else ".")
    )
    if n := report.went_on - report.retried:
        would = "would take" if report.dry_run else "took"
        yield f"{plural(n, 'session')} went on, and {would} the place of the earlier state."
    if report.retried:
        would = "would come" if report.dry_run else "came"
        yield f"{plural(report.retried, 'attempt')} that had broken off {would} in with a result."
    if report.regraded:
        would = "would get" if report.dry_run else "got"
        yield f"{plural(report.regraded, 'known attempt')} {would} another reward."


def _body(report: ImportReport) -> Iterator[str]:
    yield f"formats:  {_listed(report.formats)}"
    if report.added:
        yield (
            f"rewards:  {report.scored:,} scored, {report.unscored:,} unscored, "
            f"{plural(report.errors, 'infrastructure error')}"
        )
        if report.verified:
            yield f"verifier: {_verified(report)}"
        sizes = ", ".join(f"{n:,} with {plural(size, 'attempt')}" for size, n in report.group_sizes.items())
        yield f"groups:   {sizes}" + (
            f"; {report.groups_grown:,} of them here already" if report.groups_grown else ""
        )
        yield f"tasks:    {report.tasks:,}, {report.tasks_added:,} of them new"
        yield from _steps(report)
        yield f"models:   {_listed(report.models)}"
        usage = report.usage
        yield (
            f"tokens:   {usage.prompt_tokens:,} in, {usage.completion_tokens:,} out, {usage.calls:,} calls"
            + (f", ${usage.cost_usd:,.4f}" if usage.cost_usd else "")
        )
    for said in report.rewards:
        yield f"reward:   {one_line(said.sentence, 400)}{BY[said.by]}"
    yield from _left(report)
    if report.masked:
        yield f"masked:   {_listed(report.masked)} (--keep-secrets leaves them as they are)"
    if report.kept_bytes:
        would = "would be kept" if report.dry_run else "kept"
        yield f"files:    {would} as they came, secrets included: {report.kept_bytes:,} bytes"
    yield from (f"splits:   {sentence}" for sentence in report.splits)
    yield from (f"grouping: {one_line(sentence, 400)}" for sentence in report.grouping)
    yield from (
        f"note:     {one_line(r.text, 400)}" + (f" ({r.count:,} times)" if r.count > 1 else "")
        for r in report.remarks
    )
    yield from _not_read(report)


def _verified(report: ImportReport) -> str:
    """What the verifiers of tasks grade."""
    without = f"{plural(report.verified, 'attempt')} without a reward"
    if not report.dry_run:
        return f"{without} went to the verifier of the task"
    return (
        f"{without} would go to the verifier of the task at the import; until then they count as unscored, and what "
        "they make informative is not counted"
    )


def _steps(report: ImportReport) -> Iterator[str]:
    steps = report.steps
    if steps.total or steps.orphans:
        yield (
            f"steps:    {steps.total:,}: {steps.succeeded:,} succeeded, {steps.failed:,} failed, "
            f"{steps.no_result:,} without a result, {steps.unknown:,} not known"
            + (f"; {steps.orphans:,} results without a call" if steps.orphans else "")
        )


def _left(report: ImportReport) -> Iterator[str]:
    counts = {
        "known already": report.known - report.went_on,
        "repeated": report.duplicates,
        "in conflict with another": report.conflicts,
        "sub-agents": report.children,
    }
    if there := [f"{n:,} {what}" for what, n in counts.items() if n]:
        yield f"left out: {', '.join(there)}"


def _not_read(report: ImportReport) -> Iterator[str]:
    left = [f for f in report.files if f.reason and f.became != "side file"]
    for file in left[:FILES]:
        yield f"{file.became}: {one_line(file.name, 100)}: {one_line(file.reason, 200)}"
    if len(left) > FILES:
        yield f"{len(left) - FILES:,} more files were not read"
    for row in report.set_aside[:ROWS]:
        at = f" line {row.line}" if row.line else ""
        yield f"set aside: {one_line(row.source, 100)}{at}: {one_line(row.reason, 200)}"
    if report.set_aside_total > ROWS:
        yield f"{report.set_aside_total - ROWS:,} more were set aside: `winnow tasks aside`"


def _listed(counts: Mapping[str, int]) -> str:
    shown = [f"{one_line(name, 60) or '(not named)'} {n:,}" for name, n in list(counts.items())[:NAMES]]
    return ", ".join(shown) + (f" and {len(counts) - NAMES} more" if len(counts) > NAMES else "")
