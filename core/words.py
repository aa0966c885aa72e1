"""What a word is, and when two texts count as the same.

A word, for the limit of `MAX_WORDS`:

1. A run of characters between white space is one word, whatever it holds: `read_json`, `f(x,y)`, a URL,
   `3.14` and `don't` are one word each. An em dash separates words as a space does, and so does a character that
   cannot be seen (zero-width space, soft hyphen, direction mark, ...), but for the joiners that some scripts and
   emoji need inside a word.
2. An ideograph or a kana is a word of its own, since Chinese and Japanese are written without spaces;
   what stands between them follows rule 1. Korean is written with spaces and follows rule 1.
3. Thai, Lao, Khmer and Burmese are written without spaces, too, but their letters are smaller than words:
   every started four letters are one word.
4. A run without any letter or digit is no word (`->`, `...`, `-`), unless it holds an emoji or another
   picture: such a run is one word.
"""

from __future__ import annotations

import re
import unicodedata

_SEPARATORS = re.compile(
    "(?:[\\s—⸺⸻\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufeff\uffa0\ufff9-\ufffb\U000e0001]"
    "|(?<=[A-Za-z0-9_])[\u200c\u200d\ufe00-\ufe0f\U000e0020-\U000e007f]+(?=[A-Za-z0-9_]))+"
)
_CHARACTER_WORDS = re.compile(
    "[\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d\U00016ff0-\U00016fff"
    "\U0001aff0-\U0001b16f\U00020000-\U0003fffd]"
)
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f]+")
_UNSPACED_LETTERS = 4

_LITERAL = re.compile(r"`[^`]+`|\"[^\"]+\"|“[^”]+”|(?<!\w)'[^']+'(?!\w)|(?<!\w)‘[^’]+’(?!\w)")
_KEPT = ("<super>", "<sub>", "<fraction>")
_BULLET = re.compile(r"^[-*•‣·]\s+")
_SENTENCE_END = re.compile(r"(?<=\S)(?<![.,;:!?。、])[.,;:!?。、]+$")
_END_MARKS = tuple(".,;:!?。、")
_QUOTE = re.compile(
    "[`\"“'‘]"
)  # a library of ten thousand is normalised often: what a text has not is not looked for
_SPACES = re.compile(r"\s+")


def count_words(text: str) -> int:
    """How many words a text has, by the four rules of this module.

    >>> count_words("Call read_json first, then check https://example.org/a?b=1 -> answer 3.14.")
    8
    >>> count_words("用 read_json 读取"), count_words("カナ"), count_words("먼저 파일을 읽어라")
    (4, 2, 3)
    >>> count_words("👍🏽 done — really"), count_words("- ... ->"), count_words("ตรวจสอบ")
    (3, 0, 2)
    """
    characters, rest = _take(_CHARACTER_WORDS, text)
    unspaced = 0
    for run in _UNSPACED.findall(rest):
        letters = sum(unicodedata.category(c)[0] in "LN" for c in run)
        unspaced += -(-letters // _UNSPACED_LETTERS)
    rest = _UNSPACED.sub(" ", rest)
    return characters + unspaced + sum(map(_is_word, _SEPARATORS.split(rest)))


def _take(pattern: re.Pattern[str], text: str) -> tuple[int, str]:
    rest, found = pattern.subn(" ", text)
    return found, rest


def _is_word(run: str) -> bool:
    return any((category := unicodedata.category(c))[0] in "LN" or category == "So" for c in run)


def normalise(text: str) -> str:
    """The form in which two texts are compared: equal forms are the same lesson (DESIGN 2.6).

    Compatibility forms (NFKC), case, runs of white space, a leading bullet, quotes around the whole and
    punctuation at its end do not count. Kept is what can turn a lesson into another one: the case and the
    spaces of a literal in quotes or backticks, a mark that stands alone at the end ("end with ." is not "end
    with !"), a leading minus, superscripts, subscripts and fractions (2⁵ is not 25).

    >>> normalise('  "Read the FILE  first!" ') == normalise("- read the file first.")
    True
    >>> normalise("Answer `Yes`.") == normalise("Answer `yes`.")
    False
    >>> normalise("End with .") == normalise("End with !")
    False
    """
    while (after := _once(text)) != text:  # what is taken off may bare another bullet or quote
        text = after
    return text


def _once(text: str) -> str:
    text = _compatible(text).strip()
    text = _unquoted(_BULLET.sub("", text))
    parts: list[str] = []
    end = 0
    for literal in _LITERAL.finditer(text) if _QUOTE.search(text) else ():
        parts += [_folded(text[end : literal.start()]), literal.group()]
        end = literal.end()
    parts.append(_folded(text[end:]))
    whole = "".join(parts).strip()
    return _SENTENCE_END.sub("", whole) if whole.endswith(_END_MARKS) else whole


def _compatible(text: str) -> str:
    if text.isascii():
        return text
    kept = [i for i, c in enumerate(text) if unicodedata.decomposition(c).startswith(_KEPT)]
    parts: list[str] = []
    start = 0
    for i in kept:
        parts += [unicodedata.normalize("NFKC", text[start:i]), text[i]]
        start = i + 1
    return "".join([*parts, unicodedata.normalize("NFKC", text[start:])])


def _unquoted(text: str) -> str:
    literal = _LITERAL.fullmatch(text)
    return text[1:-1].strip() if literal and text[0] != "`" and " " in text.strip() else text


def _folded(text: str) -> str:
    text = _compatible(text.casefold())
    return text if text == " ".join(text.split()) else _SPACES.sub(" ", text)
