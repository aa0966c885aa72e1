"""What a user may change, with units: endpoints, and the configuration of a run."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self, get_args
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, JsonValue, field_validator, model_validator

from core.record import Record

EMBEDDED = "embedded"
"""Name of the endpoint that is always there: the model that Winnow brings along."""

INJECTION_SHARE = 0.25
"""Share of the context length that injected experiences may take (DESIGN 2.7)."""

N_MAX = 500
"""Live experiences that a library may hold, where the workspace names no other number (DESIGN 2.7)."""


class VerifierSpec(Record):
    """Which verifier checks a task, and its options (see `core.verifiers`)."""

    kind: str
    options: dict[str, JsonValue] = Field(default_factory=dict)


Role = Literal["rollout", "extraction", "judge", "embedding"]
"""What an endpoint may be used for."""

ROLES: tuple[Role, ...] = ("rollout", "extraction", "judge")
"""Those of them that take a chat model."""


class Endpoint(Record):
    """An OpenAI-compatible endpoint. The key itself is never stored, only the name of its variable."""

    model_config = ConfigDict(allow_inf_nan=False)

    name: str
    base_url: str = ""
    """Empty for the embedded model, whose address is known once it is served."""
    model: str
    key_env: str | None = None
    """Environment variable that holds the key; must be on the local allow-list."""
    context_length: int = Field(default=8192, ge=256)
    """Tokens of prompt and reply together."""
    injection_tokens: int | None = Field(default=None, ge=0)
    """Token budget of the injected experiences; None takes a quarter of the context length."""
    price_in: float = Field(default=0.0, ge=0)
    """US dollars for one million prompt tokens."""
    price_out: float = Field(default=0.0, ge=0)
    """US dollars for one million completion tokens."""
    concurrency: int = Field(default=8, ge=1, le=512)
    """Requests in flight at once."""
    requests_per_minute: int | None = Field(default=None, ge=1)
    """None = no limit besides the concurrency."""
    tokens_per_minute: int | None = Field(default=None, ge=1)
    """Prompt and completion tokens together; None = no limit."""
    timeout_s: float = Field(default=120.0, gt=0)
    """Of one request."""
    retries: int = Field(default=4, ge=0, le=10)
    sends_n: bool = False
    """Whether one request may ask for several replies (`n`); else each reply is a request."""
    sends_seed: bool = True
    json_schema: bool = False
    """Whether the endpoint enforces a JSON schema in `response_format`."""
    bias_range: float = Field(default=100.0, ge=0, le=100)
    """Largest |bias| of a token in `logit_bias` (OpenAI's API: 100); 0 = it takes no `logit_bias`."""
    bias_entries: int = Field(default=300, ge=0)
    """Most tokens in one `logit_bias` (300 is what OpenAI's API was seen to take)."""
    logprobs: bool = False
    """Whether it gives the log-probability of each token, with its id, as llama.cpp's server does."""
    grammar: bool = False
    """Whether it takes llama.cpp's `grammar` with token ids: only then a given text can be scored."""
    tokenizer: str | None = None
    """Path of the model's tokenizer.json; None = not known here, so no token prior can be made or applied."""
    extra: dict[str, JsonValue] = Field(default_factory=dict)
    """Further fields of the request body, e.g. {"top_k": 40}."""

    @field_validator("name")
    @classmethod
    def _plain_name(cls, value: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", value):
            raise ValueError("use 1 to 64 letters, digits, dots, dashes or underscores")
        return value

    @field_validator("base_url")
    @classmethod
    def _http(cls, value: str) -> str:
        if not value:
            return value
        parts = urlsplit(value.strip())
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("must start with http:// or https:// and name a host")
        if parts.username is not None or parts.query or parts.fragment:
            raise ValueError("must hold no user name, password or query: keys stay in environment variables")
        return value.strip().rstrip("/")

    @field_validator("key_env")
    @classmethod
    def _variable_name(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
            raise ValueError("give the NAME of an environment variable, never the key itself")
        return value

    @property
    def injection_budget(self) -> int:
        """Tokens that injected experiences may take."""
        if self.injection_tokens is not None:
            return self.injection_tokens
        return int(self.context_length * INJECTION_SHARE)

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """US dollars."""
        return (prompt_tokens * self.price_in + completion_tokens * self.price_out) / 1e6


def free(*endpoints: str | None) -> bool:
    """Whether these endpoints, by name, are all the embedded model, which costs nothing."""
    return all(name == EMBEDDED for name in endpoints if name)


Component = Literal["verified", "tools", "accepted", "epistemic"]
"""What a reward is made of (DESIGN 2.2): the verifiers' r, the share of tool calls that succeeded rho_s, the user's
acceptance rho_a, and the epistemic reward u. All but the last are extrinsic."""

PARTS = {*get_args(Component), "diversity", "novelty", "recorded", "named"}
"""Names that the parts of a reward are stored under."""

Preset = Literal["verified", "ASO", "agent", "agent-paper", "own"]

PRESETS: dict[Preset, dict[Component, float]] = {
    "verified": {"verified": 1.0},
    "ASO": {"verified": 0.7, "epistemic": 0.3},
    "agent": {"verified": 0.5, "tools": 0.2, "accepted": 0.3},
    "agent-paper": {"tools": 0.4, "accepted": 0.6},
}


class RewardConfig(Record):
    """How rewards are made. They can be made anew from the stored parts, without asking any model."""

    model_config = ConfigDict(allow_inf_nan=False)

    preset: Preset = "verified"
    weights: dict[Component, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)
    """By component, for the preset "own"; the others bring theirs."""
    verifiers: dict[str, VerifierSpec] = Field(default_factory=dict)
    """Verifiers of every task besides its own, by the name that their score is stored under."""
    verifier_weights: dict[str, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)
    """Weight of each score in `verified`, by its name; 1 where absent."""
    silence_accepts: bool = False
    """Whether an outcome that nobody rejected within 120 s counts as accepted."""

    @model_validator(mode="after")
    def _weighed(self) -> Self:
        if self.preset == "own" and not any(self.weights.values()):
            raise ValueError('the preset "own" needs a weight above 0 in `weights`')
        if self.preset == "own" and not any(w for c, w in self.weights.items() if c != "epistemic"):
            raise ValueError("novelty alone teaches nothing: give verified, tools or accepted a weight too")
        if taken := sorted(PARTS & self.verifiers.keys()):
            raise ValueError(
                f"{taken[0]!r} is the name of a part of the reward; give the verifier another one"
            )
        if self.preset != "own" and self.weights:
            raise ValueError(f'`weights` belong to the preset "own", not to {self.preset!r}')
        return self

    @property
    def by_component(self) -> dict[Component, float]:
        """The weight of each component, those above 0."""
        weights = self.weights if self.preset == "own" else PRESETS[self.preset]
        return {name: weight for name, weight in weights.items() if weight > 0}


class AgentConfig(Record):
    """A rollout that may use tools, in place of a single reply."""

    model_config = ConfigDict(allow_inf_nan=False)

    tools: tuple[str, ...] = ("python",)
    """`python`, `fetch`, `files`, and `mcp:NAME` for a server that the trust file names."""
    instructions: str = ""
    """Said in the system prompt, before the lessons."""
    fetch_hosts: tuple[str, ...] = ()
    """Hosts that `fetch` may ask, subdomains only where written `*.example.org`."""
    max_steps: int = Field(default=12, ge=1, le=200)
    """Tool calls of one rollout."""
    time_limit_s: float = Field(default=300.0, gt=0)
    """Of one rollout."""
    gates: tuple[VerifierSpec, ...] = ()
    """The final answer is let through only where each of these gives 1; else the agent is told why, once."""

    @model_validator(mode="after")
    def _fetches_somewhere(self) -> Self:
        if ("fetch" in self.tools) != bool(self.fetch_hosts):
            raise ValueError(
                "the tool `fetch` and `fetch_hosts` (--fetch-host) belong together: give both or none"
            )
        return self


class Resample(Record):
    """Sampling anew where a group taught nothing."""

    model_config = ConfigDict(allow_inf_nan=False)

    temperature: float = Field(default=1.0, ge=0, le=2)
    attempts: int = Field(default=1, ge=1, le=8)
    """How often a task may be sampled anew, each time as a group of its own."""


Gate = Literal["none", "review", "auto", "trial"]
"""What happens between batches: collect, wait for a person, publish all valid proposals, or try them on trial tasks and
publish those that were measured to help (DESIGN 2.10)."""


class RunConfig(Record):
    """What a run is to do. Two runs with equal configurations on equal tasks are the same run."""

    model_config = ConfigDict(allow_inf_nan=False)

    endpoint: str = EMBEDDED
    extraction_endpoint: str | None = None
    """With one, the three LLM stages run beside the evidence extractor."""
    judge_endpoint: str | None = None
    """Who is asked by verifiers of the kind "judge"."""
    group_size: int = Field(default=8, ge=1, le=64)
    split: Literal["train", "trial", "final"] = "train"
    domains: tuple[str, ...] = ()
    """Only tasks of these domains; empty = all."""
    limit: int | None = Field(default=None, ge=1)
    """At most this many tasks of each domain, the first of the seeded order; None = all."""
    temperature: float = Field(default=0.7, ge=0, le=2)
    top_p: float = Field(default=0.95, gt=0, le=1)
    max_tokens: int = Field(default=64, ge=1)
    stop: tuple[str, ...] = ()
    seed: int = Field(default=0, ge=0, lt=2**31)
    batch_size: int = Field(default=40, ge=1)
    """Tasks of one batch; the last one may be shorter. Extraction works batch by batch."""
    epochs: int = Field(default=1, ge=1, le=100)
    """How often every task is used; it ends early when an epoch brought nothing informative."""
    gate: Gate = "none"
    reward: RewardConfig = RewardConfig()
    agent: AgentConfig | None = None
    """With one, each rollout is an agent with tools."""
    resample: Resample | None = None
    """With one, a task whose group was uninformative is sampled anew."""
    rollout_timeout_s: float | None = Field(default=None, gt=0)
    """Of one rollout, its retries and waits included; None = as long as its requests may take."""
    withhold_answer: bool = False
    """Keep the right answers from the extraction model (self-contrast)."""
    library_version: int | None = None
    """None = the newest when the run starts; it is then pinned for the whole run."""
    max_calls: int | None = Field(default=None, ge=0)
    """Cap on model calls; None = no cap."""
    max_tokens_total: int | None = Field(default=None, ge=0)
    max_cost_usd: float | None = Field(default=None, ge=0)
    prior: str | None = None
    """Id of a token prior that is added to the logits of each reply (DESIGN 2.8); None = none."""
    arm: str = ""
    """Name of the arm that it is, where it is part of an evaluation (`core.proof`); empty for every other run."""

    @property
    def free(self) -> bool:
        """Whether only the embedded model is asked, which costs nothing."""
        return free(self.endpoint, self.extraction_endpoint, self.judge_endpoint)

    @model_validator(mode="after")
    def _compares(self) -> Self:
        if self.group_size < 2 and not self.arm:
            raise ValueError("group_size must be at least 2: one rollout has nothing to be compared with")
        if self.prior and self.agent:
            raise ValueError(
                "a token prior is for single replies: it would bias the tool calls of an agent, too"
            )
        return self
