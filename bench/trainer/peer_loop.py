"""The loop of bench:trainer's peers, as the documentation of PyTorch writes it, on the job file of the trainer's row."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from slipway_trainer.batches import Batches
from slipway_trainer.progress import emit, step_numbers
from slipway_trainer.settings import RunSettings, resolve_settings


def train(build: Callable[[RunSettings, torch.device], nn.Module], logits_of: Callable[[nn.Module, Tensor], Tensor]) -> None:
    """Trains the model that `build` makes; says each step as the trainer does. `logits_of`: of the model and tokens (B, L)."""
    settings = resolve_settings(json.loads(Path(os.environ["SLIPWAY_JOB_FILE"]).read_text()), [], {})
    training = settings.training
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    name = torch.cuda.get_device_name() if device.type == "cuda" else "cpu"
    torch.manual_seed(training.seed)
    model = build(settings, device)
    if training.precision == "fp8":
        from torchao.float8 import convert_to_float8_training

        # As torchtitan's recipe does it: every linear layer but the head, each tensor scaled by its own largest value.
        convert_to_float8_training(model, module_filter_fn=lambda module, name: "head" not in name)
    if settings.parallel.compile:
        model = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=device.type == "cuda")
    batches = Batches(Path(os.environ["SM_CHANNEL_TRAIN"]), training, settings.architecture.vocabulary_size, 0, 1)
    for step in range(training.steps):
        began = time.monotonic()
        tokens_BL, targets_BL, _ = batches.micro_batch(step, 0, device)
        with torch.autocast(device.type, torch.bfloat16, enabled=training.precision != "fp32"):
            logits_BLV = logits_of(model, tokens_BL)
        loss = torch.nn.functional.cross_entropy(logits_BLV.flatten(0, 1).float(), targets_BL.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        value = loss.item()
        memory = round(torch.cuda.max_memory_reserved() / 2**30, 2) if device.type == "cuda" else None
        numbers = step_numbers(settings.architecture, training, 1, time.monotonic() - began, name)
        emit("step", step=step + 1, loss=value, **numbers, memoryGiB=memory)
