"""Groups and their rollouts. Trajectories are compressed and never read for a list."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence

from core.errors import InputError, NotFoundError
from core.figures import GroupFilter
from core.migrations.m010_tool_use import INSERT, counted
from core.record import Record, canonical_json
from core.rollout import Group, GroupRow, Rollout, Trajectory
from core.settings import Resample
from core.store.database import Database, Row
from core.store.events import Events
from core.store.figures import LISTED, ORDERS, clause
from core.store.rewarded import mark_rewarded

ANSWER_SHOWN = 2000
"""Characters of an answer that lists show; the whole one is in the trajectory."""


class Waiting(Record):
    """A group that is still to be sampled."""

    id: str
    task_id: str
    epoch: int
    batch: int
    attempt: int
    temperature: float | None


class Groups:
    def __init__(self, database: Database, events: Events) -> None:
        self._database = database
        self._events = events

    def waiting(self, run_id: str) -> list[Waiting]:
        """What is still to be sampled, in order: resuming is this query."""
        rows = self._database.rows(
            "SELECT id, task_id, epoch, batch, attempt, temperature FROM groups"
            " WHERE run_id = ? AND status = 'waiting' ORDER BY ordinal",
            run_id,
        )
        return [Waiting(**row) for row in rows]

    def skip_from(self, run_id: str, epoch: int, reason: str, actor: str) -> int:
        """Say of the groups of an epoch and of later ones that they are not sampled, and why; gives their number."""
        with self._database.writing():
            skipped = self._database.execute(
                "UPDATE groups SET status = 'uninformative', reason = ? WHERE run_id = ? AND status = 'waiting'"
                " AND epoch >= ?",
                *(reason, run_id, epoch),
            )
            if skipped:
                self._events.append(actor, "run.stopped_early", run_id, reason=reason, groups=skipped)
        return skipped

    def discard(self, run_id: str) -> int:
        """Take away the groups and rollouts of a run, and what hangs on them; gives the number of rollouts."""
        own = "SELECT id FROM groups WHERE run_id = ?"
        with self._database.writing():
            self._database.execute(
                "DELETE FROM trajectories WHERE rollout_id IN"
                f" (SELECT id FROM rollouts WHERE group_id IN ({own}))",
                run_id,
            )
            self._database.execute(
                "DELETE FROM recorded_attempts WHERE rollout_id IN"
                f" (SELECT id FROM rollouts WHERE group_id IN ({own}))",
                run_id,
            )
            self._database.execute(f"DELETE FROM recorded_groups WHERE group_id IN ({own})", run_id)
            rollouts = self._database.execute(f"DELETE FROM rollouts WHERE group_id IN ({own})", run_id)
            for table in ("groups", "batches", "quarantine"):
                self._database.execute(f"DELETE FROM {table} WHERE run_id = ?", run_id)
            self._database.execute("UPDATE runs SET report = '{}' WHERE id = ?", run_id)
        return rollouts

    def reopen_failed(self, run_id: str, actor: str) -> int:
        """Put groups with broken-off rollouts back into the queue; replies that came are in the cache.

        Raises:
            InputError: its rollouts were recorded elsewhere; they cannot be sampled again.
        """
        with self._database.writing():
            if self._database.value("SELECT kind FROM runs WHERE id = ?", run_id) == "recorded":
                raise InputError(f"{run_id} holds recorded rollouts; they cannot be sampled again.")
            ids = [r["id"] for r in self._database.rows(
                "SELECT id FROM groups WHERE run_id = ? AND (status = 'failed' OR errors > 0)", run_id
            )]  # fmt: skip
            for group_id in ids:  # its rollouts stay until they are replaced
                self._database.execute(
                    "UPDATE groups SET status = 'waiting', reason = '', scored = 0, errors = 0, mean = NULL,"
                    " spread = NULL, contrast = '' WHERE id = ?",
                    group_id,
                )
            if ids:
                self._database.execute(
                    "UPDATE runs SET status = 'waiting', finished_at = NULL WHERE id = ?", run_id
                )
                self._events.append(actor, "run.reopened", run_id, groups=len(ids))
        return len(ids)

    def said_of(self, group_id: str) -> dict[tuple[str, str], bool]:
        """What people said of a group's outcomes, by rollout and answer (as lists show it)."""
        rows = self._database.rows(
            "SELECT id, answer, accepted FROM rollouts WHERE group_id = ? AND accepted IS NOT NULL", group_id
        )
        return {(row["id"], row["answer"]): bool(row["accepted"]) for row in rows}

    def _clear(self, group_id: str) -> None:
        self._database.execute(
            "DELETE FROM trajectories WHERE rollout_id IN (SELECT id FROM rollouts WHERE group_id = ?)",
            group_id,
        )
        self._database.execute("DELETE FROM rollouts WHERE group_id = ?", group_id)

    def save(self, group: Group, again: Resample | None = None, kept: Sequence[str] = ()) -> Waiting | None:
        """Write a finished group with all its rollouts, in one transaction; saving it again changes nothing.

        Args:
            group: the group.
            again: with it, its task is to be sampled anew: that group is written down in the same transaction, and
                given back.
            kept: rollouts that are what they were: what a model said of them, and the lessons it cited, stay.
        """
        scored = [r.reward for r in group.rollouts if r.reward is not None]
        rows = [_rollout_row(rollout) for rollout in group.rollouts]
        bodies = [(rollout.id, _packed(rollout.trajectory)) for rollout in group.rollouts]
        with self._database.writing():
            mark_rewarded(self._database, group)
            said = self._told_of(kept)
            self._clear(group.id)
            if rows:
                marks = ", ".join(f":{column}" for column in rows[0])
                insert = f"INSERT INTO rollouts ({', '.join(rows[0])}) VALUES ({marks})"
                self._database.executemany(insert, rows)
                self._database.executemany("INSERT INTO trajectories VALUES (?, ?)", bodies)
                uses = [use for rollout in group.rollouts for use in _tool_use(group.run_id, rollout)]
                self._database.executemany(INSERT, uses)
            self._tell_again(said)
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
            return self._sample_anew(group, again.temperature) if again else None

    def _told_of(self, rollout_ids: Sequence[str]) -> list[Row]:
        """What a model said of rollouts, and which lessons it cited."""
        return self._database.rows(
            "SELECT id, critique, used FROM rollouts LEFT JOIN citations ON rollout_id = id"
            " WHERE id IN (SELECT value FROM json_each(?))",
            json.dumps(list(rollout_ids)),
        )

    def _tell_again(self, said: Sequence[Row]) -> None:
        self._database.executemany(
            "UPDATE rollouts SET critique = ? WHERE id = ?", [(row["critique"], row["id"]) for row in said]
        )
        cited = [(row["id"], row["used"]) for row in said if row["used"] is not None]
        self._database.executemany("INSERT INTO citations VALUES (?, ?)", cited)

    def _sample_anew(self, group: Group, temperature: float) -> Waiting:
        """Write down another group of the same task; its place and id follow from the first one's."""
        first = self._database.row("SELECT * FROM groups WHERE id = ?", group.id)
        assert first is not None
        base = self._database.value(
            "SELECT count(*) FROM groups WHERE run_id = ? AND attempt = 0", group.run_id
        )
        attempt = group.attempt + 1
        keys = ("run_id", "task_id", "domain", "epoch", "batch", "library_version", "size")
        row = {key: first[key] for key in keys} | {
            "id": f"{group.id.split('+')[0]}+{attempt}",
            "ordinal": first["ordinal"] + base,
            "attempt": attempt,
            "temperature": temperature,
            "status": "waiting",
            "reason": "",
        }
        with self._database.writing():
            if not self._database.value("SELECT 1 FROM groups WHERE id = ?", row["id"]):
                self._database.insert("groups", row)
        return Waiting(**{k: row[k] for k in ("id", "task_id", "epoch", "batch", "attempt", "temperature")})

    def count_tools_anew(self, rollout: Rollout) -> None:
        """Derive again how a rollout used its tools, from its steps as they are now, in an open transaction."""
        self._database.execute("DELETE FROM tool_use WHERE rollout_id = ?", rollout.id)
        run_id = self._database.value("SELECT run_id FROM groups WHERE id = ?", rollout.group_id)
        self._database.executemany(INSERT, _tool_use(run_id, rollout))

    def save_critiques(
        self,
        summaries: Mapping[str, tuple[str, str]],
        semantic: Mapping[str, str],
        contrasts: Mapping[str, str],
    ) -> None:
        """Keep what a model said of rollouts and groups.

        Args:
            summaries: stage 1, by rollout id: its text, and all of it, as JSON, the raw reply included.
            semantic: S_i, by rollout id.
            contrasts: the raw reply of stage 2, by group id.
        """
        said = [(text, whole, rollout_id) for rollout_id, (text, whole) in summaries.items()]
        with self._database.writing():
            self._database.executemany("UPDATE rollouts SET summary = ?, critique = ? WHERE id = ?", said)
            self._database.executemany(
                "UPDATE rollouts SET semantic = ? WHERE id = ?", [(s, i) for i, s in semantic.items()]
            )
            self._database.executemany(
                "UPDATE groups SET contrast = ? WHERE id = ?", [(c, i) for i, c in contrasts.items()]
            )

    def critique(self, rollout_id: str) -> str:
        """Stage 1 of a rollout as JSON: summary, key decision, root cause, used experiences, raw reply; or empty."""
        return str(self._database.value("SELECT critique FROM rollouts WHERE id = ?", rollout_id) or "")

    def contrast_anew(self, group_ids: Sequence[str]) -> None:
        """Let groups be contrasted with fresh replies: those in the cache could not be used."""
        with self._database.writing():
            for group_id in group_ids:
                self._database.execute(
                    "UPDATE groups SET contrast_attempt = contrast_attempt + 1 WHERE id = ?", group_id
                )

    def contrast_attempt(self, group_id: str) -> int:
        """How often a group was to be contrasted anew."""
        return int(self._database.value("SELECT contrast_attempt FROM groups WHERE id = ?", group_id))

    def page(
        self,
        run_id: str | None = None,
        *,
        status: str = "",
        domain: str = "",
        which: GroupFilter | None = None,
        order: str = "order",
        limit: int = 50,
        offset: int = 0,
    ) -> tuple[list[GroupRow], int]:
        """One page of groups, and how many there are in all; empty filters take all, `which` replaces them."""
        which = which or GroupFilter(run_id=run_id or "", status=status, domain=domain)
        where, values = clause(which)
        total = self._database.value(f"SELECT count(*) FROM groups g WHERE {where}", *values)
        rows = self._database.rows(
            f"WITH listed AS MATERIALIZED (SELECT g.id AS group_id FROM {LISTED} WHERE {where}"
            f" ORDER BY {ORDERS[order]} LIMIT ? OFFSET ?)"
            " SELECT g.id, g.run_id, g.task_id, substr(t.question, 1, 200) AS question, g.domain, g.epoch,"
            " g.batch, g.attempt, g.status,"
            " g.reason, g.size, g.scored, g.errors, g.mean, g.spread"
            " FROM listed JOIN groups g ON g.id = group_id JOIN runs r ON r.id = g.run_id"
            f" JOIN tasks t ON t.id = g.task_id ORDER BY {ORDERS[order]}",
            *values,
            *(limit, offset),
        )
        return [GroupRow(**row) for row in rows], int(total)

    def get(self, group_id: str, *, trajectories: bool = True) -> Group:
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

    def all(self, run_id: str, status: str, place: tuple[int, int] | None = None) -> Iterator[Group]:
        """The groups of a run with one status (and of one epoch and batch), in order, each read when it is due."""
        return (self.get(group_id) for group_id in self.ids(run_id, status, place))

    def ids(self, run_id: str, status: str, place: tuple[int, int] | None = None) -> list[str]:
        """Ids of the groups of a run with one status (and of one epoch and batch), in order."""
        epoch, batch = place or (None, None)
        rows = self._database.rows(
            "SELECT id FROM groups WHERE run_id = ?1 AND status = ?2"
            " AND (?3 IS NULL OR (epoch = ?3 AND batch = ?4)) ORDER BY ordinal",
            *(run_id, status, epoch, batch),
        )
        return [row["id"] for row in rows]

    def informative_in(self, run_id: str, epoch: int) -> int:
        """Number of informative groups of an epoch."""
        return int(
            self._database.value(
                "SELECT count(*) FROM groups WHERE run_id = ? AND epoch = ? AND status = 'informative'",
                *(run_id, epoch),
            )
        )

    def rollout(self, rollout_id: str, *, trajectory: bool = True) -> Rollout:
        """One rollout, whole, or without its messages and steps.

        Raises:
            NotFoundError: there is no such rollout.
        """
        row = self._database.row("SELECT * FROM rollouts WHERE id = ?", rollout_id)
        if row is None:
            raise NotFoundError(f"There is no rollout {rollout_id!r} in this workspace.")
        task_id = self._database.value("SELECT task_id FROM groups WHERE id = ?", row["group_id"])
        return self._rollout(row, task_id, trajectory)

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
            trajectory = _unpacked(body)
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


def _tool_use(run_id: str, rollout: Rollout) -> list[tuple[object, ...]]:
    """How a rollout used its tools, as rows."""
    steps = [vars(step) for step in rollout.trajectory.steps]  # plain fields: nothing of them need be dumped
    return [(rollout.id, run_id, *use) for use in counted(steps)]


def _packed(trajectory: Trajectory) -> bytes:
    """Level 1 takes two thirds of the time of level 6, for 4 % more room; an answer is not written twice."""
    last = trajectory.messages[-1] if trajectory.messages else None
    said = last is not None and last.role == "assistant" and last.content == trajectory.answer
    text = trajectory.model_dump_json(exclude={"answer"} if said else None)
    return zlib.compress(text.encode(), 1)


def _unpacked(body: bytes) -> Trajectory:
    data = json.loads(zlib.decompress(body))
    if "answer" not in data and data.get("messages"):  # it is the last message
        data["answer"] = data["messages"][-1]["content"]
    return Trajectory(**data)


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
        "usage": rollout.usage.model_dump_json(),
        "steps": len(rollout.trajectory.steps),
        "summary": rollout.summary,
        "semantic": rollout.semantic,
        "duration_s": rollout.duration_s,
    }
