"""Nothing is lost silently (DESIGN 3.1), whatever the network and the models do.

A run under faults of the endpoint and with a badly mannered extraction model completes; then its report must add up,
must agree with what is stored, counted here in the database by plain SQL, and must account for every operation that
the model really said, counted where it was said. `make soak` runs many more of these cases.
"""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from core.errors import ModelUnavailableError
from core.experience import Add
from core.llm import Access
from core.rollout import Run
from core.settings import RunConfig
from core.workspace import Workspace
from core.workspace.learning import Learning
from core.workspace.models import Models
from tests.make import add_stub, add_tasks, make_tasks, publish, ticking
from tests.stub_server import Asked, Fault, StubServer, solver
from tests.teacher import MANNERS, answer

TASKS, GROUP_SIZE, BATCH_SIZE = 12, 4, 5
FAULTS = {
    "429": 0.20, "5xx": 0.10, "malformed": 0.05, "truncated": 0.05, "dropped": 0.05, "slow": 0.05, "wrong_types": 0.03,
}  # fmt: skip
"""Share of the requests that each fault befalls: more than half of all."""

EMPTY = 0.03
"""Share of the rollouts that answer nothing at all."""
HASTE = 0.02
"""A second of waiting between tries takes so long here."""
MOST_GIVEN_UP = 10
"""Each time brings a little more of the run: it is begun again so often at most."""
UNREADABLE = ("prose", "empty", "null", "truncated")
CONTRAST = '{"semantic_advantages":'
"""By what the prompts of stage 2 are known."""


class Said(NamedTuple):
    """A reply of stage 2 as it left the model."""

    text: str
    operations: int | None
    """How many it holds; None where nothing can be read from it."""


class Talker:
    """The solver and a teacher in one, that keeps count of the operations it says.

    Args:
        seed: of the manners.
        rate: share of the extraction's replies that are badly mannered.
        names: of the manners; none means all.
    """

    def __init__(self, seed: int, rate: float, names: Sequence[str] = ()) -> None:
        self._seed = seed
        self._rate = rate
        self._names = sorted(names or MANNERS)
        self.contrasts: dict[tuple[str, bool], Said] = {}
        """By the prompt, and whether it was asked again."""

    def __call__(self, asked: Asked) -> str:
        if '{"' not in asked.system:
            return "" if asked.rng.random() < EMPTY else solver(asked)
        good = answer(asked)
        rng = random.Random(f"{self._seed} {json.dumps(asked.messages, sort_keys=True)}")
        manner = rng.choice(self._names) if rng.random() < self._rate else ""
        text = MANNERS[manner](good) if manner else good
        if CONTRAST in asked.system:
            key = str(asked.messages[1]["content"]), len(asked.messages) > 2
            known = self.contrasts.get(key)
            # A tail of its own tells each reply from every other one, empty ones too.
            text = known.text if known else text + " " * (1 + len(self.contrasts))
            self.contrasts[key] = Said(text, _operations(good, manner))
        return text


def _operations(good: str, manner: str) -> int | None:
    count = len(json.loads(good)["operations"])
    if manner in UNREADABLE:
        return None
    return {"too many": count + 5, "wrong types": 5}.get(manner, count)


class Hasty(Models):
    """Models whose lines wait a fraction of the time between tries."""

    def access(self, *arguments: Any, **named: Any) -> Access:
        access = super().access(*arguments, **named)
        access.terms = replace(access.terms, sleep=lambda seconds: asyncio.sleep(seconds * HASTE))
        return access


@dataclass(frozen=True)
class Books:
    """What a run reports, what is stored, and what was said."""

    run: Run
    groups: list[dict[str, Any]]
    rollouts: list[dict[str, Any]]
    proposals: list[dict[str, Any]]
    quarantine: list[dict[str, Any]]
    joined: list[dict[str, Any]]
    replies: frozenset[str]
    """Texts of all replies that came through."""
    contrasts: Mapping[tuple[str, bool], Said]
    questions: Mapping[str, str]
    """By group id."""
    faults: Mapping[str, int]
    """By kind, as the endpoint counted them."""
    asked: int
    """Requests, as the endpoint counted them."""
    given_up: int
    """Times that the run ended early, because the endpoint failed too often in a row."""


def run_under_faults(
    folder: Path,
    seed: int,
    manners: float,
    retries: int = 4,
    rates: Mapping[str, float] | None = None,
    names: Sequence[str] = (),
    down_for: int = 0,
) -> Books:
    """One run on a workspace with a small library, from its tasks to its proposals.

    Args:
        down_for: so many requests fail before the first one is answered.
    """
    talker = Talker(seed, manners, names)
    with StubServer(talker, latency_s=0.002, seed=seed, rates=FAULTS if rates is None else rates) as stub:
        stub.keeps_requests = False
        stub.faults.extend([Fault("status", 503)] * down_for)
        workspace = Workspace(folder, clock=ticking())
        add_tasks(workspace, make_tasks(TASKS))
        texts = ("Give the number alone.", "Check the sum once more.", "Write no word beside the number.")
        publish(workspace, *(Add(text=text, domain="sums") for text in texts))
        config = add_stub(workspace, stub.base_url, retries=retries, concurrency=8, context_length=32_000)
        update = {"group_size": GROUP_SIZE, "batch_size": BATCH_SIZE, "extraction_endpoint": config.endpoint}
        update |= {"seed": seed}
        learning = Learning(workspace.store, Hasty(workspace.store), folder / "locks")
        run = learning.start(RunConfig(**config.model_dump() | update), "test")
        done, given_up = _work_to_its_end(learning, run.id)
        return _books(folder / "winnow.db", done, talker, stub.stats(), given_up)


def _work_to_its_end(learning: Learning, run_id: str) -> tuple[Run, int]:
    """The finished run, begun again as its user would whenever the endpoint was given up, and how often that was."""
    for given_up in range(MOST_GIVEN_UP):
        try:
            return learning.work(run_id, "test"), given_up
        except ModelUnavailableError:
            continue
    raise AssertionError(f"the endpoint was given up {MOST_GIVEN_UP} times")


def _books(path: Path, run: Run, talker: Talker, stats: Mapping[str, Any], given_up: int) -> Books:
    with closing(sqlite3.connect(path)) as db:
        db.row_factory = sqlite3.Row

        def rows(sql: str) -> list[dict[str, Any]]:
            return [dict(row) for row in db.execute(sql)]

        joined = [
            json.loads(r["data"]) for r in rows("SELECT data FROM events WHERE kind = 'proposal.joined'")
        ]
        calls = [json.loads(row["completion"])["text"] for row in rows("SELECT completion FROM calls")]
        asked = rows("SELECT groups.id, question FROM groups JOIN tasks ON tasks.id = task_id")
        return Books(
            run=run,
            groups=rows("SELECT * FROM groups"),
            rollouts=rows("SELECT * FROM rollouts"),
            proposals=rows("SELECT * FROM proposals WHERE run_id IS NOT NULL"),
            quarantine=rows("SELECT * FROM quarantine"),
            joined=joined,
            replies=frozenset(calls),
            contrasts=dict(talker.contrasts),
            questions={row["id"]: row["question"] for row in asked},
            faults=stats["faults"],
            asked=stats["calls"],
            given_up=given_up,
        )


# -- the laws -------------------------------------------------------------------------------------


def broken_laws(books: Books) -> list[str]:
    """A sentence for each sum that does not come out; empty when nothing was lost."""
    return [
        *_of_groups(books),
        *_of_rollouts(books),
        *_of_operations(books),
        *_of_what_was_said(books),
        *_of_calls(books),
    ]


def _of_groups(books: Books) -> Iterator[str]:
    tally, missed = books.run.tally, books.run.extraction.not_contrasted
    if books.run.status != "done":
        yield f"the run ended as {books.run.status}"
    if tally.total != TASKS or len(books.groups) != TASKS:
        yield f"{TASKS} groups in, {tally.total} reported, {len(books.groups)} stored"
    stored = Counter(group["status"] for group in books.groups)
    reported = {s: getattr(tally, s) for s in ("waiting", "informative", "uninformative", "failed")}
    if stored != Counter(reported):
        yield f"groups stored {stored}, reported {reported}"
    if tally.waiting:
        yield f"{tally.waiting} groups were left waiting"
    reasons = Counter(g["reason"] for g in books.groups if g["status"] in ("uninformative", "failed"))
    if "" in reasons or reasons != Counter(tally.reasons):
        yield f"reasons stored {reasons}, reported {tally.reasons}"
    informative = {g["id"] for g in books.groups if g["status"] == "informative"}
    if not set(missed) <= informative or not all(missed.values()):
        yield f"not contrasted: {missed}, informative: {sorted(informative)}"
    silent = {r["group_id"] for r in books.rollouts if not r["semantic"]} & informative
    if silent:
        yield f"informative groups with a rollout that nothing is said about: {sorted(silent)}"


def _of_rollouts(books: Books) -> Iterator[str]:
    sizes = Counter(r["group_id"] for r in books.rollouts)
    if wrong := {g["id"]: sizes[g["id"]] for g in books.groups if sizes[g["id"]] != GROUP_SIZE}:
        yield f"groups that lost rollouts: {wrong}"
    for r in books.rollouts:
        if r["error"] is not None and r["reward"] is not None:
            yield f"{r['id']} broke off and has a reward"
        if r["error"] is None and r["reward"] is None and "reason" not in r["scores"]:
            yield f"{r['id']} is unscored without a reason"


def _of_operations(books: Books) -> Iterator[str]:
    report = books.run.extraction
    if report.suggested != report.proposed + report.joined + report.superseded + report.quarantined:
        yield f"the report does not add up: {report}"
    superseded = sum(p["status"] == "superseded" for p in books.proposals)
    stored = {
        "proposed": len(books.proposals) - superseded,
        "superseded": superseded,
        "joined": len(books.joined),
        "quarantined": len(books.quarantine),
    }
    if stored != (reported := {name: getattr(report, name) for name in stored}):
        yield f"operations stored {stored}, reported {reported}"
    if bare := [q["id"] for q in books.quarantine if not q["reason"]]:
        yield f"quarantined without a reason: {bare}"
    if bare := [p["id"] for p in books.proposals if p["status"] == "superseded" and not p["reason"]]:
        yield f"superseded without a reason: {bare}"
    raw = [json.loads(p["body"])["raw_reply"] for p in books.proposals if p["extractor"] == "llm"]
    if unknown := [text for text in raw if text.split("\n\n--- ")[0] not in books.replies]:
        yield f"proposals with a raw reply that never came: {unknown[:2]}"


def _of_what_was_said(books: Books) -> Iterator[str]:
    """The model's own count, against everything that is stored of a group's operations, whatever became of it."""
    # Begun again, a group may be asked in other words (a summary has come). Where nothing comes of these, it is told as
    # not contrasted, and what was said before the break counts for nothing.
    quarantined = {group for q in books.quarantine for group in json.loads(q["group_ids"])}
    unsaid = books.run.extraction.not_contrasted.keys() - quarantined if books.given_up else set()
    informative = [g["id"] for g in books.groups if g["status"] == "informative" and g["id"] not in unsaid]
    said = sum(_said_of(group, books) for group in informative)
    kept = {
        "proposed or superseded": sum(p["extractor"] == "llm" for p in books.proposals),
        "joined": sum(bool(j["raw_reply"]) for j in books.joined),
        # What was refused of the consolidation's reply belongs to no group; what evidence set aside, no model said.
        "quarantined": sum(
            json.loads(q["group_ids"]) != [] and q["raw"].split("\n\n--- ")[0] in books.replies
            for q in books.quarantine
        ),
    }
    if said != sum(kept.values()):
        yield f"the model said {said} operations, {kept} are kept"


def _said_of(group: str, books: Books) -> int:
    spoken = {
        again: said for (prompt, again), said in books.contrasts.items() if books.questions[group] in prompt
    }
    came = {again: said for again, said in spoken.items() if said.text in books.replies}
    counts = [came[again].operations for again in (False, True) if again in came]
    if not counts:
        return 0
    # A reply that cannot be read counts as one operation, unless the second one could be.
    return next((count for count in counts if count is not None), 1)


def _of_calls(books: Books) -> Iterator[str]:
    if books.run.spent.calls != books.asked:
        yield f"{books.asked} requests were sent, {books.run.spent.calls} are in the ledger"


# -- the tests ------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(
    max_examples=3,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],  # to shrink a whole run takes minutes and says little
    suppress_health_check=list(HealthCheck),
)
@given(seed=st.integers(0, 10**6), manners=st.sampled_from([0.3, 0.6, 1.0]), retries=st.sampled_from([1, 3]))
def test_under_faults_and_bad_manners_nothing_is_lost(seed: int, manners: float, retries: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        books = run_under_faults(Path(folder), seed, manners, retries)
    assert broken_laws(books) == []
    assert len(books.faults) >= 4, f"there were hardly any faults: {books.faults}"


def test_a_run_without_faults_keeps_every_group_and_every_operation(tmp_path: Path) -> None:
    books = run_under_faults(tmp_path / "w", seed=1, manners=0.0, rates={})
    assert broken_laws(books) == []
    assert books.run.extraction.suggested > books.run.tally.informative > 0
    assert not books.run.extraction.not_contrasted
    assert not books.faults


def test_a_run_begun_again_whenever_its_endpoint_was_given_up_loses_nothing(tmp_path: Path) -> None:
    books = run_under_faults(tmp_path / "w", seed=2, manners=0.3, retries=0, down_for=20)
    assert books.given_up > 0
    assert broken_laws(books) == []
    assert books.run.tally.informative > 0


def test_groups_whose_contrast_can_never_be_read_are_counted_and_their_replies_kept(tmp_path: Path) -> None:
    names = ("prose", "truncated")
    books = run_under_faults(tmp_path / "w", seed=3, manners=0.5, rates={}, names=names)
    assert broken_laws(books) == []
    unread = [q for q in books.quarantine if json.loads(q["group_ids"])]
    assert 0 < len(unread) <= len(books.run.extraction.not_contrasted)
    assert all("--- asked again" in q["raw"] for q in unread)
