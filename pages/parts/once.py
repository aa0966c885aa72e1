"""What is dear to make, and is asked for at each drawing of a page: made once for what it depends on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from pages.parts import session

T = TypeVar("T")


def once(holder: str, what: str, key: tuple[object, ...], make: Callable[[], T]) -> T:
    """What was made in an earlier drawing of this session, where nothing that it depends on changed; else it is made.

    Args:
        holder: key of the session under which things are held that are let go of together.
        what: which of them; one is held.
        key: what it depends on.
        make: makes it; what it raises is raised, and nothing is held.
    """
    found = session.get(holder)
    held: dict[str, tuple[tuple[object, ...], object]] = found if isinstance(found, dict) else {}
    if what in held and held[what][0] == key:
        return cast(T, held[what][1])
    made = make()
    session.put(holder, {**held, what: (key, made)})
    return made
