"""Plain PyTorch DDP under any launcher that sets RANK, LOCAL_RANK and WORLD_SIZE; resumes from its own newest checkpoint.

The script does not depend on Slipway: `progress.stepRegex: "step=(\\d+)"` matches its log lines, and checkpoints.mode managed synchronizes
/opt/ml/checkpoints with S3. Under mpirun with SMDDP (`--backend smddp`) the ranks come from Open MPI's variables. Channel `train` contains
flat token files (*.bin).
"""

import argparse
import importlib.util
import os
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def default_backend():
    """NCCL on GPUs, the backend of TorchNeuron on Trainium, otherwise gloo."""
    if torch.cuda.is_available():
        return "nccl"
    return "neuron" if importlib.util.find_spec("torch_neuronx") else "gloo"


def device_of(backend, local_rank):
    """The device of this rank. The Neuron runtime assigns a NeuronCore to every process."""
    if backend == "neuron":
        import torch_neuronx  # noqa: F401  (registers the device and the backend)

        return torch.device("neuron")
    if not torch.cuda.is_available():
        return torch.device("cpu")
    torch.cuda.set_device(local_rank)
    return torch.device("cuda", local_rank)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", help="default: nccl on GPUs, neuron on Trainium, gloo elsewhere")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--sequence-length", type=int, default=128)
    parser.add_argument("--vocab-size", type=int, default=50257)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--max-steps", type=int, default=0, help="0: no limit")
    parser.add_argument("--save-every", type=int, default=100)
    parser.add_argument("--token-dtype", default="uint16")
    parser.add_argument("--checkpoints", type=Path, default=Path("/opt/ml/checkpoints"))
    return parser.parse_known_args()[0]


def dataset(args):
    paths = sorted(Path(os.environ["SM_CHANNEL_TRAIN"]).glob("*.bin"))
    tokens = np.concatenate([np.fromfile(path, dtype=args.token_dtype) for path in paths]).astype(np.int64)
    length = args.sequence_length + 1
    return TensorDataset(torch.from_numpy(tokens[: len(tokens) // length * length].reshape(-1, length)))


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


def main():
    args = arguments()
    backend = args.backend or default_backend()
    if backend == "smddp":
        import smdistributed.dataparallel.torch.torch_smddp  # noqa: F401  (registers the backend)
    local_rank = int(os.environ.get("LOCAL_RANK", os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", "0")))
    device = device_of(backend, local_rank)
    dist.init_process_group(backend)
    torch.manual_seed(42)
    model = nn.Sequential(nn.Embedding(args.vocab_size, args.width), nn.Linear(args.width, args.vocab_size)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    state = {"model": model, "optimizer": optimizer}
    done = resume(args.checkpoints, state)
    ranks = DistributedDataParallel(model, device_ids=[device.index] if device.type == "cuda" else None)

    data = dataset(args)
    sampler = DistributedSampler(data, drop_last=True)
    loader = DataLoader(data, batch_size=args.batch_size, sampler=sampler, drop_last=True)
    step = 0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for (tokens,) in loader:
            step += 1
            if step <= done or (args.max_steps and step > args.max_steps):
                continue
            logits = ranks(tokens[:, :-1].to(device))
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].to(device).flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if dist.get_rank() == 0:
                print(f"step={step} loss={loss.item():.4f}", flush=True)
                if step % args.save_every == 0:
                    save(args.checkpoints, step, state)
    # A rank must not exit while another rank communicates with it.
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
