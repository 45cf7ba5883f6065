"""Layouts of two ranks on one GPU over NCCL's sockets: the losses of one rank, in float32."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from case import Case, Found
from features import DENSE, MIXTURE
from machine import Machine, lacks_gpu
from measurement import OURS, one_rank_of, steps_of

PATIENCE_SECONDS, SAME = 120, 2e-3
LAYOUTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "shards": (DENSE, {}),
    "tensor parallel": (DENSE, {"tensor_parallel_degree": 2}),
    "context parallel": (DENSE, {"context_parallel_degree": 2}),
    "expert parallel": (MIXTURE, {"expert_parallel_degree": 2}),
}


def _losses(model: dict[str, Any], parameters: dict[str, Any], ranks: int, tokens: Path, folder: Path) -> list[float]:
    training = {"sequenceLength": 128, "microBatchSize": 2, "globalBatchSize": 4, "steps": 6, "precision": "fp32", "seed": 7}
    content = {
        "model": model,
        "training": training | {"activationCheckpointing": "none"},
        "distribution": {"library": "fsdp", "collectives": "nccl", "parameters": {"compile": False} | parameters},
        "checkpoints": {"mode": "none"},
    }
    folder.mkdir(parents=True)
    (folder / "job.json").write_text(json.dumps(content))
    meeting = one_rank_of(folder, tokens) | {"WORLD_SIZE": str(ranks)}
    words = [sys.executable, *OURS, "--learning-rate", "0.001", "--warmup-steps", "1"]
    started = []
    for rank in range(ranks):
        own = {"RANK": str(rank), "NCCL_HOSTID": f"host-{rank}", "NCCL_IB_DISABLE": "1", "SM_MODEL_DIR": str(folder / "model")}
        with (folder / f"{rank}.out").open("wb") as out:
            started.append(subprocess.Popen(words, env=os.environ | meeting | own, stdout=out, stderr=subprocess.STDOUT))
    try:
        codes = [process.wait(PATIENCE_SECONDS) for process in started]
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
                process.wait()
    text = (folder / "0.out").read_text()
    steps = steps_of(text)
    if any(codes) or not steps:
        raise RuntimeError(f"codes {codes}: {' '.join(text.split())[-300:]}")
    return [step["loss"] for step in steps]


def layouts(_machine: Machine, folder: Path) -> Found:
    from rank_world import write_shards

    tokens, wrong, figures = write_shards(folder / "tokens", 60_000), [], []
    whole = {name: _losses(model, {}, 1, tokens, folder / name) for name, model in (("dense", DENSE), ("mixture", MIXTURE))}
    for name, (model, parameters) in LAYOUTS.items():
        try:
            found = _losses(model, parameters, 2, tokens, folder / name.replace(" ", "-"))
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            wrong.append(f"{name}: {error}")
            continue
        off = max(abs(one - other) for one, other in zip(found, whole["mixture" if model is MIXTURE else "dense"], strict=True))
        figures.append(f"{name} {off:.1e}")
        if not off <= SAME:
            wrong.append(f"{name}: too large")
    return Found("; ".join(figures + wrong), not wrong)


CASES = (Case("layouts of two ranks over NCCL, float32", "losses of one rank within 2e-3", lacks_gpu, layouts),)
