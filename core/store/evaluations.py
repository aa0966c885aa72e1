"""Evaluations, the rollouts of their arms, and what was measured of lessons, proposals and versions."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from core.errors import NotFoundError
from core.proof import (
    Evaluation,
    EvaluationConfig,
    EvaluationFilter,
    EvaluationRow,
    EvaluationStatus,
    Measured,
    Purpose,
)
from core.record import canonical_json
from core.rollout import Usage
from core.store.database import Database, Row
from core.store.events import Events, newest_of
from core.store.figures import MOVING
from core.store.lasting import given

FINAL_USED = "final.used"
"""Kind of the log's line that tells that the final split was looked at."""
GATE_TRIED, GATE_DECIDED = "gate.tried", "gate.decided"
"""Kinds of lines that tell which evaluations the gate of a run began."""
GATE = (
    f"SELECT subject FROM events WHERE kind IN ('{GATE_TRIED}', '{GATE_DECIDED}')"
    " AND {} IN (data ->> '$.evaluation', data ->> '$.fresh')"
)
"""The run whose gate began an evaluation, and whose job works on it."""
JOB = (
    "(SELECT state FROM jobs WHERE subject IN (e.id, CASE WHEN e.purpose IN ('gate', 'fresh') THEN"
    f" ({GATE.format('e.id')}) END) ORDER BY number DESC LIMIT 1)"
)
"""State of the newest job that works on an evaluation."""
STANDS = "m.width IS NULL, coalesce(m.body ->> '$.fresh', 0) DESC, e.number DESC"
"""Which measurement of several stands, the first in this order: the newest, but one that has an interval goes before
one that is of too few tasks for it, and one on fresh tasks before those that selected."""
OPEN = "e.status IN ('waiting', 'running')"
STATES = {
    "active": f"{OPEN} AND {JOB} IN ('waiting', 'running', 'pausing', 'cancelling')",
    "paused": f"{OPEN} AND {JOB} = 'paused'",
    "done": "e.status = 'done'",
    "failed": f"{OPEN} AND {JOB} = 'failed'",
    "cancelled": "e.status = 'cancelled'",
    "interrupted": f"{OPEN} AND coalesce({JOB}, 'done') IN ('done', 'cancelled')",
}
"""What `core.proof.EVALUATION_STATES` mean."""


class Outcome(NamedTuple):
    """One rollout of an arm, as far as it is compared."""

    run_id: str
    group_id: str
    task_id: str
    domain: str
    answer: str
    reward: float | None
    content: float | None
    """The content part of its graded score; None where it has none."""
    error: bool
    cut: bool
    """Its reply was cut by max_tokens."""
    injected: tuple[str, ...]
    usage: Usage
    why: str = ""
    """Why it broke off."""


class Evaluations:
    def __init__(self, database: Database, events: Events) -> None:
        self._database = database
        self._events = events

    def create(
        self, purpose: Purpose, config: EvaluationConfig, *, request: str, model: str, actor: str
    ) -> str:
        """Write an evaluation down; returns its id. Its runs are added in the same transaction (`set_runs`)."""
        with self._database.writing():
            there = self._database.value("SELECT coalesce(max(number), 0) FROM evaluations")
            number = 1 + max(there, given(self._database, "evaluations"))
            row = {
                "id": f"EV{number}",
                "number": number,
                "request": request,
                "purpose": purpose,
                "config": config.canonical(),
                "model": model,
                "status": "waiting",
                "runs": "{}",
                "created_at": self._events.clock(),
            }
            self._database.insert("evaluations", row)
            arms: list[JsonValue] = [arm.name for arm in config.arms]
            self._events.append(actor, "evaluation.created", f"EV{number}", arms=arms, split=config.split)
        return f"EV{number}"

    def set_runs(self, evaluation_id: str, runs: Mapping[str, Sequence[str]]) -> None:
        """Name the runs of each sampled arm."""
        told = canonical_json({name: list(ids) for name, ids in runs.items()})
        with self._database.writing():
            self._database.execute("UPDATE evaluations SET runs = ? WHERE id = ?", told, evaluation_id)

    def set_status(self, evaluation_id: str, status: EvaluationStatus, actor: str, note: str = "") -> None:
        ended = status in ("done", "cancelled")
        with self._database.writing():
            before = self._database.value("SELECT status FROM evaluations WHERE id = ?", evaluation_id)
            self._database.execute(
                "UPDATE evaluations SET status = ?, note = ?, finished_at = ? WHERE id = ?",
                *(status, note, self._events.clock() if ended else None, evaluation_id),
            )
            if ended and before != status:
                self._events.append(actor, f"evaluation.{status}", evaluation_id)

    def set_stopped(self, evaluation_id: str, stopped: Mapping[str, int], actor: str) -> None:
        """Say which arms the sequential test stopped, and after how many tasks."""
        with self._database.writing():
            self._database.execute(
                "UPDATE evaluations SET stopped = ? WHERE id = ?",
                *(canonical_json(dict(stopped)), evaluation_id),
            )
            self._events.append(actor, "evaluation.stopped_early", evaluation_id, stopped=dict(stopped))

    def get(self, evaluation_id: str) -> Evaluation:
        """One evaluation.

        Raises:
            NotFoundError: there is none of that id.
        """
        row = self._database.row("SELECT * FROM evaluations WHERE id = ?", evaluation_id)
        if row is None:
            raise NotFoundError(
                f"There is no evaluation {evaluation_id!r} in this workspace; `winnow eval list` shows them."
            )
        return _evaluation(row)

    def by_request(self, request: str) -> Evaluation | None:
        """The newest evaluation of a request."""
        row = self._database.row(
            "SELECT * FROM evaluations WHERE request = ? ORDER BY number DESC LIMIT 1", request
        )
        return _evaluation(row) if row else None

    def of_run(self, run_id: str) -> str:
        """Id of the evaluation that a run is an arm of; empty where it is none."""
        return str(
            self._database.value(
                "SELECT e.id FROM evaluations e, json_each(e.runs) arm, json_each(arm.value) run"
                " WHERE run.value = ? LIMIT 1",
                run_id,
            )
            or ""
        )

    def page(
        self, which: EvaluationFilter | None = None, *, limit: int = 25, offset: int = 0
    ) -> tuple[list[EvaluationRow], int]:
        """One page of evaluations, the newest first, and how many there are in all."""
        where, values = _filter(which or EvaluationFilter())
        total = self._database.value(f"SELECT count(*) FROM evaluations e WHERE {where}", *values)
        rows = self._database.rows(
            "SELECT e.id, e.purpose, e.status, e.model, e.config ->> '$.split' AS split,"
            " e.config ->> '$.samples' AS samples, e.created_at, e.finished_at,"
            " (SELECT json_group_array(value ->> '$.name') FROM json_each(e.config, '$.arms')) AS arms,"
            f" {JOB} AS job_state, count(g.id) AS groups, coalesce(sum(g.status = 'waiting'), 0) AS waiting"
            " FROM evaluations e LEFT JOIN json_each(e.runs) arm LEFT JOIN json_each(arm.value) run"
            f" LEFT JOIN groups g ON g.run_id = run.value WHERE {where}"
            " GROUP BY e.id ORDER BY e.number DESC LIMIT ? OFFSET ?",
            *(*values, limit, offset),
        )
        return [EvaluationRow(**{**row, "arms": json.loads(row["arms"])}) for row in rows], int(total)

    def final_uses(self, before: str = "") -> list[tuple[str, str]]:
        """(evaluation, time) of each use of the final split, the oldest first.

        Args:
            before: only those that came before the first one of this evaluation; empty takes all.
        """
        rows = self._database.rows(
            "SELECT subject, at FROM events WHERE kind = ?1 AND id < coalesce("
            "(SELECT min(id) FROM events WHERE kind = ?1 AND subject = ?2), 9e18) ORDER BY id",
            *(FINAL_USED, before),
        )
        return [(row["subject"], row["at"]) for row in rows]

    def job_state(self, evaluation_id: str) -> str | None:
        """State of the newest job on an evaluation, or on the run whose gate began it; None where there is none."""
        found = self._database.value(f"SELECT {JOB} FROM evaluations e WHERE e.id = ?", evaluation_id)
        return None if found is None else str(found)

    def gate_of(self, evaluation_id: str) -> str | None:
        """The run whose gate began an evaluation, or estimates again in it; None where no gate did."""
        of = self._database.value(GATE.format("?"), evaluation_id)
        return None if of is None else str(of)

    def stamp(self, evaluation_id: str) -> str:
        """Another text whenever what an evaluation says may be another one."""
        row = self._database.row(
            f"SELECT e.status, e.stopped, {JOB} AS job, (SELECT count(*) FROM json_each(e.runs) arm,"
            " json_each(arm.value) run JOIN groups g ON g.run_id = run.value WHERE g.status = 'waiting') AS waiting"
            " FROM evaluations e WHERE e.id = ?",
            evaluation_id,
        )
        last = newest_of(self._database, (*MOVING, FINAL_USED))
        return f"{evaluation_id}:{tuple(row.values()) if row else ''}:{last}"

    def waiting(self, run_ids: Iterable[str]) -> int:
        """Groups of some runs that are still to be sampled."""
        return int(
            self._database.value(
                "SELECT count(*) FROM groups WHERE status = 'waiting'"
                " AND run_id IN (SELECT value FROM json_each(?))",
                json.dumps(list(run_ids)),
            )
        )

    def tasks_of(self, run_id: str) -> list[str]:
        """Ids of the tasks of a run, in order."""
        rows = self._database.rows(
            "SELECT task_id FROM groups WHERE run_id = ? AND attempt = 0 ORDER BY ordinal", run_id
        )
        return [row["task_id"] for row in rows]

    def tasks_behind(self, group_ids: Sequence[str]) -> frozenset[str]:
        """Ids of the tasks of some groups, and of tasks of the very same text."""
        rows = self._database.rows(
            "SELECT DISTINCT same.id FROM groups g JOIN tasks t ON t.id = g.task_id"
            " JOIN tasks same ON same.text_key = t.text_key WHERE g.id IN (SELECT value FROM json_each(?))",
            json.dumps(list(group_ids)),
        )
        return frozenset(row["id"] for row in rows)

    def outcomes(self, run_ids: Iterable[str]) -> list[Outcome]:
        """Every rollout of some runs, in order; no trajectory is read."""
        rows = self._database.rows(
            "SELECT g.run_id, g.id AS group_id, g.task_id, g.domain, r.answer, r.reward, r.scores, r.error,"
            " r.finish_reason, r.injected, r.usage FROM groups g JOIN rollouts r ON r.group_id = g.id"
            " WHERE g.run_id IN (SELECT value FROM json_each(?)) AND g.status <> 'waiting'"
            " ORDER BY g.run_id, g.ordinal, r.replicate",
            json.dumps(list(run_ids)),
        )
        return [_outcome(row) for row in rows]

    # --- what was measured ---

    def measure(self, found: Sequence[Measured], actor: str) -> None:
        """Keep what was measured beside its subjects; the same evaluation again takes the place of what it said."""
        at = self._events.clock()
        with self._database.writing():
            for one in found:
                kept, effect = one.model_copy(update={"at": at}), one.effect
                width = None if effect.low is None or effect.high is None else effect.high - effect.low
                self._database.execute(
                    "INSERT INTO measured (kind, subject, evaluation_id, version, mean, width, body, at)"
                    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (kind, subject, evaluation_id)"
                    " DO UPDATE SET version = ?4, mean = ?5, width = ?6, body = ?7, at = ?8",
                    *(one.kind, one.subject, one.evaluation_id, one.version, effect.mean, width),
                    *(kept.canonical(), at),
                )
                self._events.append(
                    actor,
                    "effect.measured",
                    one.subject,
                    what=one.kind,
                    evaluation=one.evaluation_id,
                    tasks=effect.tasks,
                    samples=one.samples,
                    mean=effect.mean,
                    low=effect.low,
                    high=effect.high,
                )

    def measured_of(self, subject: str) -> list[Measured]:
        """All that was measured of a lesson, a proposal or a version (by its number), the newest first."""
        rows = self._database.rows(
            "SELECT body FROM measured m JOIN evaluations e ON e.id = m.evaluation_id WHERE subject = ?"
            " ORDER BY e.number DESC",
            subject,
        )
        return [Measured(**json.loads(row["body"])) for row in rows]

    def newest_measured(self, subjects: Collection[str]) -> dict[str, Measured]:
        """The measurement that stands of each of some subjects."""
        rows = self._database.rows(
            "SELECT subject, body FROM measured m JOIN evaluations e ON e.id = m.evaluation_id"
            " WHERE subject IN (SELECT value FROM json_each(?))"
            f" ORDER BY {STANDS}",
            json.dumps(sorted(subjects)),
        )
        return {row["subject"]: Measured(**json.loads(row["body"])) for row in reversed(rows)}


def _filter(which: EvaluationFilter) -> tuple[str, list[object]]:
    parts, values = ["1"], list[object]()
    if which.state:
        parts.append(f"({STATES[which.state]})")
    if which.split:
        parts.append("e.config ->> '$.split' = ?")
        values.append(which.split)
    if which.purpose:
        parts.append("e.purpose = ?")
        values.append(which.purpose)
    if which.subject:
        parts.append(
            "EXISTS (SELECT 1 FROM json_each(e.config, '$.arms') arm WHERE arm.value ->> '$.experience_id' = ?"
            " OR EXISTS (SELECT 1 FROM json_each(arm.value, '$.proposal_ids') own WHERE own.value = ?))"
        )
        values += [which.subject] * 2
    if text := which.text.strip():
        parts.append(
            "(instr(lower(e.model), lower(?)) OR e.id = upper(?) OR EXISTS (SELECT 1 FROM json_each(e.config, '$.arms')"
            " WHERE instr(lower(value ->> '$.name'), lower(?))))"
        )
        values += [text] * 3
    return " AND ".join(parts), values


def _evaluation(row: Row) -> Evaluation:
    del row["number"]
    return Evaluation(**{**row, **{name: json.loads(row[name]) for name in ("config", "runs", "stopped")}})


def _outcome(row: Row) -> Outcome:
    scores = json.loads(row["scores"])
    contents = [s["parts"]["content"] for s in scores.values() if "content" in (s.get("parts") or {})]
    usage = json.loads(row["usage"])
    return Outcome(
        run_id=row["run_id"],
        group_id=row["group_id"],
        task_id=row["task_id"],
        domain=row["domain"],
        answer=row["answer"],
        reward=row["reward"],
        content=sum(contents) / len(contents) if contents and row["error"] is None else None,
        error=row["error"] is not None,
        cut=row["finish_reason"] == "length",
        injected=tuple(json.loads(row["injected"]).values()),
        usage=Usage(**usage),
        why=row["error"] or "",
    )
