"""What a reviewer's desk reads: filters, orders, neighbours, rivals, what is near, and a stamp that tells a change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from core.experience import Add, Delete, Evidence, Finding, Merge, Modify, Operation, Proposal
from core.record import content_hash
from core.store.queue import ORDERS, Sieve
from core.workspace import Workspace
from core.workspace.reviewing import Reviewing


def propose(ws: Workspace, operation: Operation, p: float = 1.0, **fields: object) -> str:
    finding = Finding(
        feature="f",
        label="f",
        winners_with=3,
        winners=4,
        losers_with=1,
        losers=4,
        odds_ratio=9,
        p=p,
        p_corrected=p,
    )
    given = {"id": "", "operation": operation, "evidence": Evidence(findings=(finding,)), **fields}
    return ws.store.proposals.add([Proposal.model_validate(given)], "ann")[0]


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "workspace")


@pytest.fixture
def reading(ws: Workspace) -> Reviewing:
    return Reviewing(ws.store)


def listed(reading: Reviewing, **sieve: object) -> list[str]:
    return [p.id for p in reading.queue.page(Sieve.model_validate(sieve))[0]]


def test_every_filter_takes_its_own(ws: Workspace, reading: Reviewing) -> None:
    one = propose(ws, Add(text="Read 100% of it.", kind="convention", domain="sums"), extractor="llm")
    two = propose(ws, Modify(experience_id="E-0001", text="Read it."))
    three = propose(ws, Merge(experience_ids=("E-0001", "E-0002"), text="Both."))
    ws.review.reject(one, "no", "ann")
    assert listed(reading, statuses=("rejected",)) == [one]
    assert listed(reading, op="modify") == [two]
    assert (
        listed(reading, domain="sums")
        == listed(reading, kind="convention")
        == listed(reading, extractor="llm")
        == [one]
    )
    assert listed(reading, search="e-0002") == [three]
    assert listed(reading, search="e-0001") == [two, three]
    assert listed(reading, search=two.lower()) == [two]
    assert listed(reading, search="100%") == [one], "a percent sign is no wildcard"
    assert listed(reading, search="0_%") == []


@pytest.mark.parametrize("order", ORDERS)
def test_neighbours_are_those_of_the_list(ws: Workspace, reading: Reviewing, order: str) -> None:
    for i in range(5):
        propose(ws, Add(text=f"Lesson {i}."), p=(i * 7 % 5 + 1) / 10, confidence=0.5 + (i * 3 % 5) / 20)
    sieve = Sieve(statuses=("proposed", "deferred"))
    ids = [i for i, _ in reading.queue.ids(sieve, order=order)]  # type: ignore[arg-type]
    ws.review.defer(ids[0], "", "ann")
    ids = [*ids[1:], ids[0]]
    assert [p.id for p in reading.queue.page(sieve, order=order)[0]] == ids  # type: ignore[arg-type]
    place = reading.queue.place(sieve, ids[1], order=order)  # type: ignore[arg-type]
    assert place is not None
    assert (place.number, place.before, place.after) == (2, ids[0], ids[2])
    assert reading.queue.place(Sieve(op="merge"), ids[1]) is None


def test_rivals_change_the_same_lesson_and_are_not_decided(ws: Workspace, reading: Reviewing) -> None:
    mine = propose(ws, Modify(experience_id="E-0001", text="A."))
    other = propose(ws, Merge(experience_ids=("E-0002", "E-0001"), text="B."))
    gone = propose(ws, Delete(experience_id="E-0001"))
    ws.review.reject(gone, "no", "ann")
    propose(ws, Modify(experience_id="E-0003", text="C."))
    assert [p.id for p in reading.rivals(ws.store.proposals.get(mine))] == [other]


def test_the_stamp_tells_a_decision_and_a_claim_but_no_heartbeat(ws: Workspace, reading: Reviewing) -> None:
    of = propose(ws, Add(text="Read it."))
    stamps = [reading.queue.stamp()]
    ws.review.claim(of, "ann")
    stamps.append(reading.queue.stamp())
    ws.review.renew(of, "ann", minutes=90)
    assert reading.queue.stamp() == stamps[-1]
    ws.review.approve(of, "ann")
    stamps.append(reading.queue.stamp())
    ws.review.publish("", "ann")
    stamps.append(reading.queue.stamp())
    assert len(set(stamps)) == 4


def test_what_moved_is_told_of_what_is_open_only(ws: Workspace, reading: Reviewing) -> None:
    ws.review.approve(propose(ws, Add(text="Read it once.")), "ann")
    ws.review.publish("", "ann")
    stale = propose(ws, Modify(experience_id="E-0001", text="B."), base_texts={"E-0001": "Read it."})
    fresh = propose(ws, Modify(experience_id="E-0001", text="C."), base_texts={"E-0001": "Read it once."})
    moved = reading.moved([ws.store.proposals.get(i) for i in (stale, fresh)])
    assert list(moved) == [stale]


def test_what_is_near_comes_from_stored_vectors_else_from_shared_words(
    ws: Workspace, reading: Reviewing
) -> None:
    texts = ("Answer in lowercase.", "Count the rows before you sum them.")
    for text in texts:
        ws.review.approve(propose(ws, Add(text=text)), "ann")
    ws.review.publish("", "ann")
    by_words = reading.near("Answer in uppercase.")
    assert (by_words.by, by_words.found[0].experience.id) == ("words", "E-0001")
    assert by_words.found[0].opposed
    asked = "Tally lines first."
    vectors = {texts[0]: [1.0, 0.0], texts[1]: [0.0, 1.0], asked: [0.6, 0.8]}
    ws.store.embeddings.put(
        "tiny", {content_hash(t): np.array(v, "<f4").tobytes() for t, v in vectors.items()}
    )
    near = reading.near(asked)
    assert near.by == "tiny"
    assert [(one.experience.id, one.similarity, one.alike) for one in near.found] == [
        ("E-0002", 0.8, True),
        ("E-0001", 0.6, True),
    ]
    assert [one.experience.id for one in reading.near(asked, without={"E-0002"}).found] == ["E-0001"]
