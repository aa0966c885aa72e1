"""What a workspace wants by default."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from core.errors import InputError
from core.record import Record
from core.store import Store
from core.workspace.logged import Logged

REASONS = ("too specific", "not true in general", "says the obvious", "said already", "could do harm")
"""Why a proposal may be rejected, where the workspace names no reasons of its own."""
MOST_REASONS, LONGEST_REASON = 20, 80


class Caps(Record):
    """What a new run may use at most, unless it is told otherwise; None = no cap."""

    max_calls: int | None = Field(default=None, ge=0)
    max_tokens_total: int | None = Field(default=None, ge=0)
    max_cost_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class Preferences:
    def __init__(self, store: Store) -> None:
        self._reasons = Logged(store, "reject_reasons", [*REASONS])
        self._caps = Logged(store, "caps", Caps().model_dump())

    @property
    def reject_reasons(self) -> tuple[str, ...]:
        """The reasons that a reviewer can choose from."""
        found = self._reasons.get()
        return tuple(map(str, found)) if isinstance(found, list) else REASONS

    def set_reject_reasons(self, reasons: Sequence[str], actor: str) -> None:
        """Offer these reasons from now on; what was rejected keeps the words that were chosen then.

        Raises:
            InputError: there are none or too many, or one is too long.
        """
        lines = list(dict.fromkeys(" ".join(each.split()) for each in reasons if each.strip()))
        if not 1 <= len(lines) <= MOST_REASONS:
            raise InputError(f"Give 1 to {MOST_REASONS} reasons, a line each.")
        if long := next((each for each in lines if len(each) > LONGEST_REASON), None):
            raise InputError(
                f"A reason is a few words, {LONGEST_REASON} characters at most: {long[:40]!r} is longer."
            )
        self._reasons.change([*lines], actor)

    @property
    def caps(self) -> Caps:
        """The caps that a new run begins with."""
        return Caps.read(self._caps.get())

    def set_caps(self, caps: Caps, actor: str) -> None:
        self._caps.change(caps.model_dump(), actor)
