"""Measurements of the health check: `python -m slipway_driver.health_rank`, one process per GPU of one host.

Each rank times bf16 matrix multiplications on its GPU; then all ranks take part in an all-reduce. Every rank prints the stages that it
reaches, and rank 0 prints one line of JSON. health_measure.py starts the ranks and reads their output.

`python -m slipway_driver.health_rank SECONDS BYTES` is one rank of the all-reduce probe. It runs under the job's launcher and environment,
so that it uses the same network as training. In the driver, PyTorch is imported only here.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import traceback
from typing import Any, Callable, Tuple

from slipway_driver.error_lines import HARDWARE
from slipway_driver.expected_bandwidth import bus_bandwidth_gbps
from slipway_driver.progress import progress_line

#: Large enough to fill an H200. CPUs are used if PyTorch cannot use the GPUs.
GPU_SIZE, CPU_SIZE = 8192, 256
REDUCED_BYTES, CPU_REDUCED_BYTES = 1 << 30, 1 << 20
#: Of the probe: gloo runs on the CPU, for which a smaller message is sufficient.
CPU_PROBE_BYTES = 4 << 20
WARM_UP, TIMES = 3, 20
#: How long a GPU computes before it is measured, so that its clocks have risen.
WARM_UP_SECONDS = 0.5

#: The stages of a rank, printed with this prefix. The first two use the GPU; when the last one begins, the result is there.
STAGE = "stage: "
MATMUL, ALL_REDUCE, ON_CPU, END = "matrix multiplication", "all-reduce", "measurement on the CPU", "end"
#: Exit codes of a rank that raised an exception: an error of its GPU, or anything else.
GPU_FAILED, NOT_THE_GPU = 1, 3
_CUDA_ERROR = re.compile(r"CUDA error|CUDA failure|unhandled cuda error|Unexpected error from cudaGetDeviceCount", re.IGNORECASE)
#: CUDA errors of a healthy GPU: the image's PyTorch or libraries do not match the GPU or its driver, or another process holds its memory
#: (https://docs.nvidia.com/cuda/cuda-runtime-api/, "cudaError", and https://docs.nvidia.com/cuda/cublas/, "cublasStatus_t", 2026-11-26).
_SOFTWARE = re.compile(
    r"kernel image|too old|is insufficient|no NVIDIA driver|unsupported|forward compatibility|driver / cuda driver combination"
    r"|invalid device (?:function|ordinal)|no CUDA-capable device|not supported|out of memory|symbol not found|PTX|CUDA (?:m|c)alloc"
    r"|CUBLAS_STATUS_(?!EXECUTION_FAILED|INTERNAL_ERROR)",
    re.IGNORECASE,
)


def is_gpu_error(text: str) -> bool:
    """Whether the message of an exception reports what may be a broken GPU or NVLink."""
    return bool(HARDWARE.search(text) or _CUDA_ERROR.search(text) and not _SOFTWARE.search(text))


def _enter(stage: str) -> None:
    print(STAGE + stage, flush=True)


def _rounded(speed: float) -> float:
    """Six significant digits. With a number of decimals, the speed of a busy CPU would become 0."""
    return float("%.6g" % speed)


def _usable(torch: Any) -> Tuple[bool, str]:
    """Whether PyTorch can use the GPUs, and the reason if it cannot. Raises the error of a broken GPU."""
    if torch.cuda.is_available():
        return True, ""
    try:
        torch.zeros(1, device="cuda")
    except Exception as error:
        if is_gpu_error(str(error)):
            raise
        return False, str(error).splitlines()[0] if str(error) else type(error).__name__
    return True, ""


def _device(torch: Any, on_gpu: bool) -> Any:
    if not on_gpu:
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    return device


def _seconds_of(work: Callable[[], Any], wait: Callable[[], Any], warm_up_seconds: float) -> float:
    """Mean time of `work`. `wait` returns when the device has finished."""
    begin, done = time.monotonic(), 0
    while done < WARM_UP or time.monotonic() - begin < warm_up_seconds:
        work()
        wait()
        done += 1
    begin = time.monotonic()
    for _ in range(TIMES):
        work()
    wait()
    return (time.monotonic() - begin) / TIMES


def main() -> None:
    """Runs one rank of the measurements, with the variables that torchrun would set; rank 0 prints the results as JSON."""
    import torch
    import torch.distributed as dist

    _enter(MATMUL)
    on_gpu, why = _usable(torch)
    if not on_gpu:
        _enter(ON_CPU)
    device = _device(torch, on_gpu)
    wait = torch.cuda.synchronize if on_gpu else lambda: None
    size = GPU_SIZE if on_gpu else CPU_SIZE
    left, right = (torch.randn(size, size, device=device).to(torch.bfloat16) for _ in range(2))
    tflops = 2.0 * size**3 / _seconds_of(lambda: torch.mm(left, right), wait, WARM_UP_SECONDS if on_gpu else 0.0) / 1e12
    if on_gpu:
        _enter(ALL_REDUCE)
    dist.init_process_group("nccl" if on_gpu else "gloo")
    reduced = torch.zeros((REDUCED_BYTES if on_gpu else CPU_REDUCED_BYTES) // 4, device=device)
    # Every rank must run the same number of collectives, so the warm-up has no minimum time.
    each, world = _seconds_of(lambda: dist.all_reduce(reduced), wait, 0.0), dist.get_world_size()
    gathered = [torch.zeros(1, dtype=torch.float64, device=device) for _ in range(world)]
    dist.all_gather(gathered, torch.tensor([tflops], dtype=torch.float64, device=device))
    if dist.get_rank() == 0:
        facts = {"device": device.type, "why": why, "tflops": [_rounded(float(value)) for value in gathered]}
        if world > 1:
            facts["busBandwidthGBps"] = _rounded(bus_bandwidth_gbps(reduced.numel() * 4, each, world))
        print(json.dumps(facts), flush=True)
    _enter(END)
    dist.destroy_process_group()


def probe(seconds: float, size_bytes: int) -> None:
    """Runs one rank of the probe for `seconds`, with a tensor of `size_bytes` (less on CPUs); rank 0 prints a progress line."""
    import torch
    import torch.distributed as dist

    on_gpu = torch.cuda.is_available()
    device = _device(torch, on_gpu)
    dist.init_process_group("nccl" if on_gpu else "gloo")
    tensor = torch.zeros((size_bytes if on_gpu else CPU_PROBE_BYTES) // 4, dtype=torch.float32, device=device)

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
    if len(sys.argv) > 1:
        sys.exit(probe(float(sys.argv[1]), int(sys.argv[2])))
    try:
        main()
    except Exception as error:
        traceback.print_exc()
        sys.exit(GPU_FAILED if is_gpu_error(str(error)) else NOT_THE_GPU)
