"""The fetch step with the real huggingface_hub against a hub on loopback."""

import hashlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hidden_text import HIDDEN
from loopback_hub import TOKEN, LoopbackHub, Repo

from forked import run_forked
from slipway_trainer.fetch.repository import is_plain_path

pytest.importorskip("huggingface_hub")
pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.jobs]
WEIGHTS = bytes(range(256)) * 40
FILES = {
    "config.json": b'{"model_type": "llama"}',
    "model-00001-of-00002.safetensors": WEIGHTS,
    "model-00002-of-00002.safetensors": WEIGHTS[::-1],
    "model.safetensors.index.json": b"{}",
    "tokenizer.json": b'{"t": 1}',
    "chat_template.jinja": b"{{ messages }}",
    "README.md": b"# m",
    "consolidated.safetensors": WEIGHTS,
    "pytorch_model.bin": b"pickle" * 300,
    "original/consolidated.00.pth": b"pickle" * 300,
    "original/model-00001-of-00002.safetensors": WEIGHTS,
    "onnx/model.onnx": b"onnx" * 300,
    ".gitattributes": b"",
}
KEPT = [name for name in FILES if "/" not in name and not name.startswith((".", "consolidated", "pytorch"))]


@pytest.fixture
def hub() -> Iterator[LoopbackHub]:
    served = LoopbackHub()
    served.repos["models/org/model"] = Repo(dict(FILES), card={"license": "apache-2.0"})
    yield served
    served.close()


#: What huggingface_hub imports, which takes longer than to fetch. It reads its own variables when it is imported.
PRELOAD = ("httpx2", "httpcore2", "anyio", "truststore", "tqdm.auto", "yaml", "filelock", "slipway_trainer.fetch.transfer")
#: `python -m slipway_trainer.fetch` without the variables of this machine.
SCRIPT = """
import os, runpy
for name in {name for name in os.environ if name.startswith(("HF_", "HUGGING"))} - %r:
    del os.environ[name]
runpy.run_module("slipway_trainer.fetch", run_name="__main__", alter_sys=True)
"""


def fetch(hub: LoopbackHub, tmp_path: Path, *words: str, token: str | None = None, **variables: str) -> "subprocess.CompletedProcess[str]":
    env = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home"), "SAGEMAKER_BASE_DIR": str(tmp_path / "opt")}
    env |= variables | ({"HF_TOKEN": token} if token else {})
    process, script = tmp_path / "process", tmp_path / "fetch.py"
    script.write_text(SCRIPT % set(env))
    [code] = run_forked(process, 1, env, list(words), script=str(script), preload=PRELOAD)
    return subprocess.CompletedProcess(words, code, *((process / name).read_text() for name in ("0.out", "0.err")))


def copied(hub: LoopbackHub, tmp_path: Path, source: str = "hf:org/model", *words: str, token: str | None = None) -> str:
    done = fetch(hub, tmp_path, "--source", source, "--to", str(tmp_path / "to"), *words, token=token)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def refused(hub: LoopbackHub, tmp_path: Path, source: str = "hf:org/model", *words: str, token: str | None = None) -> str:
    done = fetch(hub, tmp_path, "--source", source, "--to", str(tmp_path / "to"), *words, token=token)
    assert done.returncode in (75, 77) and "Traceback" not in done.stderr, done.stdout + done.stderr
    assert not list((tmp_path / "to").rglob("SOURCE.json"))
    return done.stderr.removeprefix("slipway_trainer: error: ").strip()


def folder_of(hub: LoopbackHub, tmp_path: Path, name: str = "models/org/model") -> Path:
    return tmp_path / "to" / name.split("/", 1)[1] / hub.repos[name].commit


def test_copies_what_training_reads_and_records_it(hub: LoopbackHub, tmp_path: Path) -> None:
    copied(hub, tmp_path)
    folder = folder_of(hub, tmp_path)
    record = json.loads((folder / "SOURCE.json").read_text())
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "SOURCE.json"} == {name: FILES[name] for name in KEPT}
    listed = [{"path": name, "bytes": len(FILES[name]), "sha256": hashlib.sha256(FILES[name]).hexdigest()} for name in sorted(KEPT)]
    facts = {"source": "hf:org/model", "revision": "main", "commit": folder.name, "licence": "apache-2.0", "gated": False}
    assert record == facts | {"files": listed}


def test_a_fetched_commit_is_not_read_again_under_any_name(hub: LoopbackHub, tmp_path: Path) -> None:
    copied(hub, tmp_path)
    before = len(hub.requests)
    for revision in ("", "@v1.0", "@feature/new", f"@{folder_of(hub, tmp_path).name}"):
        assert "was fetched before" in copied(hub, tmp_path, f"hf:org/model{revision}")
    assert not [path for _method, path, _range in hub.requests[before:] if "/resolve/" in path or "/cdn/" in path]
    refs = tmp_path / "to/.refs/models/org/model"
    assert {path.name for path in refs.iterdir()} == {"main", "v1.0", "feature%2Fnew", folder_of(hub, tmp_path).name}


def test_a_commit_is_found_by_the_branch_that_named_it(hub: LoopbackHub, tmp_path: Path) -> None:
    commit = hub.repos["models/org/model"].commit
    copied(hub, tmp_path, f"hf:org/model@{commit}", "--revisions", "main")
    assert (tmp_path / "to/.refs/models/org/model/main").read_text() == commit
    assert json.loads((folder_of(hub, tmp_path) / "SOURCE.json").read_text())["revision"] == "main"


def test_further_patterns_add_to_a_commit(hub: LoopbackHub, tmp_path: Path) -> None:
    copied(hub, tmp_path, "hf:org/model", "--include", "*.json")
    copied(hub, tmp_path)
    record = json.loads((folder_of(hub, tmp_path) / "SOURCE.json").read_text())
    assert [file["path"] for file in record["files"]] == sorted(KEPT)
    assert hub.downloads("config.json") == 1


def test_a_broken_connection_continues_in_the_file(hub: LoopbackHub, tmp_path: Path) -> None:
    # The library writes chunks of 10 MiB: only whole ones are kept.
    long = bytes(range(256)) * (100 << 10)
    hub.repos["models/org/model"].files["model-00001-of-00002.safetensors"] = long
    hub.cuts["model-00001-of-00002.safetensors"] = 1
    copied(hub, tmp_path)
    assert (folder_of(hub, tmp_path) / "model-00001-of-00002.safetensors").read_bytes() == long
    assert [asked for _, path, asked in hub.requests if path.endswith("model-00001-of-00002.safetensors") and asked] == [
        f"bytes={10 << 20}-"
    ]


def test_a_restart_reads_no_stored_weights_again(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.repos["models/org/model"].lies["model-00002-of-00002.safetensors"] = {
        "lfs": {"oid": "1" * 64, "size": len(WEIGHTS), "pointerSize": 1}
    }
    assert "must have digest 1111" in refused(hub, tmp_path)
    hub.repos["models/org/model"].lies.clear()
    copied(hub, tmp_path)
    assert (hub.downloads("00001-of-00002.safetensors"), hub.downloads("00002-of-00002.safetensors")) == (1, 2)
    assert not (folder_of(hub, tmp_path) / "model-00002-of-00002.safetensors.tmp").exists()


@pytest.mark.parametrize(
    "lie",
    [
        {"oid": "a" * 40},
        {"size": 5},
        {"size": -1},
        {"path": "../config.json"},
        {"path": "/etc/x"},
        {"path": "a//b"},
        {"path": "SOURCE.json"},
    ],
)
def test_fails_when_the_hub_is_not_consistent(hub: LoopbackHub, tmp_path: Path, lie: dict[str, object]) -> None:
    hub.repos["models/org/model"].lies["config.json"] = lie
    message = refused(hub, tmp_path)
    assert message.startswith("source: hf:org/model ") and "must " in message
    assert [path for path in tmp_path.rglob("*") if path.name in ("x", "b")] == []


def test_refuses_a_path_with_a_character_that_nobody_sees() -> None:
    assert [hex(code) for code in HIDDEN if is_plain_path(f"a{chr(code)}.json")] == []
    assert all(map(is_plain_path, ("config.json", "données/ü.jsonl", "数据/a b.parquet", "❤️.txt", "a'\"$;.json")))


def test_a_gated_repository_needs_a_token_with_access(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.repos["models/org/model"].gated = True
    for token in (None, "hf_other"):
        assert "got a gated repository and no token that has access; accept its terms" in refused(hub, tmp_path, token=token)
    copied(hub, tmp_path, token=TOKEN)
    assert json.loads((folder_of(hub, tmp_path) / "SOURCE.json").read_text())["gated"] is True


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("hf:org/none", "must be a model of the hub, got none"),
        ("hf:org/model@v9", "must name a branch, tag or commit of the repository, got v9"),
        ("hf:datasets/org/model", "must be a dataset of the hub, got none"),
        ("org/model", "must be hf:ORG/NAME"),
        ("hf:gpt2", "must be hf:ORG/NAME"),
    ],
)
def test_fails_with_what_to_correct(hub: LoopbackHub, tmp_path: Path, source: str, message: str) -> None:
    assert message in refused(hub, tmp_path, source)


def test_fails_for_a_model_of_pickles_alone(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.repos["models/org/model"] = Repo({"config.json": b"{}", "pytorch_model.bin": b"p" * 2000})
    assert "must have files that the trainer (*.safetensors) reads, got .bin, .json" in refused(hub, tmp_path)


def test_a_busy_hub_is_asked_again(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.statuses["/cdn/models/org/model/model-00001-of-00002.safetensors"] = [429, 503]
    copied(hub, tmp_path)


def test_an_unreachable_hub_is_named(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.close()
    assert f"must be readable from {hub.url}" in refused(hub, tmp_path)


def test_data_sets_bring_their_rows_alone(hub: LoopbackHub, tmp_path: Path) -> None:
    data = {
        "README.md": b"x",
        "data/train-0.parquet": b"PAR1" * 300,
        "data/test-0.parquet": b"PAR1",
        "dataset_infos.json": b"{}",
        "load.py": b"",
    }
    hub.repos["datasets/org/chats"] = Repo(data)
    copied(hub, tmp_path, "hf:datasets/org/chats")
    folder = folder_of(hub, tmp_path, "datasets/org/chats")
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()) == [
        "SOURCE.json", "data/test-0.parquet", "data/train-0.parquet",
    ]  # fmt: skip


def test_a_description_saves_the_small_files(hub: LoopbackHub, tmp_path: Path) -> None:
    done = fetch(hub, tmp_path, "--source", "hf:org/model", "--describe", "--save", str(tmp_path / "small"))
    [found] = json.loads(done.stdout)
    assert (found["commit"], found["licence"], found["gated"]) == (hub.repos["models/org/model"].commit, "apache-2.0", False)
    assert sum(file["bytes"] for file in found["files"]) == sum(len(FILES[name]) for name in KEPT)
    assert sorted(path.name for path in (tmp_path / "small").iterdir() if path.is_file()) == sorted(
        name for name in KEPT if "safetensors" not in name or "index" in name
    )


def test_a_processing_job_writes_to_its_output(hub: LoopbackHub, tmp_path: Path) -> None:
    config = {"ProcessingOutputConfig": {"Outputs": [{"S3Output": {"S3Uri": str(tmp_path / "to")}}]}}
    (tmp_path / "opt/config").mkdir(parents=True)
    (tmp_path / "opt/processing").mkdir()
    (tmp_path / "opt/config/processingjobconfig.json").write_text(json.dumps(config))
    done = fetch(hub, tmp_path, "--source", "hf:org/model")
    assert done.returncode == 0 and (folder_of(hub, tmp_path) / "SOURCE.json").is_file()
    assert list((tmp_path / "opt/processing").iterdir()) == []
