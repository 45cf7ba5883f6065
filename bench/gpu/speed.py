"""Speed on one GPU: layers of Llama 3 8B at 8,192 tokens, beside torchtitan's in the same run."""

import argparse
import gzip
import json
import os
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

from case import Case, Found
from machine import Machine, lacks_gpu, lacks_package
from measurement import OURS, PEER_LOOPS, SHAPES, job, measure, write_tokens

from slipway_trainer.progress import flops_per_token
from slipway_trainer.settings import resolve_settings

LENGTH, STEPS = 8192, 24
SHAPE = "8b-8-layers"
#: Eight layers with fp32 weights, gradients and moments, and their activations.
NEEDED_GIB = 70
MIN_MFU = 0.42
#: Tokens a second of a whole Llama 3 8B on one H200 in float8.
WHOLE_MODEL_FLOAT8 = 11_000
#: Of a step in which the GPU has nothing to do.
MAX_IDLE = 0.01


def _options(recompute: str = "none") -> argparse.Namespace:
    return argparse.Namespace(shape=SHAPE, sequence_length=LENGTH, micro_batch=1, steps=STEPS, recompute=recompute)


def _measured(folder: Path, command: list[str], precision: str, compiled: bool, **changes: Any) -> dict[str, float | None]:
    tokens = folder / "tokens"
    if not tokens.exists():
        write_tokens(tokens, SHAPES[SHAPE]["vocabularySize"], STEPS * LENGTH + 1)
    return measure(command, job(_options(), precision, compiled) | changes, tokens, folder)


def _shown(found: dict[str, float | None]) -> str:
    mfu = found["mfu"]
    return f"{found['tokens']:,.0f} tokens/s, MFU {'-' if mfu is None else f'{100 * mfu:.1f} %'}, {found['memory']:.1f} GiB"


def bf16(machine: Machine, folder: Path) -> Found:
    found = _measured(folder, OURS, "bf16", True)
    peer = _peer(machine, folder, "bf16")
    holds = None if found["mfu"] is None else found["mfu"] >= MIN_MFU and (peer is None or found["tokens"] >= peer["tokens"])
    return Found(f"{_shown(found)}; torchtitan: {'not installed' if peer is None else _shown(peer)}", holds)


def many_layers(_machine: Machine, folder: Path) -> Found:
    found = _measured(folder, OURS, "bf16", True, model=SHAPES["8b-layers"])
    return Found(_shown(found), None if found["mfu"] is None else found["mfu"] >= MIN_MFU)


def _peer(machine: Machine, folder: Path, precision: str) -> dict[str, float | None] | None:
    """torchtitan's model in the plain loop, compiled; None where it cannot run."""
    needed = {"torchtitan"} | ({"torchao"} if precision == "fp8" else set())
    return _measured(folder, PEER_LOOPS["torchtitan"], precision, True) if needed <= machine.packages else None


def _share_of_whole_model() -> float:
    """How many times as many tokens these layers process with the work of one token of the whole 8B model."""
    shapes = [resolve_settings(job(_options(), "bf16", True) | {"model": SHAPES[SHAPE] | {"layers": n}}, [], {}) for n in (32, 8)]
    whole, part = (flops_per_token(settings.architecture, LENGTH) for settings in shapes)
    return whole / part


def float8(machine: Machine, folder: Path) -> Found:
    least = WHOLE_MODEL_FLOAT8 * _share_of_whole_model()
    ours, peer = _measured(folder, OURS, "fp8", True), _peer(machine, folder, "fp8")
    figure = f"{_shown(ours)} (11,000 tokens/s of the whole model: {least:,.0f}); torchtitan with torchao: "
    figure += "not installed" if peer is None else _shown(peer)
    return Found(figure, ours["tokens"] >= max(least, 0.0 if peer is None else peer["tokens"]))


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
    profiled = [*OURS, "--profile", "--profile-after-steps", "12"]
    _measured(folder, profiled, "bf16", True, heartbeatUri=f"{folder}/run/heartbeat.json")
    (path,) = folder.rglob("rank-0-step-*.json.gz")
    share = idle_share(json.loads(gzip.decompress(path.read_bytes())))
    return Found(f"{100 * share:.2f} % of three steps", share <= MAX_IDLE)


def compiled_start(_machine: Machine, folder: Path) -> Found:
    """Two starts of one run with the compiler's files in one folder, which the first finds empty."""
    places = {"TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"), "TRITON_CACHE_DIR": str(folder / "triton")}
    seconds = []
    with patch.dict(os.environ, places):
        for _ in range(2):
            began = time.monotonic()
            _measured(folder, OURS, "bf16", True, training=job(_options(), "bf16", True)["training"] | {"steps": 2})
            seconds.append(time.monotonic() - began)
    size = sum(path.stat().st_size for name in places.values() for path in Path(name).rglob("*") if path.is_file())
    return Found(
        f"two steps in {seconds[0]:.1f} s, and in {seconds[1]:.1f} s with the files of the first start ({size / 2**20:.1f} MiB)", None
    )


def _lacks(machine: Machine) -> str:
    return lacks_gpu(machine, NEEDED_GIB) or lacks_package(machine, "triton")


CASES = (
    Case("bf16 training, 8 layers of Llama 3 8B", "MFU at least 42 %, and not below torchtitan", _lacks, bf16),
    Case("bf16 training, 16 layers", "MFU at least 42 %", lambda machine: lacks_gpu(machine, 130) or _lacks(machine), many_layers),
    Case(
        "float8 training, the same layers",
        "what 11,000 tokens/s of the whole model amount to, and not below torchtitan",
        lambda machine: lacks_gpu(machine, NEEDED_GIB, (8, 9)) or lacks_package(machine, "triton"),
        float8,
    ),
    Case("GPU idle within steps", "at most 1 %", _lacks, idle),
    Case("start of a compiled run", "is shorter with the compiler's files", _lacks, compiled_start),
)
