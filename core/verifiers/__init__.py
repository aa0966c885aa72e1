"""The built-in verifiers (DESIGN 2.2), by kind, and how a spec becomes one.

Adding one: a `Check` in a file of its own, one line in `VERIFIERS`.
"""

from __future__ import annotations

import json
from functools import lru_cache

from core.errors import InputError
from core.record import canonical_json
from core.rollout import Task
from core.settings import VerifierSpec
from core.verifiers.check import Check, Guarded
from core.verifiers.choice import Choice
from core.verifiers.exact import Exact
from core.verifiers.graded import Graded, GradedOptions
from core.verifiers.json_schema import JsonSchema
from core.verifiers.numeric import Numeric, numbers_in
from core.verifiers.regex import Regex
from core.verifiers.text import Text
from core.verifiers.wording import normalise

__all__ = ["VERIFIERS", "Check", "Guarded", "check_task", "make_verifier", "normalise", "numbers_in"]

VERIFIERS: dict[str, type[Check]] = {
    "exact": Exact,
    "text": Text,
    "choice": Choice,
    "numeric": Numeric,
    "regex": Regex,
    "json_schema": JsonSchema,
    "graded": GradedOptions,
}
"""The options of each kind; for all but `graded` they are the check itself."""


def make_verifier(spec: VerifierSpec) -> Guarded:
    """Build the verifier of a spec; it is a `core.ports.Verifier`, and equal specs may share one.

    Raises:
        InputError: unknown kind, unknown or wrong option, a pattern or a schema that cannot be used.
    """
    return _built(spec.kind, canonical_json(spec.options))


@lru_cache(maxsize=1024)  # checking a schema takes milliseconds, and files name the same spec in every row
def _built(kind: str, options_json: str) -> Guarded:
    spec = VerifierSpec(kind=kind, options=json.loads(options_json))
    options = VERIFIERS.get(spec.kind)
    if options is None:
        raise InputError(f"There is no verifier {spec.kind!r}; use one of: {', '.join(VERIFIERS)}.")
    check = options.build(spec.kind, spec.options)
    if not isinstance(check, GradedOptions):
        return Guarded(spec.kind, check)
    for part in (check.content, check.form):
        if part.kind == spec.kind:
            raise InputError("The verifier 'graded' cannot hold another 'graded'; give two plain verifiers.")
    graded = Graded(
        content=make_verifier(check.content),
        form=make_verifier(check.form),
        content_weight=check.content_weight,
    )
    return Guarded(spec.kind, graded)


def check_task(task: Task) -> None:
    """Make sure that a task can be verified, so that it is found at import and not in the run.

    Raises:
        InputError: its verifier cannot be built, or needs an answer that is missing or of the wrong sort.
    """
    if trouble := make_verifier(task.verifier).trouble(task):
        raise InputError(f"Task {task.id!r}: {trouble}.")
