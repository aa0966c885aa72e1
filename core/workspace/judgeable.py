"""Which tasks a run or an evaluation can judge. Those that came in with recorded rollouts may have no verifier.

1. Such a task (verifier `none`) takes part where a verifier of the run can judge it, or where no verifier has a part in
   the reward. Else it is left out, before the limit of a run is applied, and how many are is said.
2. It keeps nobody else's tasks from being sampled: a run is refused only where none is left.
3. A verifier that lacks something on this machine (a judge's endpoint, the sandbox) leaves nothing out: that is mended
   by whoever starts the run, so it is refused with what to do (`planning.check_help`).
"""

from __future__ import annotations

from collections.abc import Sequence

from core.rollout import Task
from core.settings import RewardConfig, RunConfig
from core.store import Store
from core.verifiers import make_verifier

UNCHECKED = "none"
"""Kind of the verifier of a task that nothing here checks."""

_HOW = (
    "import their answers as tasks with the same ids and questions, or name a verifier for all tasks (a judge needs no "
    "answers)"
)


def judgeable(tasks: Sequence[Task], reward: RewardConfig) -> list[Task]:
    """The tasks whose attempts can get a reward, in their order.

    Raises:
        InputError: a verifier of the reward cannot be built.
    """
    if "verified" not in reward.by_component:
        return list(tasks)
    weights = reward.verifier_weights
    more = [make_verifier(spec) for name, spec in reward.verifiers.items() if weights.get(name, 1.0) > 0]
    more = [verifier for verifier in more if verifier.kind != UNCHECKED]
    return [t for t in tasks if t.verifier.kind != UNCHECKED or any(not one.trouble(t) for one in more)]


def said_of(config: RunConfig, store: Store) -> str:
    """What is said of the tasks that a run leaves out; empty where it takes all of its split and domains."""
    if UNCHECKED not in store.tasks.kinds():
        return ""
    tasks = store.tasks.select(config.split, config.domains)
    return left_out(len(tasks) - len(judgeable(tasks, config.reward)))


def left_out(count: int) -> str:
    """What is said of so many tasks that were left out; empty for none."""
    if not count:
        return ""
    tasks, they, them = ("task is", "it", "it") if count == 1 else ("tasks are", "they", "them")
    return (
        f"{count:,} {tasks} left out, since {they} came in with recorded rollouts and nothing here checks {them}. To "
        f"sample {them}, {_HOW}."
    )


def nothing_checks(what: str) -> str:
    """Why `what` cannot be sampled: tasks that nothing here checks."""
    return (
        f"Nothing here checks {what}: what came in with recorded rollouts has no verifier. To sample such tasks, "
        f"{_HOW}."
    )
