"""How fast an endpoint may be asked: limits for each minute, and a cool-down that all requests share."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from core.llm.retry import FIRST_DELAY_S, LONGEST_DELAY_S
from core.settings import Endpoint

WINDOW_S = 60.0

Clock = Callable[[], float]
"""Seconds since some moment; never goes back."""


@dataclass
class Turn:
    """One request in the window."""

    at: float
    tokens: int
    inside: bool = True


class Pace:
    """A sliding window: in no 60 seconds more requests and more tokens than the endpoint allows.

    Tokens are reserved by estimate, and corrected when it is known what a request took. One that alone takes more
    than a minute's tokens goes when nothing else is in the window.
    """

    def __init__(self, endpoint: Endpoint, clock: Clock) -> None:
        self._requests = endpoint.requests_per_minute or math.inf
        self._tokens = endpoint.tokens_per_minute or math.inf
        self._clock = clock
        self._turns: deque[Turn] = deque()
        self._taken = 0
        """Tokens in the window."""

    @property
    def limited(self) -> bool:
        return min(self._requests, self._tokens) < math.inf

    def wait_s(self, tokens: int) -> float:
        """Seconds until a request of so many tokens may go, as far as is known now; 0 = it may go."""
        now = self._clock()
        while self._turns and self._turns[0].at + WINDOW_S <= now:
            left = self._turns.popleft()
            left.inside = False
            self._taken -= left.tokens
        requests, taken = len(self._turns), self._taken
        if self._fits(requests, taken, tokens):
            return 0.0
        for turn in self._turns:  # as it will be once this one, and those before it, have left
            requests, taken = requests - 1, taken - turn.tokens
            if self._fits(requests, taken, tokens):
                return turn.at + WINDOW_S - now
        raise AssertionError("an empty window takes every request")

    def enter(self, tokens: int) -> Turn:
        """Put a request into the window."""
        turn = Turn(self._clock(), tokens, inside=self.limited)
        if turn.inside:
            self._turns.append(turn)
            self._taken += tokens
        return turn

    def correct(self, turn: Turn, tokens: int) -> None:
        """Say how many tokens a request really took."""
        if turn.inside:
            self._taken += tokens - turn.tokens
            turn.tokens = tokens

    def _fits(self, requests: int, taken: int, tokens: int) -> bool:
        return not requests or (requests < self._requests and taken + tokens <= self._tokens)


class CoolDown:
    """A pause of all requests to an endpoint that is asked too much: they back off together.

    1. Where the server names a time, everything waits until then.
    2. Where it names none, the request that was turned away waits by itself; when another one, sent after that, is
       turned away with no success in between, everything waits, each time twice as long.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until = -math.inf
        self._wave_at = -math.inf
        self._waves = 0

    def left_s(self) -> float:
        """Seconds that it still lasts; 0 or less = over."""
        return self._until - self._clock()

    def named(self, seconds: float) -> None:
        """The server asked to wait so long."""
        self._until = max(self._until, self._clock() + seconds)

    def crowded(self, sent_at: float) -> None:
        """A request that was sent then was turned away, with no word about when to come back."""
        if sent_at < self._wave_at:
            return  # of the same wave: it had been sent before the last one was turned away
        self._waves += 1
        self._wave_at = self._clock()
        if self._waves > 1:
            self.named(min(LONGEST_DELAY_S, FIRST_DELAY_S * 2.0 ** min(self._waves - 2, 32)))

    def answered(self) -> None:
        """A request was answered."""
        self._waves = 0
