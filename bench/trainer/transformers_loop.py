"""The peer of bench:trainer: a loop as the documentation of transformers and PyTorch writes it, on the job file of the trainer's row."""

import json
import os
import time
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from slipway_trainer.batches import Batches
from slipway_trainer.progress import say, step_numbers
from slipway_trainer.settings import RunSettings, resolve_settings
from slipway_trainer.weights import published_config


def build(settings: RunSettings, device: torch.device) -> torch.nn.Module:
    config = published_config(settings.architecture, settings.training.sequence_length)
    torch.manual_seed(settings.training.seed)
    with device:
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(config.pop("model_type"), **config, use_cache=False))
    return torch.compile(model) if settings.parallel.compile else model


def main() -> None:
    settings = resolve_settings(json.loads(Path(os.environ["SLIPWAY_JOB_FILE"]).read_text()), [], {})
    training = settings.training
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    name = torch.cuda.get_device_name() if device.type == "cuda" else "cpu"
    model = build(settings, device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=device.type == "cuda")
    batches = Batches(Path(os.environ["SM_CHANNEL_TRAIN"]), training, settings.architecture.vocabulary_size, 0, 1)
    for step in range(training.steps):
        began = time.monotonic()
        tokens_BL, targets_BL = batches.micro_batch(step, 0, device)
        with torch.autocast(device.type, torch.bfloat16, enabled=training.precision == "bf16"):
            logits_BLV = model(input_ids=tokens_BL).logits
        loss = torch.nn.functional.cross_entropy(logits_BLV.flatten(0, 1).float(), targets_BL.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        value = loss.item()
        memory = round(torch.cuda.max_memory_reserved() / 2**30, 2) if device.type == "cuda" else None
        numbers = step_numbers(settings.architecture, training, 1, time.monotonic() - began, name)
        say("step", step=step + 1, loss=value, **numbers, memoryGiB=memory)


if __name__ == "__main__":
    main()
