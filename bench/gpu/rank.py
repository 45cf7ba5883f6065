"""One of two ranks on a GPU: all-reduces for as long as they come back. `rank.py TIMEOUT_SECONDS FLOATS`."""

import sys
from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("nccl", timeout=timedelta(seconds=float(sys.argv[1])))
torch.cuda.set_device(0)
held = torch.zeros(int(sys.argv[2]), device="cuda")
step = 0
while True:
    dist.all_reduce(held[: 1 << 20])
    torch.cuda.synchronize()
    step += 1
    print(f"steps {step}", flush=True)
