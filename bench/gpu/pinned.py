"""Copies from the GPU to the shared memory of saves, to PyTorch's pinned memory and to memory that is not pinned: prints GiB/s, and what a
process that was forked before CUDA reads there."""

import json
import os
import time

import torch

from slipway_trainer.checkpoint.shared_state import Place, pin, reserve, tensors_at, whole_bytes

GIB, TENSORS, TIMES = 1 << 30, 4, 5
PLACES = [Place(f"tensor-{n}", (GIB // 4,), torch.float32, n * GIB) for n in range(TENSORS)]


def forked_reader(descriptor: int) -> tuple[int, int]:
    """A process that writes what it reads in the last tensor to the second pipe, when something comes through the first."""
    (wait, ready), (answer, result_end) = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.read(wait, 1)
        os.write(result_end, str(float(tensors_at(descriptor, PLACES)[PLACES[-1].name][:1000].double().sum())).encode())
        os._exit(0)
    return ready, answer


def gib_per_second(buffers: dict[str, torch.Tensor], state: dict[str, torch.Tensor]) -> float:
    """The fastest of some copies: the first may wait for memory that nobody has touched."""
    seconds = []
    for _ in range(TIMES):
        torch.cuda.synchronize()
        began = time.monotonic()
        for name, buffer in buffers.items():
            buffer.copy_(state[name], non_blocking=True)
        torch.cuda.synchronize()
        seconds.append(time.monotonic() - began)
    return TENSORS / min(seconds)


def main() -> None:
    descriptor = os.memfd_create("slipway-checkpoint")
    ready, answer = forked_reader(descriptor)
    reserve(descriptor, whole_bytes(PLACES))
    shared = tensors_at(descriptor, PLACES)
    pin(shared)
    state = {place.name: torch.rand(place.shape, device="cuda") for place in PLACES}
    others = {
        kind: {name: torch.empty(value.shape, pin_memory=kind == "own") for name, value in state.items()} for kind in ("own", "pageable")
    }
    found = {kind: gib_per_second(buffers, state) for kind, buffers in ({"shared": shared} | others).items()}
    os.write(ready, b".")
    written = float(state[PLACES[-1].name][:1000].cpu().double().sum())
    print(json.dumps(found | {"written": written, "read": float(os.read(answer, 100))}))


main()
