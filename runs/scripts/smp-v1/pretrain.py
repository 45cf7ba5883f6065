"""Trains GPT-2 or GPT-NeoX from scratch with SMP v1: pipeline, tensor or sharded data parallel according to the job's mp_parameters.

Channel `train` contains flat token files (*.bin, `--token-dtype`) in the format of tokenization runs.
"""

import argparse
import itertools
import os
from pathlib import Path

import numpy as np
import smdistributed.modelparallel.torch as smp
import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler
from transformers import AutoModelForCausalLM, GPT2Config, GPTNeoXConfig

#: Class names of a transformer block, before and after the library distributes it.
BLOCKS = ("GPT2Block", "GPTNeoXLayer", "DistributedTransformerLayer")


class TokenBlocks(Dataset):
    """Blocks of `length` tokens; a block never spans two files."""

    def __init__(self, folder, length, dtype):
        self.shards = [np.memmap(path, dtype=dtype, mode="r") for path in sorted(Path(folder).glob("*.bin"))]
        self.length = length
        self.ends = np.cumsum([len(shard) // length for shard in self.shards])

    def __len__(self):
        return int(self.ends[-1])

    def __getitem__(self, index):
        shard = int(np.searchsorted(self.ends, index, side="right"))
        at = (index - (self.ends[shard - 1] if shard else 0)) * self.length
        return torch.from_numpy(self.shards[shard][at : at + self.length].astype(np.int64))


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model-type", choices=["gpt2", "gpt_neox"], default="gpt2")
    parser.add_argument("--hidden-width", type=int, default=4096)
    parser.add_argument("--num-layers", type=int, default=50)
    parser.add_argument("--num-heads", type=int, default=32)
    parser.add_argument("--vocab-size", type=int, default=50257)
    parser.add_argument("--max-context-width", type=int, default=512)
    parser.add_argument("--train-batch-size", type=int, default=4, help="per tensor-parallel group with prescaled_batch")
    parser.add_argument("--activation-checkpointing", type=int, default=1)
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--max-steps", type=int, default=1000)
    parser.add_argument("--token-dtype", default="uint16")
    # The toolkit passes all hyperparameters, including mp_parameters.
    return parser.parse_known_args()[0]


def config(args):
    if args.model_type == "gpt2":
        sizes = {"n_embd": args.hidden_width, "n_layer": args.num_layers, "n_head": args.num_heads, "n_positions": args.max_context_width}
        return GPT2Config(vocab_size=args.vocab_size, use_cache=False, **sizes)
    sizes = {"hidden_size": args.hidden_width, "intermediate_size": 4 * args.hidden_width, "num_hidden_layers": args.num_layers}
    sizes.update(num_attention_heads=args.num_heads, max_position_embeddings=args.max_context_width)
    return GPTNeoXConfig(vocab_size=args.vocab_size, use_cache=False, **sizes)


@smp.step
def train_step(model, ids):
    loss = model(input_ids=ids, labels=ids)["loss"]
    model.backward(loss)
    return loss


def main():
    args = arguments()
    smp.init()
    settings = smp.state.cfg
    device = torch.device("cuda", smp.local_rank()) if torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    torch.manual_seed(42)

    dtype = torch.float16 if settings.fp16 else torch.bfloat16 if settings.bf16 else torch.get_default_dtype()
    # With tensor parallelism, sharded data parallelism also distributes the embedding.
    both = settings.sharded_data_parallel_degree > 1 and smp.tp_size() > 1
    with smp.model_creation(tensor_parallelism=smp.tp_size() > 1, dtype=dtype, distribute_embedding=both):
        model = AutoModelForCausalLM.from_config(config(args))
    model = smp.DistributedModel(model, trace_device="cpu" if smp.pp_size() > 1 else "gpu")
    if args.activation_checkpointing:
        for module in list(model.modules()):
            if type(module).__name__ in BLOCKS:
                smp.set_activation_checkpointing(module)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate, betas=(0.9, 0.95), weight_decay=0.1)
    scaling = {"static_loss_scale": None, "dynamic_loss_scale": True} if settings.fp16 else {}
    optimizer = smp.DistributedOptimizer(optimizer, **scaling)

    blocks = TokenBlocks(os.environ["SM_CHANNEL_TRAIN"], args.max_context_width, args.token_dtype)
    replicas, replica = (smp.rdp_size(), smp.rdp_rank()) if settings.prescaled_batch else (smp.dp_size(), smp.dp_rank())
    sampler = DistributedSampler(blocks, num_replicas=replicas, rank=replica, drop_last=True)
    loader = DataLoader(blocks, batch_size=args.train_batch_size, sampler=sampler, drop_last=True)
    for step, ids in enumerate(itertools.islice(loader, args.max_steps)):
        optimizer.zero_grad()
        loss = train_step(model, ids.to(device)).reduce_mean()
        # Sharded data parallelism clips gradients itself (sdp_gradient_clipping).
        if settings.fp16 and settings.sharded_data_parallel_degree == 1:
            optimizer.clip_master_grads(1.0)
        optimizer.step()
        if smp.rank() == 0:
            print(f"step={step} loss={loss.item():.4f}", flush=True)
    smp.save_checkpoint(os.environ["SM_MODEL_DIR"], tag="model", partial=True, model=model, optimizer=optimizer)


if __name__ == "__main__":
    main()
