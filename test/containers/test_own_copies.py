"""A script with its own training loop keeps its state in memory, and a restart in place continues from there, bit for bit."""

import json
import uuid
from pathlib import Path

import pytest
import slipway_helper
import torch

from fake_world import FakeWorld, direct_checkpoints, job_json, with_gpus, with_quick_torchrun
from forked import run_forked

pytestmark = pytest.mark.jobs

#: Twelve steps of a sharded model with a schedule and a generator. A rank is killed in each of the first two rounds, in the second one by
#: a GPU that is lost.
SCRIPT = """
import hashlib, json, os, signal, sys
import torch, torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
import slipway_helper as slipway

dist.init_process_group("gloo")
rank, round = dist.get_rank(), int(os.environ.get("SLIPWAY_RESTART", "0"))
torch.manual_seed(7)
model = torch.nn.Sequential(torch.nn.Linear(16, 33), torch.nn.ReLU(), torch.nn.Linear(33, 3))
for layer in (model[0], model[2], model):
    fully_shard(layer, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [3, 6, 10], 0.7)


class Numbers:
    def __init__(self):
        self.generator = torch.Generator().manual_seed(100 + rank)

    def state_dict(self):
        return {"generator": self.generator.get_state()}

    def load_state_dict(self, state):
        self.generator.set_state(state["generator"])


numbers = Numbers()
copies = slipway.keep_in_memory(model, optimizer, schedule=schedule, numbers=numbers)
start = copies.load() or 0
print("starts at", start, "in round", round, flush=True)
for step in range(start + 1, 13):
    loss = model(torch.randn(4, 16, generator=numbers.generator)).square().sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    schedule.step()
    if rank == 0:
        slipway.step(step, loss=loss)
    copies.step(step)
    copies.wait()
    if (step, round, os.environ["SM_CURRENT_HOST"]) == (8, 0, "algo-2"):
        os.kill(os.getpid(), signal.SIGKILL)
    if (step, round, os.environ["SM_CURRENT_HOST"]) == (10, 1, "algo-1"):
        open(os.environ["SAGEMAKER_BASE_DIR"] + "/gpus", "w").write("0, 0\\n")
        os.kill(os.getpid(), signal.SIGKILL)
copies.close()
parts = [part.to_local() for part in model.parameters()]
parts += [value.to_local() for state in optimizer.state.values() for value in state.values() if hasattr(value, "to_local")]
digest = hashlib.sha256(b"".join(part.detach().numpy().tobytes() for part in parts)).hexdigest()
print("digest", rank, digest, schedule.get_last_lr(), flush=True)
dist.barrier()
"""


def digests_in(text: str) -> "set[str]":
    """What the ranks print at their end, without the label."""
    return {line.split("digest ")[1] for line in text.splitlines() if "digest " in line}


def undisturbed(root: Path) -> "set[str]":
    """The digests of ranks without Slipway, which keep no copies: taking them must change nothing."""
    root.mkdir()
    (root / "train.py").write_text(SCRIPT)
    assert run_forked(root, 2, {"SM_CURRENT_HOST": "this machine"}, [], script=str(root / "train.py")) == [0, 0]
    return digests_in((root / "0.out").read_text() + (root / "1.out").read_text())


def test_a_killed_rank_continues_from_the_copy_of_its_host_and_a_replaced_host_from_that_of_the_other_one(tmp_path: Path) -> None:
    # One job for both: each start of a rank takes five seconds of processor time.
    checkpoints = direct_checkpoints(tmp_path / "none", memory={"everySteps": 2, "copies": 2})
    job = job_json(launcher="torchrun", restartsInPlace=3, checkpoints=checkpoints, spareInstances=1)
    world = FakeWorld(tmp_path / "world", 3, job, {"train.py": SCRIPT}, name=f"own-{uuid.uuid4().hex[:12]}")
    world.start({**with_gpus(tmp_path), **with_quick_torchrun(tmp_path), "OMP_NUM_THREADS": "1"})
    assert world.wait() == [0, 0, 0], "\n".join(world.log(host) for host in world.hosts)
    found = digests_in("\n".join(world.log(host) for host in world.hosts))
    assert len(found) == 2 and found == undisturbed(tmp_path / "undisturbed")
    assert "starts at 8 in round 1" in world.log("algo-1") and "starts at 10 in round 2" in world.log("algo-3")
    ends = [event for event in world.events("algo-1", "restart") if event["state"] == "end"]
    assert [(end["source"], end["lostSteps"]) for end in ends] == [("memory", 0), ("partner", 0)]


def test_without_a_common_copy_the_state_is_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch completes the state of an optimizer by a step, which must not count."""
    file = tmp_path / "memory"
    file.write_bytes(b"of another layout")
    job = {"runId": "a", "attempt": 1, "configHash": "", "digests": {"code": None}, "checkpoints": {"memory": {"everySteps": 1}}}
    (tmp_path / "job.json").write_text(json.dumps(job))
    for name, value in {"SLIPWAY_MEMORY": file, "SLIPWAY_JOB_FILE": tmp_path / "job.json", "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1}.items():
        monkeypatch.setenv(name, str(value))
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    try:
        other = torch.nn.Linear(3, 2)
        with pytest.raises(ValueError, match="replicas must divide the 1 ranks, got 2"):
            slipway_helper.keep_in_memory(other, None, replicas=2)
        copies = slipway_helper.keep_in_memory(other, torch.optim.AdamW(other.parameters()), odd=Odd())
        with pytest.raises(ValueError, match="odd/what must be a tensor, a number, a text or a list of them, got object"):
            copies.load()
        model = torch.nn.Linear(3, 2)
        optimizer = torch.optim.AdamW(model.parameters())
        copies = slipway_helper.keep_in_memory(model, optimizer)
        assert copies.load() is None and not optimizer.state
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
        copies.step(1)
        copies.wait()
        wanted = model.weight.detach().clone()
        with torch.no_grad():
            model.weight.zero_()
        assert copies.load(newer_than=2) is None
        assert not model.weight.any(), "an older copy than the checkpoint does not count"
        copies.step(2)
        copies.wait()
        model.weight.data.copy_(wanted)
        assert copies.load() == 2 and not model.weight.any()
        copies.close()
    finally:
        torch.distributed.destroy_process_group()


class Odd:
    def state_dict(self) -> "dict[str, object]":
        return {"what": object()}


def test_outside_slipway_nothing_is_kept() -> None:
    copies = slipway_helper.keep_in_memory(None, None)
    assert copies.load() is None
    copies.step(1)
    copies.close()
