"""Trains Llama, Mistral or Mixtral from scratch with SMP v2 (torch.sagemaker) on PyTorch FSDP.

The model sizes and the checkpoint location come from the job file, the degrees of parallelism from mp_parameters. Activation offloading and
its loading horizon are mp_parameters as well; they take effect because the script checkpoints activations and wraps the root module in
offload_wrapper. Channel `train` contains flat token files (*.bin).
"""

import argparse
import contextlib
import functools
import itertools
import json
import os
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.sagemaker as tsm
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing, offload_wrapper
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import MixedPrecision, ShardingStrategy, StateDictType
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy
from torch.sagemaker.delayed_param import DelayedParamIniter
from torch.sagemaker.distributed.checkpoint import state_dict_loader, state_dict_saver
from torch.utils.data import DataLoader, Dataset, DistributedSampler
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, MixtralConfig


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
    parser.add_argument("--model-type", choices=["llama", "mistral", "mixtral"], default="llama")
    parser.add_argument("--max-context-width", type=int, default=4096)
    parser.add_argument("--train-batch-size", type=int, default=1)
    parser.add_argument("--delayed-param", type=int, default=1)
    parser.add_argument("--fp8", type=int, default=0)
    parser.add_argument("--moe", type=int, default=0)
    parser.add_argument("--backend", default="nccl", help="smddp on p4d and p4de, except with hybrid_shard_degree 1 and tensor parallelism")
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--max-steps", type=int, default=1000)
    parser.add_argument("--save-every", type=int, default=500)
    parser.add_argument("--token-dtype", default="uint32")
    return parser.parse_args()


def model_config(shape, args):
    sizes = {
        "vocab_size": shape["vocabularySize"],
        "hidden_size": shape["hiddenSize"],
        "intermediate_size": shape["ffnHiddenSize"],
        "num_hidden_layers": shape["layers"],
        "num_attention_heads": shape["attentionHeads"],
        "num_key_value_heads": shape["kvHeads"],
        "rope_theta": shape["ropeTheta"],
        "max_position_embeddings": args.max_context_width,
        "use_cache": False,
    }
    if args.model_type == "mixtral":
        return MixtralConfig(**sizes, num_local_experts=shape["experts"], num_experts_per_tok=shape["expertsPerToken"], sliding_window=None)
    # A sliding window is not supported with context parallelism and FP8.
    return MistralConfig(**sizes, sliding_window=None) if args.model_type == "mistral" else LlamaConfig(**sizes)


def moe_config(args):
    if not args.moe:
        return None
    from torch.sagemaker.moe.moe_config import MoEConfig

    return MoEConfig(random_seed=12345)


def build(shape, args, device):
    with torch.device("meta") if args.delayed_param else contextlib.nullcontext():
        model = AutoModelForCausalLM.from_config(model_config(shape, args))
    model = tsm.transform(model, config=moe_config(args))
    # transform replaces the layers by its own classes; the longest ModuleList contains the layers.
    block = type(max((module for module in model.modules() if isinstance(module, torch.nn.ModuleList)), key=len)[0])
    initer = DelayedParamIniter(model) if args.delayed_param else None
    with initer.validate_params_and_buffers_inited() if initer else contextlib.nullcontext():
        model = FSDP(
            model,
            auto_wrap_policy=functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={block}),
            mixed_precision=MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32),
            sharding_strategy=ShardingStrategy.HYBRID_SHARD,
            device_id=device,
            limit_all_gathers=True,
            use_orig_params=True,
            param_init_fn=initer.get_param_init_fn() if initer else None,
            # The FSDP of SMP ties weights after their initialization; PyTorch's FSDP has no such argument.
            post_param_init_fn=initer.get_post_param_init_fn() if initer else None,
        )
    apply_activation_checkpointing(model, check_fn=lambda module: isinstance(module, block))
    return model


def forward_precision(args):
    if not args.fp8:
        return contextlib.nullcontext()
    import transformer_engine.pytorch as te
    from transformer_engine.common.recipe import DelayedScaling, Format

    return te.fp8_autocast(enabled=True, fp8_recipe=DelayedScaling(fp8_format=Format.HYBRID), fp8_group=dist.group.WORLD)


def context_part(tokens_BT, size, rank):
    """This rank's part of the sequence: chunks r and 2 size - 1 - r of 2 size, so that causal attention has the same cost on every rank."""
    if size == 1:
        return tokens_BT
    chunks = tokens_BT.chunk(2 * size, dim=1)
    return torch.cat([chunks[rank], chunks[2 * size - 1 - rank]], dim=1)


def replica():
    """(rank, size) among the ranks that read different data; the ranks of a tensor or context parallel group read the same data."""
    mine = (getattr(tsm.state, "tp_rank", 0), getattr(tsm.state, "cp_rank", 0))
    all_coordinates = [None] * dist.get_world_size()
    dist.all_gather_object(all_coordinates, mine)
    return all_coordinates[: dist.get_rank()].count(mine), all_coordinates.count(mine)


def save(model, optimizer, step, uri):
    folder = f"{uri.rstrip('/')}/step-{step}"
    weights, moments = get_state_dict(model, optimizer)
    state_dict_saver.save({"model": weights, "optimizer": moments, "step": step}, checkpoint_id=folder)
    dist.barrier()
    if dist.get_rank() == 0:
        commit(folder, step)


def commit(folder, step):
    """Writes COMMITTED.json last; a checkpoint without it is incomplete."""
    record = json.dumps({"schema": 1, "runId": os.environ["SLIPWAY_RUN_ID"], "step": step, "format": "smp", "objects": []}).encode()
    if not folder.startswith("s3://"):
        (Path(folder) / "COMMITTED.json").write_bytes(record)
        return
    from slipway_s3 import S3Client, parse_uri

    bucket, key = parse_uri(folder + "/COMMITTED.json")
    S3Client().put(bucket, key, record)


def resume(model, optimizer, folder):
    weights, moments = get_state_dict(model, optimizer)
    state = {"model": weights, "optimizer": moments, "step": 0}
    state_dict_loader.load(state, checkpoint_id=folder)
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    return state["step"]


def main():
    args = arguments()
    if args.backend == "smddp":
        import smdistributed.dataparallel.torch.torch_smddp  # noqa: F401  (registers the backend)
    dist.init_process_group(args.backend)
    tsm.init()
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank) if torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    torch.manual_seed(42)
    job = json.loads(Path(os.environ["SLIPWAY_JOB_FILE"]).read_text())

    model = build(job["model"], args, device)
    FSDP.set_state_dict_type(model, StateDictType.SHARDED_STATE_DICT)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate, betas=(0.9, 0.95), weight_decay=0.1)
    done = resume(model, optimizer, os.environ["SLIPWAY_RESUME_FROM"]) if os.environ.get("SLIPWAY_RESUME_FROM") else 0
    run = offload_wrapper(model) if job["training"].get("activationOffload") else model

    blocks = TokenBlocks(os.environ["SM_CHANNEL_TRAIN"], args.max_context_width + 1, args.token_dtype)
    rank, replicas = replica()
    sampler = DistributedSampler(blocks, num_replicas=replicas, rank=rank, shuffle=False, drop_last=True)
    loader = DataLoader(blocks, batch_size=args.train_batch_size, sampler=sampler, drop_last=True)
    cp = getattr(tsm.state, "cp_size", 1), getattr(tsm.state, "cp_rank", 0)
    uri = os.environ.get("SLIPWAY_CHECKPOINT_URI")
    for step, tokens in enumerate(itertools.islice(loader, args.max_steps), start=1):
        if step <= done:
            continue
        # Shifted before the split, so that no chunk loses its last token.
        inputs, targets = (context_part(part.to(device), *cp) for part in (tokens[:, :-1], tokens[:, 1:]))
        with forward_precision(args):
            logits = run(input_ids=inputs).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
        loss.backward()
        model.clip_grad_norm_(1.0)
        optimizer.step()
        optimizer.zero_grad()
        if dist.get_rank() == 0:
            print("slipway " + json.dumps({"event": "step", "step": step, "loss": loss.item()}), flush=True)
        if uri and (step % args.save_every == 0 or step == args.max_steps):
            save(model, optimizer, step, uri)


if __name__ == "__main__":
    main()
