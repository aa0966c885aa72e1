"""What charts show, counted in SQL: no trajectory is read, and no answer grows with the number of rollouts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby

from core.advantage import SPREAD
from core.errors import NotFoundError
from core.figures import (
    LARGE_SPREAD,
    BatchFigure,
    Bin,
    Cell,
    Distribution,
    Grid,
    GroupFilter,
    GroupPoint,
    Neighbours,
    Outline,
    PartFigure,
    RewardOf,
    RunFigure,
    RunName,
    TaskPair,
    ToolError,
    ToolFigure,
)
from core.rollout import Tally
from core.settings import PARTS
from core.store.database import Database
from core.store.events import newest_of

LEARNING = "g.run_id NOT IN (SELECT id FROM runs WHERE kind = 'evaluated')"
"""Groups that are not of an arm of an evaluation."""

ORDERS = {
    "order": "r.number DESC, g.ordinal",
    "spread": "g.spread DESC NULLS LAST, r.number DESC, g.ordinal",
    "lowest mean": "g.mean ASC NULLS LAST, r.number DESC, g.ordinal",
    "highest mean": "g.mean DESC NULLS LAST, r.number DESC, g.ordinal",
}
"""Orders of a list of groups; runs, the newest first, stay together only in the first one."""

LISTED = "runs r CROSS JOIN groups g ON g.run_id = r.id"
"""CROSS: run by run, as the first order lists them, so that a page stops where it is full and nothing is sorted."""

MOVING = (
    *("run.rescored", "run.reopened", "run.discarded", "run.done", "run.stopped_early"),
    *("rollout.accepted", "rollout.rejected", "rollout.cleared"),
    *("rollouts.imported", "rollout.went_on", "workspace.redacted"),
)
"""Events after which figures of a run may be other ones although no group was finished since."""

SPREADS = {
    "none": f"g.spread <= {SPREAD}",
    "some": f"g.spread > {SPREAD}",
    "large": f"g.spread >= {LARGE_SPREAD}",
}
OUTCOMES = {
    "all right": "g.status = 'uninformative' AND g.reason = 'all right'",
    "all wrong": "g.status = 'uninformative' AND g.reason = 'all wrong'",
    "all equal": "g.status = 'uninformative' AND g.reason LIKE 'all equal%'",
    "mixed": "g.status = 'informative'",
    "errors": "g.errors > 0",
    "unscored": "g.status <> 'waiting' AND g.scored < g.size",
}


ASKING = "SELECT id FROM tasks WHERE instr(lower(question), lower(?))"
"""Tasks that ask with some words: looked through once, however many rollouts their groups have."""


def clause(which: GroupFilter) -> tuple[str, list[object]]:
    """The condition on groups `g`, and its values in order.

    Where no run is named, groups of an evaluation's arms are left out.
    """
    parts, values = [LEARNING if not which.run_id else "1"], list[object]()
    for column in ("run_id", "status", "domain"):
        if wanted := getattr(which, column):
            parts.append(f"g.{column} = ?")
            values.append(wanted)
    if which.spread:
        parts.append(SPREADS[which.spread])
    if which.outcome:
        parts.append(OUTCOMES[which.outcome])
    for column, between in (("mean", which.mean_between), ("spread", which.spread_between)):
        if between:
            parts.append(f"g.{column} >= ? AND g.{column} < ?")
            values += [edge - SPREAD for edge in between]
    if text := which.text.strip():
        parts.append(f"(g.task_id IN ({ASKING}) OR g.id = ? OR g.task_id = ?)")
        values += [text] * 3
    return " AND ".join(parts), values


class Figures:
    def __init__(self, database: Database) -> None:
        self._database = database

    # --- what there is ---

    def runs(self, limit: int = 500) -> list[RunName]:
        """Runs to choose from, the newest first; arms of evaluations are left out."""
        rows = self._database.rows(
            "SELECT id, kind, status, model, (SELECT count(*) FROM groups WHERE run_id = runs.id) AS groups FROM runs"
            " WHERE kind <> 'evaluated' ORDER BY number DESC LIMIT ?",
            limit,
        )
        return [RunName(**row) for row in rows]

    def reward_of(self, run_id: str) -> RewardOf:
        """How the rewards of a run are made.

        Raises:
            NotFoundError: there is no such run.
        """
        row = self._database.row(
            "SELECT id AS run_id, config -> '$.reward' AS reward, finished_at FROM runs WHERE id = ?", run_id
        )
        if row is None:
            raise NotFoundError(f"There is no run {run_id!r} in this workspace.")
        return RewardOf(**{**row, "reward": json.loads(row["reward"] or "{}")})

    def domains(self, run_id: str = "") -> list[str]:
        """Domains of the groups of a run, or of all."""
        where, values = clause(GroupFilter(run_id=run_id))
        rows = self._database.rows(f"SELECT DISTINCT domain FROM groups g WHERE {where} ORDER BY 1", *values)
        return [row["domain"] for row in rows]

    def stamp(self, run_id: str = "") -> str:
        """Another text whenever the figures of a run, or of all runs, may be other ones."""
        last = newest_of(self._database, MOVING)
        where, values = clause(GroupFilter(run_id=run_id))
        waiting = self._database.value(
            f"SELECT count(*) FROM groups g WHERE {where} AND status = 'waiting'", *values
        )
        number = self._database.value("SELECT max(number) FROM runs")
        return f"{run_id}:{number}:{last}:{waiting}"

    # --- groups ---

    def tally(self, which: GroupFilter) -> Tally:
        """Groups by status and reason."""
        where, values = clause(which)
        counts = dict.fromkeys(("waiting", "informative", "uninformative", "failed"), 0)
        reasons: dict[str, int] = {}
        for row in self._database.rows(
            f"SELECT g.status, g.reason, count(*) AS n FROM groups g WHERE {where}"
            " GROUP BY 1, 2 ORDER BY n DESC, 2",
            *values,
        ):
            counts[row["status"]] += row["n"]
            if row["reason"]:
                reasons[row["reason"]] = row["n"]
        return Tally(**counts, reasons=reasons)

    def points(self, which: GroupFilter, limit: int) -> list[GroupPoint]:
        """Groups with a mean and a spread."""
        where, values = clause(which)
        rows = self._database.rows(
            f"SELECT g.id, g.status, g.mean, g.spread FROM groups g WHERE {where} AND g.mean IS NOT NULL"
            " AND g.spread IS NOT NULL LIMIT ?",
            *values,
            limit,
        )
        return [GroupPoint(**row) for row in rows]

    def grid(self, which: GroupFilter, cells: int = 20) -> Grid:
        """Groups by mean and spread, in cells."""
        where, values = clause(which)
        extent = self._database.row(
            f"SELECT min(g.mean) AS a, max(g.mean) AS b, max(g.spread) AS s FROM groups g WHERE {where}",
            *values,
        )
        if extent is None or extent["a"] is None:
            return Grid()
        low, high = min(0.0, extent["a"]), max(1.0, extent["b"])
        across, up = (high - low) / cells, max(1.0, extent["s"]) / cells
        rows = self._database.rows(
            "SELECT CAST((g.mean - ?) / ? + 0.5 AS INTEGER) AS x, CAST(g.spread / ? + 0.5 AS INTEGER) AS y,"
            f" count(*) AS n, sum(g.status = 'informative') AS informative FROM groups g WHERE {where}"
            " AND g.mean IS NOT NULL GROUP BY 1, 2",
            *(low, across, up, *values),
        )
        found = [
            Cell(mean=low + r["x"] * across, spread=r["y"] * up, n=r["n"], informative=r["informative"])
            for r in rows
        ]
        return Grid(mean_step=across, spread_step=up, cells=tuple(found))

    def neighbours(self, group_id: str, which: GroupFilter, order: str) -> Neighbours:
        """What stands before and after a group in a list of groups."""
        where, values = clause(which)
        ids = self._database.column(
            f"SELECT g.id FROM {LISTED} WHERE {where} ORDER BY {ORDERS[order]}", *values
        )
        if group_id not in ids:
            return Neighbours()
        place = ids.index(group_id)
        return Neighbours(
            before=ids[place - 1] if place else "",
            after=ids[place + 1] if place + 1 < len(ids) else "",
            place=place + 1,
            of=len(ids),
        )

    def batches(self, which: GroupFilter) -> list[BatchFigure]:
        """Mean reward and share of informative groups of each batch of a run, in order."""
        where, values = clause(which)
        rows = self._database.rows(
            "SELECT g.epoch, g.batch, max(g.library_version) AS library_version, count(*) AS groups,"
            " sum(g.status = 'informative') AS informative, sum(g.scored) AS scored,"
            " sum(g.mean * g.scored) / sum(iif(g.mean IS NULL, 0, g.scored)) AS mean,"
            " sqrt(max(0.0, coalesce(avg(g.mean * g.mean) - avg(g.mean) * avg(g.mean), 0.0))) AS deviation"
            f" FROM groups g WHERE {where} AND g.status <> 'waiting' GROUP BY 1, 2 ORDER BY 1, 2",
            *values,
        )
        return [BatchFigure(**row) for row in rows]

    # --- rollouts ---

    def distribution(self, which: GroupFilter, places: int = 20) -> Distribution:
        """Rewards of the rollouts of groups, in bins; what has none is counted apart."""
        where, values = clause(which)
        joined = "groups g JOIN rollouts o ON o.group_id = g.id"
        ends = self._database.row(
            f"SELECT min(o.reward) AS low, max(o.reward) AS high FROM {joined} WHERE {where} AND o.reward IS NOT NULL",
            *values,
        )
        ended = self._database.row(
            "SELECT coalesce(sum(g.size), 0) AS size, coalesce(sum(g.scored), 0) AS scored,"
            f" coalesce(sum(g.errors), 0) AS errors FROM groups g WHERE {where} AND g.status <> 'waiting'",
            *values,
        )
        assert ends is not None
        assert ended is not None
        low, high = min(0.0, ends["low"] or 0.0), max(1.0, ends["high"] or 0.0)
        rows = self._database.rows(
            f"SELECT g.domain, CAST((o.reward - ?) / ? * {places} + 0.5 AS INTEGER) AS place,"
            f" count(*) AS n FROM {joined} WHERE {where} AND o.reward IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2",
            *(low, high - low, *values),
        )
        bins = tuple(Bin(**row) for row in rows)
        scored = sum(b.n for b in bins)
        return Distribution(
            low=low,
            high=high,
            places=places,
            bins=bins,
            scored=scored,
            errors=ended["errors"],
            unscored=max(0, ended["size"] - scored - ended["errors"]),
        )

    def parts(self, which: GroupFilter) -> list[PartFigure]:
        """Means of the stored components, by domain and by what was left out."""
        where, values = clause(which)
        means = ", ".join(f"avg(o.components ->> '{part}') AS {part}" for part in sorted(PARTS))
        rows = self._database.rows(
            f"SELECT g.domain, g.left_out, count(*) AS scored, avg(o.reward) AS reward, {means} FROM groups g"
            f" JOIN rollouts o ON o.group_id = g.id WHERE {where} AND o.reward IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2",
            *values,
        )
        names = {row["left_out"]: self._keys(row["left_out"]) for row in rows}
        return [
            PartFigure(
                domain=row["domain"],
                left_out=names[row["left_out"]],
                scored=row["scored"],
                reward=row["reward"],
                means={part: row[part] for part in sorted(PARTS)},
            )
            for row in rows
        ]

    def _keys(self, text: str) -> tuple[str, ...]:
        return tuple(row["key"] for row in self._database.rows("SELECT key FROM json_each(?)", text))

    # --- tools ---

    def tools(self, which: GroupFilter) -> list[ToolFigure]:
        """How each tool was used, the most used first."""
        where, values = clause(which)
        rows = self._database.rows(
            "SELECT u.tool, count(DISTINCT u.rollout_id) AS rollouts, sum(u.calls) AS calls,"
            " sum(u.succeeded) AS succeeded, sum(u.failed) AS failed, sum(u.unknown) AS unknown,"
            " sum(u.retries) AS retries, sum(u.duration_s) / nullif(sum(u.timed), 0) AS mean_s"
            f" FROM {self._tool_source(which)} WHERE {where} GROUP BY 1 ORDER BY calls DESC, 1 LIMIT 100",
            *values,
        )
        return [ToolFigure(**row) for row in rows]

    def tool_errors(self, which: GroupFilter, limit: int = 20) -> list[ToolError]:
        """The most frequent messages of failed calls, with the first rollout that has one."""
        where, values = clause(which)
        rows = self._database.rows(
            "SELECT u.tool, u.error AS message, sum(u.calls) AS calls, count(DISTINCT u.rollout_id) AS rollouts,"
            " min(u.rollout_id) AS rollout_id, u.first_step AS step"
            f" FROM {self._tool_source(which)} WHERE {where} AND u.error <> '' GROUP BY 1, 2"
            " ORDER BY calls DESC, 1, 2 LIMIT ?",
            *values,
            limit,
        )
        return [ToolError(**row) for row in rows]

    def _tool_source(self, which: GroupFilter) -> str:
        """Through the rollouts of the groups that are meant; a whole run is read by its own index."""
        if which == GroupFilter(run_id=which.run_id):
            return "tool_use u JOIN (SELECT id AS run_id FROM runs) g ON g.run_id = u.run_id"
        return "groups g JOIN rollouts o ON o.group_id = g.id JOIN tool_use u ON u.rollout_id = o.id"

    def outlines(self, group_id: str) -> dict[str, list[Outline]]:
        """The tool calls of each rollout of a group by outcome."""
        rows = self._database.rows(
            "SELECT rollout_id, tool, sum(succeeded) AS succeeded, sum(failed) AS failed, sum(unknown) AS unknown"
            " FROM tool_use WHERE rollout_id IN (SELECT id FROM rollouts WHERE group_id = ?)"
            " GROUP BY 1, 2 ORDER BY 1, 2",
            group_id,
        )
        return {
            rollout_id: [Outline(**{k: v for k, v in row.items() if k != "rollout_id"}) for row in found]
            for rollout_id, found in groupby(rows, key=lambda row: str(row["rollout_id"]))
        }

    def weight_of(self, rollout_ids: Sequence[str]) -> dict[str, int]:
        """Stored bytes of trajectories: what is too large is not opened beside others."""
        marks = ", ".join("?" * len(rollout_ids))
        rows = self._database.rows(
            f"SELECT rollout_id, length(body) AS n FROM trajectories WHERE rollout_id IN ({marks})",
            *rollout_ids,
        )
        return {row["rollout_id"]: row["n"] for row in rows}

    def group_of(self, rollout_id: str) -> str:
        """Id of the group of a rollout; empty where there is no such rollout."""
        return str(self._database.value("SELECT group_id FROM rollouts WHERE id = ?", rollout_id) or "")

    def proposals_on(
        self, group_id: str, run_id: str, limit: int, *, extractor: str = ""
    ) -> tuple[list[str], int]:
        """Ids of the proposals that rest on a group, the strongest first, and how many there are.

        Args:
            group_id: which group.
            run_id: of the group; proposals of other runs do not rest on it. Empty: only those of no run.
            limit: how many ids.
            extractor: who suggested them; empty takes all.
        """
        rows = self._database.rows(
            "SELECT id, count(*) OVER () AS total FROM proposals WHERE (run_id = ?1 OR run_id IS NULL) AND EXISTS"
            " (SELECT 1 FROM json_each(body, '$.evidence.group_ids') WHERE value = ?2)"
            " AND (?4 = '' OR extractor = ?4) ORDER BY strength DESC, number LIMIT ?3",
            *(run_id, group_id, limit, extractor),
        )
        return [row["id"] for row in rows], rows[0]["total"] if rows else 0

    # --- two runs ---

    def sums(self, run_id: str) -> RunFigure:
        """The sums of one run.

        Raises:
            NotFoundError: there is no such run.
        """
        groups = self._database.row(
            "SELECT count(DISTINCT task_id) AS tasks, count(*) AS groups,"
            " coalesce(sum(status = 'informative'), 0) AS informative,"
            " coalesce(sum(status <> 'waiting'), 0) AS sampled,"
            " coalesce(sum(iif(status = 'waiting', 0, size)), 0) AS rollouts, coalesce(sum(scored), 0) AS scored,"
            " coalesce(sum(errors), 0) AS errors, sum(mean * scored) / sum(iif(mean IS NULL, 0, scored)) AS mean"
            " FROM groups WHERE run_id = ?",
            run_id,
        )
        usage = self._database.row(
            "SELECT coalesce(sum(usage ->> 'calls'), 0) AS calls,"
            " coalesce(sum(usage ->> 'prompt_tokens'), 0) AS prompt_tokens,"
            " coalesce(sum(usage ->> 'completion_tokens'), 0) AS completion_tokens,"
            " coalesce(sum(usage ->> 'cost_usd'), 0.0) AS cost_usd"
            " FROM groups g JOIN rollouts o ON o.group_id = g.id WHERE g.run_id = ?",
            run_id,
        )
        tools = self._database.row(
            "SELECT coalesce(sum(calls), 0) AS tool_calls, coalesce(sum(succeeded), 0) AS tool_succeeded"
            " FROM tool_use WHERE run_id = ?",
            run_id,
        )
        if not self._database.value("SELECT 1 FROM runs WHERE id = ?", run_id):
            raise NotFoundError(f"There is no run {run_id!r} in this workspace.")
        return RunFigure(id=run_id, **(groups or {}), **(usage or {}), **(tools or {}))

    def pairs(self, a: str, b: str) -> list[TaskPair]:
        """The tasks that both runs have scored rollouts of, in the order of the tasks."""
        one = (
            "SELECT task_id, sum(mean * scored) / sum(scored) AS mean, sum(scored) AS scored, id, max(ordinal)"
            " FROM groups WHERE run_id = ? AND scored > 0 GROUP BY task_id"
        )
        rows = self._database.rows(
            f"SELECT x.task_id, t.domain, substr(t.question, 1, 200) AS question, x.mean AS a, y.mean AS b,"
            f" x.scored AS scored_a, y.scored AS scored_b, x.id AS group_a, y.id AS group_b FROM ({one}) x"
            f" JOIN ({one}) y ON y.task_id = x.task_id JOIN tasks t ON t.id = x.task_id ORDER BY t.ordinal",
            *(a, b),
        )
        return [TaskPair(**row) for row in rows]
