"""Find many numbers at a time among many others: a hash table in arrays."""

import numpy as np
from numpy.typing import NDArray

from rejoinder.corpora.ragged import Ints

_PRIME = np.uint64(0x9E3779B97F4A7C15)


class Lookup:
    """The place of each of some distinct numbers, none of them negative."""

    def __init__(self, numbers: Ints) -> None:
        bits = max(4, int(4 * len(numbers)).bit_length())
        self._shift = np.uint64(64 - bits)
        self._numbers: Ints = np.full(1 << bits, -1, np.int64)
        self._places: Ints = np.full(1 << bits, -1, np.int64)
        waiting, slots = np.arange(len(numbers)), self._slots(numbers)
        while len(waiting):
            free = self._places[slots] < 0
            self._places[slots[free]] = waiting[free]  # of several that want one slot, the last gets it
            left = self._places[slots] != waiting
            waiting, slots = waiting[left], (slots[left] + 1) % len(self._places)
        taken = self._places >= 0
        self._numbers[taken] = numbers[self._places[taken]]

    def _slots(self, numbers: Ints) -> NDArray[np.int64]:
        return ((numbers.astype(np.uint64) * _PRIME) >> self._shift).astype(np.int64)

    def find(self, numbers: Ints) -> Ints:
        """Return the place of each number; -1: not there."""
        places = np.full(len(numbers), -1, np.int64)
        waiting, slots = np.arange(len(numbers)), self._slots(numbers)
        while len(waiting):
            met = self._numbers[slots]
            hit = met == numbers[waiting]
            places[waiting[hit]] = self._places[slots[hit]]
            going = ~hit & (met >= 0)
            waiting, slots = waiting[going], (slots[going] + 1) % len(self._places)
        return places
