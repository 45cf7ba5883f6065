"""A GPT model with DeepSpeed ZeRO under torchrun, without a hostfile and ssh.

SLIPWAY_DEEPSPEED_CONFIG contains the configuration as JSON, with its "auto" values set from the run file. `dist_backend: smddp` in it
(collectives: smddp) selects SMDDP as the backend.

Checkpoints need a shared folder (checkpoints.mode fsx) or a folder that the service synchronizes with S3 (managed). Channel `train`
contains flat token files (*.bin).
"""

import argparse
import json
import os
from pathlib import Path

import deepspeed
import numpy as np
import torch
import torch.distributed as dist
from transformers import AutoModelForCausalLM, GPTNeoXConfig


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hidden-width", type=int, default=6144)
    parser.add_argument("--num-layers", type=int, default=44)
    parser.add_argument("--num-heads", type=int, default=64)
    parser.add_argument("--vocab-size", type=int, default=50432)
    parser.add_argument("--sequence-length", type=int, default=2048)
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--max-steps", type=int, default=1000)
    parser.add_argument("--save-every", type=int, default=500)
    parser.add_argument("--token-dtype", default="uint16")
    return parser.parse_args()


def batches(args, batch_size, first_step, last_step):
    """Batches of this rank. The tokens depend only on step, rank and sample number, so a resumed job continues where it stopped."""
    paths = sorted(Path(os.environ["SM_CHANNEL_TRAIN"]).glob("*.bin"))
    shards = [np.memmap(path, dtype=args.token_dtype, mode="r") for path in paths]
    length = args.sequence_length
    blocks = [(shard, at) for shard in shards for at in range(0, len(shard) - length + 1, length)]
    rank, world = dist.get_rank(), dist.get_world_size()
    for step in range(first_step, last_step + 1):
        first = (step * world + rank) * batch_size
        chosen = [blocks[(first + i) % len(blocks)] for i in range(batch_size)]
        yield step, torch.stack([torch.from_numpy(shard[at : at + length].astype(np.int64)) for shard, at in chosen])


def build(args, config):
    sizes = {"hidden_size": args.hidden_width, "intermediate_size": 4 * args.hidden_width, "num_hidden_layers": args.num_layers}
    sizes.update(num_attention_heads=args.num_heads, max_position_embeddings=args.sequence_length)
    # ZeRO-3 partitions parameters as they are created, so that no rank holds the whole model.
    with deepspeed.zero.Init(config_dict_or_path=config, enabled=config["zero_optimization"]["stage"] == 3):
        return AutoModelForCausalLM.from_config(GPTNeoXConfig(vocab_size=args.vocab_size, use_cache=False, **sizes))


def main():
    args = arguments()
    config = json.loads(os.environ["SLIPWAY_DEEPSPEED_CONFIG"])
    backend = config.pop("dist_backend", "nccl")
    if backend == "smddp":
        import smdistributed.dataparallel.torch.torch_smddp  # noqa: F401  (registers the backend)
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    deepspeed.init_distributed(dist_backend=backend)
    torch.manual_seed(42)
    model = build(args, config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate) if "optimizer" not in config else None
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, model_parameters=model.parameters(), config=config)

    folder, done = os.environ.get("SLIPWAY_CHECKPOINT_URI", ""), 0
    if folder.startswith("s3://"):
        raise SystemExit("checkpoints.mode: must be fsx or managed for DeepSpeed, got direct; DeepSpeed writes to a folder")
    if folder and (Path(folder) / "latest").exists():
        done = engine.load_checkpoint(folder)[1]["step"]
    accumulation = config.get("gradient_accumulation_steps", 1)
    micro = engine.train_micro_batch_size_per_gpu()
    for number, ids in batches(args, micro, done * accumulation + 1, args.max_steps * accumulation):
        ids = ids.to(device)
        loss = engine(input_ids=ids, labels=ids).loss
        engine.backward(loss)
        # Updates the weights only at the boundaries of gradient accumulation.
        engine.step()
        step, rest = divmod(number, accumulation)
        if rest == 0 and dist.get_rank() == 0:
            print("slipway " + json.dumps({"event": "step", "step": step, "loss": loss.item()}), flush=True)
        if folder and rest == 0 and step % args.save_every == 0:
            engine.save_checkpoint(folder, client_state={"step": step})
    # A rank must not exit while another rank communicates with it.
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
