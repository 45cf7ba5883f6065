"""Ranks of the trainer without a driver: the quickest way to compare layouts."""

import atexit
import json
import os
import random
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from fake_world import REPOSITORY, TINY, job_json

TRAINING = {"sequenceLength": 32, "microBatchSize": 1, "globalBatchSize": 4, "steps": 6, "precision": "fp32", "seed": 7,
            "activationCheckpointing": "none", "activationOffload": False}  # fmt: skip
ARGUMENTS = ["--learning-rate", "0.01", "--warmup-steps", "1"]


def write_shards(folder: Path, tokens: int = 6000, seed: int = 1) -> Path:
    """Token shards that can be learned: words of a small vocabulary, in random order."""
    from slipway_trainer.tokenize.documents import documents
    from slipway_trainer.tokenize.shard_writer import ShardWriter, new_index
    from slipway_trainer.tokenize.tokenizers import ByteTokenizer

    chooser = random.Random(seed)
    text = " ".join(chooser.choice(["the", "run", "resumes", "from", "its", "newest", "checkpoint"]) for _ in range(tokens // 5))
    folder.mkdir(parents=True, exist_ok=True)
    (folder.parent / (folder.name + ".txt")).write_text(text[:tokens])
    writer = ShardWriter(folder, 0, new_index(ByteTokenizer(), "fixture"), 2500)
    writer.write_all(documents([folder.parent / (folder.name + ".txt")], (0, 0), "text"), ByteTokenizer())
    return folder


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def trainer_job(**changes: Any) -> dict[str, Any]:
    """A job of the built-in trainer. `training`, `model` and `parameters` are merged into the defaults; `arguments` are added."""
    training = TRAINING | changes.pop("training", {})
    model = TINY | changes.pop("model", {})
    distribution = {"library": changes.pop("library", "fsdp"), "collectives": "gloo", "parameters": changes.pop("parameters", {})}
    arguments = [*ARGUMENTS, *changes.pop("arguments", [])]
    return job_json(entryPoint="builtin", training=training, model=model, distribution=distribution, arguments=arguments) | changes


class Zygote:
    """One process that forks ranks; see zygote.py."""

    def __init__(self, python: str) -> None:
        path = f"{REPOSITORY}/containers/driver:{REPOSITORY}/containers/trainer"
        self._process = subprocess.Popen(
            [python, str(Path(__file__).parent / "zygote.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        self._read()
        atexit.register(self._process.kill)

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the zygote ended"
        return line

    def run(self, order: dict[str, Any]) -> list[int]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return json.loads(self._read())


_zygotes: dict[str, Zygote] = {}


def run_ranks(root: Path, ranks: int, job: dict[str, Any], channels: dict[str, Path], python: str = sys.executable) -> tuple[int, str]:
    """Trains with `ranks` processes; (worst exit code, rank 0's output followed by all that went to stderr)."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "job.json").write_text(json.dumps(job))
    environ = {
        "SLIPWAY_JOB_FILE": str(root / "job.json"), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()),
        "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks), "SM_MODEL_DIR": str(root / "model"),
    }  # fmt: skip
    environ |= {f"SM_CHANNEL_{name.upper()}": str(folder) for name, folder in channels.items()}
    zygote = _zygotes.get(python) or _zygotes.setdefault(python, Zygote(python))
    codes = zygote.run({"root": str(root), "ranks": ranks, "environ": environ, "arguments": job["arguments"]})
    texts = [(root / f"{rank}.err").read_text() for rank in range(ranks)]
    return max(codes, key=abs), (root / "0.out").read_text() + "".join(texts)


def events(output: str, kind: str) -> list[dict[str, Any]]:
    found = [json.loads(line[len("slipway ") :]) for line in output.splitlines() if line.startswith("slipway {")]
    return [event for event in found if event["event"] == kind]


def losses_of(root: Path, ranks: int, job: dict[str, Any], channels: dict[str, Path], python: str = sys.executable) -> list[float]:
    """Losses of a run that must succeed."""
    code, output = run_ranks(root, ranks, job, channels, python)
    assert code == 0, output
    return [event["loss"] for event in events(output, "step")]
