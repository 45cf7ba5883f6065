"""Folders of data as people report them (test/public/chat.md): what else lies beside the rows, and tables of several types."""

import codecs
import gzip
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slipway_trainer.exits import InvalidRun
from slipway_trainer.tokenize.documents import documents, input_files
from slipway_trainer.tokenize.rows import rows

arrow = pytest.importorskip("pyarrow")
datasets = pytest.importorskip("datasets")
pytestmark = pytest.mark.torch

from pyarrow import parquet  # noqa: E402

SEED = int(os.environ.get("SLIPWAY_TEST_SEED", random.randrange(1 << 30)))
MESSAGES = [{"role": "user", "content": "Sky?"}, {"role": "assistant", "content": "Blue."}]


def lines_of(*texts: str) -> bytes:
    return "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()


def put(folder: Path, name: str, content: bytes) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def texts_of(folder: Path) -> list[str]:
    return [document.text.decode() for document in documents(input_files(folder), (0, 0), "text")]


def saved(folder: Path, *texts: str) -> Any:
    """A data set as `save_to_disk` writes it, read again from there."""
    datasets.Dataset.from_list([{"text": text} for text in texts]).save_to_disk(folder)
    return datasets.load_from_disk(folder)


def with_computed_rows(folder: Path) -> None:
    saved(folder / "set", "a", "b").map(lambda row: {"text": row["text"] + "!"})


def of_the_cache(folder: Path) -> None:
    """As the cache of `load_dataset` is, which has no state.json."""
    with_computed_rows(folder)
    (folder / "set/state.json").unlink()


def as_older_versions_saved(folder: Path) -> None:
    """The only table has a name of the cache, which state.json names."""
    saved(folder, "a", "b")
    (folder / "data-00000-of-00001.arrow").rename(folder / "cache-0123456789abcdef.arrow")
    (folder / "state.json").write_text((folder / "state.json").read_text().replace("data-00000-of-00001", "cache-0123456789abcdef"))


def of_two_columns(folder: Path) -> None:
    for name, more in (("a", {"quality": 0.5}), ("b", {"site": "x"})):
        datasets.Dataset.from_list([{"text": name, **more}]).to_parquet(folder / f"{name}.parquet")


def notebook(folder: Path) -> None:
    put(folder, "a.jsonl", lines_of("a", "b"))
    put(folder, ".ipynb_checkpoints/a-checkpoint.jsonl", lines_of("a"))


def downloaded(folder: Path) -> None:
    put(folder, "a.jsonl", lines_of("a", "b"))
    put(folder, ".cache/huggingface/download/a.jsonl.metadata", b"0123\n")


FOLDERS: dict[str, Callable[[Path], object]] = {
    "bghira/SimpleTuner#94": notebook,
    "a sibling: the metadata of a download": downloaded,
    "allenai/open-instruct#638": with_computed_rows,
    "huggingface/datasets#2196": of_the_cache,
    "huggingface/datasets#1993": as_older_versions_saved,
    "qiufengqijun/mini_qwen#2": of_two_columns,
    "a sibling: an array behind a byte order mark": lambda folder: put(
        folder, "a.json", codecs.BOM_UTF8 + b'[{"text": "a"},\n{"text": "b"}]'
    ),
    "a sibling: text behind a byte order mark": lambda folder: [
        put(folder, f"{text}.txt", codecs.BOM_UTF8 + text.encode()) for text in "ab"
    ],
}


@pytest.mark.parametrize("make", FOLDERS.values(), ids=FOLDERS)
def test_the_rows_of_a_folder_are_read_once(tmp_path: Path, make: Callable[[Path], object]) -> None:
    make(tmp_path)
    assert texts_of(tmp_path) == ["a", "b"]


def test_tables_with_both_kinds_of_lists_are_read(tmp_path: Path) -> None:
    # foundation-model-stack/fms-hf-tuning#551
    for name, text, lists in (("a", arrow.string(), arrow.list_), ("b", arrow.large_string(), arrow.large_list)):
        message = arrow.struct([("role", text), ("content", text)])
        parquet.write_table(arrow.table({"messages": arrow.array([MESSAGES], lists(message))}), tmp_path / f"{name}.parquet")
    assert [row.value for file in input_files(tmp_path) for row in rows(file, 0)] == [{"messages": MESSAGES}] * 2


@pytest.mark.parametrize("suffix", ["jsonl", "json", "ndjson", "jsonlines", "ldjson", "NDJSON"])
def test_rows_are_read_whatever_the_suffix_of_their_format(tmp_path: Path, suffix: str) -> None:
    # huggingface/datasets#7153 and EducationalTestingService/skll#230
    put(tmp_path, f"a.{suffix}", lines_of("a", "b"))
    assert texts_of(tmp_path) == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.csv", b"text,label\nhello,1\n", "must contain tables as .parquet or .jsonl, got a.csv"),
        ("a.tsv.gz", gzip.compress(b"text\tlabel\n", mtime=0), "must contain tables as .parquet or .jsonl, got a.tsv.gz"),
        ("part-00000", lines_of("a", "b"), "must have rows of JSON in files with the suffix .jsonl, got part-00000"),
        ("rows.txt", b"\n" + lines_of("a", "b", "c"), "must have rows of JSON in files with the suffix .jsonl, got rows.txt"),
    ],
)
def test_fails_for_tables_and_rows_that_would_be_trained_as_text(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    # oobabooga/textgen#922
    put(tmp_path, name, content)
    with pytest.raises(InvalidRun, match=f"code.arguments.data-channel: {reason}; convert or remove"):
        input_files(tmp_path)


@pytest.mark.parametrize("content", [b'{"a": 1}\n', b'{\n "a": 1\n}\n', b"[1]\n[2]\n", b'{"a": 1}\n{"b": 1}\n', b'{"a": 1}\ntext\n'])
def test_text_that_only_begins_like_rows_is_text(tmp_path: Path, content: bytes) -> None:
    put(tmp_path, "a.txt", content)
    assert texts_of(tmp_path) == [content.decode()]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("_delta_log/00000000000000000000.json", b'{"commitInfo": {}}\n', "must contain no Delta Lake table"),
        ("state.json", b'{"_indices_data_files": [{"filename": "indices.arrow"}]}', "must contain data sets without a table of indices"),
    ],
)
def test_fails_where_other_files_say_which_rows_count(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    saved(tmp_path, "a")
    put(tmp_path, name, content)
    with pytest.raises(InvalidRun, match=reason):
        input_files(tmp_path)


def test_law_what_lies_beside_the_rows_changes_none_of_them(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    beside: list[Callable[[Path], object]] = [
        lambda folder: put(folder, f".{rng.choice('xyz')}/a.jsonl", lines_of("no")),
        lambda folder: put(folder, f"x/.{rng.choice('xyz')}.jsonl", lines_of("no")),
        lambda folder: put(folder, "_SUCCESS", b""),
        lambda folder: put(folder, "s/.git/config", b"[core]\n"),
        lambda folder: put(folder, f"s/cache-{rng.randrange(1 << 60, 1 << 64):016x}.arrow", b"no table"),
    ]
    for number in range(8):
        folder = tmp_path / str(number)
        texts = [f"{name}{rng.random()}" for name in "ab"]
        put(folder, "a.jsonl", codecs.BOM_UTF8 * rng.randrange(2) + lines_of(texts[0]))
        saved(folder / "s", texts[1])
        for make in rng.sample(beside, rng.randint(1, len(beside))):
            make(folder)
        assert texts_of(folder) == texts, SEED
