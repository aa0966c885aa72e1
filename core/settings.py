"""What a user may change, with units: endpoints, and the configuration of a run."""

from __future__ import annotations

import re
from typing import Literal
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, JsonValue, field_validator

from core.record import Record

EMBEDDED = "embedded"
"""Name of the endpoint that is always there: the model that Winnow brings along."""

INJECTION_SHARE = 0.25
"""Share of the context length that injected experiences may take (DESIGN 2.7)."""

Role = Literal["rollout", "extraction", "judge"]
ROLES: tuple[Role, ...] = ("rollout", "extraction", "judge")


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
    timeout_s: float = Field(default=120.0, gt=0)
    retries: int = Field(default=4, ge=0, le=10)
    sends_n: bool = False
    """Whether one request may ask for several replies (`n`); else each reply is a request."""
    sends_seed: bool = True
    json_schema: bool = False
    """Whether the endpoint enforces a JSON schema in `response_format`."""
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


class RunConfig(Record):
    """What a run is to do. Two runs with equal configurations on equal tasks are the same run."""

    model_config = ConfigDict(allow_inf_nan=False)

    endpoint: str = EMBEDDED
    extraction_endpoint: str | None = None
    """With one, the three LLM stages run beside the evidence extractor."""
    group_size: int = Field(default=8, ge=2, le=64)
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
    library_version: int | None = None
    """None = the newest when the run starts; it is then pinned for the whole run."""
    max_calls: int | None = Field(default=None, ge=0)
    """Cap on model calls; None = no cap."""
    max_tokens_total: int | None = Field(default=None, ge=0)
    max_cost_usd: float | None = Field(default=None, ge=0)
