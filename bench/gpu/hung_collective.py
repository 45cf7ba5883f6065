"""Two NCCL ranks on one GPU, of which the second comes late to an all-reduce: the first copies its state meanwhile, and prints what it
copied, whether the collective hung all the while, and which step the state is of afterwards."""

import json
import os
import sys
import time

import torch
import torch.distributed as dist

from slipway_trainer.checkpoint.shared_state import Staging
from slipway_trainer.stalls import Standing

#: Set by the first rank when the second may join.
JOIN = "join"


def first(store: dist.Store) -> dict[str, object]:
    device = torch.device("cuda", 0)
    state = {"weight": torch.full((1 << 24,), 5.0, device=device)}
    gradient = torch.ones(1 << 20, device=device)
    staging, standing = Staging(True, os.memfd_create("bench"), lambda _places, _state: None), Standing(device)
    staging.prepare(state)
    dist.all_reduce(gradient)
    with standing.update({"step": 5}):
        state["weight"].add_(0.0)
    torch.cuda.synchronize()
    dist.all_reduce(gradient)
    came_back = torch.cuda.Event()
    came_back.record()
    with standing.update({"step": 6}):
        state["weight"].fill_(6.0)
    began = time.monotonic()
    facts = standing.newest()
    with staging.beside():
        copied = staging.copy(state)["weight"].clone()
    seconds, hung = time.monotonic() - began, not came_back.query()
    still = facts is not None and standing.still(facts)
    store.set(JOIN, "now")
    torch.cuda.synchronize()
    after = standing.newest()
    step = facts and facts["step"]
    return {
        "values": copied.unique().tolist(),
        "step": step,
        "seconds": seconds,
        "hung": hung,
        "still": still,
        "after": after and after["step"],
    }


def second(store: dist.Store) -> None:
    gradient = torch.ones(1 << 20, device="cuda")
    dist.all_reduce(gradient)
    torch.cuda.synchronize()
    store.wait([JOIN])
    dist.all_reduce(gradient)
    torch.cuda.synchronize()


def main() -> None:
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    rank = 1 if os.fork() == 0 else 0
    # A host id of its own makes NCCL take each for a host, as in two_ranks.py.
    os.environ |= {"NCCL_HOSTID": f"host-{rank}", "NCCL_IB_DISABLE": "1"}
    meeting = dist.TCPStore("127.0.0.1", store.port, is_master=False)
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", store=meeting, rank=rank, world_size=2)
    if rank == 1:
        second(meeting)
        os._exit(0)
    print(json.dumps(first(meeting)))
    sys.stdout.flush()
    os.wait()


main()
