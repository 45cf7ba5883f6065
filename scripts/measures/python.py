"""Measures of the Python below containers/: functions, and docstrings of what is public. Prints one JSON document."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path


def measured(folder: Path) -> dict:
    """Lines of each function, public definitions with and without a docstring."""
    lengths, public, documented = [], 0, 0
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"), str(path))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                lengths.append(node.end_lineno - node.lineno + 1)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
                public += 1
                documented += ast.get_docstring(node) is not None
    return {"lengths": lengths, "public": public, "documented": documented}


if __name__ == "__main__":
    print(json.dumps({folder: measured(Path(folder)) for folder in sys.argv[1:]}))
