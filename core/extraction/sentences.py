"""From a finding to advice in words: what to do or to leave, when, and how, in at most 32 words.

Not every true contrast is good advice (DESIGN 5). A feature that is missing from the tables here is shown to
the reader as an insight and never turned into a lesson: being cut off, refusing, single words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from core.evidence import Feature, answers_of
from core.evidence.instructions import Demand, is_instruction, read_instruction, without_material
from core.experience import MAX_WORDS, Kind
from core.rollout import Task
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
    ("final_punctuation", False): _form("end without punctuation", "", "no_period"),
    ("asks_back", False): _form("answer the question and do not ask one back", "no question back"),
    ("number_words", False): _form("write the number in digits", "no number words", "digits", numeric=True),
    ("number_words", True): _form("write the number in words", "", "number_words", numeric=True),
    ("number_with_unit", False): _form("leave the unit out", "no unit", "number_only", numeric=True),
    ("number_with_unit", True): _form("give the unit after the number", "", "unit", numeric=True),
    ("several_numbers", False): _form("write one number only", "no other number", "brief", numeric=True),
    ("shows_sum", False): _form(
        "give the result without the calculation", "no calculation", "no_explanation", numeric=True
    ),
    ("shows_sum", True): _form("write the calculation before the result", "", "explanation", numeric=True),
    ("json_in_prose", False): _form("answer with the JSON alone", "no text around the JSON", "json"),
    ("code_fence", False): _form("answer without a code fence", "no code fence", "no_code"),
    ("json_keys_asked", True): _form("use exactly the keys that the question names", "", "json"),
    ("json_other_keys", False): _form(
        "use exactly the keys that the question names", "no other keys", "json"
    ),
    ("all_lower", True): _form("write the answer in lower case", "", "lower"),
    ("all_upper", True): _form("write the answer in capital letters", "", "upper"),
    ("starts_capital", True): _form("begin the answer with a capital letter", "", "capital"),
    ("hedges", False): Advice(
        "commit to one answer, without ifs and buts", "no ifs and buts", frozenset({"brief"}), "strategy"
    ),
    ("several_choices", False): Advice(
        "commit to one answer and name no other", "no second choice", kind="strategy"
    ),
    ("outside_choices", False): _form("use one of the words that the question offers", "no other word"),
    ("refuses", False): _form("give the best answer you have, without an apology", "no apology"),
    ("quoted", False): _form("write the answer without quotes", "no quotes", "no_quotes"),
    ("quoted", True): _form("put the answer in quotes", "", "quotes"),
    ("markdown", False): _form("write plain text", "no Markdown", "no_code"),
}
"""By feature, and whether winners have it (True) or lack it (False)."""

_HABITS: Mapping[tuple[str, bool], tuple[str, Kind]] = {
    ("checked_before_acting", True): ("look up the present state before changing anything", "strategy"),
    ("checked_after_acting", True): ("read the state again after the last change to check it", "strategy"),
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
        core = f"call `{after}` instead" if do else f"do not switch to `{after}`"
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


def setting_of(tasks: Sequence[Task], domain: str, *, tools: bool = False) -> Setting:
    """Read the "when" and the asked-for thing from the questions; answers themselves never get in.

    Args:
        tasks: the tasks of one domain.
        domain: its label.
        tools: whether the lesson is about tools; then the domain says when, not the question.
    """
    answers = {normalise(a) for task in tasks for a in answers_of(task)}
    told = [task.answer for task in tasks if task.answer]
    numeric = bool(told) and all(re.fullmatch(r"[-+]?[\d.,]+", a.strip()) for a in told)
    read = [read_instruction(task.question) for task in tasks]
    noun, times = Counter(r.noun for r in read).most_common(1)[0] if read else ("", 0)
    if times < SHARED * len(tasks) or leaks(noun, answers) or len(noun.split()) > MAX_NOUN:
        noun = ""
    one_word = sum("one_word" in r.demands for r in read) >= SHARED * len(tasks) > 0
    asked = f"{noun} alone" if noun else "one word" if one_word else ""
    several = any(len(a.split()) > 1 for a in told)
    guess = "the number alone" if numeric else "the answer alone" if several else "one word"
    when = _when(tasks, domain, noun, answers, tools=tools)
    return Setting(when, asked or guess, asked, numeric)


def _when(tasks: Sequence[Task], domain: str, noun: str, answers: set[str], *, tools: bool) -> str:
    name = " ".join(re.split(r"[\s_-]+", domain.strip()))
    known = name if name and name != "general" and not leaks(name, answers) else ""
    if tools:
        return f"In {known} tasks" if known else "When tools are at hand"
    pattern = shared_words([task.question for task in tasks], answers)
    if pattern:
        return f'When asked "{pattern}"'
    if known:
        return f"In {known} questions"
    return f"When a question asks for {noun}" if noun else "When a question is short"


def shared_words(questions: Sequence[str], answers: set[str]) -> str:
    """The longest run of words that most questions share, numbers and the rest as "..."; "" without one.

    Instructions ("Answer with ...") and quoted material are left out, and so is every answer.
    """
    if len(set(questions)) < 3:
        return ""
    count: Counter[tuple[str, ...]] = Counter()
    for question in questions:
        count.update(_runs(question, answers))
    shared = [g for g, times in count.items() if times >= SHARED * len(questions) and _says_something(g)]
    if not shared:
        return ""
    best = max(shared, key=lambda g: (len(g), count[g], g))
    words = " ".join("..." if w == "#" else w for w in best)
    first = best[0]
    starts = sum(_tokens(q)[:1] == [first] for q in questions) >= SHARED * len(questions)
    words = re.sub(r"\.\.\.( \.\.\.)+", "...", words)
    words = words if starts or words.startswith("...") else f"... {words}"
    return words if words.endswith("...") else f"{words} ..."


def _tokens(text: str) -> list[str]:
    found = re.findall(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*|[-+*/=×÷]", text.lower())
    return ["#" if w[0].isdigit() else w for w in found]


def _runs(question: str, answers: set[str]) -> set[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    for sentence in re.split(r"(?<=[.?!:])\s+|\n", without_material(question)):
        if not sentence.strip() or is_instruction(sentence):
            continue
        words = ["#" if w in answers else w for w in _tokens(sentence)]
        for size in range(2, MAX_PATTERN + 1):
            for i in range(len(words) - size + 1):
                run = tuple(words[i : i + size])
                if not leaks(" ".join(run), answers):
                    found.add(run)
    return found


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


def leaks(text: str, answers: set[str]) -> str:
    """The answer that a text gives away, or "". Function words ("no", "one") give nothing away.

    Args:
        text: a lesson, or a part of one.
        answers: normalised answers of all tasks of the batch.
    """
    said = normalise(text)
    for answer in sorted(answers):
        if answer in _FUNCTION_WORDS or not answer:
            continue
        if answer in said and re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", said):
            return answer
    return ""
