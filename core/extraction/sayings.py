"""Sayings: which counted features a lesson speaks of, and whether it advises them or warns of them.

A small parser of the usual wordings of lessons; what it does not see is not claimed. Names of tools, parameters
and errors are taken from the rollouts, so that a lesson need not put them into backticks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from core.evidence import Contrast, Feature
from core.evidence.instructions import Demand, read_instruction
from core.experience import Finding

SIGNIFICANT = 0.05
"""Corrected p under which a finding is sure."""


class Saying(NamedTuple):
    """One thing that a lesson says."""

    subject: tuple[str, ...]
    """Two lessons that say different things on one subject oppose each other."""
    features: tuple[str, ...]
    """Names of features that would show it, the most telling first."""
    do: bool
    """False where the lesson warns of it."""


@dataclass(frozen=True, slots=True)
class Names:
    """What can be named: taken from the features of rollouts."""

    tools: frozenset[str] = frozenset()
    errors: frozenset[str] = frozenset()
    settings: tuple[tuple[str, str, str], ...] = ()
    """Tool, parameter, value ("" where only the parameter is meant)."""
    recoveries: tuple[str, ...] = ()
    """Names of the features of what followed an error of one tool."""

    @classmethod
    def of(cls, features: Iterable[Feature]) -> Names:
        names = list(features)
        settings: list[tuple[str, str, str]] = []
        for value in (f.value for f in names if f.theme == "parameter"):
            full, _, shown = value.partition("=")
            tool, _, key = full.rpartition(".")
            settings.append((tool, key, shown))
        return cls(
            tools=frozenset(f.value for f in names if f.theme == "tool"),
            errors=frozenset(f.value for f in names if f.name.startswith("error=")),
            settings=tuple(settings),
            recoveries=tuple(f.name for f in names if f.theme == "recovery" and "|" in f.value),
        )


def sayings(text: str, names: Names) -> tuple[Saying, ...]:
    """What a lesson says of the form of answers and of tools, each subject once."""
    found: dict[tuple[tuple[str, ...], tuple[str, ...]], Saying] = {}
    for saying in (*_form(text), *_tools(text, names)):
        found.setdefault((saying.subject, saying.features), saying)
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class Spoken:
    """A finding about something that a lesson says."""

    finding: Finding
    agrees: bool
    """Whether those who do as the lesson says earn more than those who do not."""

    @property
    def sure(self) -> bool:
        return self.finding.p_corrected < SIGNIFICANT


def spoken(text: str, contrast: Contrast) -> tuple[Spoken, ...]:
    """What was counted of all that a lesson says; surest first. What was not tested is left out."""
    found: dict[tuple[str, bool], Spoken] = {}
    for saying in sayings(text, Names.of(contrast.table.columns)):
        tested = [
            (f, g, n) for n in saying.features if (f := contrast.finding(n)) and (g := contrast.gain_of(n))
        ]
        if saying.subject[0] == "recovery":  # what was called next has a feature of its own each
            tested.sort(key=lambda one: one[0].p)
        for kept, gain, name in tested[:1]:
            own = contrast.under(name)
            if own is not None:
                agrees = (gain > 0) == saying.do
                found.setdefault((kept.feature, agrees), Spoken(own, agrees))
    return tuple(sorted(found.values(), key=lambda one: (one.finding.p_corrected, one.finding.p)))


# --- the form of answers -------------------------------------------------------------------------------

_SHOWN_BY: Mapping[Demand, tuple[tuple[str, ...], bool]] = {
    "one_word": (("one_word", "up_to_3_words"), True),
    "alone": (("up_to_3_words", "one_word"), True),
    "number_only": (("number_only",), True),
    "json": (("json_only",), True),
    "no_json": (("json_only",), False),
    "code": (("code_fence",), True),
    "no_code": (("code_fence", "markdown"), False),
    "sentence": (("restates_question", "opens_as_sentence"), True),
    "brief": (("over_20_words", "over_10_words", "several_sentences"), False),
    "long": (("over_20_words", "over_10_words"), True),
    "list": (("markdown",), True),
    "explanation": (("explains", "shows_sum"), True),
    "no_explanation": (("explains", "shows_sum"), False),
    "period": (("final_period",), True),
    "no_period": (("final_period", "final_punctuation"), False),
    "digits": (("number_words",), False),
    "number_words": (("number_words",), True),
    "lower": (("all_lower",), True),
    "upper": (("all_upper",), True),
    "capital": (("starts_capital",), True),
    "quotes": (("quoted",), True),
    "no_quotes": (("quoted",), False),
    "unit": (("number_with_unit",), True),
    "ask": (("asks_back",), True),
}
"""The features that show that a rollout follows a demand (True), or goes against it (False)."""

_FORMS: Sequence[tuple[str, str]] = (
    (r"\b(?:introduction|introductory|preambles?|filler|lead-in|pleasantr\w+)\b", "preamble"),
    (r"\b(?:hedg\w+|second choice|name no other)\b", "hedges"),
    (r"\b(?:repeat|restat)\w*(?: (?:the|its))?(?: words of the)? question\b", "restates_question"),
    (
        r"\b(?:keys? (?:that )?the (?:question|task|prompt) (?:names|asks)|(?:asked|requested|exact) keys?)\b",
        "json_keys_asked",
    ),
    (r"\b(?:apolog\w+|refus\w+)\b", "refuses"),
    (r"\b(?:second|further|extra) sentence\b", "several_sentences"),
    (r"\b(?:second|further|extra) line\b", "several_lines"),
    (r"\bmarkdown\b|\bbullet", "markdown"),
    (r"\b(?:text|prose|words) around the json\b", "json_in_prose"),
)
_NOT = re.compile(
    r"(?i)\b(?:no|not|don't|never|avoid\w*|without|nor|instead of|skip|omit|rather than)\b[^.,;:]{0,24}$"
)


def _negated(text: str, at: int) -> bool:
    return _NOT.search(text[:at]) is not None


def _form(text: str) -> Iterator[Saying]:
    for demand in sorted(read_instruction(text).demands):
        if demand in _SHOWN_BY:
            features, do = _SHOWN_BY[demand]
            yield Saying(("form", demand), features, do)
    for pattern, feature in _FORMS:
        if found := re.search(pattern, text, re.IGNORECASE):
            do = not _negated(text, found.start())
            yield Saying(("form", feature), (feature,), do)
    if re.search(r"(?i)\bcommit to (?:one|a single)\b", text):
        yield Saying(("form", "hedges"), ("hedges", "several_choices"), False)


# --- tools ---------------------------------------------------------------------------------------------

_VERB = r"(?:call|calling|use|using|run|running|invoke|invoking|query|querying|try|trying|prefer|consult)"
_GAP = r"(?:[\w']+ ){0,4}?"
_T, _U = r"⟦(?P<a>\d+)⟧", r"⟦(?P<b>\d+)⟧"
_FIRST = re.compile(
    rf"\b(?:start|begin)(?:ning)? {_GAP}{_T}|\bfirst,? {_VERB} {_T.replace('<a>', '<a2>')}|"
    rf"{_T.replace('<a>', '<a3>')} {_GAP}first\b|"
    rf"{_T.replace('<a>', '<a4>')} before (?:anything|everything|any other)"
)
_LAST = re.compile(rf"\b(?:finish|end|close|conclude) {_GAP}{_T}|{_T.replace('<a>', '<a2>')} last\b")
_ORDERS = (  # a before b
    re.compile(rf"{_T},? {_GAP}before {_GAP}{_U}"),
    re.compile(rf"{_T},? (?:and )?then {_GAP}{_U}"),
    re.compile(rf"\bbefore {_GAP}{_U},? {_GAP}{_T}"),
    re.compile(rf"\bafter {_GAP}{_T},? {_GAP}{_U}"),
    re.compile(rf"{_U} {_GAP}after {_GAP}{_T}"),
)
_USE = re.compile(rf"\b{_VERB} (?:the )?(?:tool )?{_T}")
_PASS = re.compile(r"(?i)\b(?:pass|set|give|specify|include|add|provide)\b[^.,;]{0,20}$")
_OMIT = re.compile(r"(?i)\b(?:leave out|omit|drop|do not (?:pass|set|give))\b[^.,;]{0,20}$")
_IS = r"(?:\s*[=:]\s*|\s+(?:to|of|as|at|is)?\s*)"
_TROUBLE = re.compile(r"(?i)\b(?:fail\w*|errors?|exceptions?|time[sd]? ?out|timeouts?|trouble|raises?)\b")
_CONDITION = re.compile(r"(?i)\b(?:when|if|after|once|on|upon|should)\b[^.;:,]*")
_HABITS: Sequence[tuple[str, str]] = (
    (
        r"\b(?:correct\w*|fix\w*|adjust\w*|chang\w*|different|other|new|check)\b[^.,;]{0,24}?"
        r"\b(?:parameters?|arguments?|inputs?|path|values?)\b",
        "fix_parameters",
    ),
    (r"\b(?:switch\w*|another tool|other tool|different tool|fall back)\b|⟦\d+⟧ instead\b", "switch_tool"),
    (
        r"\b(?:retry\w*|try (?:it )?again|once more|(?:repeat\w*|try) (?:the )?(?:same|identical)|repeat it)\b",
        "retry_same",
    ),
    (r"\b(?:give up|giving up|stop|abort)\b", "give_up"),
)
_CHANGES = r"(?:chang|writ|modif|updat|delet|edit|send|sav|act)\w*"
_CHECKS = r"(?:look|check|read|inspect|verif|confirm|list|view|valid)\w*"


def _tools(text: str, names: Names) -> Iterator[Saying]:
    marked, called = _marked(text, names.tools)
    failing = _failing(marked)
    if failing:
        yield from _recoveries(text, marked, failing, called, names)
    action = marked.replace(failing, " ") if failing else marked
    for m in _FIRST.finditer(action):
        yield Saying(("start",), (f"first_tool={called[_group(m)]}",), not _negated(action, m.start()))
    for m in _LAST.finditer(action):
        yield Saying(("finish",), (f"last_tool={called[_group(m)]}",), not _negated(action, m.start()))
    ordered = set()
    for pattern in _ORDERS:
        for m in pattern.finditer(action):
            a, b = called[int(m["a"])], called[int(m["b"])]
            if a != b and (a, b) not in ordered and (b, a) not in ordered:
                ordered.add((a, b))
                names_ = (f"before={a}>{b}", f"order={a}>{b}")
                yield Saying(("order", *sorted((a, b))), names_, not _negated(action, m.start()))
    taken = {tool for pair in ordered for tool in pair}
    for m in _USE.finditer(action):
        tool = called[int(m["a"])]
        if tool not in taken and not _FIRST.search(action[m.start() :].split(".")[0]):
            yield Saying(("use", tool), (f"tool={tool}",), not _negated(action, m.start()))
    yield from _settings(text, names, {called[int(i)] for i in re.findall(r"⟦(\d+)⟧", action)})
    if not failing:
        yield from _habits(text)


def _marked(text: str, tools: Set[str]) -> tuple[str, list[str]]:
    """The text in lower case with the names of tools as ⟦n⟧, and these names."""
    known = "|".join(re.escape(t) for t in sorted(tools, key=lambda t: (-len(t), t)))
    name = re.compile(rf"`([\w.\-]+)`|(?<![\w`=])({known + '|' if known else ''}\w+_\w+)(?![\w=])")
    called: list[str] = []

    def mark(m: re.Match[str]) -> str:
        called.append(m[1] or m[2])
        return f"⟦{len(called) - 1}⟧"

    return re.sub(r"[A-Z]+", lambda m: m[0].lower(), name.sub(mark, text)), called


def _group(m: re.Match[str]) -> int:
    return next(int(value) for value in m.groupdict().values() if value is not None)


def _failing(marked: str) -> str:
    """The clause that says that something failed, or ""."""
    return next((m[0] for m in _CONDITION.finditer(marked) if _TROUBLE.search(m[0])), "")


def _recoveries(
    text: str, marked: str, failing: str, called: Sequence[str], names: Names
) -> Iterator[Saying]:
    tools = [called[int(i)] for i in re.findall(r"⟦(\d+)⟧", failing)]
    error = next((e for e in sorted(names.errors, key=len, reverse=True) if e.lower() in text.lower()), "")
    tool = next((t for t in tools if t in names.tools), "")
    action = marked.replace(failing, " ")
    for pattern, habit in _HABITS:
        found = re.search(pattern, action)
        if found is None:
            continue
        if error or tool:
            start = f"recovery={error}|" if error else "recovery="
            shown = tuple(
                n
                for n in names.recoveries
                if n.startswith(start) and f"|{habit}|" in n and (not tool or f"|{tool}|" in n)
            )
        else:
            shown = (f"recovery={habit}",)
        yield Saying(("recovery", error, tool, habit), shown, not _negated(action, found.start()))


def _settings(text: str, names: Names, named: Set[str]) -> Iterator[Saying]:
    """Parameters that the lesson names, with their value where it gives one; of the tools that it names, if any."""
    for tool, key, value in names.settings:
        if named & names.tools and tool not in named:
            continue
        if value:
            pattern = rf"(?<![\w.]){re.escape(key)}`?{_IS}`?{re.escape(value)}(?!\w)"
            if found := re.search(pattern, text, re.IGNORECASE):
                do = not _negated(text, found.start())
                yield Saying(("set", tool, key), (f"param={tool}.{key}={value}",), do)
        elif found := re.search(rf"(?<![\w.]){re.escape(key)}(?![\w=])", text):
            before = text[: found.start()]
            if _OMIT.search(before) or _PASS.search(before):
                yield Saying(("pass", tool, key), (f"param={tool}.{key}",), not _OMIT.search(before))


def _habits(text: str) -> Iterator[Saying]:
    if re.search(
        rf"(?i)\b{_CHECKS}[^.;]*\bbefore\b[^.;]*\b{_CHANGES}|\bbefore {_CHANGES}[^.;]*\b{_CHECKS}", text
    ):
        yield Saying(("habit", "before"), ("checked_before_acting",), True)
    if re.search(
        rf"(?i)\b{_CHECKS}[^.;]*\bafter\b[^.;]*\b{_CHANGES}|\bafter {_CHANGES}[^.;]*\b{_CHECKS}", text
    ):
        yield Saying(("habit", "after"), ("checked_after_acting",), True)
    found = re.search(r"(?i)\b(?:repeat\w*|same|identical)\b[^.;]{0,24}\bcalls?\b", text)
    if found:
        yield Saying(("habit", "repeat"), ("repeated_call",), not _negated(text, found.start()))
