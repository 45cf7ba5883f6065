"""Which characters a person sees."""

import re
from unicodedata import category

#: Characters that nobody sees, besides those of these categories (`plainText` of the command line has the same).
_NOT_DRAWN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0d\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]")
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def is_visible(character: str) -> bool:
    """Whether it is drawn, and neither controls a terminal nor changes the direction of text."""
    return category(character) not in _HIDDEN and not _NOT_DRAWN.match(character)
