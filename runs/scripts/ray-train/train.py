"""A small language model under Ray Train: data parallel over all GPUs of the cluster (gloo on CPUs); resumes from its own checkpoint.

Runs once, on the first host; Ray starts the workers on all hosts. Worker 0 prints `step=` lines to the log, which progress.stepRegex
matches. Checkpoints are written to /opt/ml/checkpoints on worker 0's host, which checkpoints.mode managed synchronizes with S3. Channel
`train` contains flat token files (*.bin); without the channel, a synthetic sequence is used.
"""

import argparse
import os
from pathlib import Path

import numpy as np
import ray
import torch
from ray.train import RunConfig, ScalingConfig, get_context
from ray.train.torch import TorchTrainer, get_device, prepare_model
from torch import nn


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--sequence-length", type=int, default=64)
    parser.add_argument("--vocab-size", type=int, default=512)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=1e-2)
    parser.add_argument("--save-every", type=int, default=50)
    parser.add_argument("--token-dtype", default="uint16")
    parser.add_argument("--checkpoints", default=os.environ.get("SLIPWAY_CHECKPOINT_URI") or "/opt/ml/checkpoints")
    return vars(parser.parse_args())


def tokens_of(settings):
    """All tokens of the channel; without a channel, a repeating sequence, which can be learned."""
    folder = os.environ.get("SM_CHANNEL_TRAIN")
    if folder is None:
        return torch.arange(1 << 16) * 7 % settings["vocab_size"]
    parts = [np.fromfile(path, dtype=settings["token_dtype"]) for path in sorted(Path(folder).glob("*.bin"))]
    return torch.from_numpy(np.concatenate(parts).astype(np.int64))


def newest(folder):
    """(step, content) of the newest checkpoint; None if there is none."""
    found = max(folder.glob("step-*.pt"), key=lambda path: int(path.stem[5:]), default=None)
    return found and (int(found.stem[5:]), torch.load(found, map_location="cpu", weights_only=True))


def resume(folder, model, optimizer, device):
    """Loads worker 0's newest checkpoint. Returns its step, 0 if there is none.

    Every worker loads it: other hosts may have no copy, and DDP broadcasts the weights but not the optimizer's moments.
    """
    held = [newest(folder) if get_context().get_world_rank() == 0 else None]
    torch.distributed.broadcast_object_list(held, src=0, device=device)
    if held[0] is None:
        return 0
    step, saved = held[0]
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    return step


def save(folder, step, model, optimizer):
    """Writes a temporary file and renames it, so that every existing checkpoint is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"step-{step}.part"
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, part)
    part.rename(folder / f"step-{step}.pt")


def train(settings):
    """Runs one worker; Ray Train has initialized torch.distributed."""
    rank, device, folder = get_context().get_world_rank(), get_device(), Path(settings["checkpoints"])
    torch.manual_seed(42)
    width, vocabulary, length = settings["width"], settings["vocab_size"], settings["sequence_length"]
    model = nn.Sequential(nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings["learning_rate"])
    done = resume(folder, model, optimizer, device)
    parallel = prepare_model(model)
    tokens = tokens_of(settings)
    for step in range(done + 1, settings["steps"] + 1):
        chosen = torch.Generator().manual_seed(step * get_context().get_world_size() + rank)
        starts = torch.randint(len(tokens) - length - 1, (settings["batch_size"],), generator=chosen)
        rows = torch.stack([tokens[start : start + length + 1] for start in starts.tolist()]).to(device)
        loss = nn.functional.cross_entropy(parallel(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            print(f"step={step} loss={loss.item():.4f}", flush=True)
            if step % settings["save_every"] == 0:
                save(folder, step, model, optimizer)


def main():
    ray.init()
    hosts = [node for node in ray.nodes() if node["Alive"]]
    gpus = int(ray.cluster_resources().get("GPU", 0))
    scaling = ScalingConfig(num_workers=gpus or len(hosts), use_gpu=gpus > 0, placement_strategy="PACK" if gpus else "SPREAD")
    TorchTrainer(train, train_loop_config=arguments(), scaling_config=scaling, run_config=RunConfig(name="slipway")).fit()


if __name__ == "__main__":
    main()
