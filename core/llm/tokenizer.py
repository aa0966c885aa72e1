"""The tokenizer of an endpoint's model, from its tokenizer.json."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import InputError
from core.prior import vocabulary_hash

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MAX_FILE_BYTES = 2**28
"""Of a tokenizer.json; the largest known ones have a tenth of it."""


class TokenizerFile:
    """Implements `core.ports.Tokenizer` with the library `tokenizers`.

    Args:
        path: of the file.
        name: of the model that it belongs to.

    Raises:
        InputError: there is no such file, or it is no tokenizer.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        self._tokenizer = _read(path)

    @cached_property
    def sha256(self) -> str:
        return vocabulary_hash({i: t for t, i in self._tokenizer.get_vocab(with_added_tokens=True).items()})

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of each text."""
        found = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [list(each.ids) for each in found]

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of some tokens; U+FFFD stands for parts of a character."""
        return self._tokenizer.decode(list(tokens), skip_special_tokens=False)


def _read(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    if not path.is_file():
        raise InputError(f"There is no tokenizer file {path}.")
    if path.stat().st_size > MAX_FILE_BYTES:
        raise InputError(f"{path} is larger than any tokenizer.json ({MAX_FILE_BYTES} bytes).")
    try:
        return Tokenizer.from_file(str(path))
    except Exception as e:  # the library raises plain Exception for whatever it cannot read
        raise InputError(f"{path} is no tokenizer.json that can be read: {e}.") from e
