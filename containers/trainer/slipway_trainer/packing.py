"""Documents to rows of one length: whole documents share a row, so that little of it is padding. No PyTorch here."""

from array import array
from collections import defaultdict
from collections.abc import Sequence


def packed(lengths: Sequence[int], row: int) -> list[array]:
    """The documents of each row, by their number. The longest come first, each into the row where it leaves least (best fit decreasing).

    A pure function, so that every rank and every start has the same rows. `lengths`: tokens of each document, 1 to `row`.
    """
    rows: list[array] = []
    #: Rows by the tokens that they have left; a bit for each such number that occurs.
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
