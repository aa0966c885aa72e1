"""From a finding to advice in words: what to do or to leave, when, and how, in at most 32 words.

Not every true contrast is good advice (DESIGN 5). A feature that is missing from the tables here is shown to
the reader as an insight and never turned into a lesson: being cut off, refusing, single words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Literal

from core.evidence import Feature, Matter
from core.evidence.features import stands_in
from core.evidence.instructions import Demand
from core.experience import MAX_WORDS, Kind
from core.words import count_words, normalise

SHARED = 0.7
"""What at least this share of a domain's questions have in common is a property of the domain."""

MAX_PATTERN = 10
"""Words of a question that a lesson quotes."""

MAX_NOUN = 7
"""Words of the asked-for thing."""

MAX_TAILS = 3
"""So many "no ..." clauses; more are not read."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What one finding advises."""

    core: str
    """Imperative, without the "when"; `{alone}` stands for what is asked for."""
    tail: str = ""
    """The same as an addition to another core: "no final period"."""
    demands: frozenset[Demand] = frozenset()
    """What it asks of the form of an answer, to be held against the question's own instruction."""
    kind: Kind = "convention"
    subject: str = "form"
    """What it speaks of: two lessons of one domain on one subject must not both stand."""
    when: str = ""
    """Its own "when", in place of the domain's."""
    leads: bool = False
    """Whether it says by itself what a good answer looks like, and so goes first."""
    numeric: bool = False
    """Only fit where the answers are numbers."""

    @property
    def about(self) -> Literal["form", "tool", "recovery"]:
        """Lessons about different things do not replace each other."""
        if self.subject == "form":
            return "form"
        return "recovery" if self.kind == "failure_pattern" else "tool"


def _form(core: str, tail: str, *demands: Demand, leads: bool = False, numeric: bool = False) -> Advice:
    return Advice(core, tail, frozenset(demands), leads=leads, numeric=numeric)


_REPEAT = _form("answer in one short sentence that repeats the words of the question", "", "sentence")
_DIRECT = _form("start with the answer itself and do not repeat the question", "no full sentence", "alone")

FORM_ADVICE: Mapping[tuple[str, bool], Advice] = {
    ("one_word", True): _form("answer with {alone}", "", "one_word", leads=True),
    ("up_to_3_words", True): _form("answer with {alone}", "", "alone", leads=True),
    ("number_only", True): _form("answer with the number alone", "", "number_only", leads=True, numeric=True),
    ("json_only", True): _form("answer with the JSON alone", "", "json", leads=True),
    ("over_20_words", False): _form("keep the answer to one short sentence", "", "brief"),
    ("over_10_words", False): _form("keep the answer under ten words", "", "brief"),
    ("several_sentences", False): _form("stop after the first sentence", "no second sentence", "brief"),
    ("several_lines", False): _form("keep the answer on one line", "no second line", "brief"),
    ("explains", False): _form("give the answer without an explanation", "no explanation", "no_explanation"),
    ("explains", True): _form("add a short reason after the answer", "", "explanation"),
    ("preamble", False): _form("start with the answer itself, not with an introduction", "no introduction"),
    ("restates_question", True): _REPEAT,
    ("opens_as_sentence", True): _REPEAT,
    ("restates_question", False): _DIRECT,
    ("opens_as_sentence", False): _DIRECT,
    ("repeats_text", True): _form("answer in the words of the given text", "", "sentence"),
    ("repeats_text", False): _form(
        "start with the answer itself and do not repeat the text", "no repeating of the text", "alone"
    ),
    ("final_period", False): _form("end the answer without a period", "no final period", "no_period"),
    ("final_period", True): _form("end the answer with a period", "", "period"),
    ("final_punctuation", False): _form("end the answer without punctuation", "", "no_period"),
    ("asks_back", False): _form("answer the question and do not ask one back", "no question back"),
    ("number_words", False): _form("write the number in digits", "no number words", "digits", numeric=True),
    ("number_words", True): _form("write the number in words", "", "number_words", numeric=True),
    ("number_with_unit", False): _form(
        "give the number without its unit", "no unit", "number_only", numeric=True
    ),
    ("number_with_unit", True): _form("give the unit after the number", "", "unit", numeric=True),
    ("several_numbers", False): _form(
        "give one number and no other", "no other number", "brief", numeric=True
    ),
    ("shows_sum", False): _form(
        "give the result without the calculation", "no calculation", "no_explanation", numeric=True
    ),
    ("shows_sum", True): _form("write the calculation before the result", "", "explanation", numeric=True),
    ("json_in_prose", False): _form("answer with the JSON alone", "no text around the JSON", "json"),
    ("code_fence", False): _form(
        "write the answer as plain text, without a code fence", "no code fence", "no_code"
    ),
    ("json_keys_asked", True): _form("use exactly the JSON keys that the question names", "", "json"),
    ("json_other_keys", False): _form(
        "use exactly the JSON keys that the question names", "no other keys", "json"
    ),
    ("all_lower", True): _form("write the answer in lower case", "", "lower"),
    ("all_upper", True): _form("write the answer in capital letters", "", "upper"),
    ("starts_capital", True): _form("begin the answer with a capital letter", "", "capital"),
    ("hedges", False): Advice(
        "commit to one answer and do not hedge", "no hedging", frozenset({"brief"}), "strategy"
    ),
    ("several_choices", False): Advice(
        "commit to one answer and name no other", "no second choice", kind="strategy"
    ),
    ("outside_choices", False): _form("use one of the words that the question offers", "no other word"),
    ("refuses", False): _form("give the best answer you have, without an apology", "no apology"),
    ("quoted", False): _form("write the answer without quotes", "no quotes", "no_quotes"),
    ("quoted", True): _form("put the answer in quotes", "", "quotes"),
    ("markdown", False): _form("write plain text, without Markdown or lists", "no Markdown", "no_code"),
}
"""By feature, and whether winners have it (True) or lack it (False)."""

_HABITS: Mapping[tuple[str, bool], tuple[str, Kind]] = {
    ("checked_before_acting", True): ("check the current state before you change anything", "strategy"),
    ("checked_after_acting", True): ("check the result with another call after the last change", "strategy"),
    ("repeated_call", False): (
        "never repeat an identical call; change its parameters or use another tool",
        "strategy",
    ),
}

_RECOVERY: Mapping[tuple[str, bool], str] = {
    ("retry_same", False): "do not repeat the same call; correct its parameters or use another tool",
    ("retry_same", True): "try the same call once more before changing the plan",
    ("fix_parameters", True): "correct the parameters and call it again",
    ("switch_tool", True): "use another tool instead of repeating the call",
    ("give_up", False): "do not stop; correct the parameters or use another tool",
}


def is_general(feature: Feature) -> bool:
    """Whether a habit has nothing to do with a domain: what is done after *any* error, repeated calls."""
    return feature.name in {name for name, _ in _HABITS} or (
        feature.theme == "recovery" and "|" not in feature.value
    )


_PLAIN_NAME = re.compile(r"[\w.\-:/>|=… ]{0,200}")
"""What a tool, a parameter or an error may be called to be quoted in a lesson; foreign text is not trusted."""


def advice_of(feature: Feature, *, do: bool) -> Advice | None:
    """What a finding advises, or None where its contrast is true but no advice.

    Args:
        feature: the feature of the finding.
        do: True where winners have it, False where losers have it.
    """
    name, value = feature.name, f"`{feature.value}`"
    if not _PLAIN_NAME.fullmatch(feature.value):
        return None
    if (name, do) in FORM_ADVICE:
        return FORM_ADVICE[name, do]
    if (name, do) in _HABITS:
        core, kind = _HABITS[name, do]
        return Advice(core, kind=kind, subject=name)
    if feature.theme == "recovery":
        return _recovery(feature, do=do)
    if feature.theme == "parameter":
        return _parameter(feature, do=do)
    key = name.split("=")[0]
    if key in {"before", "order"}:
        a, b = feature.value.split(">", 1)
        core = f"call `{a}` before `{b}`" if key == "before" else f"call `{b}` right after `{a}`"
        return _tool(core, f"{key}:{a},{b}") if do else None
    table = {
        ("first_tool", True): f"call {value} first",
        ("first_tool", False): f"do not start with {value}",
        ("tool", True): f"use {value}",
        ("tool", False): f"do not use {value}",
        ("last_tool", True): f"finish with {value}",
    }
    if (key, do) not in table:
        return None
    return _tool(table[key, do], key if key != "tool" else name)


def _tool(core: str, subject: str) -> Advice:
    return Advice(core, kind="tool_selection", subject=subject)


def _parameter(feature: Feature, *, do: bool) -> Advice:
    name, _, setting = feature.value.partition("=")
    tool, key = name.rsplit(".", 1)
    if setting:
        core = f"call `{tool}` with `{key}={setting}`"
        return _tool(core if do else f"do not {core}", f"param:{name}")
    return _tool(f"{'pass' if do else 'leave out'} `{key}` when calling `{tool}`", f"param:{name}")


def _recovery(feature: Feature, *, do: bool) -> Advice | None:
    if "|" not in feature.value:
        core = _RECOVERY.get((feature.value, do))
        when = "When a call fails"
        tail = "never the same call again" if (feature.value, do) == ("retry_same", False) else ""
        leads = (feature.value, do) == ("give_up", False)
        kind: Kind = "failure_pattern"
        return Advice(core, tail, kind=kind, subject="recovery", when=when, leads=leads) if core else None
    signature, tool, habit, after = feature.value.split("|")
    core = _RECOVERY.get((habit, do))
    if habit == "switch_tool":
        core = f"call `{after}` instead" if do else f"call `{tool}` again instead of switching to `{after}`"
    shown = f'"{signature}"' if " " in signature else signature
    when = f"When `{tool}` fails with {shown}"
    subject = f"recovery:{signature}|{tool}"
    return Advice(core, kind="failure_pattern", subject=subject, when=when) if core else None


# --- when, and what is asked for -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Setting:
    """What the questions of a domain have in common."""

    when: str
    """Opening clause: 'When asked "what is the capital of ..."'."""
    alone: str
    """What is asked for: "the name of the city alone"."""
    asked: str
    """The same, but only where the questions themselves ask for it alone; else empty."""
    numeric: bool
    """Whether the answers are numbers."""


def setting_of(matters: Sequence[Matter], domain: str, answers: Set[str], *, tools: bool = False) -> Setting:
    """Read the "when" and the asked-for thing from the questions; answers themselves never get in.

    Args:
        matters: of the tasks of one domain.
        domain: its label.
        answers: normalised answers of the run's tasks.
        tools: whether the lesson is about tools; then the domain says when, not the question.
    """
    told = [m for m in matters if m.numeric is not None]
    numeric = bool(told) and all(m.numeric for m in told)
    noun, times = Counter(m.instruction.noun for m in matters).most_common(1)[0] if matters else ("", 0)
    if times < SHARED * len(matters) or leaks(noun, answers) or len(noun.split()) > MAX_NOUN:
        noun = ""
    demanding = sum("one_word" in m.instruction.demands for m in matters)
    one_word = demanding >= SHARED * len(matters) > 0
    asked = f"{noun} alone" if noun else "one word" if one_word else ""
    several = any(m.wordy for m in told)
    guess = "the number alone" if numeric else "the answer alone" if several else "one word"
    when = _when(matters, domain, noun, answers, tools=tools)
    return Setting(when, asked or guess, asked, numeric)


def _when(matters: Sequence[Matter], domain: str, noun: str, answers: Set[str], *, tools: bool) -> str:
    name = " ".join(re.split(r"[\s_-]+", domain.strip()))
    known = name if name and name != "general" and not leaks(name, answers) else ""
    if tools:
        return f"In {known} tasks" if known else "When tools are available"
    pattern = shared_words(matters, answers)
    if pattern:
        return f'When asked "{pattern}"'
    if known:
        return f"In {known} questions"
    return f"When a question asks for {noun}" if noun else "Unless the question asks otherwise"


def shared_words(matters: Sequence[Matter], answers: Set[str]) -> str:
    """The longest run of words that most questions share, numbers and the rest as "..."; "" without one.

    Instructions ("Answer with ...") and quoted material are left out, and so is every answer.
    """
    if len({m.digest for m in matters}) < 3:
        return ""
    least = SHARED * len(matters)
    masked = [[tuple("#" if w in answers else w for w in s) for s in m.sentences] for m in matters]
    shared: dict[tuple[str, ...], int] = {}
    for size in range(2, MAX_PATTERN + 1):  # a run is shared only if its parts are
        count = Counter(run for sentences in masked for run in _runs(sentences, size, shared))
        longer = {run: times for run, times in count.items() if times >= least}
        if not longer:
            break
        shared |= longer
    fit = [run for run in shared if _says_something(run) and not leaks(" ".join(run), answers)]
    if not fit:
        return ""
    best = max(fit, key=lambda run: (len(run), shared[run], run))
    words = re.sub(r"\.\.\.( \.\.\.)+", "...", " ".join("..." if w == "#" else w for w in best))
    starts = sum(m.opening == best[0] for m in matters) >= least
    words = words if starts or words.startswith("...") else f"... {words}"
    return words if words.endswith("...") else f"{words} ..."


def _runs(
    sentences: Sequence[tuple[str, ...]], size: int, shorter: Mapping[tuple[str, ...], int]
) -> set[tuple[str, ...]]:
    """The runs of so many words in a question, each once; only those whose first and last part are shared, too."""
    return {
        run
        for words in sentences
        for i in range(len(words) - size + 1)
        if size == 2 or (words[i : i + size - 1] in shorter and words[i + 1 : i + size] in shorter)
        for run in [words[i : i + size]]
    }


_EMPTY = frozenset(
    re.findall(
        r"\S+", "a an the is are was were of to in on at by for and or it this that what which who how #"
    )
)


def _says_something(run: tuple[str, ...]) -> bool:
    return any(w not in _EMPTY for w in run) or sum(w == "#" for w in run) >= 2


# --- composing and checking ---------------------------------------------------------------------------


def compose(setting: Setting, advice: Advice, tails: Sequence[str] = ()) -> str:
    """One lesson in words, with as many tails as the limit of `MAX_WORDS` allows."""
    when = advice.when or setting.when
    core = advice.core.replace("{alone}", setting.alone)
    if setting.asked and "brief" in advice.demands and not advice.numeric:
        tails = [setting.asked, *tails]  # how short: what the questions themselves ask for
    for kept in range(min(len(tails), MAX_TAILS), -1, -1):
        text = f"{when}, {core}{': ' if kept else ''}{', '.join(tails[:kept])}."
        if count_words(text) <= MAX_WORDS:
            return text
    return text


_FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be but by do for from has have i if in is it its no nor not of off on one or so "
        "such than that the their them then there these they this to true false was we were what when which "
        "who will with without yes you your",
    )
)


def leaks(text: str, answers: Set[str]) -> str:
    """The answer that a text gives away, or "". Function words ("no", "one") give nothing away.

    Args:
        text: a lesson, or a part of one.
        answers: normalised answers of all tasks of the run.
    """
    said = normalise(text)
    inside = [answer for answer in answers if answer in said and answer and answer not in _FUNCTION_WORDS]
    return next((answer for answer in sorted(inside) if stands_in(answer, said)), "")
