"""What an import tells of what it read: counted over the spool, so that a large import is told as a small one is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from core.importers.choosing import less_is_better
from core.importers.report import (
    SHOWN,
    FileRead,
    ImportOptions,
    ImportReport,
    RewardSaid,
    ScoreSeen,
    StepsSeen,
    Told,
)
from core.rollout import SetAside, Usage
from core.store.database import Row
from core.store.spool import Spool

FEW = 5
"""Records set aside of which there is no need to warn."""

_LINE = re.compile(r"(?:line|row) (\d{1,15})")


def told(spool: Spool, options: ImportOptions, said: Sequence[RewardSaid], **became: Any) -> ImportReport:
    """The report on what a spool holds.

    Args:
        spool: all files are read, rewards chosen.
        options: how it was asked for.
        said: which score is the reward.
        became: fields of the report that the spool does not know: source, run_id, dry_run, ...
    """
    aside, aside_total = set_aside(spool, SHOWN)
    counted: dict[str, Any] = {**_outcomes(spool), **_groups(spool)}
    return ImportReport(
        files=tuple(_files(spool)),
        files_found=_number(spool, "SELECT count(*) AS n FROM files"),
        formats=_counted(
            spool, "SELECT title AS what, count(*) AS n FROM attempts GROUP BY title ORDER BY min(seq)"
        ),
        **counted,
        scores=tuple(_scores(spool)),
        rewards=tuple(said[:SHOWN]),
        steps=_steps(spool),
        models=_of_new(spool, "model"),
        agents=_of_new(spool, "agent"),
        usage=_usage(spool),
        masked=spool.fact("masked") or {},
        grouping=tuple(_grouping(spool, options)),
        remarks=(
            *_remarks(spool),
            *_taken_for_known(spool),
            *_many_aside(counted["attempts"], aside_total - counted["conflicts"]),
        ),
        set_aside=tuple(aside),
        set_aside_total=aside_total,
        **became,
    )


def set_aside(spool: Spool, limit: int, offset: int = 0) -> tuple[list[SetAside], int]:
    """Records that could not be read, in order, and how many there are in all."""
    rows = spool.rows(
        "SELECT name, place, reason, raw FROM aside ORDER BY rowid LIMIT ? OFFSET ?", limit, offset
    )
    return [_aside(row) for row in rows], _number(spool, "SELECT count(*) AS n FROM aside")


def files_of_aside(spool: Spool, limit: int, offset: int = 0) -> list[str]:
    """Of the records that `set_aside` tells, the hash of the file that each stands in."""
    rows = spool.rows(
        "SELECT coalesce(sha256, '') AS sha256 FROM aside LEFT JOIN files ON number = file"
        " ORDER BY aside.rowid LIMIT ? OFFSET ?",
        *(limit, offset),
    )
    return [row["sha256"] for row in rows]


def _aside(row: Row) -> SetAside:
    """A place that is more than a line of the file stands in the reason as it is."""
    line = _LINE.fullmatch(row["place"])
    reason = row["reason"] if line or not row["place"] else f"{row['place']}: {row['reason']}"
    return SetAside(
        kind="rollout", source=row["name"], line=int(line[1]) if line else 0, reason=reason, raw=row["raw"]
    )


def _files(spool: Spool) -> list[FileRead]:
    rows = spool.rows(
        "SELECT name, became, title AS format, reason, (SELECT count(*) FROM attempts WHERE file = number) AS attempts"
        " FROM files ORDER BY became NOT IN ('read', 'not read'), number LIMIT ?",
        SHOWN,
    )
    return [FileRead(**row) for row in rows]


def _outcomes(spool: Spool) -> dict[str, int]:
    fates = _counted(spool, "SELECT fate AS what, count(*) AS n FROM attempts GROUP BY fate")
    outcomes = _counted(
        spool, "SELECT outcome AS what, count(*) AS n FROM attempts WHERE fate = 'new' GROUP BY outcome"
    )
    verified = "SELECT count(*) AS n FROM attempts WHERE fate = 'new' AND verified"
    return {
        "attempts": sum(fates.values()),
        "scored": outcomes.get("scored", 0),
        "unscored": outcomes.get("unscored", 0),
        "errors": outcomes.get("error", 0),
        "known": fates.get("known", 0),
        "went_on": _number(spool, "SELECT count(*) AS n FROM attempts WHERE went_on"),
        "retried": _number(spool, "SELECT count(*) AS n FROM attempts WHERE went_on AND retried"),
        "duplicates": fates.get("duplicate", 0),
        "conflicts": fates.get("conflict", 0),
        "children": fates.get("child", 0),
        "verified": _number(spool, verified),
    }


def _groups(spool: Spool) -> dict[str, Any]:
    sizes = spool.rows(
        "SELECT size, count(*) AS n FROM (SELECT count(*) AS size FROM attempts WHERE fate = 'new' GROUP BY grp)"
        " GROUP BY size ORDER BY size"
    )
    new = "key IN (SELECT grp FROM attempts WHERE fate = 'new')"
    return {
        "tasks": _number(spool, "SELECT count(DISTINCT task) AS n FROM attempts WHERE fate = 'new'"),
        "tasks_added": _number(spool, "SELECT count(*) AS n FROM tasks WHERE fresh"),
        "groups": sum(row["n"] for row in sizes),
        "group_sizes": {row["size"]: row["n"] for row in sizes},
        "groups_grown": _number(spool, f"SELECT count(*) AS n FROM groups WHERE grown AND {new}"),
        "informative": _number(spool, f"SELECT count(*) AS n FROM groups WHERE informative AND {new}"),
    }


def _scores(spool: Spool) -> list[ScoreSeen]:
    rows = spool.rows(
        "SELECT name, title AS format, count(value) AS numbers, min(value) AS least, max(value) AS most,"
        " sum(guessed) AS words, sum(value IS NULL) AS unread FROM scores s JOIN attempts a ON a.seq = s.seq"
        " WHERE fate IN ('new', 'known') GROUP BY title, name ORDER BY min(a.seq), name LIMIT ?",
        SHOWN,
    )
    return [ScoreSeen(**row, lower_is_better=less_is_better(row["name"])) for row in rows]


def _steps(spool: Spool) -> StepsSeen:
    row = spool.rows(
        "SELECT coalesce(sum(succeeded), 0) AS succeeded, coalesce(sum(failed), 0) AS failed,"
        " coalesce(sum(no_result), 0) AS no_result, coalesce(sum(unknown), 0) AS unknown,"
        " coalesce(sum(orphans), 0) AS orphans FROM attempts WHERE fate = 'new'"
    )[0]
    return StepsSeen(total=sum(n for what, n in row.items() if what != "orphans"), **row)


def _usage(spool: Spool) -> Usage:
    row = spool.rows(
        "SELECT coalesce(sum(calls), 0) AS calls, coalesce(sum(prompt_tokens), 0) AS prompt_tokens,"
        " coalesce(sum(completion_tokens), 0) AS completion_tokens, coalesce(sum(cost_usd), 0.0) AS cost_usd"
        " FROM attempts WHERE fate = 'new'"
    )[0]
    return Usage(**row)


def _of_new(spool: Spool, column: str) -> dict[str, int]:
    return _counted(
        spool,
        f"SELECT {column} AS what, count(*) AS n FROM attempts WHERE fate = 'new' GROUP BY {column}"
        f" ORDER BY n DESC, {column} LIMIT {SHOWN}",
    )


def _remarks(spool: Spool) -> list[Told]:
    rows = spool.rows(
        "SELECT text, sum(count) AS count FROM remarks GROUP BY text ORDER BY min(file), text LIMIT ?", SHOWN
    )
    return [Told(**row) for row in rows]


def _taken_for_known(spool: Spool) -> list[Told]:
    """A warning where a file has new attempts beside ones that were taken for known with nothing to tell them apart."""
    found = _number(
        spool,
        "SELECT count(*) AS n FROM attempts WHERE fate = 'known' AND NOT apart AND NOT changed"
        " AND file IN (SELECT file FROM attempts WHERE fate = 'new' AND NOT apart)",
    )
    if not found:
        return []
    said = "1 attempt says" if found == 1 else f"{found:,} attempts say"
    return [
        Told(
            text=f"{said} word for word what one that is here says, beside new ones of the same file, and nothing "
            "tells them apart: they are taken for the same. Where they were sampled anew, give each an id or a number "
            "by the mapping (attempt_id, attempt), else answers that come often count too little."
        )
    ]


def _many_aside(attempts: int, aside: int) -> list[Told]:
    """A warning where more than a twentieth of the records could not be read, and more than a few.

    Args:
        attempts: that were read, those in conflict included.
        aside: records that could not be read.
    """
    if aside < FEW or aside * 20 <= attempts + aside:
        return []
    share = aside / (attempts + aside)
    text = (
        f"{share:.0%} of the records could not be read: is a file damaged, or in another format (--format)?"
    )
    return [Told(text=text)]


def _grouping(spool: Spool, options: ImportOptions) -> list[str]:
    """How attempts were grouped: one sentence for each rule that was inferred."""
    return [
        sentence
        for sentence in (
            _by_question(spool, options),
            _several_questions(spool, options),
            _strata(spool, options),
            _unnumbered(spool),
            _alone(spool),
        )
        if sentence
    ]


def _by_question(spool: Spool, options: ImportOptions) -> str:
    asked = options.group_by == "question"
    row = spool.rows(
        "SELECT count(*) AS n, count(DISTINCT task) AS tasks FROM attempts WHERE fate = 'new' AND NOT own"
        f" AND {'1' if asked else 'task_id IS NULL'}"
    )[0]
    if not row["n"]:
        return ""
    how = "as you said" if asked else "since no task is named"
    if options.task_field and not asked:
        how = f"since they have no {options.task_field[:80]!r} in their metadata"
    return (
        f"{_plural(row['n'], 'attempt')} grouped by the question, {how}: {_plural(row['tasks'], 'task')}. --task-field "
        "FIELD takes a field of the metadata as the task."
    )


def _several_questions(spool: Spool, options: ImportOptions) -> str:
    if options.group_by:
        return ""
    rows = spool.rows(
        "SELECT own_id FROM tasks WHERE own_id IS NOT NULL GROUP BY namespace, own_id HAVING count(*) > 1"
        " ORDER BY min(rowid)"
    )
    if not rows:
        return ""
    ids = "1 task id stands" if len(rows) == 1 else f"{len(rows):,} task ids stand"
    return (
        f"{ids} for more than one question (the first: {rows[0]['own_id'][:80]!r}); each question is a task of its "
        "own. --group-by task takes the id alone."
    )


def _strata(spool: Spool, options: ImportOptions) -> str:
    if options.mix_models:
        return _mixed(spool)
    several = _several_strata(spool)
    if not several:
        return ""
    tasks = "1 task was" if several == 1 else f"{several:,} tasks were"
    return (
        f"{tasks} tried by several models or agents; each is a group of its own. --mix-models makes them one."
    )


def _several_strata(spool: Spool) -> int:
    """Tasks with new attempts in more than one group."""
    return _number(
        spool,
        "SELECT count(*) AS n FROM (SELECT task FROM attempts WHERE fate = 'new' GROUP BY task"
        " HAVING count(DISTINCT grp) > 1)",
    )


def _mixed(spool: Spool) -> str:
    n = _number(
        spool,
        "SELECT count(*) AS n FROM (SELECT 1 FROM attempts WHERE fate = 'new' GROUP BY grp"
        " HAVING min(model) < max(model) OR min(agent) < max(agent))",
    )
    return (
        f"Attempts at one task are one group whatever their model and agent, as you said: {_plural(n, 'group')} of "
        "several. Where one of them does better, its winners may show what it is, and not what to do."
    )


def _unnumbered(spool: Spool) -> str:
    n = _number(spool, "SELECT count(*) AS n FROM attempts WHERE fate = 'new' AND repeat IS NULL")
    return f"{_plural(n, 'attempt')} without a number of its own, numbered in their order." if n else ""


def _alone(spool: Spool) -> str:
    """Said where no group, with what is here of it, has anything to compare."""
    sizes = "SELECT count(*) AS n FROM attempts WHERE fate = 'new' GROUP BY grp"
    new = spool.rows(f"SELECT max(n) AS most FROM ({sizes})")[0]["most"]
    grown = (
        "SELECT 1 FROM groups WHERE grown AND key IN (SELECT grp FROM attempts WHERE fate = 'new') LIMIT 1"
    )
    if new != 1 or spool.rows(grown):
        return ""
    apart = " by the same model and agent" if _several_strata(spool) else ""
    return f"No task has more than one attempt{apart}, so nothing can be compared until more attempts at them come in."


def _plural(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _counted(spool: Spool, sql: str) -> dict[str, int]:
    return {row["what"]: row["n"] for row in spool.rows(sql)}


def _number(spool: Spool, sql: str) -> int:
    return int(spool.rows(sql)[0]["n"])
