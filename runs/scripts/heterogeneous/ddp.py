"""Training with plain DDP for train.py; resumes from its newest checkpoint."""

import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from train import Feed, dismiss

VOCABULARY = 256


def resume(folder, state):
    """Loads the newest checkpoint into the objects of `state`. Returns its step, 0 if there is none."""
    newest = max(folder.glob("step-*.pt"), key=lambda path: int(path.stem[5:]), default=None)
    if newest is None:
        return 0
    saved = torch.load(newest, map_location="cpu", weights_only=True)
    for name, holder in state.items():
        holder.load_state_dict(saved[name])
    return int(newest.stem[5:])


def save(folder, step, state):
    """Writes a temporary file and renames it, so that every existing checkpoint is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"step-{step}.part"
    torch.save({name: holder.state_dict() for name, holder in state.items()}, part)
    part.rename(folder / f"step-{step}.pt")


def train(args, feeders):
    """DDP over the ranks of the training group, with batches that the feeders prepare."""
    dist.init_process_group(args.backend or ("nccl" if torch.cuda.is_available() else "gloo"))
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    torch.manual_seed(42)
    model = nn.Sequential(nn.Embedding(VOCABULARY, args.width), nn.Linear(args.width, VOCABULARY)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    state, folder = {"model": model, "optimizer": optimizer}, Path(os.environ["SLIPWAY_CHECKPOINT_URI"])
    done = resume(folder, state)
    ranks = DistributedDataParallel(model, device_ids=[device.index] if device.type == "cuda" else None)
    batches = Feed(feeders, args, dist.get_rank(), done + 1)
    for step in range(done + 1, args.max_steps + 1):
        tokens = torch.from_numpy(batches.next()).to(device)
        loss = nn.functional.cross_entropy(ranks(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0:
            print("slipway " + json.dumps({"event": "step", "step": step, "loss": loss.item()}), flush=True)
            if step % args.save_every == 0 or step == args.max_steps:
                save(folder, step, state)
    # A rank must not exit while another rank communicates with it.
    dist.barrier()
    if dist.get_rank() == 0:
        dismiss(feeders, args.feed_port)
    dist.destroy_process_group()
