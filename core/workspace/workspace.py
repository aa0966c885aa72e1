"""One workspace: a folder with a database, and everything that can be done with it."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from pathlib import Path

from core import worker
from core.errors import InputError
from core.jobs import Queue
from core.ports import Progress, silent
from core.record import Record
from core.review import Review
from core.roles import Role
from core.rollout import RunStatus, Tally
from core.store import Store
from core.store.events import Clock
from core.store.standing import Margin
from core.store.store import utc_now
from core.workspace.auditing import Auditing
from core.workspace.correcting import Correcting
from core.workspace.crediting import Crediting
from core.workspace.evaluating import Evaluating
from core.workspace.intake import Intake
from core.workspace.learning import Learning
from core.workspace.measuring import Measuring
from core.workspace.models import Models
from core.workspace.nearest import Comparing
from core.workspace.people import People, workspace_as
from core.workspace.policy import Policies
from core.workspace.preferences import Preferences
from core.workspace.prior_gate import PriorGate
from core.workspace.priors import Priors
from core.workspace.rescoring import Rescoring
from core.workspace.sample import SampleLoaded, load_sample
from core.workspace.scoring import judging, unasked
from core.workspace.shipping import Shipping

VARIABLE = "WINNOW_WORKSPACE"
FOLDER = ".winnow"
DATABASE = "winnow.db"


class RunStanding(Record):
    """The newest run, as far as the loop goes."""

    id: str
    status: RunStatus
    tally: Tally


class Overview(Record):
    """Where a workspace stands in the loop."""

    tasks: dict[str, dict[str, int]]
    """Number of tasks by domain and split."""
    set_aside: int
    runs: int
    newest_run: RunStanding | None
    rollouts: int
    groups: Tally
    proposals: dict[str, int]
    """Number of proposals by status."""
    version: int
    experiences: int
    packs: int
    """How often one was exported."""

    @property
    def waiting_review(self) -> int:
        return self.proposals.get("proposed", 0) + self.proposals.get("deferred", 0)

    @property
    def staged(self) -> int:
        return self.proposals.get("approved", 0)


class Workspace:
    """Everything that pages and commands do, behind the noun that they do it to."""

    def __init__(self, folder: Path, clock: Clock = utc_now) -> None:
        """Open the workspace in a folder, or make one there.

        Raises:
            InputError: the folder cannot be used, or its database is of a newer Winnow.
        """
        self.folder = folder
        if folder.exists() and not folder.is_dir():
            raise InputError(
                f"{folder} is a file; a workspace is a folder. Name another one with --workspace."
            )
        try:
            if not folder.exists():
                folder.mkdir(parents=True)
                note = folder / ".gitignore"
                note.write_text(
                    "*\n", encoding="utf-8"
                )  # rollouts hold what the tasks hold: not for a repository
        except OSError as e:
            raise InputError(f"The workspace folder {folder} cannot be used: {e.strerror or e}.") from e
        self.store = Store(folder / DATABASE, clock)
        self.models = Models(self.store)
        self.learning = Learning(self.store, self.models, folder / "locks")
        self.intake = Intake(self.store, folder, self.learning.holding, unasked(), self.models.embedder)
        self.rescoring = Rescoring(
            self.store, self.learning.holding, self.models.embedder, judging(self.models)
        )
        self.measuring = Measuring(self.store)
        self.evaluating = Evaluating(self.store, self.models, self.learning, self.measuring)
        self.jobs = Queue(self.store, self.learning, self.evaluating)
        self.preferences = Preferences(self.store)
        self.people = People(self.store)
        self.review = Review(self.store)
        self.comparing = Comparing(self.store, self.models.embedder)
        self.correcting = Correcting(self.store, self.comparing)
        self.crediting = Crediting(self.store)
        self.auditing = Auditing(self.store, self.models.embedder)
        self.priors = Priors(self.store, self.models)
        self.prior_gate = PriorGate(self.store, self.evaluating)
        self.policies = Policies(self.store, self.models)
        self.shipping = Shipping(self.store, self.comparing)

    def as_(self, role: Role) -> Workspace:
        """The same for somebody in a role: what it may not do raises TrustError and changes nothing."""
        return workspace_as(self, role)

    def load_sample(self, actor: str, progress: Progress = silent) -> SampleLoaded:
        """Import the sample project; again, it changes nothing."""
        return load_sample(self.intake, self.learning, actor, progress)

    def ensure_worker(self) -> None:
        """Start a worker in the background where something is due and none runs."""
        worker.ensure(self)

    def worker_trouble(self) -> str:
        """What the worker that this process started said last, where it ended badly; empty else."""
        return worker.last_words(self)

    def margin(self) -> Margin:
        """What stands beside every page; costs a few counts on indexes."""
        return self.store.standing.margin()

    def overview(self) -> Overview:
        margin, newest = self.store.standing.margin(), self.store.standing.newest_run()
        run = None
        if newest:
            run = RunStanding(id=newest[0], status=newest[1], tally=self.store.runs.tally(newest[0]))
        return Overview(
            tasks=self.store.tasks.counts(),
            set_aside=self.store.tasks.count_aside(),
            runs=self.store.runs.count(),
            newest_run=run,
            rollouts=self.store.groups.count_rollouts(),
            groups=self.store.runs.tally(),
            proposals=self.store.proposals.counts(),
            version=margin.version,
            experiences=margin.experiences,
            packs=self.store.standing.packs(),
        )


def workspace_path(named: str | None = None, environ: Mapping[str, str] = os.environ) -> Path:
    """The folder that is meant: the one named, else `WINNOW_WORKSPACE`, else `.winnow` in the current folder."""
    return Path(named or environ.get(VARIABLE) or FOLDER).expanduser().resolve()


def whoami() -> str:
    """The name that decisions are kept under; nobody checks it."""
    try:
        return os.environ.get("WINNOW_USER") or getpass.getuser()
    except (KeyError, OSError):
        return "somebody"
