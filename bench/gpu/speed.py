"""Speed on one GPU: layers of Llama 3 8B at 8,192 tokens, beside torchtitan's in the same run."""

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

from case import Case, Found
from machine import Machine, lacks_gpu, lacks_package
from measurement import OURS, PEER_LOOPS, SHAPES, job, measure, write_tokens

from slipway_trainer.progress import flops_per_token
from slipway_trainer.settings import resolve_settings

LENGTH, STEPS = 8192, 30
SHAPE = "8b-8-layers"
#: Eight layers with fp32 weights, gradients and moments, and their activations.
NEEDED_GIB = 70
LEAST_MFU = 0.42
#: Tokens a second of a whole Llama 3 8B on one H200 in float8.
WHOLE_MODEL_FLOAT8 = 11_000
#: Of a step in which the GPU has nothing to do.
MOST_IDLE = 0.01


def _options(recompute: str = "selective") -> argparse.Namespace:
    return argparse.Namespace(shape=SHAPE, sequence_length=LENGTH, micro_batch=1, steps=STEPS, recompute=recompute)


def _measured(folder: Path, command: list[str], precision: str, compiled: bool, **changes: Any) -> dict[str, float | None]:
    tokens = folder / "tokens"
    if not tokens.exists():
        write_tokens(tokens, SHAPES[SHAPE]["vocabularySize"], STEPS * LENGTH + 1)
    return measure(command, job(_options(), precision, compiled) | changes, tokens, folder)


def bf16(_machine: Machine, folder: Path) -> Found:
    found = _measured(folder, OURS, "bf16", True)
    mfu = found["mfu"]
    figure = f"{found['tokens']:,.0f} tokens/s, MFU {'-' if mfu is None else f'{100 * mfu:.1f} %'}, {found['memory']:.1f} GiB"
    return Found(figure, None if mfu is None else mfu >= LEAST_MFU)


def _share_of_whole_model() -> float:
    """How many times as many tokens these layers process with the work of one token of the whole 8B model."""
    shapes = [resolve_settings(job(_options(), "bf16", True) | {"model": SHAPES[SHAPE] | {"layers": n}}, [], {}) for n in (32, 8)]
    whole, part = (flops_per_token(settings.architecture, LENGTH) for settings in shapes)
    return whole / part


def float8(machine: Machine, folder: Path) -> Found:
    least = WHOLE_MODEL_FLOAT8 * _share_of_whole_model()
    ours = _measured(folder, OURS, "fp8", True)["tokens"]
    text = f"{ours:,.0f} tokens/s (11,000 of the whole model: {least:,.0f})"
    if "torchtitan" not in machine.packages:
        return Found(text + "; torchtitan is not installed", ours >= least)
    peer = _measured(folder, PEER_LOOPS["torchtitan"], "bf16", True)["tokens"]
    return Found(f"{text}; torchtitan's model in bf16 {peer:,.0f}", ours >= max(least, peer))


def idle_share(trace: dict[str, Any]) -> float:
    """The share of a trace's steps in which no kernel and no copy ran on the GPU; from the first to the last of them."""
    on_gpu = [event for event in trace["traceEvents"] if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    spans = sorted((event["ts"], event["ts"] + event["dur"]) for event in on_gpu)
    if not spans:
        raise ValueError("the trace must have kernels, got none")
    busy, until = 0.0, spans[0][0]
    for begin, end in spans:
        busy += max(0.0, end - max(begin, until))
        until = max(until, end)
    return 1.0 - busy / (until - spans[0][0])


def idle(_machine: Machine, folder: Path) -> Found:
    profiled = [*OURS, "--profile", "--profile-after-steps", "15"]
    _measured(folder, profiled, "bf16", True, heartbeatUri=f"{folder}/run/heartbeat.json")
    (path,) = folder.rglob("rank-0-step-*.json.gz")
    share = idle_share(json.loads(gzip.decompress(path.read_bytes())))
    return Found(f"{100 * share:.2f} % of three steps", share <= MOST_IDLE)


def _lacks(machine: Machine) -> str:
    return lacks_gpu(machine, NEEDED_GIB) or lacks_package(machine, "triton")


CASES = (
    Case("bf16 training, 8 layers of Llama 3 8B", "MFU at least 42 %", _lacks, bf16),
    Case(
        "float8 training, the same layers",
        "what 11,000 tokens/s of the whole model amount to, and not below torchtitan",
        lambda machine: lacks_gpu(machine, NEEDED_GIB, (8, 9)) or lacks_package(machine, "triton"),
        float8,
    ),
    Case("GPU idle within steps", "at most 1 %", _lacks, idle),
)
