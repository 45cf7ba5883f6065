"""The process beside a rank that writes its checkpoints: training goes on meanwhile, and each ends with the other as it should."""

import os
import select
from pathlib import Path

import pytest

from fake_world import direct_checkpoints
from forked import run_forked
from rank_world import events, run_ranks, trainer_job, write_shards

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.jobs]

from slipway_trainer.checkpoint.committed import newest_complete  # noqa: E402
from slipway_trainer.checkpoint.shared_state import Place, places_of, reserve, tensors_at, whole_bytes  # noqa: E402
from slipway_trainer.checkpoint.store import FolderStore  # noqa: E402

STEPS = 8
#: `TROUBLE` befalls the last rank. The process that writes is forked after this file was read, and follows it too.
PATCH = """
import os, signal, time
from pathlib import Path
from slipway_trainer import trainer
from slipway_trainer.checkpoint import writing

trouble, place = os.environ.get("TROUBLE"), Path(os.environ["SM_MODEL_DIR"]).parent
begin = trainer.Trainer._one_step
def one_step(self):
    if trouble == "slow save" and self.step == 5:
        # The save of step 3 waits for this step: neither would end if this step waited for it.
        (place / "step-6-begins").touch()
    if trouble == "killed between saves" and self.step == 2 and self.world.rank == 1:
        while self._saves.newest_step != 2:
            self._saves.collect()
        os.kill(self.world.saver.pid, signal.SIGKILL)
        os.waitid(os.P_PID, self.world.saver.pid, os.WEXITED | os.WNOWAIT)
    if trouble == "stopped" and self.step == 3 and self.world.rank == 1:
        for pid in (self.world.saver.pid, os.getpid()):
            os.kill(pid, signal.SIGTERM)
    begin(self)
trainer.Trainer._one_step = one_step

write = writing.CheckpointWriter._write_part
def write_part(self, folder, *arguments):
    if trouble == "slow save" and folder == "step-3":
        while not (place / "step-6-begins").exists():
            time.sleep(0.01)
    if trouble == "killed in a save" and folder == "step-4" and self._rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return write(self, folder, *arguments)
writing.CheckpointWriter._write_part = write_part
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {"train": write_shards(tmp_path_factory.mktemp("data") / "train")}


def train(root: Path, data: dict[str, Path], trouble: str, every: int, name: str = "run") -> tuple[int, str]:
    (root / f"{name}.py").write_text(PATCH)
    places = direct_checkpoints(root / "checkpoints")
    job = trainer_job(training={"steps": STEPS}, checkpoints=places, arguments=["--save-every-steps", str(every)])
    return run_ranks(root / name, 2, job, data, patch=str(root / f"{name}.py"), TROUBLE=trouble)


def newest(root: Path) -> int:
    found, complaints = newest_complete(FolderStore(str(root / "checkpoints")))
    assert found is not None and complaints == []
    return found.step


def in_shared_memory() -> set[str]:
    return set(os.listdir("/dev/shm"))


def test_steps_go_on_while_a_save_is_written(tmp_path: Path, data: dict[str, Path]) -> None:
    code, output = train(tmp_path, data, "slow save", 3)
    assert code == 0, output
    lines = [(event["event"], event["step"]) for event in (*events(output, "step"), *events(output, "checkpoint"))]
    assert [step for kind, step in lines if kind == "checkpoint"] == [3, 6, STEPS]
    assert output.index('"event":"checkpoint","step":3') > output.index('"event":"step","step":5')
    assert newest(tmp_path) == STEPS


@pytest.mark.parametrize("trouble", ["killed in a save", "killed between saves"])
def test_a_run_whose_writing_process_was_killed_says_so_and_goes_on_from_the_checkpoint_before(
    tmp_path: Path, data: dict[str, Path], trouble: str
) -> None:
    before = in_shared_memory()
    code, output = train(tmp_path, data, trouble, 2)
    assert code == 71, output
    assert "the process that writes the checkpoints of rank 1 has ended by signal 9; the host may have run out of memory" in output
    assert newest(tmp_path) == 2
    # It is noticed after the step, and not only by the next save.
    assert trouble == "killed in a save" or events(output, "step")[-1]["step"] == 3
    assert in_shared_memory() <= before
    code, output = train(tmp_path, data, "", 2, "again")
    assert code == 0, output
    assert [event["step"] for event in events(output, "resume")] == [2]


def test_the_last_save_before_a_hand_over_outlives_the_sigterm_that_asked_for_it(tmp_path: Path, data: dict[str, Path]) -> None:
    code, output = train(tmp_path, data, "stopped", 1000)
    assert code == 75, output
    assert newest(tmp_path) == 4


#: A rank that begins a save, says who writes it, and ends as it is told to while that save waits.
ABANDONED = """
import os, signal, sys, torch, torch.distributed as dist
from slipway_trainer.checkpoint import writing
from slipway_trainer.checkpoint.process import SaverProcess, Target
from slipway_trainer.checkpoint.saver import CheckpointSaver
uri, end = sys.argv[1:]
begun, tell = os.pipe()
def write_part(*arguments):
    os.write(tell, b"1")
    signal.pause()
writing.CheckpointWriter._write_part = write_part
process = SaverProcess.start()
dist.init_process_group("gloo")
saver = CheckpointSaver(Target(uri, "", 2), group=dist.new_group(backend="gloo"), pinned=False, process=process)
saver.start(1, {"model.w": torch.ones(1000)}, {"step": 1})
os.read(begun, 1)
print(process.pid, flush=True)
if end == "closed":
    saver.close()
    os._exit(0)
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.kill(os.getpid(), getattr(signal, end)) if end != "error" else os._exit(1)
"""


@pytest.mark.parametrize("end", ["SIGKILL", "SIGINT", "error", "closed"])
def test_nothing_is_left_of_the_process_when_its_rank_ends(tmp_path: Path, end: str) -> None:
    before = in_shared_memory()
    (tmp_path / "abandoned.py").write_text(ABANDONED)
    code = run_forked(tmp_path / "run", 1, {}, [str(tmp_path / "saved"), end], script=str(tmp_path / "abandoned.py"))[0]
    assert code == {"SIGKILL": -9, "SIGINT": -2, "error": 1, "closed": 0}[end]
    pid = int((tmp_path / "run/0.out").read_text())
    try:
        ended, _, _ = select.select([os.pidfd_open(pid)], [], [], 30)
        assert ended, "it still runs"
    except ProcessLookupError:
        pass
    assert in_shared_memory() <= before
    assert newest_complete(FolderStore(str(tmp_path / "saved"))) == (None, [])


def test_the_shared_memory_holds_tensors_of_every_shape_and_type_in_both_processes() -> None:
    kinds = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.float8_e4m3fn)
    state = {f"{kind}-{shape}": torch.ones(shape).to(kind) for kind in kinds for shape in ((), (0, 3), (7,), (3, 5))}
    places = places_of(state)
    descriptor = os.memfd_create("test")
    reserve(descriptor, whole_bytes(places))
    ours, theirs = tensors_at(descriptor, places), tensors_at(descriptor, places)
    for name, tensor in state.items():
        ours[name].copy_(tensor)
    for name, tensor in state.items():
        assert (theirs[name].shape, theirs[name].dtype) == (tensor.shape, tensor.dtype)
        assert torch.equal(theirs[name].float(), tensor.float())
        assert theirs[name].untyped_storage().nbytes() == tensor.nbytes, "torch.save writes whole storages"
    assert whole_bytes([Place("nothing", (0,), torch.float32, 0)]) > 0
    os.close(descriptor)
