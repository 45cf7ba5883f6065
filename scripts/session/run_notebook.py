"""Executes the cells of a notebook in order, as a kernel would, in the working directory; prints the values of some names as JSON.

    run_notebook.py [--write] NOTEBOOK NAME...

What a cell shows last is drawn as a notebook would draw it, and printed as `shown`. With `--write`, the notebook keeps what its cells
printed and showed.
"""

import ast
import contextlib
import io
import json
import sys
import typing
from pathlib import Path

#: Of the text of a value that is also drawn.
MAX_TEXT = 500


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


def result_of(value: object, number: int) -> dict[str, typing.Any]:
    """A value as a notebook file has it."""
    has_html = hasattr(value, "_repr_html_")
    data = {"text/plain": [repr(value)[: MAX_TEXT if has_html else None]]}
    if has_html:
        data["text/html"] = [drawn(value)]
    return {"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": data}


def play(cell: dict[str, typing.Any], number: int, names: dict[str, typing.Any]) -> str:
    """Runs a cell, which keeps what it printed and showed; answers what it showed. What it printed also goes to stderr."""
    streams = {"stdout": io.StringIO(), "stderr": io.StringIO()}
    try:
        with contextlib.redirect_stdout(streams["stdout"]), contextlib.redirect_stderr(streams["stderr"]):
            value = execute("".join(cell["source"]), names)
    finally:
        for stream in streams.values():
            sys.stderr.write(stream.getvalue())
    printed = [
        {"output_type": "stream", "name": name, "text": stream.getvalue().splitlines(keepends=True)}
        for name, stream in streams.items()
        if stream.getvalue()
    ]
    cell.update(execution_count=number, outputs=printed + ([] if value is None else [result_of(value, number)]))
    return drawn(value)


def main() -> None:
    """Everything that cells print goes to stderr."""
    file, *wanted = (word for word in sys.argv[1:] if word != "--write")
    names: dict[str, typing.Any] = {}
    notebook = json.loads(Path(file).read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    shown = [play(cell, number + 1, names) for number, cell in enumerate(cells)]
    if "--write" in sys.argv:
        Path(file).write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
    print(json.dumps({"shown": shown, **{name: names[name] for name in wanted}}))


main()
