"""Runs, groups and rollouts. Trajectories are compressed and never read for a list."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence

from core.errors import InputError, NotFoundError
from core.record import canonical_json
from core.rollout import Extraction, Group, GroupRow, Rollout, Run, RunStatus, Tally, Task, Trajectory, Usage
from core.settings import RunConfig
from core.store.database import Database, Row
from core.store.events import Events
from core.store.spending import Spending

ANSWER_SHOWN = 2000
"""Characters of an answer that lists show; the whole one is in the trajectory."""

GROUP_ORDERS = {
    "order": "g.ordinal",
    "spread": "g.spread DESC NULLS LAST, g.ordinal",
    "lowest mean": "g.mean ASC NULLS LAST, g.ordinal",
    "highest mean": "g.mean DESC NULLS LAST, g.ordinal",
}


class Runs:
    def __init__(self, database: Database, events: Events, spending: Spending) -> None:
        self._database = database
        self._events = events
        self._spending = spending

    # --- runs ---

    def create(
        self,
        config: RunConfig,
        tasks: Sequence[Task],
        batches: Sequence[int],
        *,
        request: str,
        kind: str,
        library_version: int,
        model: str,
        note: str,
        actor: str,
    ) -> str:
        """Write down a run and the groups it is made of, in one transaction; returns its id.

        Args:
            config: what it is to do.
            tasks: the task of each group, in order; shape [groups].
            batches: the batch of each group, shape [groups].
            request: hash of what was asked for; an unfinished run of the same request is gone on with.
            kind: "sampled" or "recorded".
            library_version: the version whose experiences are injected.
            model: name of the model.
            note: where recorded rollouts came from.
            actor: who started it.
        """
        with self._database.writing():
            number = 1 + self._database.value("SELECT coalesce(max(number), 0) FROM runs")
            run_id = f"R{number}"
            row = {
                "id": run_id,
                "number": number,
                "kind": kind,
                "request": request,
                "config": config.canonical(),
                "library_version": library_version,
                "model": model,
                "status": "waiting",
                "note": note,
                "created_at": self._events.clock(),
            }
            self._database.insert("runs", row)
            for ordinal, (task, batch) in enumerate(zip(tasks, batches, strict=True), 1):
                self._database.insert(
                    "groups", _waiting(run_id, ordinal, task, batch, config, library_version)
                )
            self._events.append(
                actor, "run.created", run_id, groups=len(tasks), library_version=library_version
            )
        return run_id

    def set_status(self, run_id: str, status: RunStatus, actor: str, note: str = "") -> None:
        finished = self._events.clock() if status in ("done", "failed") else None
        with self._database.writing():
            if self._database.value("SELECT status FROM runs WHERE id = ?", run_id) == status:
                return
            self._database.execute(
                "UPDATE runs SET status = ?, note = iif(kind = 'recorded', note, ?), finished_at = ? WHERE id = ?",
                *(status, note, finished, run_id),
            )
            if status in ("done", "failed"):
                self._events.append(actor, f"run.{status}", run_id, note=note)

    def save_extraction(self, run_id: str, extraction: Extraction) -> None:
        with self._database.writing():
            self._database.execute("UPDATE runs SET report = ? WHERE id = ?", extraction.canonical(), run_id)

    def by_request(self, request: str) -> Run | None:
        """The newest run of a request, finished or not."""
        row = self._database.row("SELECT * FROM runs WHERE request = ? ORDER BY number DESC LIMIT 1", request)
        return self._run(row) if row else None

    def get(self, run_id: str) -> Run:
        """One run.

        Raises:
            NotFoundError: there is no such run.
        """
        row = self._database.row("SELECT * FROM runs WHERE id = ?", run_id)
        if row is None:
            raise NotFoundError(
                f"There is no run {run_id!r} in this workspace; `winnow runs list` shows them."
            )
        return self._run(row)

    def newest(self, limit: int = 50) -> list[Run]:
        rows = self._database.rows("SELECT * FROM runs ORDER BY number DESC LIMIT ?", limit)
        return [self._run(row) for row in rows]

    def count(self) -> int:
        return int(self._database.value("SELECT count(*) FROM runs"))

    def _run(self, row: Row) -> Run:
        return Run(
            id=row["id"],
            kind=row["kind"],
            status=row["status"],
            config=json.loads(row["config"]),
            library_version=row["library_version"],
            model=row["model"],
            note=row["note"],
            tally=self.tally(row["id"]),
            extraction=Extraction(**json.loads(row["report"])),
            usage=self._usage(row["id"]),
            with_lessons=self._with_lessons(row["id"]),
            spent=self._spending.of_run(row["id"]),
            created_at=row["created_at"],
            finished_at=row["finished_at"],
        )

    def tally(self, run_id: str | None = None) -> Tally:
        """Groups by status and reason, of one run or of all."""
        counts = dict.fromkeys(("waiting", "informative", "uninformative", "failed"), 0)
        reasons: dict[str, int] = {}
        for row in self._database.rows(
            "SELECT status, reason, count(*) AS n FROM groups WHERE ?1 IS NULL OR run_id = ?1"
            " GROUP BY status, reason ORDER BY n DESC, reason",
            run_id,
        ):
            counts[row["status"]] += row["n"]
            if row["reason"]:
                reasons[row["reason"]] = reasons.get(row["reason"], 0) + row["n"]
        return Tally(**counts, reasons=reasons)

    def _with_lessons(self, run_id: str) -> int:
        return int(
            self._database.value(
                "SELECT count(DISTINCT group_id) FROM rollouts JOIN groups ON groups.id = group_id"
                " WHERE run_id = ? AND injected <> '{}'",
                run_id,
            )
        )

    def _usage(self, run_id: str) -> Usage:
        row = self._database.row(
            "SELECT coalesce(sum(usage ->> 'calls'), 0) AS calls,"
            " coalesce(sum(usage ->> 'prompt_tokens'), 0) AS prompt_tokens,"
            " coalesce(sum(usage ->> 'completion_tokens'), 0) AS completion_tokens,"
            " coalesce(sum(usage ->> 'cost_usd'), 0.0) AS cost_usd"
            " FROM rollouts JOIN groups ON groups.id = group_id WHERE run_id = ?",
            run_id,
        )
        return Usage(**(row or {}))

    # --- groups and rollouts ---

    def waiting(self, run_id: str) -> list[tuple[str, str, int]]:
        """(group id, task id, batch) of what is still to be sampled, in order: resuming is this query."""
        rows = self._database.rows(
            "SELECT id, task_id, batch FROM groups WHERE run_id = ? AND status = 'waiting' ORDER BY ordinal",
            run_id,
        )
        return [(row["id"], row["task_id"], row["batch"]) for row in rows]

    def reopen_failed(self, run_id: str, actor: str) -> int:
        """Put groups with broken-off rollouts back into the queue; replies that came are in the cache.

        Raises:
            InputError: its rollouts were recorded elsewhere; they cannot be sampled again.
        """
        with self._database.writing():
            if self.get(run_id).kind != "sampled":
                raise InputError(f"{run_id} holds recorded rollouts; they cannot be sampled again.")
            ids = [r["id"] for r in self._database.rows(
                "SELECT id FROM groups WHERE run_id = ? AND (status = 'failed' OR errors > 0)", run_id
            )]  # fmt: skip
            for group_id in ids:
                self._clear(group_id)
                self._database.execute(
                    "UPDATE groups SET status = 'waiting', reason = '', scored = 0, errors = 0, mean = NULL,"
                    " spread = NULL WHERE id = ?",
                    group_id,
                )
            if ids:
                self._database.execute(
                    "UPDATE runs SET status = 'waiting', finished_at = NULL WHERE id = ?", run_id
                )
                self._events.append(actor, "run.reopened", run_id, groups=len(ids))
        return len(ids)

    def _clear(self, group_id: str) -> None:
        self._database.execute(
            "DELETE FROM trajectories WHERE rollout_id IN (SELECT id FROM rollouts WHERE group_id = ?)",
            group_id,
        )
        self._database.execute("DELETE FROM rollouts WHERE group_id = ?", group_id)

    def save_group(self, group: Group) -> None:
        """Write a finished group with all its rollouts, in one transaction; saving it again changes nothing."""
        scored = [r.reward for r in group.rollouts if r.reward is not None]
        with self._database.writing():
            self._clear(group.id)
            for rollout in group.rollouts:
                self._database.insert("rollouts", _rollout_row(rollout))
                body = zlib.compress(rollout.trajectory.canonical().encode(), 6)
                self._database.insert("trajectories", {"rollout_id": rollout.id, "body": body})
            self._database.execute(
                "UPDATE groups SET status = ?, reason = ?, size = ?, scored = ?, errors = ?, mean = ?, spread = ?,"
                " left_out = ?, not_injected = ? WHERE id = ?",
                group.status,
                group.reason,
                len(group.rollouts),
                len(scored),
                sum(r.error is not None for r in group.rollouts),
                sum(scored) / len(scored) if scored else None,
                max(scored) - min(scored) if scored else None,
                canonical_json(group.left_out),
                canonical_json(group.not_injected),
                group.id,
            )

    def save_semantic(self, semantic: dict[str, str]) -> None:
        """Keep semantic advantages by rollout id."""
        with self._database.writing():
            for rollout_id, text in semantic.items():
                self._database.execute("UPDATE rollouts SET semantic = ? WHERE id = ?", text, rollout_id)

    def group_rows(
        self,
        run_id: str | None = None,
        *,
        status: str = "",
        domain: str = "",
        order: str = "order",
        limit: int = 50,
        offset: int = 0,
    ) -> tuple[list[GroupRow], int]:
        """One page of groups, and how many there are in all; empty filters take all."""
        where = " WHERE (?1 IS NULL OR g.run_id = ?1) AND (?2 = '' OR g.status = ?2) AND (?3 = '' OR g.domain = ?3)"
        total = self._database.value("SELECT count(*) FROM groups g" + where, run_id, status, domain)
        rows = self._database.rows(
            "SELECT g.id, g.run_id, g.task_id, substr(t.question, 1, 200) AS question, g.domain, g.epoch,"
            " g.batch, g.attempt, g.status,"
            " g.reason, g.size, g.scored, g.errors, g.mean, g.spread"
            " FROM groups g JOIN tasks t ON t.id = g.task_id"
            + where
            + f" ORDER BY g.run_id, {GROUP_ORDERS[order]} LIMIT ?4 OFFSET ?5",
            *(run_id, status, domain, limit, offset),
        )
        return [GroupRow(**row) for row in rows], int(total)

    def group(self, group_id: str, *, trajectories: bool = True) -> Group:
        """One group with its rollouts.

        Raises:
            NotFoundError: there is no such group.
        """
        row = self._database.row("SELECT * FROM groups WHERE id = ?", group_id)
        if row is None:
            raise NotFoundError(f"There is no group {group_id!r} in this workspace.")
        rollouts = self._database.rows(
            "SELECT * FROM rollouts WHERE group_id = ? ORDER BY replicate", group_id
        )
        return Group(
            id=row["id"],
            run_id=row["run_id"],
            task_id=row["task_id"],
            epoch=row["epoch"],
            batch=row["batch"],
            attempt=row["attempt"],
            temperature=row["temperature"],
            library_version=row["library_version"],
            status=row["status"],
            reason=row["reason"],
            left_out=json.loads(row["left_out"]),
            not_injected=json.loads(row["not_injected"]),
            rollouts=tuple(self._rollout(r, row["task_id"], trajectories) for r in rollouts),
        )

    def groups(self, run_id: str, status: str) -> list[Group]:
        """All groups of a run with one status, trajectories included, in order."""
        rows = self._database.rows(
            "SELECT id FROM groups WHERE run_id = ? AND status = ? ORDER BY ordinal", run_id, status
        )
        return [self.group(row["id"]) for row in rows]

    def rollout(self, rollout_id: str) -> Rollout:
        """One rollout, whole.

        Raises:
            NotFoundError: there is no such rollout.
        """
        row = self._database.row("SELECT * FROM rollouts WHERE id = ?", rollout_id)
        if row is None:
            raise NotFoundError(f"There is no rollout {rollout_id!r} in this workspace.")
        task_id = self._database.value("SELECT task_id FROM groups WHERE id = ?", row["group_id"])
        return self._rollout(row, task_id, True)

    def count_rollouts(self) -> int:
        return int(self._database.value("SELECT count(*) FROM rollouts"))

    def rewards(self, run_id: str) -> list[tuple[str, float]]:
        """(domain, reward) of every scored rollout of a run."""
        rows = self._database.rows(
            "SELECT domain, reward FROM rollouts r JOIN groups g ON g.id = r.group_id"
            " WHERE run_id = ? AND reward IS NOT NULL ORDER BY g.ordinal, replicate",
            run_id,
        )
        return [(row["domain"], row["reward"]) for row in rows]

    def _rollout(self, row: Row, task_id: str, whole: bool) -> Rollout:
        trajectory = Trajectory(answer=row["answer"], finish_reason=row["finish_reason"])
        if whole:
            body = self._database.value("SELECT body FROM trajectories WHERE rollout_id = ?", row["id"])
            trajectory = Trajectory(**json.loads(zlib.decompress(body)))
        return Rollout(
            id=row["id"],
            group_id=row["group_id"],
            task_id=task_id,
            replicate=row["replicate"],
            trajectory=trajectory,
            scores=json.loads(row["scores"]),
            components=json.loads(row["components"]),
            extrinsic=row["extrinsic"],
            accepted=None if row["accepted"] is None else bool(row["accepted"]),
            reward=row["reward"],
            advantage=row["advantage"],
            usage=json.loads(row["usage"]),
            error=row["error"],
            injected=json.loads(row["injected"]),
            model=row["model"],
            summary=row["summary"],
            semantic=row["semantic"],
            duration_s=row["duration_s"],
        )


def _waiting(
    run_id: str, ordinal: int, task: Task, batch: int, config: RunConfig, library_version: int
) -> Row:
    return {
        "id": f"{run_id}-{ordinal:04d}",
        "run_id": run_id,
        "ordinal": ordinal,
        "task_id": task.id,
        "domain": task.domain,
        "epoch": 0,
        "batch": batch,
        "library_version": library_version,
        "status": "waiting",
        "reason": "",
        "size": config.group_size,
    }


def _rollout_row(rollout: Rollout) -> Row:
    return {
        "id": rollout.id,
        "group_id": rollout.group_id,
        "replicate": rollout.replicate,
        "answer": rollout.trajectory.answer[:ANSWER_SHOWN],
        "finish_reason": rollout.trajectory.finish_reason,
        "scores": canonical_json({k: v.model_dump(mode="json") for k, v in rollout.scores.items()}),
        "components": canonical_json(rollout.components),
        "extrinsic": rollout.extrinsic,
        "accepted": None if rollout.accepted is None else int(rollout.accepted),
        "reward": rollout.reward,
        "advantage": rollout.advantage,
        "error": rollout.error,
        "injected": json.dumps(rollout.injected),
        "model": rollout.model,
        "usage": rollout.usage.canonical(),
        "steps": len(rollout.trajectory.steps),
        "summary": rollout.summary,
        "semantic": rollout.semantic,
        "duration_s": rollout.duration_s,
    }
