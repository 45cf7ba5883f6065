"""The driver compiles the expressions of run files with `re`: what the rules let through is valid here, what they refuse is not."""

import json
import re
from pathlib import Path

import pytest

REGEXES = json.loads((Path(__file__).parents[1] / "fixtures/regexes/regexes.json").read_text())


@pytest.mark.parametrize("regex", REGEXES["validInBoth"] + REGEXES["differentInBoth"])
def test_valid(regex: str) -> None:
    re.compile(regex)


@pytest.mark.parametrize("regex", REGEXES["notInPython"])
def test_not_valid(regex: str) -> None:
    with pytest.raises(re.error):
        re.compile(regex)
