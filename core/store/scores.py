"""What is written when groups are settled anew: scores, rewards, acceptance; never a trajectory."""

from __future__ import annotations

from core.errors import NotFoundError
from core.record import canonical_json
from core.rollout import Group
from core.settings import RewardConfig
from core.store.database import Database
from core.store.events import Events
from core.store.rewarded import mark_rewarded


class Scores:
    def __init__(self, database: Database, events: Events) -> None:
        self._database = database
        self._events = events

    def group_ids(self, run_id: str) -> list[str]:
        """The groups of a run that have rollouts, in order."""
        rows = self._database.rows(
            "SELECT id FROM groups WHERE run_id = ? AND status <> 'waiting' AND EXISTS"
            " (SELECT 1 FROM rollouts WHERE group_id = groups.id) ORDER BY ordinal",
            run_id,
        )
        return [row["id"] for row in rows]

    def earlier_answers(self, group_id: str) -> list[str]:
        """Different answers to a group's task that were there before the group began, each cut like in lists.

        They are those of earlier runs, and of the same run's earlier epochs and earlier attempts at this epoch:
        which of two groups that are sampled side by side is finished first plays no part. Rollouts that broke off
        gave no answer.
        """
        rows = self._database.rows(
            "SELECT DISTINCT r.answer FROM groups own JOIN runs own_run ON own_run.id = own.run_id"
            " JOIN groups g ON g.task_id = own.task_id JOIN runs run ON run.id = g.run_id"
            " JOIN rollouts r ON r.group_id = g.id"
            " WHERE own.id = ? AND r.error IS NULL AND (run.number < own_run.number OR g.run_id = own.run_id"
            " AND (g.epoch, g.attempt) < (own.epoch, own.attempt)) ORDER BY r.answer",
            group_id,
        )
        return [row["answer"] for row in rows]

    def resettle(self, group: Group) -> None:
        """Write what settling gives a group and its rollouts; everything else of them stays."""
        rewards = [r.reward for r in group.rollouts if r.reward is not None]
        with self._database.writing():
            mark_rewarded(self._database, group)
            for r in group.rollouts:
                self._database.execute(
                    "UPDATE rollouts SET scores = ?, components = ?, extrinsic = ?, reward = ?, advantage = ?"
                    " WHERE id = ?",
                    canonical_json({k: v.model_dump(mode="json") for k, v in r.scores.items()}),
                    canonical_json(r.components),
                    *(r.extrinsic, r.reward, r.advantage, r.id),
                )
            self._database.execute(
                "UPDATE groups SET status = ?, reason = ?, scored = ?, mean = ?, spread = ?, left_out = ?"
                " WHERE id = ?",
                *(group.status, group.reason, len(rewards)),
                sum(rewards) / len(rewards) if rewards else None,
                max(rewards) - min(rewards) if rewards else None,
                *(canonical_json(group.left_out), group.id),
            )

    def set_reward(self, run_id: str, reward: RewardConfig) -> None:
        """Keep how the rewards of a run are made from now on; what it is known by (its request) stays."""
        with self._database.writing():
            self._database.execute(
                "UPDATE runs SET config = json_set(config, '$.reward', json(?)) WHERE id = ?",
                *(reward.canonical(), run_id),
            )

    def set_accepted(self, rollout_id: str, accepted: bool | None) -> str:
        """Keep what a user said of an outcome; gives the id of its group.

        Raises:
            NotFoundError: there is no such rollout.
        """
        group_id: str | None = self._database.value("SELECT group_id FROM rollouts WHERE id = ?", rollout_id)
        if group_id is None:
            raise NotFoundError(f"There is no rollout {rollout_id!r} in this workspace.")
        with self._database.writing():
            self._database.execute(
                "UPDATE rollouts SET accepted = ? WHERE id = ?",
                *(None if accepted is None else int(accepted), rollout_id),
            )
        return group_id
