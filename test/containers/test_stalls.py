"""A step that does not end: the state before it is saved by all ranks or by none, and nothing that was done is lost."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fake_world import direct_checkpoints
from rank_world import events, run_ranks, trainer_job, write_shards

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.jobs]

from slipway_trainer.stalls import Ballot, StallWatch, compiling  # noqa: E402


def asked(ranks: int, votes: int, seconds: float, late: float = 0.0) -> list[bool]:
    """The answers of `votes` of `ranks`; the last one asks `late` seconds after the others."""
    store = torch.distributed.HashStore()

    def vote(number: int) -> bool:
        time.sleep(late if number == votes - 1 else 0.0)
        return Ballot(store, number, ranks, seconds).unanimous("stall/5")

    with ThreadPoolExecutor(votes) as pool:
        return list(pool.map(vote, range(votes)))


def test_all_save_or_none() -> None:
    assert asked(3, 3, 10.0) == [True, True, True]
    assert asked(3, 2, 0.1) == [False, False], "a rank that is frozen never asks"


@pytest.mark.parametrize("late", [0.0, 0.2, 0.25, 0.3, 0.6])
def test_a_rank_that_asks_as_another_gives_up_gets_the_same_answer(late: float) -> None:
    assert len(set(asked(2, 2, 0.25, late))) == 1


class FakeSaves:
    """`sound`: whether this rank's copies are; `kept`: the step of the newest copy in memory."""

    def __init__(self, sound: bool = True, kept: int | None = None) -> None:
        self.begun: list[int] = []
        self.written: list[int] = []
        self.standing: int | None = 7
        self.collected = threading.Event()
        self.kept, self._sound = kept, sound
        self.on_collect: Callable[[], None] = lambda: None

    def standing_step(self) -> int | None:
        return self.standing

    def kept_step(self) -> int | None:
        return self.kept

    def copied_step(self) -> int | None:
        return self.kept

    def begin_stalled(self, step: int, agreed: Callable[[bool], bool]) -> bool:
        self.begun.append(step)
        if agreed(self._sound):
            self.written.append(step)
        return step in self.written

    def collect(self) -> None:
        self.on_collect()
        self.collected.set()

    def complete(self) -> None:
        self.kept = self.written[-1] if self.written else self.kept


def test_a_rank_that_compiles_is_told_from_one_that_runs_compiled_code() -> None:
    seen: list[bool] = []

    def compiled(graph: torch.fx.GraphModule, inputs: object) -> torch.fx.GraphModule:
        with ThreadPoolExecutor(1) as watch:
            seen.append(watch.submit(compiling).result())
        return graph

    @torch._dynamo.disable
    def run(values: torch.Tensor) -> torch.Tensor:
        seen.append(compiling())
        return values

    function = torch.compile(lambda values: run(values + 1) * 2, backend=compiled)
    function(torch.ones(3))
    assert seen == [True, False, True]
    seen.clear()
    function(torch.ones(3))
    assert seen == [False]


def alone() -> Ballot:
    return Ballot(torch.distributed.HashStore(), 0, 1)


def watch_of(
    saves: FakeSaves, ballot: Ballot, patience: Callable[[], float], may_end: bool = True, ended: list[tuple[int, list[int]]] | None = None
) -> StallWatch:
    """`ended`: the steps after which the watch gives up."""
    gave_up = ended if ended is not None else []
    give_up = lambda step, silent: gave_up.append((step, list(silent)))  # noqa: E731
    return StallWatch(saves, ballot, patience, lambda: may_end, give_up, poll_seconds=0.01)


def test_a_step_that_stands_still_is_saved_once_and_the_save_is_reported() -> None:
    saves = FakeSaves()
    watch = watch_of(saves, alone(), lambda: 0.05)
    watch.ended()
    assert saves.collected.wait(10)
    watch.close()
    assert saves.begun == saves.written == [7]


def on_two_ranks(*saves: FakeSaves) -> None:
    """Both see the stall at once, and report afterwards."""
    store = torch.distributed.HashStore()
    watches = [watch_of(one, Ballot(store, rank, 2, 0.5), lambda: 0.05) for rank, one in enumerate(saves)]
    for watch in watches:
        watch.ended()
    for one, watch in zip(saves, watches, strict=True):
        assert one.collected.wait(10)
        watch.close()


class Rank:
    """A watch that sees a stall at once. `saving`: whether its save becomes complete."""

    def __init__(self, ballot: Ballot, kept: int | None = None, saving: bool = True, may_end: bool = True) -> None:
        self.gave_up: list[tuple[int, list[int]]] = []
        self.saves = FakeSaves(kept=kept)
        self.saves.on_collect = (lambda: self.saves.complete()) if saving else (lambda: None)
        self.watch = watch_of(self.saves, ballot, lambda: 0.05, may_end, self.gave_up)

    def wait(self, until: Callable[[], bool], seconds: float = 10.0) -> bool:
        """Waits until something holds; whether it came to."""
        deadline = time.monotonic() + seconds
        while not until() and time.monotonic() < deadline:
            time.sleep(0.01)
        return until()


def stalled(*ranks: dict[str, object], of: int | None = None) -> list[Rank]:
    """Ranks with these parts, whose step does not end; `of`: how many there are with those that are frozen."""
    store = torch.distributed.HashStore()
    found = [Rank(Ballot(store, number, of or len(ranks), 0.5), **rank) for number, rank in enumerate(ranks)]  # type: ignore[arg-type]
    for rank in found:
        rank.watch.ended()
    return found


def test_ranks_end_when_the_state_before_the_stall_is_saved() -> None:
    ranks = stalled({}, {})
    assert all(rank.wait(lambda rank=rank: rank.gave_up == [(7, [])]) for rank in ranks)
    assert all(rank.saves.written == [7] for rank in ranks)


def test_ranks_end_without_a_save_when_all_have_a_copy_in_memory() -> None:
    ranks = stalled({"kept": 7}, {"kept": 7})
    assert all(rank.wait(lambda rank=rank: rank.gave_up == [(7, [])]) for rank in ranks)
    assert all(rank.saves.begun == [] for rank in ranks)


def test_the_state_is_saved_when_the_copy_of_one_rank_is_older() -> None:
    ranks = stalled({"kept": 7}, {"kept": 6})
    assert all(rank.wait(lambda rank=rank: rank.gave_up == [(7, [])]) for rank in ranks)
    assert all(rank.saves.written == [7] for rank in ranks)


@pytest.mark.parametrize("kept", [6, 7])
def test_ranks_do_not_wait_for_a_frozen_one_when_they_have_copies(kept: int) -> None:
    rank, other = stalled({"kept": kept}, {"kept": kept}, of=4)
    assert rank.wait(lambda: rank.gave_up == [(7, [2, 3])])
    assert other.wait(lambda: len(other.gave_up) == 1)
    assert rank.saves.begun == []


@pytest.mark.parametrize(
    ("ranks", "of"),
    [
        ([{"kept": 7}, {"kept": 7, "may_end": False}], 2),
        ([{"kept": 7, "may_end": False}], 2),
        ([{}], 2),
        ([{}, {"saving": False}], 2),
    ],
    ids=["data may come", "data may come, and a rank is frozen", "a rank is frozen, and there are no copies", "a save is not complete"],
)
def test_ranks_wait_for_the_timeout_when(ranks: list[dict[str, object]], of: int) -> None:
    found = stalled(*ranks, of=of)
    time.sleep(1.5)
    for rank in found:
        rank.watch.close()
    assert [rank.gave_up for rank in found] == [[]] * len(found)


def test_nothing_is_written_when_one_rank_has_moved_on_while_it_copied() -> None:
    sound, torn = FakeSaves(), FakeSaves(sound=False)
    on_two_ranks(sound, torn)
    assert sound.begun == torn.begun == [7]
    assert sound.written == torn.written == []


def test_nothing_is_copied_when_ranks_stand_at_different_steps() -> None:
    """A collective that came through on one rank only: its update has been made there and nowhere else."""
    behind, ahead = FakeSaves(), FakeSaves()
    ahead.standing = 8
    on_two_ranks(behind, ahead)
    assert behind.begun == ahead.begun == []


def test_nothing_is_saved_while_an_update_is_computed() -> None:
    saves = FakeSaves()
    saves.standing = None
    watch = watch_of(saves, alone(), lambda: 0.0)
    watch.ended()
    assert saves.collected.wait(10)
    saves.standing = 7
    while not saves.written:
        time.sleep(0.01)
    watch.close()
    assert saves.written == [7]


def test_nothing_is_saved_while_the_state_changes_or_steps_end_in_time() -> None:
    saves = FakeSaves()
    patience = [60.0]
    watch = watch_of(saves, alone(), lambda: patience[0])
    watch.ended()
    with watch.still:
        patience[0] = 0.0
        time.sleep(0.1)
        # The step ends before the thread that waits for the lock can look again.
        patience[0] = 60.0
        watch.ended()
    watch.close()
    assert saves.begun == []


def test_what_comes_between_steps_is_no_stall() -> None:
    saves, in_phase = FakeSaves(), [True]
    watch = watch_of(saves, alone(), lambda: 60.0 if in_phase[0] else 0.5)
    watch.ended()
    time.sleep(0.6)
    watch.go_on()
    in_phase[0] = False
    time.sleep(0.1)
    watch.close()
    assert saves.begun == []


def test_training_goes_on_when_the_watch_has_failed(capsys: pytest.CaptureFixture[str]) -> None:
    class Refusing(FakeSaves):
        def begin_stalled(self, step: int, agreed: Callable[[bool], bool]) -> bool:
            super().begin_stalled(step, agreed)
            raise OSError("no space left on device")

    saves = Refusing()
    watch = watch_of(saves, alone(), lambda: 0.0)
    watch.ended()
    while not saves.begun:
        time.sleep(0.01)
    time.sleep(0.1)
    watch.ended()
    time.sleep(0.1)
    assert saves.begun == [7] and not watch.still.locked()
    assert "could not be saved: no space left on device" in capsys.readouterr().out


#: The last rank's data do not come at step 6; its other threads go on.
STALLED_DATA = """
import os, time
from slipway_trainer.batches import Prefetch
real = Prefetch.micro_batch
def micro_batch(self, step, micro_step, device):
    if step == 5 and os.environ["RANK"] == "1" and "STALL" in os.environ:
        time.sleep(7)
        os._exit(70)
    return real(self, step, micro_step, device)
Prefetch.micro_batch = micro_batch
"""


#: The last rank's tracker does not answer after step 5.
STALLED_TRACKER = """
import os, time
from slipway_trainer import results
real = results.StepResults.take
def take(self, launched, found, seconds):
    if launched.step == 5 and os.environ["RANK"] == "1" and "STALL" in os.environ:
        time.sleep(7)
        os._exit(70)
    return real(self, launched, found, seconds)
results.StepResults.take = take
"""


@pytest.mark.parametrize("patch", [STALLED_DATA, STALLED_TRACKER], ids=["data", "tracker"])
def test_a_run_whose_collective_hangs_goes_on_from_its_last_step(tmp_path: Path, patch: str) -> None:
    (tmp_path / "stalled_data.py").write_text(patch)
    shards = {"train": write_shards(tmp_path / "shards")}
    patched = {"patch": str(tmp_path / "stalled_data.py")}
    checkpoints = direct_checkpoints(tmp_path / "checkpoints")
    timeouts = ["--save-every-steps", "1000", "--collective-timeout-seconds", "6", "--steady-timeout-seconds", "0"]
    job = trainer_job(training={"steps": 8}, arguments=timeouts, checkpoints=checkpoints)
    code, output = run_ranks(tmp_path / "first", 2, job, shards, STALL="1", **patched)
    assert code != 0
    assert "step 6 is stalled: saving the state after step 5" in output
    assert [event["step"] for event in events(output, "checkpoint")] == [5]
    assert events(output, "stall") == [], "what the rank waits for may come"
    assert (tmp_path / "checkpoints/step-5/COMMITTED.json").exists()

    code, resumed = run_ranks(tmp_path / "second", 2, job, shards, **patched)
    assert code == 0, resumed
    assert [event["step"] for event in events(resumed, "resume")] == [5]
    fresh = trainer_job(training={"steps": 8}, arguments=timeouts)
    code, whole = run_ranks(tmp_path / "whole", 2, fresh, shards, **patched)
    assert code == 0, whole
    losses = {event["step"]: event["loss"] for event in events(whole, "step")}
    assert {event["step"]: event["loss"] for text in (output, resumed) for event in events(text, "step")} == losses


#: The last rank does not come out of the evaluation after step 4.
STALLED_EVALUATION = """
import os, time
from slipway_trainer import trainer
real = trainer.evaluation_loss
def evaluation_loss(backend, evaluation, settings, world, on_batch):
    if os.environ["RANK"] == "1":
        time.sleep(7)
        os._exit(70)
    return real(backend, evaluation, settings, world, on_batch)
trainer.evaluation_loss = evaluation_loss
"""


@pytest.mark.slow
def test_a_run_that_hangs_in_an_evaluation_has_saved_the_step_before(tmp_path: Path) -> None:
    (tmp_path / "stalled_evaluation.py").write_text(STALLED_EVALUATION)
    shards = {"train": write_shards(tmp_path / "shards"), "validation": write_shards(tmp_path / "more", seed=2)}
    checkpoints = direct_checkpoints(tmp_path / "checkpoints")
    words = ["--save-every-steps", "1000", "--collective-timeout-seconds", "6", "--steady-timeout-seconds", "0"]
    evaluates = ["--eval-channel", "validation", "--eval-every-steps", "4"]
    job = trainer_job(training={"steps": 8}, arguments=[*words, *evaluates], checkpoints=checkpoints)
    code, output = run_ranks(tmp_path / "run", 2, job, shards, patch=str(tmp_path / "stalled_evaluation.py"))
    assert code != 0
    assert "saving the state after step 4" in output
    assert (tmp_path / "checkpoints/step-4/COMMITTED.json").exists()
