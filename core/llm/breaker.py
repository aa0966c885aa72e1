"""Stops asking an endpoint that fails and fails, instead of burning all remaining work."""

from __future__ import annotations

from core.errors import ModelUnavailableError

FAILURES = 8
"""Requests in a row, each after all its retries. With 4 retries and 45 % random faults a single one fails in
0.45^5 = 1.8 % of all cases, and 8 in a row about once in 10^14."""


class Breaker:
    """Counts requests that failed for good by a fault of the endpoint; one that is answered starts the count anew.

    A request that was refused for its own sake (a prompt that is too long) counts neither way.
    """

    def __init__(self, name: str, limit: int = FAILURES) -> None:
        self._name = name
        self._limit = limit
        self._failed = 0
        self._last = ""

    def worked(self) -> None:
        self._failed = 0

    def failed(self, sentence: str) -> None:
        self._failed += 1
        self._last = sentence

    def check(self) -> None:
        """Let the next request through.

        Raises:
            ModelUnavailableError: too many failed in a row.
        """
        if self._failed >= self._limit:
            raise ModelUnavailableError(
                f"Endpoint {self._name} failed {self._failed} times in a row and is not asked any more; "
                f"start again when it is well. The last time: {self._last}"
            )
