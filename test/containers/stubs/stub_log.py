"""Calls of the stubbed libraries, one JSON list a line in the file STUB_LOG: `[name, {arguments}]`."""

import json
import os
from typing import Any


def record(name: str, /, **arguments: Any) -> None:
    """Appends one call; values that JSON lacks are written as their type's name or text."""
    with open(os.environ["STUB_LOG"], "a", encoding="utf-8") as file:
        file.write(json.dumps([name, arguments], default=str) + "\n")
