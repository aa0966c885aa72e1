"""The embedded model's tokenizer: ids from its own server, the vocabulary from its own file."""

from __future__ import annotations

import http.client
import json
import struct
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from core.errors import ModelUnavailableError
from core.local_model.fetch import ensure
from core.local_model.model import MODEL_NAME
from core.local_model.server import MODEL, acquire
from core.prior import vocabulary_hash

TOKENS = "tokenizer.ggml.tokens"
"""The vocabulary in a GGUF file, by id."""
PATIENCE_S = 60.0
"""For one text: the server may be busy with replies."""

_SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_STRING, _ARRAY = 8, 9


class EmbeddedTokenizer:
    """Implements `core.ports.Tokenizer`; the server is started on the first text, the file read for the rest."""

    name = MODEL_NAME

    @cached_property
    def _pieces(self) -> tuple[str, ...]:
        return vocabulary(ensure(MODEL))

    @cached_property
    def sha256(self) -> str:
        return _hash_of(self._pieces)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of each text.

        Raises:
            ModelUnavailableError: the embedded model cannot be had or served.
        """
        served = acquire()
        place = urlsplit(served.base_url)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=PATIENCE_S)
        headers = {"Authorization": f"Bearer {served.api_key}", "Content-Type": "application/json"}
        found: dict[str, list[int]] = {}
        try:
            for text in dict.fromkeys(texts):
                asked = {"content": text, "add_special": False, "parse_special": False}
                connection.request("POST", "/tokenize", json.dumps(asked), headers)
                found[text] = json.loads(connection.getresponse().read())["tokens"]
        except (OSError, ValueError, LookupError, TypeError, http.client.HTTPException) as e:
            raise ModelUnavailableError(f"The embedded model's server did not tokenise a text: {e}.") from e
        finally:
            connection.close()
        return [found[text] for text in texts]

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of some tokens; U+FFFD stands for parts of a character."""
        raw = bytearray()
        for token in tokens:
            for c in self._pieces[token]:
                raw += bytes([_BYTES[c]]) if c in _BYTES else c.encode()
        return raw.decode(errors="replace")


def _byte_letters() -> dict[str, int]:
    """How byte-level BPE (GPT-2) spells each byte: printable ones as they are, the others from U+0100 on."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in plain]
    return {chr(b): b for b in plain} | {chr(0x100 + i): b for i, b in enumerate(others)}


_BYTES = _byte_letters()


@lru_cache(maxsize=1)
def _hash_of(pieces: tuple[str, ...]) -> str:
    return vocabulary_hash(dict(enumerate(pieces)))


@lru_cache(maxsize=1)
def vocabulary(path: Path) -> tuple[str, ...]:
    """The tokens of a GGUF file by id, as byte-level BPE spells them.

    Raises:
        ModelUnavailableError: it is no GGUF file, or has no vocabulary.
    """
    try:
        with path.open("rb") as file:
            if file.read(4) != b"GGUF" or _number(file, 4) not in (2, 3):
                raise ValueError("it is no GGUF file of version 2 or 3")
            _number(file, 10)  # how many tensors there are
            for _ in range(_number(file, 10)):
                key, value = _value(file, _STRING), _value(file, _number(file, 4))
                if key == TOKENS:
                    return tuple(value)
        raise ValueError("it holds no vocabulary")
    except (OSError, ValueError, LookupError, struct.error) as e:
        raise ModelUnavailableError(f"The vocabulary of {path.name} cannot be read: {e}.") from e


def _number(file: BinaryIO, kind: int) -> Any:
    shape = _SCALARS[kind]
    return struct.unpack(shape, file.read(struct.calcsize(shape)))[0]


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return file.read(_number(file, 10)).decode("utf-8", "surrogateescape")
    if kind == _ARRAY:
        inner = _number(file, 4)
        return [_value(file, inner) for _ in range(_number(file, 10))]
    return _number(file, kind)
