"""A restart in place of two hosts of the trainer on one GPU, under the real drivers."""

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


def checkpoints_from_copies(_machine: Machine, folder: Path) -> Found:
    """Checkpoints follow each other in 1.2 s; the last one is that of the exact step, for which training waits."""
    world = _world(folder, {"everySteps": 1, "copies": 2}, interval_minutes=0.02)
    codes = world.wait(300)
    saved = world.events("algo-1", "checkpoint")
    blocked = [f"{1000 * save['secondsBlocked']:.1f} ms" for save in saved]
    text = f"codes {codes}; {len(saved)} checkpoints; blocked {', '.join(blocked[:-1])}, and for the last one {''.join(blocked[-1:])}"
    return Found(text, _is_done(world) and len(saved) > 2)


def _restarted(folder: Path, memory: "dict[str, int] | None" = None) -> "tuple[FakeWorld, float]":
    """The world of a run after the restart, and the seconds until it resumed."""
    world = _world(folder, memory)
    world.wait_for("algo-1", f'"step":{KILLED_AT},')
    began = time.monotonic()
    world.kill_rank("algo-2")
    world.wait_for("algo-1", '"event":"resume"')
    return world, time.monotonic() - began


def _world(folder: Path, memory: "dict[str, int] | None", interval_minutes: "float | None" = None) -> "FakeWorld":
    """A run on two hosts; checkpoints every other step, or after so many minutes."""
    from fake_world import FakeWorld
    from rank_world import trainer_job, write_shards

    shards = write_shards(folder / "shards")
    checkpoints = {"mode": "direct", "uri": str(folder / "checkpoints"), "resumeFrom": "", "keep": 3}
    checkpoints["intervalMinutes"] = interval_minutes or "auto"
    slow = [*([] if interval_minutes else ["--save-every-steps", "2"]), "--minimum-step-seconds", "0.2"]
    job = trainer_job(
        training={"steps": STEPS}, checkpoints=checkpoints | {"memory": memory}, arguments=slow, parameters={"compile": False}
    )
    job |= {"launcher": "torchrun", "restartsInPlace": 1, "distribution": job["distribution"] | {"collectives": "nccl"}}
    world = FakeWorld(folder / "hosts", 2, job)
    world.add_channel("train", shards)
    for host in world.hosts:
        world.start({"NCCL_HOSTID": host, "NCCL_IB_DISABLE": "1", "CUDA_VISIBLE_DEVICES": "0"}, only=[host])
    return world


def _is_done(world: "FakeWorld") -> bool:
    return [process.returncode for process in world.processes.values()] == [0, 0] and world.events("algo-1", "step")[-1]["step"] == STEPS


CASES = (
    Case("restart in place of two hosts on one GPU", "the run ends after its last step", lacks_gpu, restart_in_place),
    Case("the same from copies in memory", "continues from memory with the same losses", lacks_gpu, restart_from_memory),
    Case("checkpoints from copies in memory", "are complete; how long they block is measured", lacks_gpu, checkpoints_from_copies),
)
