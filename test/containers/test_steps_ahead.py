"""The loop of a GPU on a CPU: the host launches a step before it reads what came of the one before."""

from pathlib import Path

import pytest

from fake_world import direct_checkpoints
from rank_world import events, run_ranks, trainer_job, write_shards

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.jobs]

#: `TROUBLE=<kind>:<step>` befalls the last rank when it launches that step.
AHEAD = """
import os, signal, time
from slipway_trainer import trainer
from slipway_trainer.batches import Prefetch

begin = trainer.Trainer.__init__
def begin_ahead(self, *arguments):
    begin(self, *arguments)
    self.ahead = 1
trainer.Trainer.__init__ = begin_ahead

accumulate = trainer.Trainer._accumulate
def troubled(self):
    kind, _, step = os.environ.get("TROUBLE", "").partition(":")
    mine = kind and os.environ["RANK"] == "1" and self.step + 1 == int(step)
    if mine and kind == "stall":
        time.sleep(7)
        os._exit(70)
    if mine and kind == "leave":
        os.kill(os.getpid(), signal.SIGTERM)
    loss, seconds = accumulate(self)
    return (loss * float("nan") if mine and kind == "nan" else loss), seconds
trainer.Trainer._accumulate = troubled
"""
STEPS = 8


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """What every run here shares; `patch` makes the loop one that reads late."""
    folder = tmp_path_factory.mktemp("ahead")
    (folder / "steps_ahead.py").write_text(AHEAD)
    return {"channels": {"train": write_shards(folder / "train")}, "patch": str(folder / "steps_ahead.py")}


def run(world: dict, folder: Path, checkpoints: Path | None, *arguments: str, **environ: str) -> tuple[int, str]:
    places = direct_checkpoints(checkpoints)
    timeouts = ["--collective-timeout-seconds", "6", "--steady-timeout-seconds", "0"]
    job = trainer_job(training={"steps": STEPS}, arguments=[*timeouts, *arguments], **({"checkpoints": places} if checkpoints else {}))
    return run_ranks(folder, 2, job, **world, **environ)


@pytest.fixture(scope="module")
def whole(world: dict, tmp_path_factory: pytest.TempPathFactory) -> list[float]:
    """Losses of the run that nothing befalls, read at once."""
    plain = world | {"patch": ""}
    code, output = run(plain, tmp_path_factory.mktemp("whole"), None)
    assert code == 0, output
    return losses(output)


def losses(output: str) -> list[float]:
    return [event["loss"] for event in events(output, "step")]


def steps(output: str, kind: str = "step") -> list[int]:
    return [event["step"] for event in events(output, kind)]


def test_every_step_is_said_once_with_its_own_loss(world: dict, tmp_path: Path, whole: list[float]) -> None:
    code, output = run(world, tmp_path, tmp_path / "checkpoints", "--save-every-steps", "3")
    assert code == 0, output
    assert losses(output) == whole
    assert steps(output) == list(range(1, STEPS + 1))
    assert steps(output, "checkpoint") == [3, 6, 8]


def test_a_request_to_leave_saves_the_newest_step_and_the_run_goes_on_from_it(world: dict, tmp_path: Path, whole: list[float]) -> None:
    checkpoints = tmp_path / "checkpoints"
    code, output = run(world, tmp_path / "first", checkpoints, "--save-every-steps", "1000", TROUBLE="leave:4")
    assert code == 75, output
    # Asked with step 4, read after step 5 was launched.
    assert steps(output, "checkpoint") == [5] and steps(output) == [1, 2, 3, 4, 5]
    code, resumed = run(world, tmp_path / "second", checkpoints, "--save-every-steps", "1000")
    assert code == 0, resumed
    assert losses(output) + losses(resumed) == whole


def test_a_loss_that_is_not_finite_ends_the_run_and_reaches_no_checkpoint(world: dict, tmp_path: Path, whole: list[float]) -> None:
    checkpoints = tmp_path / "checkpoints"
    code, output = run(world, tmp_path / "first", checkpoints, "--save-every-steps", "4", TROUBLE="nan:4")
    assert code == 73, output
    assert "step 4: loss nan" in output
    assert losses(output) == whole[:3]
    assert not list(checkpoints.rglob("COMMITTED.json"))


@pytest.mark.slow
def test_a_stalled_step_behind_one_that_nobody_has_read_is_saved(world: dict, tmp_path: Path, whole: list[float]) -> None:
    checkpoints = tmp_path / "checkpoints"
    code, output = run(world, tmp_path / "first", checkpoints, "--save-every-steps", "1000", TROUBLE="stall:6")
    assert code != 0
    assert "step 6 is stalled: saving the state after step 5" in output
    assert losses(output) == whole[:4], "nobody had read step 5 when its follower hung"
    code, resumed = run(world, tmp_path / "second", checkpoints, "--save-every-steps", "1000")
    assert code == 0, resumed
    assert losses(resumed) == whole[5:]
