"""Vocabulary: the features of many rollouts as numbers, so that a rollout costs 8 bytes for each.

A word is stored once and has a number; a pair of words is the two numbers, and its text is made only where
enough rollouts hold it to be tested. All other features are stored once, by name.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

import numpy as np
from numpy.typing import NDArray

from core.evidence.answer_features import Words, word_feature
from core.evidence.features import Feature

Keys = NDArray[np.uint64]
Mask = NDArray[np.bool_]

_NAMED = 1 << 63
"""Marks the key of a feature with a name. The key of a word is its number, that of a pair both numbers."""
_LOW = (1 << 32) - 1


class Vocabulary:
    """Numbers for features; they depend on the order of arrival, what is made of them must not."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._words: list[str] = [""]
        self._places: dict[str, int] = {}
        self._features: list[Feature] = []

    def keys(self, features: Sequence[Feature], words: Words) -> list[int]:
        """The keys of one rollout's features, new ones numbered."""
        keys = []
        for feature in features:
            place = self._places.setdefault(feature.name, len(self._features))
            if place == len(self._features):
                self._features.append(feature)
            keys.append(_NAMED | place)
        for word in words.singles:
            number = self._numbers.setdefault(word, len(self._words))
            if number == len(self._words):
                self._words.append(word)
            keys.append(number)
        return keys + [self._numbers[a] << 32 | self._numbers[b] for a, b in words.pairs]

    def feature(self, key: int) -> Feature:
        """What a key stands for."""
        if key & _NAMED:
            return self._features[key ^ _NAMED]
        first, second = self._words[key >> 32], self._words[key & _LOW]
        return word_feature(f"{first} {second}".lstrip())

    def hidden(self, keys: Keys, masked: Set[str]) -> Mask:
        """Which keys hold a masked word; shape [keys]."""
        numbers = np.array([self._numbers[w] for w in masked if w in self._numbers], dtype=np.uint64)
        words = is_word(keys)
        found = words & (np.isin(keys & np.uint64(_LOW), numbers) | np.isin(keys >> np.uint64(32), numbers))
        for i in np.flatnonzero(~words):
            feature = self.feature(int(keys[i]))
            found[i] = feature.theme == "parameter" and feature.value.partition("=")[2].lower() in masked
        return np.asarray(found, dtype=np.bool_)

    def stops(self, keys: Keys) -> Mask:
        """Which keys say how a rollout was cut off or stopped; shape [keys]."""
        found = np.zeros(len(keys), dtype=np.bool_)
        for i in np.flatnonzero(~is_word(keys)):
            found[i] = self.feature(int(keys[i])).theme == "cut"
        return found


def is_word(keys: Keys) -> Mask:
    """Which keys are words or pairs of words; shape [keys]."""
    return np.asarray(keys < np.uint64(_NAMED), dtype=np.bool_)
