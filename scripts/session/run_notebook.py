"""Executes the cells of a notebook in order, as a kernel would, in the working directory; prints the values of some names as JSON.

    run_notebook.py NOTEBOOK NAME...

What a cell shows last is drawn as a notebook would draw it, and printed as `shown`.
"""

import ast
import contextlib
import json
import sys
import typing
from pathlib import Path


def execute(source: str, names: dict[str, typing.Any]) -> object:
    """Runs a cell and answers the value of its last expression, as a kernel shows it."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None


def drawn(value: object) -> str:
    """HTML where there is some, else text."""
    draw = getattr(value, "_repr_html_", None)
    return draw() if draw else str(value)


def main() -> None:
    """Everything that cells print goes to stderr."""
    names: dict[str, typing.Any] = {}
    cells = [cell for cell in json.loads(Path(sys.argv[1]).read_text())["cells"] if cell["cell_type"] == "code"]
    with contextlib.redirect_stdout(sys.stderr):
        shown = [drawn(execute("".join(cell["source"]), names)) for cell in cells]
    print(json.dumps({"shown": shown, **{name: names[name] for name in sys.argv[2:]}}))


main()
