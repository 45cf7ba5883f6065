"""A restart in place of two hosts of the trainer on one GPU, under the real drivers."""

import os
import signal
import time
from pathlib import Path

from case import Case, Found
from machine import Machine, lacks_gpu

STEPS, KILLED_AT = 30, 10


def restart_in_place(_machine: Machine, folder: Path) -> Found:
    from fake_world import FakeWorld
    from rank_world import events, trainer_job, write_shards

    shards = write_shards(folder / "shards")
    checkpoints = {"mode": "direct", "uri": str(folder / "checkpoints"), "resumeFrom": "", "keep": 3, "intervalMinutes": "auto"}
    slow = ["--save-every-steps", "2", "--minimum-step-seconds", "0.2"]
    job = trainer_job(training={"steps": STEPS}, checkpoints=checkpoints, arguments=slow, parameters={"compile": False})
    job |= {"launcher": "torchrun", "restartsInPlace": 1, "distribution": job["distribution"] | {"collectives": "nccl"}}
    world = FakeWorld(folder / "hosts", 2, job)
    world.add_channel("train", shards)
    for host in world.hosts:
        world.start({"NCCL_HOSTID": host, "NCCL_IB_DISABLE": "1", "CUDA_VISIBLE_DEVICES": "0"}, only=[host])
    world.wait_for("algo-1", f'"step":{KILLED_AT},')
    began = time.monotonic()
    os.kill(_rank_of(world.processes["algo-2"].pid), signal.SIGKILL)
    world.wait_for("algo-1", '"event":"resume"')
    seconds = time.monotonic() - began
    codes = world.wait(300)
    steps = [event["step"] for event in events(world.log("algo-1"), "step")]
    return Found(f"codes {codes}; resumed {seconds:.1f} s after SIGKILL", codes == [0, 0] and steps[-1] == STEPS)


def _rank_of(driver: int) -> int:
    """The trainer's process below a driver."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and _descends(int(entry.name), driver):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if b"slipway_trainer" in words and b"torchrun" not in b" ".join(words):
                return int(entry.name)
    raise RuntimeError("a rank must run below the driver, got none")


def _descends(pid: int, ancestor: int) -> bool:
    while pid > 1:
        if pid == ancestor:
            return True
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError):
            return False
    return False


CASES = (Case("restart in place of two hosts on one GPU", "the run ends after its last step", lacks_gpu, restart_in_place),)
