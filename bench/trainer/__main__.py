"""Throughput of the built-in trainer on one device, beside a plain loop around the models of transformers and, where it is installed,
torchtitan, on the same tokens in the same run.

    npm run bench:trainer -- [--shape tiny|1b|3b|8b-layers|8b-8-layers] [--sequence-length 4096] [--micro-batch 1] [--steps 20]

torchtitan's row needs `pip install torchtitan==0.3.0` in the same Python. Each row is a process of its own. MFU = tokens per second x
FLOPs per token (6 x matrices + 12 x layers x hidden x length, attention in full, recomputation not counted) / peak dense bf16 of the
device, also for float8; devices without a known peak get none. Peak memory is the device's on a GPU and the process's on a CPU.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from measurement import SHAPES, job, measure, missing, rows, write_tokens


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
