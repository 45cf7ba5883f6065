"""Every family of models on the GPU: the same weights and tokens as on the CPU, in one process. Shapes are small ones of transformers'
configurations (families.json, written by `python bench/gpu/draw_families.py`)."""

import json
from pathlib import Path
from typing import Any

from case import Case, Found
from machine import Machine, lacks_gpu

SEED, LENGTH, SEQUENCES = 11, 160, 2
#: Float32 sums in another order; and the share by which a loss in bfloat16 may be another one.
LOGITS, GRADIENTS, IN_BFLOAT16 = 2e-4, 2e-4, 0.02
SHAPES: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "families.json").read_text())


def _difference(name: str, raw: dict[str, Any]) -> tuple[float, float, float]:
    """Largest differences of logits and of gradients in float32, and the relative one of the loss with weights in bfloat16."""
    import torch
    import torch.nn.functional as F

    from slipway_trainer.architecture import read_architecture
    from slipway_trainer.initialise import values_of
    from slipway_trainer.model import Transformer
    from slipway_trainer.sharding import fill_all

    issues: list[str] = []
    shape = read_architecture(raw, raw.__getitem__, issues)
    if issues:
        raise RuntimeError(f"{name}: {'; '.join(issues)}")
    generator = torch.Generator().manual_seed(SEED)
    tokens_BL = torch.randint(0, shape.vocabulary_size, (SEQUENCES, LENGTH + 1), generator=generator)

    def results(model: torch.nn.Module, device: str) -> tuple[torch.Tensor, float, dict[str, torch.Tensor]]:
        here = tokens_BL.to(device)
        logits = model(here[:, :-1]).float()
        loss = F.cross_entropy(logits.flatten(0, 1), here[:, 1:].flatten())
        loss.backward()
        gradients = {key: value.grad.cpu() for key, value in model.named_parameters() if value.grad is not None}
        model.zero_grad()
        return logits.detach().cpu(), loss.item(), gradients

    model = Transformer(shape)
    fill_all(model, values_of(shape.layers, SEED, torch.device("cpu")))
    logits, loss, gradients = results(model, "cpu")
    model.to("cuda")
    on_gpu, _, gradients_on_gpu = results(model, "cuda")
    _, rounded, _ = results(model.to(torch.bfloat16), "cuda")
    off = max((gradients[key] - gradients_on_gpu[key]).abs().max().item() for key in gradients)
    return (logits - on_gpu).abs().max().item(), off, abs(rounded - loss) / loss


def families(_machine: Machine, _folder: Path) -> Found:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    found = {name: _difference(name, raw) for name, raw in SHAPES.items()}
    limits = (LOGITS, GRADIENTS, IN_BFLOAT16)
    worst = [max(found, key=lambda name, at=at: found[name][at]) for at in range(3)]
    too_large = [name for name, values in found.items() if any(value > limit for value, limit in zip(values, limits, strict=True))]
    what = ("logits", "gradients", "loss in bf16")
    figures = ", ".join(f"{kind} {found[name][at]:.1e} ({name})" for at, (kind, name) in enumerate(zip(what, worst, strict=True)))
    named = f"; too large: {', '.join(too_large)}" if too_large else ""
    return Found(f"{len(found)} families; largest: {figures}{named}", not too_large)


CASES = (Case("logits and gradients of every family, GPU beside CPU", "float32: 2e-4; loss in bf16: 2 %", lacks_gpu, families),)
