"""Data sets as Hugging Face datasets and Arrow write them become the shards that the same lines as JSON become."""

import gzip
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chat_data as data
import pytest

from slipway_trainer.exits import DataFailed, InvalidRun
from slipway_trainer.tokenize.documents import documents, input_files
from slipway_trainer.tokenize.rows import rows

arrow = pytest.importorskip("pyarrow")
datasets = pytest.importorskip("datasets")
pytestmark = pytest.mark.torch

SEED = int(os.environ.get("SLIPWAY_TEST_SEED", random.randrange(1 << 30)))
Lines = list[dict[str, Any]]


def drawn_lines(count: int = 40) -> Lines:
    rng = random.Random(SEED)
    return [{"text": "".join(rng.choices("abc é\n", k=rng.randint(0, 30))), "id": number, "source": "web"} for number in range(count)]


def as_json(lines: Lines) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def zstd_of(content: bytes) -> bytes:
    sink = arrow.BufferOutputStream()
    with arrow.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


def write_parquet(folder: Path, lines: Lines) -> None:
    datasets.Dataset.from_list(lines).to_parquet(folder / "a.parquet", batch_size=7)


def write_ipc(folder: Path, lines: Lines) -> None:
    table = arrow.Table.from_pylist(lines)
    with arrow.OSFile(str(folder / "a.arrow"), "wb") as sink, arrow.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=7)


WRITERS: dict[str, Callable[[Path, Lines], Any]] = {
    "gzip": lambda folder, lines: (folder / "a.jsonl.gz").write_bytes(gzip.compress(as_json(lines))),
    "zstd": lambda folder, lines: (folder / "a.jsonl.zst").write_bytes(zstd_of(as_json(lines))),
    "parquet": write_parquet,
    "save_to_disk": lambda folder, lines: datasets.Dataset.from_list(lines).save_to_disk(folder / "set", num_shards=3),
    "arrow file": write_ipc,
}


def tokenised(root: Path, write: Callable[[Path, Lines], Any], lines: Lines, *words: str) -> Path:
    """Runs the tokenise step over what a writer writes; the folder of the shards."""
    from slipway_trainer.tokenize.__main__ import run

    base = root / "opt"
    for folder in ("config", "processing/input/raw"):
        (base / folder).mkdir(parents=True)
    write(base / "processing/input/raw", lines)
    (base / "config/processingjobconfig.json").write_text(json.dumps({"ProcessingInputs": []}))
    assert run([*words], base) == 0
    return base / "processing/output"


def contents(shards: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in shards.iterdir() if path.suffix not in (".json", ".html")}


@pytest.mark.parametrize("form", WRITERS)
def test_text_becomes_the_shards_of_its_lines(tmp_path: Path, form: str) -> None:
    lines, words = drawn_lines(), ("--shard-tokens", "150")
    plain = tokenised(tmp_path / "plain", lambda folder, given: (folder / "a.jsonl").write_bytes(as_json(given)), lines, *words)
    assert len(contents(plain)) > 2
    assert contents(tokenised(tmp_path / form, WRITERS[form], lines, *words)) == contents(plain), f"seed {SEED}"


@pytest.mark.parametrize("form", WRITERS)
def test_conversations_become_the_shards_of_their_lines(tmp_path: Path, form: str) -> None:
    tokenizer = data.write_tokenizer(tmp_path / "tokenizer")
    plain = data.tokenise(tmp_path / "plain", data.CONVERSATIONS, tokenizer)
    assert contents(tokenised(tmp_path / form, WRITERS[form], data.CONVERSATIONS, "--tokenizer", str(tokenizer))) == contents(plain)


def drawn_calls(count: int = 12) -> Lines:
    """Conversations with calls of several tools, whose rows a table fills with nulls. It has one order of keys and one type of each."""
    rng = random.Random(SEED)
    tools = {"add": ("a", "b"), "look_up": ("word",), "now": ()}
    values = {"a": 1, "b": [1, 2], "word": {"text": "ü", "exact": True}}
    found = []
    for number in range(count):
        # The first row has all keys of the longest call, so that every table has the order of the lines.
        name = "add" if number == 0 else rng.choice([*tools])
        arguments = {key: values[key] for key in tools[name][: rng.randint(0, 2) if number else 2]}
        call = {"type": "function", "function": {"name": name, "arguments": arguments}}
        answer = data.assistant("Done.") | rng.choice([{}, {"weight": 0}, {"reasoning_content": "So."}])
        called = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "name": name, "content": "3"}]
        begun = [data.user("Go."), *(called if rng.random() < 0.7 or not number else []), answer]
        schema = {"type": "object", "properties": {key: {"type": "object"} for key in tools[name]}}
        given = [{"type": "function", "function": {"name": name, "parameters": schema}}]
        tools_of_line = {"tools": given} if rng.random() < 0.7 or not number else {}
        found.append({"messages": [*begun, data.user("More?"), data.assistant("No.")], **tools_of_line})
    return found


#: Renders all of them.
CALLS = (
    "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}<|im_start|>{{ m.role }}{{ m.reasoning_content }}"
    "{{ m.content }}{% for c in m.tool_calls or [] %}{{ c | tojson }}{% endfor %}<|im_end|>\n{% endfor %}"
)


def write_json_columns(folder: Path, lines: Lines) -> None:
    """As Hugging Face datasets stores values of several types."""
    datasets.Dataset.from_list(lines, on_mixed_types="use_json").to_parquet(folder / "a.parquet")


def write_array(folder: Path, lines: Lines) -> None:
    (folder / "a.json").write_text(json.dumps(lines, indent=1), encoding="utf-8")


@pytest.mark.parametrize("form", [*WRITERS, "JSON columns", "array"])
def test_calls_become_the_shards_of_their_lines(tmp_path: Path, form: str) -> None:
    lines, words = drawn_calls(), ("--tokenizer", "byte", "--chat-template", CALLS, "--shard-tokens", "900")
    writer = {**WRITERS, "JSON columns": write_json_columns, "array": write_array}[form]
    plain = tokenised(tmp_path / "plain", lambda folder, given: (folder / "a.jsonl").write_bytes(as_json(given)), lines, *words)
    assert len(contents(plain)) > 3
    assert contents(tokenised(tmp_path / "other", writer, lines, *words)) == contents(plain), f"seed {SEED}"


def test_rows_are_the_same_in_every_order(tmp_path: Path) -> None:
    lines, words = drawn_calls(), ("--tokenizer", "byte", "--chat-template", CALLS)

    def write(folder: Path, given: Lines) -> None:
        for number, line in enumerate(given):
            (folder / f"{number:02d}.jsonl").write_bytes(as_json([line]))

    alone = [tokenised(tmp_path / str(number), write, [line], *words) for number, line in enumerate(lines)]
    for ending in (".bin", ".mask"):
        joined = b"".join(next(iter(shards.glob(f"*{ending}"))).read_bytes() for shards in reversed(alone))
        whole = tokenised(tmp_path / f"whole{ending}", write, lines[::-1], *words)
        assert next(iter(whole.glob(f"*{ending}"))).read_bytes() == joined, f"seed {SEED}"


@pytest.mark.parametrize("form", WRITERS)
def test_a_restart_goes_on_behind_any_row(tmp_path: Path, form: str) -> None:
    tmp_path.joinpath("in").mkdir()
    WRITERS[form](tmp_path / "in", drawn_lines())
    files = input_files(tmp_path / "in")
    whole = list(documents(files, (0, 0), "text"))
    assert len(whole) == 40 and whole[1].text.decode() == drawn_lines()[1]["text"]
    for place in range(0, 40, 3):
        assert list(documents(files, (whole[place].file, whole[place].line), "text")) == whole[place:], f"seed {SEED}, row {place}"


def test_fields_that_a_table_leaves_empty_are_those_that_a_line_leaves_out(tmp_path: Path) -> None:
    write_parquet(tmp_path, [{"prompt": "a", "completion": "b", "tools": None}, {"prompt": "c", "completion": "d", "tools": "[]"}])
    assert [row.value for row in rows(tmp_path / "a.parquet", 0)][0] == {"prompt": "a", "completion": "b"}


def test_an_array_continues_behind_any_element_and_fails_where_it_is_cut(tmp_path: Path) -> None:
    write_array(tmp_path, drawn_lines())
    assert [row.place for row in rows(tmp_path / "a.json", 38)] == ["a.json, element 39", "a.json, element 40"]
    (tmp_path / "a.json").write_text((tmp_path / "a.json").read_text()[:-3])
    with pytest.raises(DataFailed, match="a.json: must be one JSON array, or one JSON object per line"):
        list(rows(tmp_path / "a.json", 0))


def test_fails_with_the_formats_for_keys_that_none_has(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"question": "a", "answer": "b"}\n')
    with pytest.raises(DataFailed, match="must have text under 'text', got null and the keys question, answer; write conversations"):
        list(documents(input_files(tmp_path), (0, 0), "text"))


def test_fails_naming_columns_rows_and_files(tmp_path: Path) -> None:
    write_parquet(tmp_path, [{"text": "a", "body": "b"}, {"text": None, "body": "b"}])
    files = input_files(tmp_path)
    with pytest.raises(DataFailed, match=r"a.parquet: must have a column 'words', got text, body; set code.arguments.text-key"):
        list(documents(files, (0, 0), "words"))
    with pytest.raises(DataFailed, match=r"a.parquet, row 2: must have text under 'text', got null"):
        list(documents(files, (0, 0), "text"))
    whole = files[0].read_bytes()
    files[0].write_bytes(whole[:-20])
    with pytest.raises(DataFailed, match=r"a.parquet: must be a parquet table"):
        list(documents(files, (0, 0), "text"))
    shutil.copy(files[0], tmp_path / "b.arrow")
    with pytest.raises(DataFailed, match=r"b.arrow: must be "):
        list(documents([tmp_path / "b.arrow"], (0, 0), "text"))
    (tmp_path / "c.jsonl.zst").write_bytes(zstd_of(as_json(drawn_lines()))[:-9])
    with pytest.raises(DataFailed, match=r"c.jsonl.zst"):
        list(documents([tmp_path / "c.jsonl.zst"], (0, 0), "text"))


def test_fails_with_the_line_of_half_a_character(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n{"text": "\\ud83d"}\n')
    with pytest.raises(DataFailed, match=r"a.jsonl:2: must have text of whole characters under 'text' .*; remove the line"):
        list(documents([tmp_path / "a.jsonl"], (0, 0), "text"))


@pytest.mark.parametrize("damage", [lambda packed: packed[:-9], lambda packed: packed[:10] + b"\xff" * 9], ids=["cut", "damaged"])
@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.txt.gz"])
def test_fails_with_a_gzip_file_that_is_cut_off_or_damaged(tmp_path: Path, name: str, damage: Callable[[bytes], bytes]) -> None:
    (tmp_path / name).write_bytes(damage(gzip.compress(as_json(drawn_lines()), mtime=0)))
    with pytest.raises(DataFailed, match=f"{name}: must be whole and readable"):
        list(documents([tmp_path / name], (0, 0), "text"))
    with pytest.raises(InvalidRun, match=f"got {name}; convert or remove"):
        input_files(tmp_path)


def test_fails_with_the_name_of_the_package_that_the_image_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_parquet(tmp_path, drawn_lines())
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(InvalidRun, match=r"a.parquet: the image must have the `pyarrow` package"):
        list(documents([tmp_path / "a.parquet"], (0, 0), "text"))
