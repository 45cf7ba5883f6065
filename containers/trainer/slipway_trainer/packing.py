"""Packs complete documents into rows of fixed length with little padding. Does not import PyTorch."""

from array import array
from collections import defaultdict
from collections.abc import Sequence


def packed(lengths: Sequence[int], row: int) -> list[array]:
    """Document indices of each row. Best fit decreasing: the longest documents first, each in the row with the least remaining space.

    A pure function, so that all ranks and starts have the same rows. `lengths`: tokens per document, 1 to `row`.
    """
    rows: list[array] = []
    #: Rows by their remaining tokens, and a bit mask of the remaining lengths that occur.
    by_space: defaultdict[int, list[array]] = defaultdict(list)
    spaces = 0
    for number in sorted(range(len(lengths)), key=lambda number: -lengths[number]):
        length = lengths[number]
        fitting = spaces >> length
        if fitting:
            space = length + (fitting & -fitting).bit_length() - 1
            found = by_space[space].pop()
            if not by_space[space]:
                spaces &= ~(1 << space)
        else:
            space, found = row, array("I")
            rows.append(found)
        found.append(number)
        if space > length:
            by_space[space - length].append(found)
            spaces |= 1 << (space - length)
    return rows
