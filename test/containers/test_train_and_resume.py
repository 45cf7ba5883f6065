"""The built-in trainer under the driver: two hosts train, are killed, and continue bit for bit."""

import json
import os
import signal
import time
import uuid
from pathlib import Path

import pytest

from fake_world import TINY, FakeWorld, direct_checkpoints, job_json, lose_gpu, with_gpus
from rank_world import events, run_ranks

pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.jobs]

STEPS = 12
#: Ranks of small models on a small machine; threads would only wait for each other.
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real text, the standard library's own sources, as token shards."""
    from slipway_trainer.tokenize.documents import documents
    from slipway_trainer.tokenize.shard_writer import ShardWriter, fingerprint, new_index
    from slipway_trainer.tokenize.tokenizers import ByteTokenizer

    folder = tmp_path_factory.mktemp("shards")
    text = Path(os.__file__).parent / "json"
    tokenizer = ByteTokenizer()
    files = sorted(text.glob("*.py"))
    writer = ShardWriter(folder, 0, new_index(tokenizer, fingerprint(files, text, tokenizer, 20_000)), 20_000)
    writer.write_all(documents(files, (0, 0), "text"), tokenizer)
    assert len(writer.index["shards"]) >= 2
    return folder


def training_job(checkpoints: Path, **changes: object) -> dict:
    job = job_json(
        launcher="torchrun",
        processesPerHost=1,
        entryPoint="builtin",
        arguments=["--learning-rate", "0.003", "--warmup-steps", "2", "--save-every-steps", "4"],
        distribution={"library": "fsdp", "collectives": "gloo", "parameters": {}},
        training={"sequenceLength": 64, "microBatchSize": 1, "globalBatchSize": 8, "steps": STEPS, "precision": "fp32",
                  "activationCheckpointing": "none", "activationOffload": False, "seed": 7},
        model=TINY,
        checkpoints=direct_checkpoints(checkpoints),
    )  # fmt: skip
    return job | changes


@pytest.fixture(scope="module")
def uninterrupted(shards: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[int, float]:
    root = tmp_path_factory.mktemp("uninterrupted")
    code, output = run_ranks(root, 2, training_job(root / "checkpoints"), {"train": shards})
    assert code == 0, output
    found = losses(output)
    assert sorted(found) == list(range(1, STEPS + 1))
    assert found[STEPS] < found[1]
    record = json.loads((root / "checkpoints/step-12/COMMITTED.json").read_text())
    assert record["worldSize"] == 2
    assert record["data"].items() >= {"seed": 7, "nextSample": 96}.items()
    assert [entry["key"] for entry in record["objects"]] == [".metadata", *(f"__{rank}_0.distcp" for rank in range(2))]
    return found


@pytest.mark.slow
def test_killed_ranks_and_killed_hosts_continue_bit_for_bit(shards: Path, tmp_path: Path, uninterrupted: dict[int, float]) -> None:
    """A rank dies as its GPU is lost: a spare host takes the place, all ranks start again from copies in memory. Then a host dies: the job
    ends, and a second one takes over from a checkpoint. It ends with a copy in memory."""
    slow = training_job(tmp_path / "checkpoints", restartsInPlace=2, spareInstances=1)
    slow["arguments"] = [*slow["arguments"], "--minimum-step-seconds", "0.2"]
    slow["checkpoints"] |= {"memory": {"everySteps": 1, "copies": 2}}
    first = FakeWorld(tmp_path / "first", 3, slow, name=own_name())
    first.add_channel("train", shards)
    first.start(ONE_THREAD | with_gpus(tmp_path))
    first.wait_for("algo-1", '"event":"step","step":6', seconds=600)
    lose_gpu(first, "algo-2")
    first.kill_rank("algo-2")
    first.wait_for("algo-1", '"event":"step","step":10', seconds=600)
    os.killpg(first.processes["algo-3"].pid, signal.SIGKILL)
    # The host that was set aside leaves with the others.
    assert first.wait(600) == [75, 75, -signal.SIGKILL], first.log("algo-1")
    assert first.failure("algo-1")["class"] == "peer-lost"
    begin, end = first.events("algo-1", "restart")
    assert (begin["replaced"], end["state"], end["source"]) == ({"algo-2": "algo-3"}, "end", "partner")
    assert end["lostSteps"] <= 2 and {"stop", "prepare", "rendezvous", "load", "first-step"} <= end["phases"].keys()
    assert first.events("algo-1", "resume")[0]["step"] >= 5
    assert losses(first.log("algo-1")).items() <= uninterrupted.items()

    resumed_from = tmp_path / "checkpoints/step-8"
    assert (resumed_from / "COMMITTED.json").exists()
    second = training_job(tmp_path / "checkpoints", attempt=2)
    second["checkpoints"] |= {"resumeFrom": str(resumed_from), "memory": {"everySteps": 1, "copies": 2}}
    last = FakeWorld(tmp_path / "second", 2, second, name=own_name())
    last.add_channel("train", shards)
    last.start(ONE_THREAD)
    assert last.wait(600) == [0, 0], last.log("algo-1")
    output = last.log("algo-1")
    assert events(output, "resume")[0]["step"] == 8
    assert losses(output) == {step: loss for step, loss in uninterrupted.items() if step > 8}


def own_name() -> str:
    """The driver's port follows from the job's name: tests that run beside each other on this machine must not meet."""
    return f"test-{uuid.uuid4().hex[:12]}-a001"


def losses(output: str) -> dict[int, float]:
    return {event["step"]: event["loss"] for event in events(output, "step")}


def test_sigterm_saves_and_asks_to_be_tried_again(shards: Path, tmp_path: Path) -> None:
    job = training_job(tmp_path / "checkpoints")
    job["arguments"] = ["--minimum-step-seconds", "0.3", "--save-every-steps", "1000"]
    job["training"]["steps"] = 1000
    world = FakeWorld(tmp_path / "world", 1, job, name=own_name())
    world.add_channel("train", shards)
    world.start(ONE_THREAD)
    world.wait_for("algo-1", '"event":"step","step":2', seconds=600)
    world.processes["algo-1"].send_signal(signal.SIGTERM)
    assert world.wait(600) == [75], world.log("algo-1")
    saved = world.events("algo-1", "checkpoint")
    assert len(saved) == 1
    assert (Path(saved[0]["uri"]) / "COMMITTED.json").exists()


def test_a_near_deadline_hands_over_after_a_checkpoint(shards: Path, tmp_path: Path) -> None:
    job = training_job(tmp_path / "checkpoints")
    job["arguments"] = ["--minimum-step-seconds", "0.3", "--save-every-steps", "1000"]
    job["training"]["steps"] = 1000
    code, output = run_ranks(tmp_path, 2, job, {"train": shards}, SLIPWAY_DEADLINE=str(time.time() + 3))
    assert code == 76, output
    assert len(events(output, "checkpoint")) == 1


def test_fails_with_72_when_a_shard_is_cut_short(shards: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    for path in shards.iterdir():
        (broken / path.name).write_bytes(path.read_bytes())
    next(broken.glob("*.bin")).write_bytes(b"ab")
    code, output = run_ranks(tmp_path, 1, training_job(tmp_path / "checkpoints"), {"train": broken})
    assert code == 72
    assert "another size than the index says" in output


def test_fails_with_77_that_prints_every_factor_of_a_wrong_layout_and_says_so_in_the_failure_file(shards: Path, tmp_path: Path) -> None:
    # One rank needs no launcher, which would import PyTorch once more.
    job = training_job(tmp_path / "checkpoints", launcher="script", env={"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"})
    job["training"]["microBatchSize"] = 3
    world = FakeWorld(tmp_path / "world", 1, job, name=own_name())
    world.add_channel("train", shards)
    world.start(ONE_THREAD)
    assert world.wait(600) == [77], world.log("algo-1")
    assert "microBatchSize 3 x 1 data-parallel ranks = 3, got 8" in world.failure("algo-1")["reason"]
