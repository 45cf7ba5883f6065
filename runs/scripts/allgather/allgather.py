"""Benchmarks a collective over message size, ranks per host and backend, and reports the achieved share of the hosts' line rate.

Runs under torchrun or mpirun. With n ranks per host, the first n local ranks of each host take part. Rank 0 prints each result as a
progress line, `slipway {"event":"collective",...}`, and all results as a table at the end. Backends that the image does not have are listed
and skipped. Bus bandwidth follows nccl-tests: https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md (retrieved 2026-11-20).
"""

import argparse
import json
import os
import time

import torch
import torch.distributed as dist

#: Bus bandwidth = bytes / seconds * factor(ranks); `bytes` is the size of the whole message.
FACTORS = {"all_gather": lambda n: (n - 1) / n, "all_reduce": lambda n: 2 * (n - 1) / n, "reduce_scatter": lambda n: (n - 1) / n}


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--collective", choices=["all_gather", "all_reduce", "reduce_scatter"], default="all_gather")
    parser.add_argument("--backends", default="nccl,smddp,gloo", help="comma-separated")
    parser.add_argument("--min-bytes", type=int, default=1 << 20)
    parser.add_argument("--max-bytes", type=int, default=1 << 30)
    parser.add_argument("--factor", type=int, default=4, help="ratio of consecutive message sizes")
    parser.add_argument("--ranks-per-host", default="", help="comma-separated; default: 1, 2, 4 ... all")
    parser.add_argument("--seconds", type=float, default=2.0, help="duration of each measurement")
    parser.add_argument("--line-rate-gbps", type=float, default=0.0, help="GB/s of one host; default: from the instance type")
    return parser.parse_known_args()[0]


def line_rate(given):
    """Line rate of one host in GB/s; None if unknown."""
    if given > 0:
        return given
    try:
        from slipway_driver.expected_bandwidth import line_rate_gbps
    except ImportError:
        return None
    return line_rate_gbps(os.environ.get("SM_CURRENT_INSTANCE_TYPE", ""))


def sizes(smallest, largest, factor):
    size = smallest
    while size <= largest:
        yield size
        size *= factor


def ranks_per_host(text, local_world):
    """The requested numbers up to `local_world`; by default the powers of two and `local_world` itself."""
    requested = [int(word) for word in text.split(",") if word]
    powers = [1 << exponent for exponent in range(local_world.bit_length()) if 1 << exponent <= local_world]
    return sorted({number for number in (requested or [*powers, local_world]) if number <= local_world})


def missing(backend):
    """Why a backend cannot be used; empty if it can."""
    if backend == "nccl" and not (dist.is_nccl_available() and torch.cuda.is_available()):
        return "needs GPUs"
    if backend == "smddp":
        try:
            import smdistributed.dataparallel.torch.torch_smddp  # noqa: F401
        except ImportError:
            return "not in this image"
    return ""


def device_of(backend):
    return torch.device("cpu") if backend == "gloo" else torch.device("cuda", int(os.environ["LOCAL_RANK"]))


def call_of(collective, group, ranks, size, device):
    """The collective as a function without arguments, and its message size in bytes (rounded down to a multiple of the number of ranks)."""
    part = max(1, size // 4 // ranks)
    whole = torch.zeros(part * ranks, dtype=torch.float32, device=device)
    own = torch.zeros(part, dtype=torch.float32, device=device)
    calls = {
        "all_gather": lambda: dist.all_gather_into_tensor(whole, own, group=group),
        "all_reduce": lambda: dist.all_reduce(whole, group=group),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(own, whole, group=group),
    }
    return calls[collective], whole.numel() * 4


def timed(call, times, group, device):
    dist.barrier(group=group)
    begin = time.monotonic()
    for _ in range(times):
        call()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return (time.monotonic() - begin) / times


def row(args, backend, group, per_host, ranks, size, rate):
    """Measures one row. All ranks of the group run the same number of calls, which the first rank of the group estimates."""
    device = device_of(backend)
    call, moved = call_of(args.collective, group, ranks, size, device)
    timed(call, 2, group, device)
    estimate = torch.tensor([timed(call, 2, group, device)], dtype=torch.float64, device=device)
    dist.broadcast(estimate, 0, group=group)
    times = max(1, min(1000, int(args.seconds / max(float(estimate), 1e-6))))
    seconds = timed(call, times, group, device)
    bandwidth = moved / seconds * FACTORS[args.collective](ranks) / 1e9
    percent = round(100 * bandwidth / rate, 1) if rate else None
    return {"event": "collective", "collective": args.collective, "backend": backend, "ranksPerHost": per_host, "ranks": ranks,
            "bytes": moved, "seconds": seconds, "busBandwidthGBps": round(bandwidth, 3), "lineRatePercent": percent}  # fmt: skip


def sweep(args, backends, rate):
    rank, world = dist.get_rank(), dist.get_world_size()
    local, local_world = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    rows = []
    for backend in backends:
        for per_host in ranks_per_host(args.ranks_per_host, local_world):
            # Ranks are numbered host by host. All ranks must take part in the creation of every group.
            members = [member for member in range(world) if member % local_world < per_host]
            group = dist.new_group(members, backend=backend)
            if local >= per_host or len(members) < 2:
                continue
            for size in sizes(args.min_bytes, args.max_bytes, args.factor):
                rows.append(row(args, backend, group, per_host, len(members), size, rate))
                if rank == 0:
                    print("slipway " + json.dumps(rows[-1], separators=(",", ":")), flush=True)
                    print(f'slipway {{"event":"step","step":{len(rows)}}}', flush=True)
    return rows


def table(rows):
    head = f"{'backend':8} {'ranks/host':>10} {'bytes':>12} {'ms':>10} {'GB/s':>9} {'% of line':>9}"
    lines = [f"{r['backend']:8} {r['ranksPerHost']:10d} {r['bytes']:12d} {1e3 * r['seconds']:10.3f} {r['busBandwidthGBps']:9.3f} "
             f"{'-' if r['lineRatePercent'] is None else r['lineRatePercent']:>9}" for r in rows]  # fmt: skip
    return "\n".join([head, *lines])


def main():
    args = arguments()
    wanted = args.backends.split(",")
    absent = {backend: why for backend in wanted if (why := missing(backend))}
    backends = [backend for backend in wanted if backend not in absent]
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    # SMDDP must be the first backend, because it hooks into NCCL.
    dist.init_process_group("smddp" if "smddp" in backends else (backends or ["gloo"])[0])
    if dist.get_rank() == 0:
        for backend, why in absent.items():
            print(f"allgather: skipping {backend}: {why}", flush=True)
    rows = sweep(args, backends, line_rate(args.line_rate_gbps))
    if dist.get_rank() == 0:
        print(table(rows), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
