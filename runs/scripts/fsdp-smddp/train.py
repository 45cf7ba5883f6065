"""A custom model under PyTorch FSDP with SMDDP's AllGather (ml.p4d.24xlarge and ml.p4de.24xlarge, two or more hosts).

Three things differ from plain FSDP: the import that registers the backend, the name of the backend, and that no other process group is
created. `--backend nccl` (or gloo) runs the same script without SMDDP. Channel `train` contains flat token files (*.bin).
"""

import argparse
import functools
import json
import os
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import MixedPrecision
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy


class OwnModel(nn.Module):
    """An example model; FSDP wraps each of its encoder layers."""

    def __init__(self, vocabulary, width, layers, heads):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(width, heads, 4 * width, batch_first=True) for _ in range(layers)])
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens_BT):
        x_BTD = self.embedding(tokens_BT)
        mask_TT = nn.Transformer.generate_square_subsequent_mask(tokens_BT.shape[1], device=tokens_BT.device, dtype=x_BTD.dtype)
        for layer in self.layers:
            x_BTD = layer(x_BTD, src_mask=mask_TT, is_causal=True)
        return self.head(x_BTD)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="smddp")
    parser.add_argument("--vocab-size", type=int, default=50257)
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--sequence-length", type=int, default=2048)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--max-steps", type=int, default=1000)
    parser.add_argument("--token-dtype", default="uint16")
    return parser.parse_args()


def batches(args):
    """Batches of this rank. The tokens depend only on step, rank and sample number, so there is no data state to save."""
    paths = sorted(Path(os.environ["SM_CHANNEL_TRAIN"]).glob("*.bin"))
    tokens = [np.memmap(path, dtype=args.token_dtype, mode="r") for path in paths]
    length = args.sequence_length + 1
    blocks = [(shard, at) for shard in tokens for at in range(0, len(shard) - length + 1, length)]
    rank, world = dist.get_rank(), dist.get_world_size()
    for step in range(args.max_steps):
        first = (step * world + rank) * args.batch_size
        chosen = [blocks[(first + i) % len(blocks)] for i in range(args.batch_size)]
        yield torch.stack([torch.from_numpy(shard[at : at + length].astype(np.int64)) for shard, at in chosen])


def main():
    args = arguments()
    if args.backend == "smddp":
        import smdistributed.dataparallel.torch.torch_smddp  # noqa: F401  (registers the backend)
    dist.init_process_group(args.backend)
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    torch.manual_seed(42)
    model = FSDP(
        OwnModel(args.vocab_size, args.width, args.layers, args.heads),
        auto_wrap_policy=functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={nn.TransformerEncoderLayer}),
        mixed_precision=MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32),
        device_id=device,
        use_orig_params=True,
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    for step, tokens in enumerate(batches(args), start=1):
        inputs, targets = tokens[:, :-1].to(device), tokens[:, 1:].to(device)
        loss = nn.functional.cross_entropy(model(inputs).flatten(0, 1).float(), targets.flatten())
        loss.backward()
        model.clip_grad_norm_(1.0)
        optimizer.step()
        optimizer.zero_grad()
        if dist.get_rank() == 0:
            print("slipway " + json.dumps({"event": "step", "step": step, "loss": loss.item()}), flush=True)
    # A rank must not exit while another rank communicates with it.
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
