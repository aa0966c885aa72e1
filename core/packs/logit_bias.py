"""A token prior as JSON: what is added to the logits, by domain, with the tokenizer that its ids belong to.

Inside a pack it is the file `logit_bias.json`; by itself it is what `winnow prior export` writes. The maps follow from
the factors that stand beside them, and a reader checks that they do.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import Field, field_validator

from core.errors import InputError, PackError
from core.packs.content import check_strings, check_text_only, no_key_twice
from core.packs.redaction import without_folders
from core.prior import Factor, Limits, Prior, PriorRules, TokenizerName, bias_map
from core.record import Record, canonical_json

NAME = "logit_bias.json"
FORMAT = "winnow-logit-bias"
SCHEMA_VERSION = "1.0"
MAX_BYTES = 8 * 2**20
"""Of such a file by itself."""
MAX_FACTORS = 10_000
OPENAI = Limits(range=100.0, entries=300)
"""What OpenAI's API takes; the cap of the prior holds besides."""


class PackedPrior(Record):
    """A token prior as it is shipped: without who derived it, when, and from which runs."""

    id: str = Field(max_length=100)
    """In the workspace that it comes from."""
    tokenizer: TokenizerName
    model: str = Field(max_length=1000)
    rules: PriorRules
    factors: tuple[Factor, ...] = Field(min_length=1, max_length=MAX_FACTORS)

    @field_validator("factors")
    @classmethod
    def _no_token_twice(cls, factors: tuple[Factor, ...]) -> tuple[Factor, ...]:
        if any(len({t.id for t in f.tokens}) != len(f.tokens) for f in factors):
            raise ValueError("a factor names a token twice")
        return factors

    def as_prior(self) -> Prior:
        return Prior(tokenizer=self.tokenizer, model=self.model, rules=self.rules, factors=self.factors)


class BiasFile(Record):
    """The content of `logit_bias.json`."""

    format: Literal["winnow-logit-bias"] = "winnow-logit-bias"
    schema_version: Literal["1.0"] = "1.0"
    prior: PackedPrior
    logit_bias: dict[str, dict[str, float]]
    """By domain of the task, each ready for a request's `logit_bias`; `general` holds for all other domains."""


def packed(prior: Prior) -> PackedPrior:
    """What of a prior is shipped.

    Raises:
        PackError: it holds what looks like a secret.
    """
    tokenizer = prior.tokenizer.model_copy(update={"name": without_folders(prior.tokenizer.name)})
    made = PackedPrior(
        id=prior.id,
        tokenizer=tokenizer,
        model=without_folders(prior.model),
        rules=prior.rules,
        factors=prior.factors,
    )
    check_strings(made.model_dump(mode="json"), f"The token prior {prior.id}")
    return made


def bias_file(prior: PackedPrior) -> BiasFile:
    """The maps of a prior beside what they follow from."""
    whole = prior.as_prior()
    domains = sorted({f.domain for f in prior.factors})
    maps = {d: bias_map(whole, OPENAI, domain=d).values for d in domains}
    return BiasFile(
        prior=prior, logit_bias={d: {str(i): v for i, v in values.items()} for d, values in maps.items()}
    )


def write(prior: PackedPrior) -> bytes:
    """The file: the same prior gives the same bytes."""
    return canonical_json(bias_file(prior).model_dump(mode="json")).encode()


def read(data: bytes) -> PackedPrior:
    """The prior of such a file, once the maps in it were found to follow from it.

    Raises:
        PackError: one sentence with the first fault.
    """
    if len(data) > MAX_BYTES:
        raise PackError(f"The file has {len(data)} bytes; at most {MAX_BYTES} are read.")
    try:
        value: Any = json.loads(data.decode(), object_pairs_hook=no_key_twice)
    except (ValueError, RecursionError) as e:
        raise PackError("The file is no valid JSON.") from e
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise PackError(f"The file is no token prior: it does not say that its format is {FORMAT}.")
    check_text_only(value, "The file")
    try:
        found = BiasFile.read(value, where="the token prior")
    except InputError as e:
        raise PackError(f"The file does not fit its format: {e}") from e
    if found != bias_file(found.prior):
        raise PackError("The logit_bias of the file does not follow from the prior in it.")
    return found.prior
