"""What a save costs the step that goes on beside it, while the process of the rank writes it. On one CPU rank.

    PYTHONPATH=containers/driver:containers/trainer .slipway/python/bin/python bench/trainer/saves.py [--mib 512] [--saves 5]

The step is the host's part of one on a GPU: small operations one after another, each of which needs the interpreter. A save holds the
interpreter while it makes bytes of tensors, computes digests and, to S3, encrypts. Printed is for how long a step was blocked, which is
neither computing nor waiting for a processor (/proc/self/schedstat), so that other work on the machine does not count.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist

from slipway_trainer.checkpoint.process import SaverProcess, Target
from slipway_trainer.checkpoint.saver import CheckpointSaver

TENSORS = 64
#: Operations of one step.
LAUNCHES = 2000


def on_processor() -> float:
    """Seconds for which this thread has computed, or waited for a processor."""
    computed, waited, _slices = Path("/proc/thread-self/schedstat").read_text().split()
    return (int(computed) + int(waited)) / 1e9


def step(tensor: torch.Tensor) -> float:
    """Milliseconds for which one step was blocked."""
    began, before = time.perf_counter(), on_processor()
    for _ in range(LAUNCHES):
        tensor.add_(1.0)
    return 1e3 * max(0.0, (time.perf_counter() - began) - (on_processor() - before))


def steps_beside_saves(saver: CheckpointSaver, state: dict[str, torch.Tensor], saves: int) -> list[float]:
    """The steps that were computed while saves were written."""
    tensor, found = torch.zeros(16), []
    for number in range(1, saves + 1):
        saver.start(number, state, {"step": number})
        while saver.finished() is None:
            found.append(step(tensor))
    return found


def measure(process: SaverProcess, mebibytes: int, saves: int) -> None:
    """Prints what steps without a save and beside one were blocked for."""
    folder = Path(tempfile.mkdtemp(prefix="saves-"))
    try:
        saver = CheckpointSaver(Target(str(folder), "", 2), dist.new_group(backend="gloo"), False, process)
        state = {f"w{number}": torch.rand((mebibytes << 20) // 4 // TENSORS) for number in range(TENSORS)}
        saver.prepare(state)
        alone = [step(torch.zeros(16)) for _ in range(50)]
        beside = steps_beside_saves(saver, state, saves)
        saver.close()
    finally:
        shutil.rmtree(folder)
    for name, found in (("no save", alone), ("beside a save", beside)):
        print(f"{name}: {len(found)} steps, blocked {statistics.mean(found):.2f} ms each, {max(found):.1f} ms the worst")


def main() -> None:
    """Measures steps without a save and beside one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--saves", type=int, default=5)
    given = parser.parse_args()
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port)}
    process = SaverProcess.start()
    dist.init_process_group("gloo", rank=0, world_size=1, store=store)
    measure(process, given.mib, given.saves)


if __name__ == "__main__":
    main()
