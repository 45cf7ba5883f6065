"""A tokenise step into a folder that earlier steps have filled: what it would write into an empty one, without repeating equal work."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch
package = pytest.importorskip("tokenizers", reason="tokenizers is not installed")

from slipway_trainer.exits import DataFailed  # noqa: E402
from slipway_trainer.shard_format import read_index  # noqa: E402
from slipway_trainer.tokenize.__main__ import run  # noqa: E402

#: Two vocabularies of one size, with two tokens that can end a text.
WORDS = {"one": ["[UNK]", "AAAA", "BBBB", "</s>", "<e>", "role"], "two": ["</s>", "<e>", "[UNK]", "BBBB", "AAAA", "role"]}
#: Options of the step, of its input and of its job, with the values that are drawn.
CHOICES: dict[str, list[Any]] = {
    "tokenizer": ["byte", "one", "two"],
    "end-of-text": ["</s>", "<e>"],
    "text-key": ["text", "body"],
    "shard-tokens": [3, 1000],
    "include": ["*", "0*"],
    "hosts": [1, 2, 3],
    "rows": ["AAAA", "BBBB"],
    "special": [False, True],
    "kind": ["text", "chat"],
    "train-on": ["assistant", "all"],
    "chat-template": [
        "{% for m in messages %}{{ m.content }} {% endfor %}",
        "{% for m in messages %}{{ m.role }} {{ m.content }} {% endfor %}",
    ],
}


def step(root: Path, output: Path, drawn: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SM_MODEL_DIR", str(output))
    data, config = root / "input/data/raw", root / "input/config"
    for folder in (data, config, *(root / name for name in WORDS)):
        folder.mkdir(parents=True, exist_ok=True)
    for number in range(4):
        rows = {"text": drawn["rows"], "body": "BBBB AAAA"}
        if drawn["kind"] == "chat":
            rows = {"messages": [{"role": who, "content": drawn["rows"]} for who in ("user", "assistant")]}
        (data / f"{number}.jsonl").write_text(json.dumps(rows) + "\n")
    for name, words in WORDS.items():
        made = package.Tokenizer(package.models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="[UNK]"))
        made.pre_tokenizer = package.pre_tokenizers.Whitespace()
        made.save(str(root / name / "tokenizer.json"))
        added = {"6": {"content": "AA", "special": True}} if drawn["special"] else {}
        (root / name / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": added}))
    options = ["tokenizer", "shard-tokens", "include", "train-on"]
    values = drawn | {
        "tokenizer": drawn["tokenizer"] if drawn["tokenizer"] == "byte" else str(root / drawn["tokenizer"] / "tokenizer.json")
    }
    options += ["end-of-text"] if drawn["tokenizer"] != "byte" else []
    options += ["text-key"] if drawn["kind"] == "text" else ["chat-template"]
    hosts = [f"algo-{number + 1}" for number in range(drawn["hosts"])]
    for host in hosts:
        (config / "resourceconfig.json").write_text(json.dumps({"current_host": host, "hosts": hosts}))
        assert run([word for option in options for word in (f"--{option}", str(values[option]))], root) == 0


def content(folder: Path) -> list[Any]:
    index = read_index(folder)
    return [index.digest, index.end_of_text, [(shard.path.name, shard.path.read_bytes()) for shard in index.shards]]


@pytest.mark.parametrize("draw", range(60))
def test_a_step_into_a_used_folder_writes_what_it_writes_into_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], draw: int
) -> None:
    chosen = random.Random(draw)
    first = {name: chosen.choice(values) for name, values in CHOICES.items()}
    step(tmp_path, tmp_path / "used", first, monkeypatch)
    # One option at a time, so that no other change hides one that was left out.
    changed = list(CHOICES)[draw % len(CHOICES)]
    second = first | {changed: chosen.choice([value for value in CHOICES[changed] if value != first[changed]])}
    step(tmp_path, tmp_path / "used", second, monkeypatch)
    step(tmp_path, tmp_path / "empty", second, monkeypatch)
    assert content(tmp_path / "used") == content(tmp_path / "empty")
    capfd.readouterr()
    step(tmp_path, tmp_path / "used", second, monkeypatch)
    assert capfd.readouterr().out.count("continuing after ") == second["hosts"]


def test_indexes_of_several_steps_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = {name: values[0] for name, values in CHOICES.items()}
    step(tmp_path, tmp_path / "out", drawn | {"hosts": 3}, monkeypatch)
    last = tmp_path / "out/index-00002.json"
    old = last.read_text()
    last.unlink()
    with pytest.raises(DataFailed, match="all 3 hosts of one step, got another index-00002.json or none; let the step end"):
        read_index(tmp_path / "out")
    last.write_text(old.replace('"hosts": 3', '"hosts": 4'))
    with pytest.raises(DataFailed, match="all 3 hosts of one step"):
        read_index(tmp_path / "out")
