"""Shows what is trained in the first rows of post-training data, for people to read: as text, and as a page.

`python -m slipway_trainer.tokenize.preview --data FILE` shows it without a job; `slipway validate RUN --data FILE` runs that. It needs no
PyTorch, only `jinja2`, and `tokenizers` for a tokenizer.json.
"""

import html
import json
import sys
from collections.abc import Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import NamedTuple

from slipway_trainer.exits import InvalidRun, end_with
from slipway_trainer.options import Option, Text, Whole
from slipway_trainer.tokenize.arguments import options
from slipway_trainer.tokenize.documents import examples, input_files, kind_of
from slipway_trainer.tokenize.examples import ExampleReader, open_reader
from slipway_trainer.tokenize.rows import rows as table_rows
from slipway_trainer.tokenize.tokenizers import Tokenizer, load_tokenizer
from slipway_trainer.visible import is_visible

#: Name of a host's page beside the shards.
PAGE = "preview-{:05d}.html"
#: Longest text of a stretch that is shown; the middle of a longer one is left out.
_CHARACTERS = 2000
_GREEN, _DIM, _PLAIN = "\033[32m", "\033[2m", "\033[0m"
_STYLE = (
    "body{font:14px/1.5 monospace;max-width:60rem;margin:2rem auto;white-space:pre-wrap}"
    "b{font-weight:normal;background:#bfe8c5;color:#000}span{color:#767676}h2{font-size:1rem;margin:2rem 0 .5rem}"
)


class Stretch(NamedTuple):
    """Consecutive tokens, all of them with a loss or all without."""

    text: str
    trained: bool
    tokens: int


class Row(NamedTuple):
    """An example of a row: one for a conversation or completion, two (chosen and rejected) for a preference."""

    name: str
    stretches: list[Stretch]


def first_rows(files: Sequence[Path], reader: ExampleReader, tokenizer: Tokenizer, count: int) -> list[Row]:
    """The examples of the first rows. Raises DataFailed with the position of an invalid one."""
    found = []
    for line in islice(examples(files, (0, 0), reader), count):
        for side, example in zip(("chosen", "rejected"), line.examples, strict=False):
            pairs = groupby(zip(example.tokens, example.targets, strict=True), key=lambda pair: pair[1] == 1)
            stretches = [(trained, [token for token, _target in group]) for trained, group in pairs]
            name = f"{files[line.file].name}, row {line.line + 1}" + (f", {side}" if len(line.examples) > 1 else "")
            found.append(Row(name, [Stretch(tokenizer.decode(ids), trained, len(ids)) for trained, ids in stretches]))
    return found


def as_text(rows: Sequence[Row], colours: bool) -> str:
    """The rows for a terminal: trained text is green. Without colours, each stretch has lines of its own, and trained ones begin with +."""
    parts = []
    for row in rows:
        parts.append(_heading(row))
        if colours:
            parts.append("".join((_GREEN if trained else _DIM) + _shortened(text) + _PLAIN for text, trained, _count in row.stretches))
        else:
            for text, trained, _count in row.stretches:
                lines = _shortened(text).removesuffix("\n").split("\n")
                parts += [f"{'+' if trained else ' '} {line}" for line in lines]
    return "\n".join(parts)


def as_page(rows: Sequence[Row]) -> str:
    """The rows as an HTML page."""
    parts = []
    for row in rows:
        marks = [("b" if trained else "span", html.escape(_visible(text))) for text, trained, _count in row.stretches]
        parts.append(f"<h2>{html.escape(_heading(row))}</h2>" + "".join(f"<{tag}>{text}</{tag}>" for tag, text in marks))
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>What is trained</title><style>{_STYLE}</style>'
    return f"{head}<p><b>Text with a loss</b> and <span>text without</span></p>{''.join(parts)}</html>\n"


def _heading(row: Row) -> str:
    trained = sum(stretch.tokens for stretch in row.stretches if stretch.trained)
    return f"preview: {_visible(row.name, kept='')}: {trained} of {sum(stretch.tokens for stretch in row.stretches)} tokens are trained"


def _shortened(text: str) -> str:
    """The text without the middle of a long one, visible."""
    return _visible(text if len(text) <= _CHARACTERS else f"{text[: _CHARACTERS // 2]} ... {text[-_CHARACTERS // 2 :]}")


def _visible(text: str, kept: str = "\n\t") -> str:
    """The text with escapes in place of characters that control a terminal, change the direction of text or are not drawn."""
    return "".join(one if is_visible(one) or one in kept else one.encode("unicode_escape").decode() for one in text)


def measured(files: Sequence[Path], reader: ExampleReader, count: int) -> dict[str, int]:
    """The number of all rows, and of the first `count` of them: rows, tokens, tokens with a loss, and tokens of the longest example. Raises
    DataFailed with the position of an invalid row among them."""
    found = list(islice(examples(files, (0, 0), reader), count))
    each = [example for line in found for example in line.examples]
    return {
        "rows": sum(1 for file in files for _row in table_rows(file, 0)),
        "measured": len(found),
        "tokens": sum(len(example.tokens) for example in each),
        "targets": sum(sum(example.targets) for example in each),
        "longest": max((len(example.tokens) for example in each), default=0),
    }


def run(words: list[str]) -> int:
    """Shows the first rows of `--data`, a file or folder; returns the exit code."""
    known = options(
        Option("data", Text(), "", "file or folder with rows"),
        Option("rows", Whole(1), 3, "number of rows to show"),
        Option("html", Text(), "", "file for a page"),
        Option("measure", Whole(0), 0, "number of first rows whose tokens are counted; the last line is the result as JSON"),
        Option("colours", None, False, "write the colours of a terminal"),
    )
    issues: list[str] = []
    given = known.read(words, issues)
    if not Path(given.data).exists():
        issues.append(f"--data: must be a file or folder, got {given.data or 'none'}; correct the path")
    if issues:
        raise InvalidRun(*issues)
    path = Path(given.data)
    files = [path] if path.is_file() else input_files(path)
    kind = kind_of(files)
    if kind == "text":
        raise InvalidRun(f"--data: must have conversations, completions or preferences, got text in {path.name}; all of text is trained")
    tokenizer = load_tokenizer(given.tokenizer, given.end_of_text)
    reader = open_reader(kind, given, tokenizer)
    rows = first_rows(files, reader, tokenizer, given.rows)
    print("\n".join([as_text(rows, given.colours), *(f"note: {note}" for note in reader.notes)]))
    if given.html:
        Path(given.html).write_text(as_page(rows), encoding="utf-8")
    if given.measure:
        print(json.dumps({"kind": kind} | measured(files, open_reader(kind, given, tokenizer), given.measure)))
    return 0


if __name__ == "__main__":
    end_with(lambda: run(sys.argv[1:]))
