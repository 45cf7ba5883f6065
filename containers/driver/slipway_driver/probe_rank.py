"""One rank of the all-reduce probe: `python -m slipway_driver.probe_rank SECONDS BYTES`. Rank 0 prints the result.

It runs under the job's launcher and environment, so that it uses the same network as training. In the driver, PyTorch is imported only here
and in health_rank.py.
"""

from __future__ import annotations

import os
import sys
import time

from slipway_driver.expected_bandwidth import bus_bandwidth_gbps
from slipway_driver.progress import progress_line

WARM_UP = 3
#: gloo runs on the CPU: a smaller message is sufficient.
CPU_BYTES = 4 << 20


def main(seconds: float, size_bytes: int) -> None:
    """Runs one rank of the probe for `seconds`, with a tensor of `size_bytes` (CPU_BYTES on CPUs); rank 0 prints a progress line."""
    import torch
    import torch.distributed as dist

    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpu else "gloo")
    tensor = torch.zeros((size_bytes if on_gpu else CPU_BYTES) // 4, dtype=torch.float32, device=device)

    def timed(times: int) -> float:
        dist.barrier()
        begin = time.monotonic()
        for _ in range(times):
            dist.all_reduce(tensor)
        if on_gpu:
            torch.cuda.synchronize()
        return (time.monotonic() - begin) / times

    timed(WARM_UP)
    # Every rank must run the same number of iterations, so the estimate of rank 0 is used.
    estimate = torch.tensor([timed(WARM_UP)], dtype=torch.float64, device=device)
    dist.broadcast(estimate, 0)
    times = max(1, int(seconds / max(float(estimate), 1e-6)))
    each, world, size = timed(times), dist.get_world_size(), tensor.numel() * 4
    if dist.get_rank() == 0:
        bandwidth = bus_bandwidth_gbps(size, each, world)
        print(progress_line("probe", bytes=size, ranks=world, times=times, seconds=each, busBandwidthGBps=round(bandwidth, 3)), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]))
