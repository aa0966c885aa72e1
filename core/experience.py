"""Experience, operation, proposal and version: what was learned, and who decided it.

The 32-word limit is a rule of the *library* (checked when a proposal is approved and again when it
is published), not of the type: a proposal that is too long must stay visible so that it can be edited.
"""

from __future__ import annotations

from typing import Annotated, Literal, assert_never

from pydantic import AfterValidator, Field, field_validator

from core.record import Record

Kind = Literal["strategy", "tool_selection", "failure_pattern", "convention"]
KINDS: tuple[Kind, ...] = ("strategy", "tool_selection", "failure_pattern", "convention")

MAX_WORDS = 32
"""An experience has at most this many words (TF-GRPO, Stage 3; DESIGN 2.4)."""

MAX_CHARACTERS = 1_000
"""An experience has at most so many, however few words they make: a run without spaces is one word (`core.words`)."""

GENERAL = "general"
"""The domain whose lessons go with every task."""

START_CONFIDENCE = 0.5
"""Confidence of a new experience; 0.7 with corrected p < .05, 0.8 from a user's correction (DESIGN 2.7)."""

EVIDENCE_CONFIDENCE = 0.7

CORRECTION_CONFIDENCE = 0.8


def check_text(text: str) -> str:
    """Refuse what no experience may hold; every other character is kept as it is."""
    if not text.strip():
        raise ValueError("the text is empty")
    if "\x00" in text:
        raise ValueError("the text holds the NUL character")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as e:
        raise ValueError("the text holds half of a surrogate pair") from e
    return text


MAX_DOMAIN = 100
"""Characters of a domain."""


def check_domain(domain: str) -> str:
    """Refuse what no task can be asked to match: a domain is found by its exact characters.

    Raises:
        ValueError: it is empty or too long, has outer spaces, or holds what cannot be seen.
    """
    if not domain:
        raise ValueError("the domain is empty")
    if len(domain) > MAX_DOMAIN:
        raise ValueError(f"the domain has {len(domain):,} characters; at most {MAX_DOMAIN} are taken")
    if domain != domain.strip():
        raise ValueError("the domain begins or ends with a space")
    if not domain.isprintable():
        raise ValueError("the domain holds a character that cannot be seen")
    return domain


def same_domain(a: str, b: str) -> bool:
    """Whether two domains differ only in case or spaces.

    >>> same_domain("General", "general "), same_domain("office work", "office  Work"), same_domain("a b", "ab")
    (True, True, False)
    """
    return " ".join(a.casefold().split()) == " ".join(b.casefold().split())


class _WithText(Record):
    text: str

    @field_validator("text")
    @classmethod
    def _checked(cls, value: str) -> str:
        return check_text(value)


def _as_of_a_task(domain: str) -> str:
    """Refuse what no task has as its domain; more is asked of a person who names one (`check_domain`)."""
    if any(ord(c) < 32 or ord(c) == 127 for c in domain):
        raise ValueError("the domain holds a control character")
    return domain


Domain = Annotated[str, AfterValidator(_as_of_a_task)]


class Add(_WithText):
    """A new lesson."""

    op: Literal["add"] = "add"
    kind: Kind = "strategy"
    domain: Domain = "general"


class Modify(_WithText):
    """Another text for a lesson; its id stays."""

    op: Literal["modify"] = "modify"
    experience_id: str
    kind: Kind | None = None
    """None keeps the kind."""
    domain: Domain | None = None
    """None keeps the domain."""


class Delete(Record):
    """Take a lesson out of the library (its history stays)."""

    op: Literal["delete"] = "delete"
    experience_id: str


class Merge(_WithText):
    """One lesson in place of several; the first id lives on, the others point to it."""

    op: Literal["merge"] = "merge"
    experience_ids: tuple[str, ...] = Field(min_length=2)

    @field_validator("experience_ids")
    @classmethod
    def _distinct(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) != len(value):
            raise ValueError("a merge names the same experience twice")
        return value


Operation = Annotated[Add | Modify | Delete | Merge, Field(discriminator="op")]


def text_of(operation: Add | Modify | Delete | Merge) -> str | None:
    """The text that the operation would put into the library; None for a delete."""
    return None if isinstance(operation, Delete) else operation.text


def with_text(operation: Add | Modify | Delete | Merge, text: str) -> Add | Modify | Merge:
    """The same operation with a reviewer's own text.

    Raises:
        ValueError: a delete has no text, or the text is not one (see `check_text`).
    """
    if isinstance(operation, Delete):
        raise ValueError("a delete has no text to edit")
    return operation.model_copy(update={"text": check_text(text)})


def targets_of(operation: Add | Modify | Delete | Merge) -> tuple[str, ...]:
    """Ids of the experiences that the operation changes; none for an add."""
    match operation:
        case Add():
            return ()
        case Modify() | Delete():
            return (operation.experience_id,)
        case Merge():
            return operation.experience_ids
        case _:
            assert_never(operation)


class Experience(Record):
    """One lesson of at most 32 words, with an id for life."""

    id: str
    """`E-0007`: never reused."""
    text: str
    kind: Kind = "strategy"
    domain: str = "general"
    confidence: float = Field(default=START_CONFIDENCE, ge=0.05, le=0.95)
    uses: int = Field(default=0, ge=0)
    wins: int = Field(default=0, ge=0)
    epoch: int = 0
    """Epoch of birth; age is counted in epochs."""
    status: Literal["live", "deleted", "merged"] = "live"
    merged_into: str | None = None
    proposal_id: str | None = None
    """The proposal that its present text came from."""
    learned_on: str = ""
    """Model that the evidence came from; empty where a person wrote the lesson."""


BASE_FIELDS = ("kind", "domain")
"""What of an experience says where it is injected and how it counts there; its change is seen like one of the text."""


def fields_of(experience: Experience) -> dict[str, str]:
    """What a proposal that changes an experience is based on, besides its text."""
    return {name: getattr(experience, name) for name in BASE_FIELDS}


class Finding(Record):
    """One counted contrast between winners (A > 0) and losers (A < 0) (DESIGN 2.5)."""

    feature: str
    """Stable name of the feature, e.g. `first_tool=read_json` or `answer_ends_with_period`."""
    label: str
    """The feature in words, fit for a sentence: "called read_json first"."""
    winners_with: int
    winners: int
    losers_with: int
    losers: int
    odds_ratio: float
    """With 0.5 added to each cell, pooled over tasks (Mantel-Haenszel) where there are several."""
    p: float
    """Uncorrected p, Cochran-Mantel-Haenszel stratified by group."""
    p_corrected: float
    """Corrected over all features tried (max-T permutation within groups)."""
    groups: int = 0
    """How many informative groups the contrast was seen in."""


class Evidence(Record):
    """What stands behind a proposal."""

    findings: tuple[Finding, ...] = ()
    group_ids: tuple[str, ...] = ()
    rollout_ids: tuple[str, ...] = ()
    """Examples first: winners that show the feature, losers that do not."""
    steps: dict[str, int] = Field(default_factory=dict)
    """The step of a rollout, from 1, that it is about, by the id of the rollout; where a person pointed at one."""
    sentence: str = ""
    """The counts in one line: "7 of 8 winners called read_json first, 1 of 9 losers"."""
    features_tried: int = 0
    permutations: int = 0


ProposalStatus = Literal[
    "proposed",
    "approved",
    "rejected",
    "deferred",
    "superseded",
    "quarantined",
    "stale",
    "published",
]
OPEN_STATUSES: tuple[ProposalStatus, ...] = ("proposed", "deferred", "stale")
PENDING: tuple[ProposalStatus, ...] = (*OPEN_STATUSES, "approved")
"""Not decided, or decided and not published."""

Extractor = Literal["evidence", "llm", "person", "correction", "pack", "audit"]
"""Who suggested it: counted evidence, a model, a person, one who corrected a rollout, an imported library, an audit
of the library."""


class Proposal(Record):
    """An operation with its evidence, its status, and the version that it was based on."""

    id: str
    """`P-0003`."""
    operation: Operation
    status: ProposalStatus = "proposed"
    extractor: Extractor = "evidence"
    rationale: str = ""
    evidence: Evidence = Evidence()
    run_id: str | None = None
    base_version: int = 0
    base_texts: dict[str, str] = Field(default_factory=dict)
    """Text of each target when the proposal was made; another text now makes it stale."""
    base_fields: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Kind and domain of each target in the base version, likewise: {"E-0007": {"kind": ..., "domain": ...}}; the store
    looks them up. What was proposed before they were kept has none."""
    confidence: float = START_CONFIDENCE
    learned_on: str = ""
    epoch: int = 0
    raw_reply: str = ""
    """The model's reply that the proposal was read from; empty for the evidence extractor."""
    edited_text: str | None = None
    """The reviewer's own text, when it was edited before approval."""
    reason: str = ""
    """Why it was rejected, deferred, superseded or quarantined."""
    decided_by: str | None = None
    decided_at: str | None = None
    """UTC, ISO 8601."""
    revision: int = 0
    """Counts its decisions; a decision names the revision it was made on."""
    published_in: int | None = None
    experience_id: str | None = None
    """What it became, once published."""

    @property
    def effective(self) -> Add | Modify | Delete | Merge:
        """The operation with the reviewer's own text, if there is one: what will be stored."""
        if self.edited_text is None:
            return self.operation
        return with_text(self.operation, self.edited_text)


class Version(Record):
    """One published state of the library."""

    number: int = Field(ge=0)
    parent: int | None = None
    author: str
    message: str
    created_at: str
    """UTC, ISO 8601."""
    proposal_ids: tuple[str, ...] = ()
    size: int = 0
    """Live experiences."""


class Quarantined(Record):
    """An operation that could not become a proposal: kept with its reason and the raw reply."""

    reason: str
    raw: str
    run_id: str | None = None
    group_ids: tuple[str, ...] = ()
