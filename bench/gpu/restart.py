"""A restart in place of two hosts of the trainer on one GPU, under the real drivers."""

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from case import Case, Found
from machine import Machine, lacks_gpu

if TYPE_CHECKING:
    from fake_world import FakeWorld

STEPS, KILLED_AT = 30, 10


def restart_in_place(_machine: Machine, folder: Path) -> Found:
    world, seconds = _restarted(folder)
    return Found(f"codes {world.wait(300)}; resumed {seconds:.1f} s after SIGKILL", _is_done(world))


def restart_from_memory(_machine: Machine, folder: Path) -> Found:
    """The copy is taken beside the kernels of the next step, and must be of one step."""
    world, seconds = _restarted(folder, memory={"everySteps": 1, "copies": 2})
    codes = world.wait(300)
    (resumed,), saved = world.events("algo-1", "resume"), world.events("algo-1", "memory-save")
    lost = KILLED_AT - resumed["step"]
    losses = [event["loss"] for event in world.events("algo-1", "step") if event["step"] > resumed["step"]]
    # Steps that were made twice have the same loss both times.
    again = losses[: len(losses) - (STEPS - resumed["step"])]
    same = again == losses[len(again) : 2 * len(again)]
    blocked = ", ".join(f"{1000 * save['blockedSeconds']:.1f} ms" for save in saved)
    text = f"codes {codes}; resumed {seconds:.1f} s after SIGKILL from {resumed['source']}, {lost} steps lost; copies blocked {blocked}"
    return Found(text, _is_done(world) and resumed["source"] == "memory" and same)


def _restarted(folder: Path, memory: "dict[str, int] | None" = None) -> "tuple[FakeWorld, float]":
    """The world of a run after the restart, and the seconds until it resumed."""
    from fake_world import FakeWorld
    from rank_world import trainer_job, write_shards

    shards = write_shards(folder / "shards")
    checkpoints = {"mode": "direct", "uri": str(folder / "checkpoints"), "resumeFrom": "", "keep": 3, "intervalMinutes": "auto"}
    slow = ["--save-every-steps", "2", "--minimum-step-seconds", "0.2"]
    job = trainer_job(
        training={"steps": STEPS}, checkpoints=checkpoints | {"memory": memory}, arguments=slow, parameters={"compile": False}
    )
    job |= {"launcher": "torchrun", "restartsInPlace": 1, "distribution": job["distribution"] | {"collectives": "nccl"}}
    world = FakeWorld(folder / "hosts", 2, job)
    world.add_channel("train", shards)
    for host in world.hosts:
        world.start({"NCCL_HOSTID": host, "NCCL_IB_DISABLE": "1", "CUDA_VISIBLE_DEVICES": "0"}, only=[host])
    world.wait_for("algo-1", f'"step":{KILLED_AT},')
    began = time.monotonic()
    os.kill(_rank_of(world.processes["algo-2"].pid), signal.SIGKILL)
    world.wait_for("algo-1", '"event":"resume"')
    return world, time.monotonic() - began


def _is_done(world: "FakeWorld") -> bool:
    return [process.returncode for process in world.processes.values()] == [0, 0] and world.events("algo-1", "step")[-1]["step"] == STEPS


def _rank_of(driver: int) -> int:
    """The rank below a driver: the innermost process that leads a session."""
    leaders = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _descends(pid, driver) and os.getsid(pid) == pid]
    return max(leaders, key=_depth)


def _depth(pid: int) -> int:
    return 0 if pid <= 1 else 1 + _depth(_parent(pid))


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def _descends(pid: int, ancestor: int) -> bool:
    try:
        while pid > 1 and pid != ancestor:
            pid = _parent(pid)
    except (OSError, IndexError):
        return False
    return pid == ancestor


CASES = (
    Case("restart in place of two hosts on one GPU", "the run ends after its last step", lacks_gpu, restart_in_place),
    Case("the same from copies in memory", "continues from memory with the same losses", lacks_gpu, restart_from_memory),
)
