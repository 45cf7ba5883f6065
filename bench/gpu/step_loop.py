"""What the step loop takes for granted about CUDA: updates that the device leaves out, events that say which step a state is of, and runs
that are the same bit for bit."""

import json
import os
import time
from pathlib import Path

from case import Case, Found
from machine import Machine, lacks_gpu
from measurement import COMMON, OURS, measure_losses, write_tokens


def skipped_update(_machine: Machine, _folder: Path) -> Found:
    import torch

    from slipway_trainer.optimizer import step_unless

    weight = torch.nn.Parameter(torch.ones(1 << 20, device="cuda"))
    optimizer = torch.optim.AdamW([weight], lr=0.1, fused=True)
    weight.grad = torch.ones_like(weight)
    step_unless(optimizer, torch.zeros((), device="cuda"))
    before = [weight.detach().clone(), *(value.clone() for value in optimizer.state[weight].values())]
    weight.grad.fill_(float("nan"))
    step_unless(optimizer, torch.ones((), device="cuda"))
    same = all(torch.equal(was, now) for was, now in zip(before, [weight.detach(), *optimizer.state[weight].values()], strict=True))
    return Found("nothing changed" if same else "the state changed", same)


def copy_beside_a_busy_stream(_machine: Machine, _folder: Path) -> Found:
    """A kernel that does not end stands for the collective; the update behind it must be seen as not begun, and its start must be seen."""
    import torch

    from slipway_trainer.checkpoint.shared_state import Staging
    from slipway_trainer.stalls import Standing

    device = torch.device("cuda")
    state = {"weight": torch.full((1 << 24,), 5.0, device=device)}
    staging, standing = Staging(True, os.memfd_create("bench"), lambda _places, _state: None), Standing(device)
    staging.prepare(state)
    with standing.update({"step": 5}):
        state["weight"].add_(0.0)
    torch.cuda.synchronize()
    torch.cuda._sleep(10_000_000_000)
    with standing.update({"step": 6}):
        state["weight"].fill_(6.0)
    began = time.monotonic()
    facts = standing.newest()
    with staging.beside():
        copied = staging.copy(state)["weight"]
    seconds = time.monotonic() - began
    still, values = standing.still(facts) if facts else False, copied.unique().tolist()
    torch.cuda.synchronize()
    after = standing.newest()
    figure = f"copied {values} as step {facts and facts['step']} in {seconds:.2f} s, {'still' if still else 'no longer'} that step"
    sound = still and facts == {"step": 5} and values == [5.0]
    return Found(f"{figure}; then step {after and after['step']}", sound and after == {"step": 6})


def _losses(folder: Path, name: str, arguments: list[str], checkpoints: Path | None) -> list[float]:
    heads = {"attentionHeads": 8, "kvHeads": 4, "headSize": 64}
    shape = COMMON | heads | {"layers": 4, "hiddenSize": 512, "ffnHiddenSize": 1408, "vocabularySize": 4096}
    tokens = folder / "tokens"
    if not tokens.exists():
        write_tokens(tokens, 4096, 20 * 4 * 512 + 1)
    training = {"sequenceLength": 512, "microBatchSize": 2, "globalBatchSize": 4, "steps": 20, "precision": "bf16", "seed": 1}
    places = {"mode": "direct", "uri": str(checkpoints), "resumeFrom": "", "keep": 3, "intervalMinutes": "auto"}
    content = {
        "model": shape,
        "training": training,
        "distribution": {"library": "fsdp", "collectives": "auto", "parameters": {"compile": False}},
        "checkpoints": places if checkpoints else {"mode": "none"},
    }
    (folder / name).mkdir()
    return measure_losses([*OURS, *arguments], content, tokens, folder / name)


def resume(_machine: Machine, folder: Path) -> Found:
    whole = _losses(folder, "whole", [], None)
    checkpoints = folder / "checkpoints"
    _losses(folder, "first", ["--save-every-steps", "10"], checkpoints)
    (checkpoints / "step-20/COMMITTED.json").unlink()
    rest = _losses(folder, "second", ["--save-every-steps", "10"], checkpoints)
    off = max(abs(one - other) for one, other in zip(rest, whole[10:], strict=True))
    return Found(f"largest difference of ten losses {off:.1e}; first losses {json.dumps(whole[:2])}", off == 0.0)


CASES = (
    Case("a non-finite gradient, fused AdamW", "is skipped: weights and optimizer state stay unchanged", lacks_gpu, skipped_update),
    Case(
        "copy of the state behind a kernel that does not end",
        "is of the step before, and a later update shows",
        lacks_gpu,
        copy_beside_a_busy_stream,
    ),
    Case("resume on the GPU", "the same losses bit for bit", lacks_gpu, resume),
)
