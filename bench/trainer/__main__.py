"""Throughput of the built-in trainer on one device, beside a plain loop around the models of transformers and, where it is installed,
torchtitan, on the same tokens in the same run.

    npm run bench:trainer -- [--shape tiny|1b|3b|8b-layers] [--sequence-length 4096] [--micro-batch 1] [--steps 20]

torchtitan's row needs `pip install torchtitan==0.3.0` in the same Python. Each row is a process of its own. MFU = tokens per second x
FLOPs per token (6 x matrices + 12 x layers x hidden x length, attention in full, recomputation not counted) / peak dense bf16 of the
device, also for float8; devices without a known peak get none. Peak memory is the device's on a GPU and the process's on a CPU.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from array import array
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CONTAINERS = [str(ROOT / "containers" / name) for name in ("trainer", "driver")]
#: Each has a `<name>_loop.py` here.
PEERS = ("transformers", "torchtitan")
COMMON = {"gatedMlp": True, "tiedEmbeddings": False}
#: The published shapes; 8b-layers has the layers of an 8B model, as many as one device holds with its optimizer.
SHAPES = {
    "tiny": COMMON | {"layers": 2, "hiddenSize": 64, "attentionHeads": 4, "kvHeads": 2, "ffnHiddenSize": 256, "vocabularySize": 512},
    "1b": COMMON | {"layers": 16, "hiddenSize": 2048, "attentionHeads": 32, "kvHeads": 8, "ffnHiddenSize": 8192, "vocabularySize": 128256},
    "3b": COMMON | {"layers": 28, "hiddenSize": 3072, "attentionHeads": 24, "kvHeads": 8, "ffnHiddenSize": 8192, "vocabularySize": 128256},
    "8b-layers": COMMON
    | {"layers": 16, "hiddenSize": 4096, "attentionHeads": 32, "kvHeads": 8, "ffnHiddenSize": 14336, "vocabularySize": 128256},
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
    ours = ["-m", "slipway_trainer"]
    peers = {name: [str(Path(__file__).parent / f"{name}_loop.py")] for name in PEERS}
    if not cuda:
        return [("slipway", ours, "fp32", False), *((name, loop, "fp32", False) for name, loop in peers.items())]
    found = [("slipway, bf16", ours, "bf16", True)]
    for name, loop in peers.items():
        found += [(f"{name}, bf16", loop, "bf16", False), (f"{name}, bf16, compiled", loop, "bf16", True)]
    return found + ([("slipway, float8", ours, "fp8", True)] if float8 else [])


def missing(name: str) -> bool:
    """Whether a row's peer is not installed."""
    peer = name.partition(",")[0]
    return peer in PEERS and find_spec(peer) is None


def measure(command: list[str], content: dict[str, Any], tokens: Path, folder: Path) -> dict[str, float | None]:
    """Runs one row; the median of the later half of its steps. Raises RuntimeError with what it said when it fails."""
    (folder / "job.json").write_text(json.dumps(content))
    one_rank = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    environ = os.environ | one_rank | {"PYTHONPATH": ":".join(CONTAINERS), "SLIPWAY_JOB_FILE": str(folder / "job.json")}
    with (folder / "out").open("w+") as out, (folder / "err").open("w+") as error:
        process = subprocess.Popen([sys.executable, *command], env=environ | {"SM_CHANNEL_TRAIN": str(tokens)}, stdout=out, stderr=error)
        _pid, status, usage = os.wait4(process.pid, 0)
        out.seek(0)
        error.seek(0)
        steps = [json.loads(line[8:]) for line in out if line.startswith("slipway {") and '"event":"step"' in line]
        if status != 0 or len(steps) < 2:
            raise RuntimeError(error.read()[-2000:])
    later = steps[len(steps) // 2 :]
    on_device = [step["memoryGiB"] for step in later if step.get("memoryGiB")]
    return {
        "tokens": statistics.median(step["tokensPerSecondPerGpu"] for step in later),
        "mfu": statistics.median(step["mfu"] for step in later) if "mfu" in later[0] else None,
        "memory": max(on_device) if on_device else usage.ru_maxrss / 2**20,
        "loss": later[-1]["loss"],
    }


def shown(name: str, found: dict[str, float | None]) -> str:
    mfu = f"{100 * found['mfu']:.1f} %" if found["mfu"] is not None else "-"
    return f"{name:<30} {found['tokens']:>14,.0f} {mfu:>8} {found['memory']:>12.2f} {found['loss']:>10.4f}"


def options_of(words: list[str], cuda: bool) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench:trainer", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="1b" if cuda else "tiny")
    parser.add_argument("--sequence-length", type=int, default=4096 if cuda else 128)
    parser.add_argument("--micro-batch", type=int, default=2)
    parser.add_argument("--steps", type=int, default=30 if cuda else 10)
    parser.add_argument("--recompute", choices=("none", "selective", "full"), default="none", help="of the trainer's rows")
    return parser.parse_args(words)


def main(words: list[str]) -> int:
    import torch

    cuda = torch.cuda.is_available()
    options = options_of(words, cuda)
    float8 = cuda and torch.cuda.get_device_capability() >= (8, 9)
    device = torch.cuda.get_device_name() if cuda else f"CPU, {os.cpu_count()} cores"
    print(f"{device}; {options.shape}, {options.micro_batch} x {options.sequence_length} tokens a step, torch {torch.__version__}")
    print(f"{'':<30} {'tokens/s/GPU' if cuda else 'tokens/s':>14} {'MFU':>8} {'memory GiB':>12} {'last loss':>10}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        needed = options.steps * options.micro_batch * options.sequence_length + 1
        write_tokens(folder / "tokens", SHAPES[options.shape]["vocabularySize"], needed)
        for name, command, precision, compiled in rows(cuda, float8):
            if missing(name):
                print(f"{name:<30} {'not installed':>14}")
                continue
            found = measure(command, job(options, precision, compiled), folder / "tokens", folder)
            print(shown(name, found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
