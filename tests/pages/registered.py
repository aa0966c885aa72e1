"""The pages that `app.py` registers, read out of its text: who adds one there is told what the tests want of it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Registered(NamedTuple):
    """One page."""

    file: str
    """Below the root: "pages/learn/home.py"."""
    title: str
    path: str
    """Its address."""


def pages() -> tuple[Registered, ...]:
    """Every page, in the order of the navigation."""
    tree = ast.parse((ROOT / "app.py").read_text(encoding="utf-8"))
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func) == "st.Page"]
    return tuple(_page(call) for call in sorted(calls, key=lambda call: call.lineno))


def _page(call: ast.Call) -> Registered:
    named = {k.arg: ast.literal_eval(k.value) for k in call.keywords}
    return Registered(ast.literal_eval(call.args[0]), str(named["title"]), str(named["url_path"]))
