"""Who may do what: a reader looks, a reviewer decides on proposals, a publisher makes versions and moves labels.

Each may do what those before may. A command names the role that it needs, and checks it itself, so that nobody who
calls it can forget to:

    class Review:
        role: Role = "publisher"

        @needs("reviewer")
        def reject(self, proposal_id: str, ...) -> Proposal: ...

On a machine of one's own everybody is a publisher, and nothing is refused; `Review.as_` is for who may do less.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, Literal, ParamSpec, Protocol, TypeVar

from core.errors import TrustError

Role = Literal["reader", "reviewer", "publisher"]
ROLES: tuple[Role, ...] = ("reader", "reviewer", "publisher")
"""Each may do what those before may."""

LOCAL: Role = "publisher"
"""Of who works on a machine of their own."""


class Acting(Protocol):
    """Whatever is done in a role."""

    @property
    def role(self) -> Role: ...


Actor = TypeVar("Actor", bound=Acting)
P = ParamSpec("P")
R = TypeVar("R")
Command = Callable[Concatenate[Actor, P], R]


def may(role: Role, needed: Role) -> bool:
    """Whether somebody in a role may do what needs another one."""
    return ROLES.index(role) >= ROLES.index(needed)


def refusal(role: Role, needed: Role, what: str = "") -> str:
    """Says that somebody in a role may not do something.

    Args:
        role: theirs.
        needed: what it takes.
        what: in a word or two; empty where it goes without saying.
    """
    named = f" ({what})" if what else ""
    return f"A {role} may not do this{named}; it takes a {needed}. Nothing was changed."


def check(role: Role, needed: Role, what: str = "") -> None:
    """Go on only where somebody in a role may do what needs another one.

    Raises:
        TrustError: they may not.
    """
    if not may(role, needed):
        raise TrustError(refusal(role, needed, what))


def needs(needed: Role) -> Callable[[Command[Actor, P, R]], Command[Actor, P, R]]:
    """Let only this role and those above it call a method; others are told so before anything is looked at.

    The method then raises TrustError, one sentence that names the command and the role.
    """

    def guard(command: Command[Actor, P, R]) -> Command[Actor, P, R]:
        what = getattr(command, "__name__", "this").replace("_", " ")

        @functools.wraps(command)
        def guarded(self: Actor, /, *args: P.args, **kwargs: P.kwargs) -> R:
            check(self.role, needed, what)
            return command(self, *args, **kwargs)

        return guarded

    return guard
