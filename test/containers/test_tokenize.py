"""The tokenise step: shards of real files, restartable, on several hosts, as a processing job under the driver."""

import gzip
import json
import os
import subprocess
import sys
from array import array
from pathlib import Path

import pytest

from fake_world import NETWORK, install_driver, job_json

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from slipway_trainer.examples import PackedRows  # noqa: E402
from slipway_trainer.exits import DataFailed, InvalidRun  # noqa: E402
from slipway_trainer.shard_format import SCHEMAS, read_index  # noqa: E402
from slipway_trainer.sources import TokenStream  # noqa: E402
from slipway_trainer.tokenize.documents import documents, input_files, share  # noqa: E402
from slipway_trainer.tokenize.shard_writer import ShardWriter, fingerprint, new_index, usable  # noqa: E402
from slipway_trainer.tokenize.tokenizers import ByteTokenizer, load_tokenizer  # noqa: E402

TEXTS = {"a.txt": "first", "b/c.txt": "sécond", "d.jsonl": '{"text": "third"}\n\n{"text": "fourth"}\n', ".hidden": "no"}


def write_texts(folder: Path) -> Path:
    for name, text in TEXTS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def writer_for(texts: Path, output: Path, shard_tokens: int) -> tuple[ShardWriter, list[Path]]:
    files = input_files(texts)
    tokenizer = ByteTokenizer()
    return ShardWriter(output, 0, new_index(tokenizer, fingerprint(files, texts, tokenizer, shard_tokens)), shard_tokens), files


def tokens_of(folder: Path) -> list[int]:
    index = read_index(folder)
    total = sum(shard.tokens for shard in index.shards)
    return TokenStream(index, total - 1).sample(0).tolist()


def test_every_document_comes_out_in_order_with_an_end_token(tmp_path: Path) -> None:
    writer, files = writer_for(write_texts(tmp_path / "in"), tmp_path / "out", 8)
    writer.write_all(documents(files, (0, 0), "text"), ByteTokenizer())
    expected: list[int] = []
    for text in ("first", "sécond", "third", "fourth"):
        expected += [*text.encode(), 256]
    assert tokens_of(tmp_path / "out") == expected
    assert [shard["tokens"] for shard in writer.index["shards"]] == [14, 13]
    assert writer.index["complete"] is True


class Interrupted(Exception):
    pass


def test_a_restart_repeats_no_finished_shard(tmp_path: Path) -> None:
    texts = write_texts(tmp_path / "in")
    whole, files = writer_for(texts, tmp_path / "whole", 5)
    whole.write_all(documents(files, (0, 0), "text"), ByteTokenizer())

    def until_third():
        for number, document in enumerate(documents(files, (0, 0), "text")):
            if number == 2:
                raise Interrupted
            yield document

    broken, _ = writer_for(texts, tmp_path / "out", 5)
    with pytest.raises(Interrupted):
        broken.write_all(until_third(), ByteTokenizer())
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.bin")}
    assert len(before) == 2
    with pytest.raises(DataFailed, match="index-00000.json: must be complete, got 2 shards of a step that has not ended; let it end"):
        read_index(tmp_path / "out")

    again, _ = writer_for(texts, tmp_path / "out", 5)
    found = json.loads(again.index_path.read_text())
    assert usable(found, again.index["fingerprint"])
    again.index = found
    again.write_all(documents(files, tuple(found["next"]), "text"), ByteTokenizer())
    assert {name: (tmp_path / "out" / name).stat().st_mtime_ns for name in before} == before
    assert tokens_of(tmp_path / "out") == tokens_of(tmp_path / "whole")


def test_an_index_of_other_input_is_not_continued(tmp_path: Path) -> None:
    texts = write_texts(tmp_path / "in")
    first, _ = writer_for(texts, tmp_path / "out", 5)
    (texts / "a.txt").write_text("changed text")
    second, _ = writer_for(texts, tmp_path / "out", 5)
    assert not usable(first.index, second.index["fingerprint"])


def test_hosts_that_see_every_file_share_them_out(tmp_path: Path) -> None:
    files = input_files(write_texts(tmp_path))
    shares = [share(files, host, 2) for host in range(2)]
    assert sorted(shares[0] + shares[1]) == files
    assert not set(shares[0]) & set(shares[1])


def test_large_vocabularies_are_written_as_32_bit(tmp_path: Path) -> None:
    class Wide(ByteTokenizer):
        vocabulary_size = 100_000

        def encode(self, text: bytes) -> list[int]:
            return [70_000 + byte for byte in text]

    writer = ShardWriter(tmp_path, 0, new_index(Wide(), "x"), 3)
    texts = write_texts(tmp_path / "in")
    writer.write_all(documents([texts / "a.txt"], (0, 0), "text"), Wide())
    assert tokens_of(tmp_path) == [70_000 + byte for byte in b"first"] + [256]


def write_shards(folder: Path, sizes: list[int], kind: str) -> None:
    """Shards of these sizes with the tokens 0, 1, 2, ..."""
    shards = []
    for number, size in enumerate(sizes):
        file, begin = folder / f"t{number}.bin", sum(sizes[:number])
        file.write_bytes(array("H", range(begin, begin + size)).tobytes())
        file.with_suffix(".mask").write_bytes(b"\1" * size)
        file.with_suffix(".documents").write_bytes(array("I", [size, 1] if size else []).tobytes())
        shards.append({"name": file.name, "tokens": size, "documents": int(size > 0)})
    index = {"schema": SCHEMAS[kind], "kind": kind, "dtype": "uint16", "vocabularySize": 100, "shards": shards}
    (folder / "index.json").write_text(json.dumps(index))


SIZES = [[10, 0, 10], [0, 20], [20, 0], [10, 10], [0, 3, 0, 0, 16, 1, 0]]


@pytest.mark.parametrize("sizes", SIZES)
def test_shards_without_tokens_add_nothing(tmp_path: Path, sizes: list[int]) -> None:
    write_shards(tmp_path, sizes, "text")
    stream = TokenStream(read_index(tmp_path), 4)
    assert [stream.sample(number).tolist() for number in range(stream.samples)] == [list(range(4 * n, 4 * n + 5)) for n in range(4)]


@pytest.mark.parametrize("sizes", SIZES)
def test_shards_without_documents_add_nothing(tmp_path: Path, sizes: list[int]) -> None:
    write_shards(tmp_path, sizes, "sft")
    rows = PackedRows(read_index(tmp_path), 20)
    assert rows.samples == 1 and sorted(rows.sample(0)[0].tolist()) == list(range(20))


@pytest.mark.parametrize("kind", ["text", "sft"])
def test_fails_when_no_shard_has_tokens(tmp_path: Path, kind: str) -> None:
    write_shards(tmp_path, [0, 0], kind)
    with pytest.raises(DataFailed, match="the shards contain"):
        (TokenStream if kind == "text" else PackedRows)(read_index(tmp_path), 4)


def test_fails_when_an_index_names_a_shard_that_is_not_there(tmp_path: Path) -> None:
    writer, files = writer_for(write_texts(tmp_path / "in"), tmp_path / "out", 5)
    writer.write_all(documents(files, (0, 0), "text"), ByteTokenizer())
    next((tmp_path / "out").glob("*.bin")).unlink()
    with pytest.raises(DataFailed, match="1 of 4 shards are missing"):
        read_index(tmp_path / "out")


def processing_host(root: Path, host: str, hosts: list[str], texts: Path, distribution: str) -> Path:
    base = root / host
    (base / "config").mkdir(parents=True)
    inputs = base / "processing/input"
    install_driver(inputs / "driver")
    (inputs / "job").mkdir()
    job = job_json(entryPoint="builtin-tokenize", arguments=["--tokenizer", "byte", "--shard-tokens", "20"])
    (inputs / "job/job.json").write_text(json.dumps(job))
    (inputs / "raw").symlink_to(texts)
    config = {"ProcessingInputs": [{"InputName": "raw", "S3Input": {"S3DataDistributionType": distribution}}]}
    (base / "config/processingjobconfig.json").write_text(json.dumps(config))
    (base / "config/resourceconfig.json").write_text(json.dumps({"current_host": host, "hosts": hosts}))
    (base / "config/hosts").write_text("".join(f"{NETWORK}.{number + 1} {name}\n" for number, name in enumerate(hosts)))
    return base


def run_host(base: Path) -> "subprocess.CompletedProcess[str]":
    """Runs a host's driver. A `torch` that cannot be imported stands in the way: the step must not need it."""
    (base / "no-torch").mkdir()
    (base / "no-torch/torch.py").write_text("raise ImportError('no PyTorch on this host')")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environ = os.environ | {"SAGEMAKER_BASE_DIR": str(base), "PATH": path, "PYTHONPATH": str(base / "no-torch")}
    command = ["bash", str(base / "processing/input/driver/launch.sh")]
    return subprocess.run(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def test_two_hosts_of_a_processing_job_write_one_data_set(tmp_path: Path) -> None:
    texts = write_texts(tmp_path / "in")
    merged = tmp_path / "merged"
    merged.mkdir()
    bases = [processing_host(tmp_path, host, ["algo-1", "algo-2"], texts, "FullyReplicated") for host in ("algo-1", "algo-2")]
    for base in bases:
        done = run_host(base)
        assert done.returncode == 0, done.stdout
        for path in (base / "processing/output").iterdir():
            assert not (merged / path.name).exists()
            path.rename(merged / path.name)
    assert sorted(tokens_of(merged)) == sorted(token for text in ("first", "sécond", "third", "fourth") for token in [*text.encode(), 256])


def test_a_processing_job_that_fails_leaves_its_message(tmp_path: Path) -> None:
    base = processing_host(tmp_path, "algo-1", ["algo-1"], write_texts(tmp_path / "in"), "FullyReplicated")
    (base / "processing/input/raw").rename(base / "processing/input/other")
    job = base / "processing/input/job/job.json"
    job.write_text(json.dumps(json.loads(job.read_text()) | {"arguments": ["--data-channel", "raw"]}))
    done = run_host(base)
    assert done.returncode == 77
    assert "must name an input of the job (other), got raw" in (base / "output/message").read_text()


def test_fails_with_the_names_of_files_that_are_no_text(tmp_path: Path) -> None:
    texts = write_texts(tmp_path / "in")
    (texts / "_SUCCESS").write_text("")
    assert [file.name for file in input_files(texts)] == ["a.txt", "c.txt", "d.jsonl"]
    for name, data in {
        "part.parquet": b"text",
        "b/a.tar": b"x\0",
        "text": gzip.compress(b"a"),
        "image.png": b"\x89PNG\0",
        "z.gz": b"z",
    }.items():
        (texts / name).write_bytes(data)
    with pytest.raises(InvalidRun, match=r"got b/a.tar, image.png, part.parquet, text, z.gz; convert or remove them"):
        input_files(texts)


def test_fails_with_the_names_of_files_beside_records_that_are_neither_records_nor_txt(tmp_path: Path) -> None:
    texts = write_texts(tmp_path / "in")
    for name in ("README.md", "part.csv", "LICENSE", "notes.txt.gz", "more.TXT"):
        (texts / name).write_bytes(gzip.compress(b"a") if name.endswith(".gz") else b"a,b")
    with pytest.raises(InvalidRun, match=r"must contain tables as .parquet or .jsonl, got part.csv; convert"):
        input_files(texts)
    (texts / "part.csv").unlink()
    with pytest.raises(InvalidRun, match=r"no text but .txt files beside records .*, got LICENSE, README.md; convert"):
        input_files(texts)
    (texts / "d.jsonl").unlink()
    assert len(input_files(texts)) == 6
    (texts / "d.JSONL").write_text("")
    with pytest.raises(InvalidRun, match=r"got LICENSE, README.md; convert"):
        input_files(texts)


def test_compressed_files_are_read_as_what_they_hold(tmp_path: Path) -> None:
    texts = write_texts(tmp_path / "in")
    plain = [document.text for document in documents(input_files(texts), (0, 0), "text")]
    for file in input_files(texts):
        file.with_name(file.name + ".gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    assert [document.text for document in documents(input_files(texts), (0, 0), "text")] == plain


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": null}', r"x.jsonl:2: must have text under 'text', got null"),
        ('{"txet": "a"}', r"x.jsonl:2: must have text under 'text'"),
        ('["a"]', r"x.jsonl:2: must have text"),
        ("{", r"x.jsonl:2: must be one JSON object per line"),
    ],
)
def test_fails_with_file_and_line_of_what_is_no_document(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "x.jsonl").write_text('{"text": "good"}\n' + line + "\n")
    with pytest.raises(DataFailed, match=message):
        list(documents(input_files(tmp_path), (0, 0), "text"))


def test_truncation_and_padding_stored_in_a_tokenizer_are_ignored(tmp_path: Path) -> None:
    package = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    words = {"<pad>": 0, "</s>": 1, "a": 2, "b": 3}
    made = package.Tokenizer(package.models.WordLevel(words, unk_token="<pad>"))
    made.pre_tokenizer = package.pre_tokenizers.Whitespace()
    made.enable_truncation(max_length=4)
    made.enable_padding(length=6, pad_id=0, pad_token="<pad>")
    made.save(str(tmp_path / "tokenizer.json"))
    found = load_tokenizer(str(tmp_path / "tokenizer.json"), "</s>")
    assert found.encode(b"a b a b a b a b") == [2, 3] * 4
    assert found.encode(b"a") == [2]


def test_ids_with_a_hole_need_as_many_bits_as_the_highest_one(tmp_path: Path) -> None:
    package = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    made = package.Tokenizer(package.models.WordLevel({"<pad>": 0, "</s>": 1, "a": 70_000}, unk_token="<pad>"))
    made.pre_tokenizer = package.pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    found = load_tokenizer(str(tmp_path / "tokenizer.json"), "</s>")
    assert found.vocabulary_size == 70_001
    writer = ShardWriter(tmp_path / "out", 0, new_index(found, "x"), 3)
    (tmp_path / "a.txt").write_text("a a a")
    writer.write_all(documents([tmp_path / "a.txt"], (0, 0), "text"), found)
    assert tokens_of(tmp_path / "out") == [70_000, 70_000, 70_000, 1]
