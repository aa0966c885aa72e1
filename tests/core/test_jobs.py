"""The queue of background work: states, leases, and what a worker makes of whatever goes wrong."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from core.errors import (
    BudgetError,
    BusyError,
    InputError,
    ModelUnavailableError,
    NotFoundError,
    StoppedError,
)
from core.job import ENDED, Job
from core.jobs import FAULT, LEASE_S, Came, Queue, carry_out
from core.jobs.heart import Heart
from core.ports import Progress, Wish, Wishes, go, silent
from core.rollout import Run, RunStatus
from core.settings import RunConfig
from core.store import Store

ONE, TWO = "here 1 1.0", "there 2 2.0"
"""Workers on two hosts."""


class Clock:
    """Stands still until it is told to go on."""

    def __init__(self) -> None:
        self.seconds = 0

    def __call__(self) -> str:
        return f"2026-01-01T{self.seconds // 3600:02d}:{self.seconds // 60 % 60:02d}:{self.seconds % 60:02d}Z"


@dataclass
class FakeWork:
    """Stands for `Learning`: each attempt does what it is told to."""

    store: Store
    attempt: Callable[[Progress, Wishes], RunStatus] = lambda progress, wishes: "done"
    caps: list[RunConfig | None] = field(default_factory=list)
    cancelled: list[tuple[str, bool]] = field(default_factory=list)
    refuses: Exception | None = None
    failed: int = 0

    def work(
        self,
        run_id: str,
        actor: str,
        progress: Progress = silent,
        caps: RunConfig | None = None,
        wishes: Wishes = go,
    ) -> Run:
        self.caps.append(caps)
        self.store.runs.set_status(run_id, self.attempt(progress, wishes), actor)
        return self.store.runs.get(run_id)

    def cancel(self, run_id: str, actor: str, *, discard: bool) -> None:
        if self.refuses:
            raise self.refuses
        self.cancelled.append((run_id, discard))

    def retry(self, run_id: str, actor: str) -> int:
        if not self.failed:
            raise InputError("Nothing failed.")
        self.failed, reopened = 0, self.failed
        return reopened


def add_run(store: Store, number: int = 1, **config: object) -> str:
    return store.runs.create(
        RunConfig(seed=number, **config),
        [],
        [],
        request=f"request {number}",
        kind="sampled",
        library_version=0,
        model="m",
        note="",
        actor="ann",
    )


@dataclass
class Desk:
    clock: Clock
    store: Store
    work: FakeWork
    queue: Queue
    run_id: str

    def enqueue(self, caps: RunConfig | None = None) -> Job:
        return self.queue.enqueue(self.run_id, "ann", caps)

    def claim(self, worker: str = ONE) -> Job:
        job = self.queue.claim(worker)
        assert job is not None
        return job

    def carry_out(self, job: Job | None = None, *, leaving: Callable[[], Wish] = go) -> Came:
        job = job or self.claim()
        return carry_out(self.queue, job, self.store.runs.get(job.subject), ONE, leaving=leaving, beat_s=0.01)

    def events(self) -> list[str]:
        return [e.kind for e in self.store.events.newest() if e.kind.startswith("job.")]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    clock = Clock()
    store = Store(tmp_path / "winnow.db", clock)
    work = FakeWork(store)
    return Desk(clock, store, work, Queue(store, work), add_run(store))


def raising(error: Exception) -> Callable[[Progress, Wishes], RunStatus]:
    def attempt(progress: Progress, wishes: Wishes) -> RunStatus:
        raise error

    return attempt


# --- the queue ---


def test_a_run_has_one_open_job_however_often_it_is_asked_for(desk: Desk) -> None:
    first = desk.enqueue()
    assert desk.enqueue().id == first.id
    desk.carry_out()
    assert desk.enqueue().id != first.id, "what is done is not open any more"


def test_jobs_are_taken_up_in_the_order_in_which_they_were_asked_for(desk: Desk) -> None:
    other = add_run(desk.store, 2)
    desk.enqueue()
    desk.queue.enqueue(other, "ann")
    assert [desk.claim().subject, desk.claim().subject] == [desk.run_id, other]
    assert desk.queue.claim(ONE) is None


def test_a_job_under_a_lease_is_nobody_elses_until_the_lease_ran_out(desk: Desk) -> None:
    desk.enqueue()
    job = desk.claim()
    assert desk.queue.claim(TWO) is None
    desk.clock.seconds += int(LEASE_S) - 1
    assert desk.queue.beat(job.id, ONE, ("rollouts", 3, 9)) is not None
    desk.clock.seconds += int(LEASE_S) - 1
    assert desk.queue.claim(TWO) is None, "a heartbeat renews it"
    desk.clock.seconds += 1
    again = desk.claim(TWO)
    assert (again.id, again.state, again.attempts, again.done) == (job.id, "running", 2, 3)


def test_work_of_a_holder_that_is_known_to_be_dead_is_taken_up_at_once(desk: Desk) -> None:
    desk.enqueue()
    desk.claim()
    taken = desk.queue.claim(TWO, lost=lambda job: job.worker == ONE)
    assert taken is not None
    assert taken.worker == TWO


def test_a_worker_that_lost_its_lease_changes_nothing_any_more(desk: Desk) -> None:
    desk.enqueue()
    job = desk.claim()
    desk.clock.seconds += int(LEASE_S)
    taken = desk.claim(TWO)
    assert desk.queue.beat(job.id, ONE, ("rollouts", 9, 9)) is None
    assert desk.queue.end(job.id, ONE, "refused", "too late") == taken
    assert desk.queue.find(job.id) == taken


@pytest.mark.parametrize(
    ("state", "command", "said"),
    [
        ("done", lambda q: q.pause("J1", "ann"), "only work that waits or runs can be paused"),
        ("failed", lambda q: q.resume("J1", "ann"), "winnow jobs requeue"),
        ("done", lambda q: q.cancel("J1", "ann"), "nothing to cancel"),
        ("running", lambda q: q.requeue("J1", "ann"), "only failed, cancelled or paused"),
        ("waiting", lambda q: q.requeue("J1", "ann"), "only failed, cancelled or paused"),
        ("cancelling", lambda q: q.pause("J1", "ann"), "is cancelling"),
        ("cancelling", lambda q: q.enqueue("R1", "ann"), "is being cancelled"),
        ("cancelling", lambda q: q.cancel("J1", "ann", discard=True), "being cancelled already"),
    ],
)
def test_what_a_state_does_not_allow_is_refused_with_one_sentence_and_changes_nothing(
    desk: Desk, state: str, command: Callable[[Queue], Job], said: str
) -> None:
    desk.enqueue()
    if state == "done":
        desk.carry_out()
    elif state == "failed":
        desk.work.attempt = raising(InputError("no"))
        desk.carry_out()
    elif state != "waiting":
        desk.claim()
    if state == "cancelling":
        desk.queue.cancel("J1", "ann")
    before = desk.queue.find("J1")
    assert before.state == state
    with pytest.raises(InputError, match=said):
        command(desk.queue)
    assert desk.queue.find("J1") == before


def test_commands_that_ask_for_what_is_so_already_change_nothing_and_are_told_once(desk: Desk) -> None:
    desk.enqueue()
    for _ in range(2):
        desk.queue.pause("J1", "ann")
    for _ in range(2):
        desk.queue.resume("J1", "ann")
    for _ in range(2):
        desk.queue.cancel("J1", "ann")
    assert desk.events() == ["job.cancelled", "job.resumed", "job.paused"]
    assert desk.work.cancelled == [("R1", False)]


def test_a_job_is_found_by_its_run_and_what_is_not_there_is_said(desk: Desk) -> None:
    with pytest.raises(NotFoundError, match="winnow run --resume R1"):
        desk.queue.find("R1")
    desk.enqueue()
    assert desk.queue.find("R1").id == "J1"
    for name in ("J9", "R9", "", "'"):
        with pytest.raises(NotFoundError):
            desk.queue.find(name)


def test_a_pause_that_is_taken_back_before_it_was_heard_lets_the_work_go_on(desk: Desk) -> None:
    desk.enqueue()
    job = desk.claim()
    desk.queue.pause("J1", "ann", now=True)
    resumed = desk.queue.resume("J1", "ann")
    assert (resumed.state, resumed.now, resumed.worker) == ("running", False, job.worker)


def test_a_job_that_was_to_pause_when_its_worker_died_is_paused_and_not_run(desk: Desk) -> None:
    desk.enqueue()
    desk.claim()
    desk.queue.pause("J1", "ann")
    desk.clock.seconds += int(LEASE_S)
    assert desk.queue.claim(TWO) is None
    assert desk.queue.find("J1").state == "paused"


def test_a_cancellation_whose_worker_died_is_finished_by_the_next_one(desk: Desk) -> None:
    desk.enqueue()
    desk.claim()
    desk.queue.cancel("J1", "ann", discard=True)
    desk.clock.seconds += int(LEASE_S)
    assert desk.carry_out().job.state == "cancelled"
    assert desk.work.cancelled == [("R1", True)]
    assert desk.work.caps == [], "nothing more was worked on"


def test_what_nobody_works_on_is_cancelled_at_once(desk: Desk) -> None:
    desk.enqueue()
    assert desk.queue.cancel("R1", "ann", discard=True).state == "cancelled"
    assert desk.work.cancelled == [("R1", True)]


def test_a_cancellation_that_is_refused_leaves_the_job_paused_with_the_reason(desk: Desk) -> None:
    desk.enqueue()
    desk.work.refuses = InputError("P-0001 is published.")
    with pytest.raises(InputError, match="published"):
        desk.queue.cancel("J1", "ann", discard=True)
    job = desk.queue.find("J1")
    assert (job.state, job.error, job.discard) == ("paused", "P-0001 is published.", False)
    desk.work.refuses = None
    assert desk.queue.cancel("J1", "ann").state == "cancelled"


def test_what_was_discarded_is_not_requeued(desk: Desk) -> None:
    desk.enqueue()
    desk.queue.cancel("J1", "ann", discard=True)
    with pytest.raises(InputError, match="discarded"):
        desk.queue.requeue("J1", "ann")


def test_requeuing_makes_up_for_what_failed_and_clears_the_reason(desk: Desk) -> None:
    desk.enqueue()
    desk.work.attempt = raising(InputError("The key cannot be read."))
    assert desk.carry_out().job.error == "The key cannot be read."
    desk.work.failed = 3
    job = desk.queue.requeue("J1", "ann")
    assert (job.state, job.error, job.finished_at, desk.work.failed) == ("waiting", "", None, 0)


def test_requeuing_what_is_done_makes_a_new_job_only_where_something_failed(desk: Desk) -> None:
    desk.enqueue()
    desk.carry_out()
    with pytest.raises(InputError, match="Nothing failed"):
        desk.queue.requeue("J1", "ann")
    desk.work.failed = 1
    assert desk.queue.requeue("J1", "ann").id == "J2"


def test_an_old_job_is_not_requeued_beside_a_newer_one_of_the_same_run(desk: Desk) -> None:
    desk.enqueue()
    desk.work.attempt = raising(InputError("no"))
    desk.carry_out()
    desk.enqueue()
    with pytest.raises(InputError, match="J2 is waiting"):
        desk.queue.requeue("J1", "ann")


def test_other_caps_go_with_the_job_but_not_under_running_work(desk: Desk) -> None:
    more = RunConfig(seed=1, max_calls=100)
    desk.enqueue(RunConfig(seed=1, max_calls=5))
    desk.claim()
    with pytest.raises(InputError, match="pause it first"):
        desk.enqueue(more)
    desk.queue.end("J1", ONE, "held up", "cap")
    desk.enqueue(more)
    desk.carry_out()
    assert [caps.max_calls for caps in desk.work.caps if caps] == [100]


# --- carrying out ---


@pytest.mark.parametrize(
    ("error", "state", "why"),
    [
        (ModelUnavailableError("The endpoint is down."), "paused", "The endpoint is down."),
        (BudgetError("The cap of 5 calls is reached."), "paused", "The cap of 5 calls is reached."),
        (InputError("The key cannot be read."), "failed", "The key cannot be read."),
        (ZeroDivisionError("a bug"), "failed", FAULT),
        (BusyError("Another process works on R1."), "waiting", "Another process works on R1."),
        (StoppedError("stopped"), "waiting", ""),
    ],
)
def test_whatever_goes_wrong_becomes_a_state_and_a_sentence(
    desk: Desk, error: Exception, state: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.enqueue()
    desk.work.attempt = raising(error)
    came = desk.carry_out()
    assert (came.job.state, came.job.worker, came.job.lease_until) == (state, "", None)
    assert came.job.error.startswith(why)
    assert came.error is error
    assert ("a bug" in capsys.readouterr().err) == isinstance(error, ZeroDivisionError)


def test_a_gate_that_waits_for_a_person_pauses_the_job_and_says_what_to_do(desk: Desk) -> None:
    desk.enqueue()
    desk.work.attempt = lambda progress, wishes: "review"
    came = desk.carry_out()
    assert came.job.state == "paused"
    assert "decide on its proposals" in came.job.error
    desk.work.attempt = lambda progress, wishes: "done"
    desk.queue.resume("J1", "ann")
    assert desk.carry_out().job.state == "done"


def test_ctrl_c_pauses_the_job_so_that_nothing_goes_on_behind_ones_back(desk: Desk) -> None:
    def interrupted(progress: Progress, wishes: Wishes) -> RunStatus:
        raise KeyboardInterrupt

    desk.enqueue()
    desk.work.attempt = interrupted
    with pytest.raises(KeyboardInterrupt):
        desk.carry_out()
    assert desk.queue.find("J1").state == "paused"


def until(wishes: Wishes, wanted: Wish) -> None:
    """Work until a wish is heard."""
    for _ in range(2000):
        if wishes() == wanted:
            raise StoppedError("heard")
        threading.Event().wait(0.005)
    raise AssertionError(f"nobody wished {wanted!r}")


@pytest.mark.parametrize(
    ("command", "wanted", "state"),
    [
        (lambda q: q.pause("J1", "ann"), "pause", "paused"),
        (lambda q: q.pause("J1", "ann", now=True), "now", "paused"),
        (lambda q: q.cancel("J1", "ann"), "now", "cancelled"),
    ],
)
def test_running_work_hears_what_people_want_and_ends_up_there(
    desk: Desk, command: Callable[[Queue], Job], wanted: Wish, state: str
) -> None:
    def attempt(progress: Progress, wishes: Wishes) -> RunStatus:
        assert wishes() == "go"
        command(desk.queue)
        until(wishes, wanted)
        raise AssertionError

    desk.enqueue()
    desk.work.attempt = attempt
    assert desk.carry_out().job.state == state


def test_a_worker_that_is_to_end_gives_its_job_back(desk: Desk) -> None:
    def attempt(progress: Progress, wishes: Wishes) -> RunStatus:
        until(wishes, "pause")
        raise AssertionError

    desk.enqueue()
    desk.work.attempt = attempt
    assert desk.carry_out(leaving=lambda: "pause").job.state == "waiting"


def test_work_that_got_done_before_a_cancellation_was_heard_is_done(desk: Desk) -> None:
    def attempt(progress: Progress, wishes: Wishes) -> RunStatus:
        desk.queue.cancel("J1", "ann", discard=True)
        return "done"

    desk.enqueue()
    desk.work.attempt = attempt
    assert desk.carry_out().job.state == "done"
    assert desk.work.cancelled == []


def test_progress_is_written_by_heartbeats_and_the_last_of_it_at_the_end(desk: Desk) -> None:
    def attempt(progress: Progress, wishes: Wishes) -> RunStatus:
        for done in range(500):
            progress("rollouts", done, 500)
        return "done"

    desk.enqueue()
    desk.work.attempt = attempt
    beats = []
    beat = desk.queue.beat
    desk.queue.beat = lambda *a: beats.append(a) or beat(*a)  # type: ignore[method-assign,func-returns-value]
    carry_out(desk.queue, desk.claim(), desk.store.runs.get("R1"), ONE, beat_s=60)
    assert len(beats) == 1
    job = desk.queue.find("J1")
    assert (job.what, job.done, job.total) == ("rollouts", 499, 500)


def test_a_heart_whose_lease_went_to_somebody_else_drops_the_work(desk: Desk) -> None:
    desk.enqueue()
    heart = Heart(desk.queue, desk.claim(), ONE, leaving=go)
    heart.beat()
    assert heart.wish() == "go"
    desk.clock.seconds += int(LEASE_S)
    desk.claim(TWO)
    heart.beat()
    assert heart.wish() == "now"


def test_a_heartbeat_that_fails_is_made_up_for_by_the_next_one(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = threading.Event()
    beat = desk.queue.beat
    failures = [OSError("disk full")]

    def failing(*args: object) -> Job | None:
        if failures:
            raise failures.pop()
        seen.set()
        return beat(*args)  # type: ignore[arg-type]

    desk.queue.beat = failing  # type: ignore[method-assign]
    desk.enqueue()
    with Heart(desk.queue, desk.claim(), ONE, leaving=go, beat_s=0.01):
        assert seen.wait(10)
    assert "disk full" in capsys.readouterr().err


# --- any sequence ---


class AnySequence(RuleBasedStateMachine):
    """Whatever people command and whenever workers crash: no job is lost, worked on twice at once, or stuck."""

    jobs = st.sampled_from(["R1", "R2"])
    workers = st.sampled_from([ONE, TWO])
    endings = st.sampled_from(["done", "review", "stopped", "busy", "down", "bug"])

    @initialize()
    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.clock = Clock()
        self.store = Store(Path(self.folder.name) / "winnow.db", self.clock)
        self.work = FakeWork(self.store)
        self.queue = Queue(self.store, self.work)
        self.runs = [add_run(self.store, n) for n in (1, 2)]
        self.held: dict[str, Job] = {}
        """What each worker that is alive believes to work on."""
        self.known: set[str] = set()
        self.said: list[str] = []

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.drain()
            self.folder.cleanup()

    @rule(run_id=jobs)
    def enqueue(self, run_id: str) -> None:
        self.tried(lambda: self.queue.enqueue(run_id, "ann"))

    @rule(run_id=jobs, command=st.sampled_from(["pause", "now", "resume", "keep", "discard", "requeue"]))
    def command(self, run_id: str, command: str) -> None:
        commands: dict[str, Callable[[], Job]] = {
            "pause": lambda: self.queue.pause(run_id, "ann"),
            "now": lambda: self.queue.pause(run_id, "ann", now=True),
            "resume": lambda: self.queue.resume(run_id, "ann"),
            "keep": lambda: self.queue.cancel(run_id, "ann"),
            "discard": lambda: self.queue.cancel(run_id, "ann", discard=True),
            "requeue": lambda: self.queue.requeue(run_id, "ann"),
        }
        self.tried(commands[command])

    @rule(worker=workers)
    def claim(self, worker: str) -> None:
        if worker not in self.held and (job := self.queue.claim(worker)):
            self.held[worker] = job

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        del self.held[data.draw(st.sampled_from(sorted(self.held)))]

    @rule(seconds=st.sampled_from([1, 20, int(LEASE_S)]))
    def time_passes(self, seconds: int) -> None:
        self.clock.seconds += seconds

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def beat(self, data: st.DataObject) -> None:
        worker = data.draw(st.sampled_from(sorted(self.held)))
        if self.queue.beat(self.held[worker].id, worker, ("rollouts", 1, 2)) is None:
            del self.held[worker]

    @precondition(lambda self: self.held)
    @rule(data=st.data(), ending=endings)
    def come_home(self, data: st.DataObject, ending: str) -> None:
        worker = data.draw(st.sampled_from(sorted(self.held)))
        self.finish(worker, self.held.pop(worker), ending)

    def finish(self, worker: str, job: Job, ending: str) -> None:
        self.work.attempt = {
            "done": lambda progress, wishes: "done",
            "review": lambda progress, wishes: "review",
            "stopped": raising(StoppedError("s")),
            "busy": raising(BusyError("b")),
            "down": raising(ModelUnavailableError("m")),
            "bug": raising(InputError("i")),
        }[ending]  # type: ignore[assignment]
        carry_out(self.queue, job, self.store.runs.get(job.subject), worker, beat_s=60)

    def tried(self, command: Callable[[], Job]) -> None:
        try:
            self.known.add(command().id)
        except InputError as e:
            self.said.append(str(e))

    def drain(self) -> None:
        """One worker that lives on brings all that is due to an end or a pause: nothing is stuck."""
        self.held.clear()
        self.clock.seconds += int(LEASE_S)
        for _ in range(10):
            if job := self.queue.claim(ONE):
                self.finish(ONE, job, "done")
        assert self.queue.due() == []
        assert {j.id for j in self.queue.newest()} >= self.known, "no job is lost"
        assert all(said and "\n" not in said for said in self.said)

    @invariant()
    def a_run_has_at_most_one_open_job(self) -> None:
        if hasattr(self, "queue"):
            open_jobs = [j.subject for j in self.queue.newest() if j.state not in ENDED]
            assert len(open_jobs) == len(set(open_jobs))

    @invariant()
    def nobody_works_on_what_another_one_holds(self) -> None:
        if hasattr(self, "queue"):
            now = self.clock()
            held = [j for j in self.queue.newest() if j.worker and (j.lease_until or "") > now]
            for job in held:
                assert job.state in ("running", "pausing", "cancelling")
            believers = [
                w
                for w, job in self.held.items()
                if (found := self.queue.find(job.id)).worker == w and (found.lease_until or "") > now
            ]
            assert len({self.held[w].id for w in believers}) == len(believers)

    @invariant()
    def who_let_go_holds_nothing(self) -> None:
        if hasattr(self, "queue"):
            for job in self.queue.newest():
                assert bool(job.worker) == bool(job.lease_until)
                if job.state in ("waiting", "paused", *ENDED):
                    assert not job.worker
                assert (job.finished_at is not None) == (job.state in ENDED)


TestAnySequence = AnySequence.TestCase
TestAnySequence.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)


def test_a_job_is_the_same_after_a_round_trip(desk: Desk) -> None:
    desk.enqueue(RunConfig(seed=1, max_calls=7))
    job = desk.claim()
    assert Job(**json.loads(job.canonical())) == desk.queue.find("J1") == job
