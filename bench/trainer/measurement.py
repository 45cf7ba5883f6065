"""One row of bench:trainer: a job on random tokens, run by one loop in a process of its own."""

import argparse
import json
import os
import random
import socket
import statistics
import subprocess
import sys
from array import array
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CONTAINERS = [str(ROOT / "containers" / name) for name in ("trainer", "driver")]
#: Each has a `<name>_loop.py` here.
PEERS = ("transformers", "torchtitan")
#: What a row's process runs: the trainer, and each peer's loop.
OURS = ["-m", "slipway_trainer"]
PEER_LOOPS = {name: [str(Path(__file__).parent / f"{name}_loop.py")] for name in PEERS}
COMMON = {"gatedMlp": True, "tiedEmbeddings": False}
LARGE = COMMON | {"headSize": 128, "kvHeads": 8, "vocabularySize": 128256}
LAYER_OF_8B = LARGE | {"hiddenSize": 4096, "attentionHeads": 32, "ffnHiddenSize": 14336}
#: The published shapes; 8b-layers has the layers of an 8B model, as many as one device holds with its optimizer, 8b-8-layers half of them.
SHAPES = {
    "tiny": COMMON
    | {"layers": 2, "hiddenSize": 64, "attentionHeads": 4, "kvHeads": 2, "headSize": 16, "ffnHiddenSize": 256, "vocabularySize": 512},
    "1b": LARGE | {"layers": 16, "hiddenSize": 2048, "attentionHeads": 32, "headSize": 64, "ffnHiddenSize": 8192},
    "3b": LARGE | {"layers": 28, "hiddenSize": 3072, "attentionHeads": 24, "ffnHiddenSize": 8192},
    "8b-layers": LAYER_OF_8B | {"layers": 16},
    "8b-8-layers": LAYER_OF_8B | {"layers": 8},
}


def write_tokens(folder: Path, vocabulary: int, tokens: int) -> None:
    """Random token shards. A fixed seed: every row trains on the same."""
    folder.mkdir()
    values = array("I", random.Random(1).choices(range(vocabulary), k=tokens))
    (folder / "tokens-0.bin").write_bytes(values.tobytes())
    index = {"schema": 1, "dtype": "uint32", "vocabularySize": vocabulary, "shards": [{"name": "tokens-0.bin", "tokens": tokens}]}
    (folder / "index.json").write_text(json.dumps(index))


def job(options: argparse.Namespace, precision: str, compiled: bool) -> dict[str, Any]:
    training = {
        "sequenceLength": options.sequence_length,
        "microBatchSize": options.micro_batch,
        "globalBatchSize": options.micro_batch,
        "steps": options.steps,
        "precision": precision,
        "activationCheckpointing": options.recompute,
        "seed": 1,
    }
    return {
        "model": SHAPES[options.shape],
        "training": training,
        "distribution": {"library": "fsdp", "collectives": "auto", "parameters": {"compile": compiled}},
        "checkpoints": {"mode": "none"},
    }


def rows(cuda: bool, float8: bool) -> list[tuple[str, list[str], str, bool]]:
    """(name, module and its arguments, precision, compiled). Compilation only where it is worth its minutes."""
    if not cuda:
        return [("slipway", OURS, "fp32", False), *((name, loop, "fp32", False) for name, loop in PEER_LOOPS.items())]
    found = [("slipway, bf16", OURS, "bf16", True)]
    for name, loop in PEER_LOOPS.items():
        found += [(f"{name}, bf16", loop, "bf16", False), (f"{name}, bf16, compiled", loop, "bf16", True)]
    return found + ([("slipway, float8", OURS, "fp8", True)] if float8 else [])


def python_path() -> str:
    """The trainer and the driver before what this process was given: a peer may be installed in a folder of its own."""
    return ":".join([*CONTAINERS, *filter(None, [os.environ.get("PYTHONPATH")])])


def missing(name: str) -> bool:
    """Whether a row's peer is not installed."""
    peer = name.partition(",")[0]
    return peer in PEERS and find_spec(peer) is None


def one_rank_of(folder: Path, tokens: Path) -> dict[str, str]:
    """The variables of a run of one rank, whose job file lies in `folder`."""
    rank = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": _free_port()}
    return rank | meeting | {"PYTHONPATH": python_path(), "SLIPWAY_JOB_FILE": str(folder / "job.json"), "SM_CHANNEL_TRAIN": str(tokens)}


def _free_port() -> str:
    """A port that nobody listens on now: the process that writes checkpoints meets the ranks there too."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return str(held.getsockname()[1])


def steps_of(output: str) -> list[dict[str, Any]]:
    """The progress lines of the steps."""
    return [json.loads(line[8:]) for line in output.splitlines() if line.startswith("slipway {") and '"event":"step"' in line]


def measure(command: list[str], content: dict[str, Any], tokens: Path, folder: Path) -> dict[str, float | None]:
    """Runs one row; the median of the later half of its steps. Raises RuntimeError with what it said when it fails."""
    steps, process_gib = _run(command, content, tokens, folder)
    later = steps[len(steps) // 2 :]
    on_device = [step["memoryGiB"] for step in later if step.get("memoryGiB")]
    return {
        "tokens": statistics.median(step["tokensPerSecondPerGpu"] for step in later),
        "mfu": statistics.median(step["mfu"] for step in later) if "mfu" in later[0] else None,
        "memory": max(on_device) if on_device else process_gib,
        "loss": later[-1]["loss"],
    }


def measure_losses(command: list[str], content: dict[str, Any], tokens: Path, folder: Path) -> list[float]:
    """The losses of a job's steps. Raises RuntimeError with what it said when it fails."""
    return [step["loss"] for step in _run(command, content, tokens, folder)[0]]


def _run(command: list[str], content: dict[str, Any], tokens: Path, folder: Path) -> tuple[list[dict[str, Any]], float]:
    """Progress lines of the steps, and the most memory of the process in GiB."""
    (folder / "job.json").write_text(json.dumps(content))
    environ = os.environ | one_rank_of(folder, tokens)
    with (folder / "out").open("w+") as out, (folder / "err").open("w+") as error:
        process = subprocess.Popen([sys.executable, *command], env=environ, stdout=out, stderr=error)
        _pid, status, usage = os.wait4(process.pid, 0)
        out.seek(0)
        error.seek(0)
        steps = steps_of(out.read())
        if status != 0 or len(steps) < 2:
            raise RuntimeError(error.read()[-2000:])
    return steps, usage.ru_maxrss / 2**20
