"""Strings that every YAML reader takes for the same text, and OmegaConf, too."""

from __future__ import annotations

import json
import re

# What YAML does not take as it is, or takes as a line break, and JSON leaves alone.
_NOT_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_OPENS = re.compile(r"(\\*)\$\{")
_ESCAPED = re.compile(r"(\\+)\$\{")


def yaml_string(text: str) -> str:
    r"""A double-quoted scalar of YAML 1.1 and 1.2: a JSON string with the few characters escaped that YAML forbids.

    >>> print(yaml_string('no: "x"\n'))
    "no: \"x\"\n"
    """
    quoted = json.dumps(text, ensure_ascii=False)
    return _NOT_YAML.sub(lambda match: f"\\u{ord(match.group()):04x}", quoted)


def escape_interpolation(text: str) -> str:
    r"""The text such that OmegaConf, which looks up `${name}`, gives it back as it is.

    >>> print(escape_interpolation("echo ${HOME} and $x"))
    echo \${HOME} and $x
    """
    return _OPENS.sub(lambda match: "\\" * (2 * len(match[1]) + 1) + "${", text)


def unescape_interpolation(text: str) -> str:
    r"""The inverse of `escape_interpolation`; an interpolation that is not escaped stays as it is.

    >>> print(unescape_interpolation(r"echo \${HOME} and ${HOME}"))
    echo ${HOME} and ${HOME}
    """
    return _ESCAPED.sub(lambda match: match[1][: len(match[1]) // 2] + "${", text)
