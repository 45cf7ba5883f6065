"""The preview of rows: text with a loss is told from text without, in the log, in colours and on a page."""

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import chat_data as data
import pytest
from hidden_text import HIDDEN

from fake_world import REPOSITORY

pytest.importorskip("jinja2")

LINES = [
    {"messages": [data.user("Is 1 < 2?"), data.assistant("Yes.\nIt is."), data.user("Sure?"), data.assistant("Quite.") | {"weight": 0}]},
    {"messages": [data.user("Colour?\x1b[31m"), data.assistant("Red.")], "source": "web"},
    {"messages": [data.user("Last?"), data.assistant("Left out.")]},
]


def preview(root: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Runs it as `slipway validate --data` does: with nothing but the trainer, and without PyTorch."""
    (root / "no-torch").mkdir(exist_ok=True)
    (root / "no-torch/torch.py").write_text("raise ImportError('no PyTorch here')")
    environ = os.environ | {"PYTHONPATH": f"{root / 'no-torch'}:{REPOSITORY / 'containers/trainer'}"}
    command = [sys.executable, "-m", "slipway_trainer.tokenize.preview", "--chat-template", data.UNMARKED, *words]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


def test_trained_lines_begin_with_a_plus(tmp_path: Path) -> None:
    file = data.write_lines(tmp_path / "a.jsonl", LINES)
    done = preview(tmp_path, "--data", str(file), "--rows", "2")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line[2:] for line in lines if line.startswith("+ ")] == ["Yes.", "It is.<|im_end|>", "Red.<|im_end|>"]
    assert "  Is 1 < 2?<|im_end|>" in lines and "  Quite.<|im_end|>" in lines and "  Colour?\\x1b[31m<|im_end|>" in lines
    assert re.fullmatch(r"preview: a.jsonl, row 1: \d+ of \d+ tokens are trained", lines[0])
    assert lines[-1] == "note: 1 lines have the key source, which has no effect"
    assert "Left out" not in done.stdout


def test_colours_and_the_page_mark_the_same_text(tmp_path: Path) -> None:
    file = data.write_lines(tmp_path / "a.jsonl", LINES)
    done = preview(tmp_path, "--data", str(file), "--colours", "--html", str(tmp_path / "page.html"))
    trained = re.findall(r"\x1b\[32m(.*?)\x1b\[0m", done.stdout, re.DOTALL)
    page = (tmp_path / "page.html").read_text()
    assert trained == [html.unescape(text) for text in re.findall("<b>(.*?)</b>", page.partition("</p>")[2], re.DOTALL)]
    assert trained == ["Yes.\nIt is.<|im_end|>\n", "Red.<|im_end|>\n", "Left out.<|im_end|>\n"]
    assert "Is 1 &lt; 2?" in page


def test_text_and_page_show_characters_that_nobody_sees(tmp_path: Path) -> None:
    hidden = "\x1b]0;title\x07\x9b2J\u202eevil\u2066" + "".join(chr(code) for code in HIDDEN if not 0xD800 <= code < 0xE000)
    row = {"messages": [{"role": "user", "content": hidden}, {"role": "assistant", "content": hidden}]}
    file = data.write_lines(tmp_path / "a\u202e\n.jsonl", [row])
    done = preview(tmp_path, "--data", str(file), "--html", str(tmp_path / "page.html"))
    for text in (done.stdout, (tmp_path / "page.html").read_text()):
        assert "\\u202eevil" in text and "a\\u202e\\n.jsonl, row 1" in text
        assert {hex(ord(one)) for one in text} & {hex(code) for code in HIDDEN} <= {hex(ord("\t")), hex(ord("\n"))}


def test_both_answers_of_a_preference_are_shown(tmp_path: Path) -> None:
    file = data.write_lines(tmp_path / "a.jsonl", data.PREFERENCES[:1])
    lines = preview(tmp_path, "--data", str(file)).stdout.splitlines()
    assert [line.split(": ")[1] for line in lines if line.startswith("preview")] == ["a.jsonl, row 1, chosen", "a.jsonl, row 1, rejected"]
    assert [line for line in lines if line.startswith("+")] == ["+  blue.<|endoftext|>", "+  green and full of cats.<|endoftext|>"]


@pytest.mark.parametrize(
    ("line", "code", "reason"),
    [
        ({"text": "a"}, 77, "--data: must have conversations, completions or preferences, got text in a.jsonl"),
        ({"messages": [data.user("a")]}, 72, "a.jsonl:1: messages: must have a turn of the assistant"),
        (None, 77, "--data: must be a file or folder, got"),
    ],
)
def test_fails_with_the_reason(tmp_path: Path, line: dict | None, code: int, reason: str) -> None:
    if line is not None:
        data.write_lines(tmp_path / "a.jsonl", [line])
    done = preview(tmp_path, "--data", str(tmp_path / "a.jsonl"))
    assert (done.returncode, reason in done.stderr) == (code, True), done.stderr


def test_the_step_shows_the_first_rows_and_leaves_a_page_beside_the_shards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shards = data.tokenise(tmp_path, LINES, Path("byte"), "--chat-template", data.UNMARKED)
    assert capsys.readouterr().out.count("preview: ") == 2
    assert "<b>Red.&lt;|im_end|&gt;\n</b>" in (shards / "preview-00000.html").read_text()
    quiet = data.tokenise(tmp_path / "quiet", LINES, Path("byte"), "--chat-template", data.UNMARKED, "--preview-rows", "0")
    assert "preview: " not in capsys.readouterr().out and not (quiet / "preview-00000.html").exists()
    assert (quiet / "tokens-00000-000000.bin").read_bytes() == (shards / "tokens-00000-000000.bin").read_bytes()
