"""Who may do what in a workspace, and a workspace for somebody who may do less.

1. Who does not sign in works on a machine of their own: a publisher, or what `WINNOW_ROLE` says.
2. Who signed in has the role that a publisher gave them in this workspace; else they are a reader.
3. `WINNOW_PUBLISHERS` (names, with commas between) are publishers whatever the workspace says: nobody is locked out,
   and no page can change it.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from core.errors import InputError, TrustError
from core.roles import LOCAL, ROLES, Role, may, refusal
from core.store import Store
from core.workspace.logged import Logged

if TYPE_CHECKING:
    from core.workspace.workspace import Workspace

__all__ = ["ROLES", "People", "Role", "may", "workspace_as"]

PUBLISHERS, UNSIGNED = "WINNOW_PUBLISHERS", "WINNOW_ROLE"
LONGEST = 120

Needs = Mapping[str, "Role | Needs"]

LEARNING: Needs = dict.fromkeys(("start", "retry", "cancel", "propose", "ask_again", "work"), "reviewer")
EVALUATING: Needs = dict.fromkeys(("start", "retry", "cancel", "work"), "reviewer")
JOBS = (
    *("enqueue", "resume", "pause", "cancel", "requeue", "claim", "beat", "end", "end_cancel"),
    *("carry_on", "carry_off"),
)

NEEDS: Mapping[str, Needs] = {
    "intake": {"add_tasks": "reviewer", "add_rollouts": "reviewer"},
    "learning": LEARNING,
    "evaluating": EVALUATING,
    "jobs": {**dict.fromkeys(JOBS, "reviewer"), "work": LEARNING},
    "rescoring": {"rescore": "reviewer", "accept": "reviewer"},
    "correcting": {"correct": "reviewer", "take_back": "reviewer"},
    "crediting": dict.fromkeys(("credit_group", "credit_run", "credit_usage"), "reviewer"),
    "priors": {"derive": "reviewer", "bring": "reviewer"},
    "prior_gate": {"decide": "reviewer"},
    "policies": {"measure": "reviewer"},
    "shipping": {
        "write": "reviewer",
        "write_prior": "reviewer",
        "arriving": {"library": "reviewer", "usage": "reviewer"},
    },
    "auditing": {"audit": "reviewer", "set_n_max": "publisher"},
    "models": {
        **dict.fromkeys(("save", "remove", "set_role"), "publisher"),
        **dict.fromkeys(("test", "test_embedder"), "reviewer"),
    },
    "preferences": {"set_reject_reasons": "publisher", "set_caps": "publisher"},
    "people": {"give": "publisher"},
}
"""What the commands of each noun take. `core.review` says it of its own.

Who takes a file out is remembered, whoever it is: `shipping.record` takes no role, as reading takes none.
"""

DRY = ("library", "usage")
"""What anybody may look at with `dry_run=True`: it writes nothing."""


class People:
    def __init__(self, store: Store, environ: Mapping[str, str] = os.environ) -> None:
        self._store = store
        self._roles = Logged(store, "people", {})
        self._environ = environ

    def role_of(self, name: str, *, signed_in: bool) -> Role:
        """What somebody may do here."""
        if not signed_in:
            return self.unsigned
        if name.casefold() in {each.casefold() for each in self.owners()}:
            return "publisher"
        return next(
            (role for who, role in self.given().items() if who.casefold() == name.casefold()), "reader"
        )

    @property
    def unsigned(self) -> Role:
        """The role of who does not sign in.

        Raises:
            InputError: `WINNOW_ROLE` is set to something that is no role.
        """
        named = self._environ.get(UNSIGNED) or LOCAL
        for role in ROLES:
            if named == role:
                return role
        raise InputError(f"{UNSIGNED} is {named!r}; it takes one of {', '.join(ROLES)}.")

    def owners(self) -> tuple[str, ...]:
        """Who is a publisher by `WINNOW_PUBLISHERS`."""
        return tuple(n for each in self._environ.get(PUBLISHERS, "").split(",") if (n := each.strip()))

    def given(self) -> dict[str, Role]:
        """The roles that were given in this workspace, by name."""
        said = self._roles.get()
        found = said if isinstance(said, dict) else {}
        return {who: role for who, named in found.items() for role in ROLES if role == named}

    def give(self, name: str, role: Role | None, actor: str) -> None:
        """Give somebody a role; None takes it away, so that they are a reader. The log keeps it.

        Raises:
            InputError: there is no name.
        """
        name = name.strip()
        if not name or len(name) > LONGEST or not name.isprintable():
            raise InputError(f"Give the name that they sign in with, at most {LONGEST} characters.")
        with self._store.writing():
            to: dict[str, JsonValue] = {
                who: held for who, held in self.given().items() if who.casefold() != name.casefold()
            }
            if role is not None:
                to[name] = role
            self._roles.change(to, actor, who=name, role=role)


def workspace_as(workspace: Workspace, role: Role) -> Workspace:
    """The workspace for somebody in a role: what it may not do raises TrustError and changes nothing."""
    if role == LOCAL:
        return workspace
    view = copy.copy(workspace)
    view.review = workspace.review.as_(role)
    if not may(role, "reviewer"):
        view.store = workspace.store.only_read(refusal(role, "reviewer"))
    for noun, needed in NEEDS.items():
        setattr(view, noun, _Guarded(getattr(workspace, noun), needed, role))
    return view


class _Guarded:
    """A noun of a workspace of which some commands are refused."""

    def __init__(self, noun: object, needed: Needs, role: Role) -> None:
        self._noun, self._needed, self._role = noun, needed, role

    def __getattr__(self, name: str) -> Any:
        needed, meant = self._needed.get(name), getattr(self._noun, name)
        if isinstance(needed, Mapping):
            return _Guarded(meant, needed, self._role)
        return meant if needed is None or may(self._role, needed) else self._refusing(name, needed, meant)

    def _refusing(self, name: str, needed: Role, meant: Callable[..., object]) -> Callable[..., object]:
        def refuse(*arguments: object, **named: object) -> object:
            if name in DRY and named.get("dry_run") is True:
                return meant(*arguments, **named)
            raise TrustError(refusal(self._role, needed, name.replace("_", " ")))

        return refuse
