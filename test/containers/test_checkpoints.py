"""Checkpoints: complete or absent, whatever dies when; safe to read; never too few kept."""

import json
import os
import pickle
import random
from collections import OrderedDict, deque
from concurrent.futures import Future
from pathlib import Path
from typing import Any, cast

import pytest

from fake_s3 import FakeS3
from forked import run_forked

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from slipway_driver.errors import is_peer_lost  # noqa: E402
from slipway_s3.client import S3Client  # noqa: E402
from slipway_trainer.checkpoint import store as stores  # noqa: E402
from slipway_trainer.checkpoint.committed import commit, find_resume, marked_folders, newest_complete, to_delete  # noqa: E402
from slipway_trainer.checkpoint.interval import auto_interval_minutes  # noqa: E402
from slipway_trainer.checkpoint.reader import load, read_metadata  # noqa: E402
from slipway_trainer.checkpoint.saver import CheckpointSaver, Saved  # noqa: E402
from slipway_trainer.checkpoint.store import FolderStore, S3Store, Store, write_object  # noqa: E402
from slipway_trainer.exits import CheckpointFailed  # noqa: E402

#: One rank that saves tensors whose value is the step, and dies at the asked point of the save of step 2.
SAVE = """
import os, sys, torch, torch.distributed as dist
from slipway_trainer.checkpoint import committed, store as stores, writing
from slipway_trainer.checkpoint.process import SaverProcess, Target
from slipway_trainer.checkpoint.saver import CheckpointSaver
uri, stage = sys.argv[1:]
elements = int(os.environ.get("ELEMENTS", 64))
stores.PART_BYTES = int(os.environ.get("PART_BYTES", stores.PART_BYTES))
def die_from_step_2(module, name, calls=1):
    # Patched before the fork: the process that writes has it too.
    original, seen = getattr(module, name), []
    def dying(*arguments, **options):
        if writing.current >= 2:
            seen.append(1)
            if len(seen) == calls:
                os.kill(os.getpid(), 9)
        return original(*arguments, **options)
    setattr(module, name, dying)
original_write = writing.CheckpointWriter.write
def write(self, facts, **arguments):
    writing.current = facts["step"]
    return original_write(self, facts, **arguments)
writing.CheckpointWriter.write = write
if stage == "in-shard":
    die_from_step_2(writing.torch, "save", calls=3)
elif stage == "before-metadata":
    die_from_step_2(writing.CheckpointWriter, "_completed")
elif stage == "before-marker":
    die_from_step_2(committed, "write_marker")
elif stage == "in-tidy":
    die_from_step_2(stores.FolderStore, "delete", calls=4)
process = SaverProcess.start()
dist.init_process_group("gloo")
saver = CheckpointSaver(Target(uri, "", 2), group=dist.new_group(backend="gloo"), pinned=False, process=process)
def save(step):
    state = {f"model.w{n}": torch.full((elements,), float(step)) for n in range(4)}
    saver.start(step, state, {"runId": "r", "attempt": 1, "step": step, "tokens": step})
    state["model.w0"].zero_()  # the copy was taken: what training does next must not show
    saver.wait()
save(1)
save(2)
save(3)
saver.close()
os._exit(0)
"""


def run_save(root: Path, uri: str, stage: str, environ: dict[str, str] | None = None) -> tuple[int, str]:
    script = root / "save.py"
    script.write_text(SAVE)
    code = run_forked(root / "output", 1, environ or {}, [uri, stage], script=str(script))[0]
    return code, (root / "output/0.err").read_text()


@pytest.mark.parametrize(("stage", "complete"), [("in-shard", 1), ("before-metadata", 1), ("before-marker", 1), ("in-tidy", 3)])
def test_a_save_that_is_killed_leaves_the_one_before_as_the_newest(tmp_path: Path, stage: str, complete: int) -> None:
    code, said = run_save(tmp_path, str(tmp_path / "saved"), stage)
    assert code == 1
    ended = "the process that writes the checkpoints of rank 0 has ended by signal 9; the host may have run out of memory"
    assert said.splitlines()[-1] == f"slipway_trainer.exits.CheckpointFailed: {ended}"
    found, complaints = newest_complete(FolderStore(str(tmp_path / "saved")))
    assert found is not None and found.step == complete
    assert complaints == []


def test_saves_that_are_left_alone_keep_the_newest_two_of_the_live_values(tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    assert run_save(tmp_path, str(saved), "never") == (0, "")
    assert sorted(path.name for path in saved.iterdir()) == ["step-2", "step-3"]
    record = json.loads((saved / "step-3/COMMITTED.json").read_text())
    assert record["format"] == "dcp"
    for entry in record["objects"]:
        assert (saved / "step-3" / entry["key"]).stat().st_size == entry["bytes"]
    from torch.distributed.checkpoint import FileSystemReader
    from torch.distributed.checkpoint.state_dict_loader import load

    state = {f"model.w{number}": torch.zeros(64) for number in range(4)}
    load(state, storage_reader=FileSystemReader(saved / "step-3"), no_dist=True)
    assert all(torch.equal(value, torch.full((64,), 3.0)) for value in state.values()), "DCP's own reader must read it too"


def test_the_same_bytes_go_to_s3(tmp_path: Path) -> None:
    s3 = FakeS3()
    try:
        assert run_save(tmp_path, "s3://bucket/runs/x", "never", s3.environ)[0] == 0
        assert sorted({path.split("/")[4] for path in s3.objects}) == ["step-2", "step-3"]
        store = S3Store("s3://bucket/runs/x", S3Client(s3.environ))
        found, _ = newest_complete(store)
        assert found is not None and found.step == 3
        marker = max(number for number, request in enumerate(s3.requests) if "step-3/COMMITTED.json" in request and "PUT" in request)
        shards = [number for number, request in enumerate(s3.requests) if "step-3/" in request and "PUT" in request]
        assert marker == max(shards), "the marker must be the last write"
    finally:
        s3.close()


def test_fails_with_the_checkpoint_error_when_deleting_is_denied(tmp_path: Path) -> None:
    s3 = FakeS3()
    s3.fault = lambda method, path, query: 403 if method == "DELETE" else None
    try:
        code, said = run_save(tmp_path, "s3://bucket/runs/x", "never", s3.environ)
        assert code == 1 and "CheckpointFailed: a checkpoint could not be written" in said
        assert not any(path.endswith("COMMITTED.json") for path in s3.objects)
    finally:
        s3.close()


def test_a_large_object_travels_in_parts_and_an_aborted_one_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "PART_BYTES", 1000)
    s3 = FakeS3()
    try:
        store = S3Store("s3://bucket/p", S3Client(s3.environ))
        data = os.urandom(10_500)
        writer = store.open("big")
        for start in range(0, len(data), 700):
            writer.write(data[start : start + 700])
        assert writer.close().bytes == 10_500
        assert s3.objects["/bucket/p/big"] == data
        aborted = store.open("gone")
        aborted.write(data)
        aborted.abort()
        assert "/bucket/p/gone" not in s3.objects and s3.uploads == {}
    finally:
        s3.close()


def fake_checkpoint(store: Store, step: int, objects: dict[str, bytes] | None = None, attempt: int = 1) -> None:
    listed = {"a": b"aa", "b": b"bbb"} if objects is None else objects
    for name, data in listed.items():
        write_object(store, f"step-{step}/{name}", data)
    record: dict[str, Any] = {"schema": 1, "step": step, "attempt": attempt}
    record["objects"] = [{"key": name, "bytes": len(data)} for name, data in listed.items()]
    write_object(store, f"step-{step}/COMMITTED.json", json.dumps(record).encode())


@pytest.mark.parametrize("damage", ["missing shard", "short shard", "torn marker", "no marker", "marker of another schema"])
def test_a_damaged_checkpoint_is_passed_over_and_said(tmp_path: Path, damage: str) -> None:
    store = FolderStore(str(tmp_path))
    fake_checkpoint(store, 5)
    fake_checkpoint(store, 10)
    target = tmp_path / "step-10"
    if damage == "missing shard":
        (target / "a").unlink()
    elif damage == "short shard":
        (target / "b").write_bytes(b"b")
    elif damage == "torn marker":
        (target / "COMMITTED.json").write_text('{"schema": 1, "st')
    elif damage == "no marker":
        (target / "COMMITTED.json").unlink()
    else:
        (target / "COMMITTED.json").write_text('{"schema": 2, "step": 10, "objects": []}')
    found, complaints = newest_complete(store)
    assert found is not None and found.step == 5
    assert len(complaints) == (0 if damage == "no marker" else 1)


def test_the_newer_of_the_run_s_own_and_the_named_checkpoint_is_resumed(tmp_path: Path) -> None:
    own, other = FolderStore(str(tmp_path / "own")), FolderStore(str(tmp_path / "other"))
    fake_checkpoint(other, 7)
    named = str(tmp_path / "other/step-7")
    found, _ = find_resume(own, named, 2)
    assert found is not None and (found.step, found.folder) == (7, "")
    fake_checkpoint(own, 9)
    found, _ = find_resume(own, named, 2)
    assert found is not None and (found.step, found.store.uri) == (9, own.uri)


def test_an_older_checkpoint_that_is_named_is_meant_until_the_attempt_has_written_newer_ones(tmp_path: Path) -> None:
    own = FolderStore(str(tmp_path))
    for step in (4, 8, 12):
        fake_checkpoint(own, step)
    found, complaints = find_resume(own, str(tmp_path / "step-8"), 2)
    assert found is not None and found.step == 8
    assert complaints == [f"{own.uri}/step-12: is of attempt 1 and newer than step 8, from which this attempt must continue"]
    fake_checkpoint(own, 10, attempt=2)
    found, _ = find_resume(own, str(tmp_path / "step-8"), 2)
    assert found is not None and found.step == 10
    found, _ = find_resume(own, "", 2)
    assert found is not None and found.step == 12


def test_old_checkpoints_go_but_never_the_newest_two() -> None:
    names = [f"step-{step}/COMMITTED.json" for step in (10, 9, 100, 30)] + ["step-200/a", "step-5x/COMMITTED.json"]
    assert to_delete(names, keep=3) == ["step-9"]
    assert to_delete(names, keep=0) == ["step-10", "step-9"]


def hostile() -> bytes:
    class Evil:
        def __reduce__(self):
            return os.system, ("true",)

    return pickle.dumps(Evil())


@pytest.mark.parametrize(
    "data",
    [hostile(), b"", b"garbage", pickle.dumps({"a": 1}), pickle.dumps(OrderedDict()), pickle.dumps(torch.nn.Linear(1, 1))],
    ids=["code", "empty", "garbage", "dict", "allowed class, wrong object", "module"],
)
def test_fails_on_metadata_that_is_not_dcp_s_own(data: bytes) -> None:
    with pytest.raises(CheckpointFailed, match=r"\.metadata"):
        read_metadata(data)


def test_metadata_that_dcp_wrote_is_read_for_every_dtype(tmp_path: Path) -> None:
    from torch.distributed.checkpoint import FileSystemWriter
    from torch.distributed.checkpoint.state_dict_saver import save

    kinds = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool)
    save({str(kind): torch.zeros(3, dtype=kind) for kind in kinds}, storage_writer=FileSystemWriter(tmp_path), no_dist=True)
    data = (tmp_path / ".metadata").read_bytes()
    assert len(read_metadata(data).state_dict_metadata) == len(kinds)
    with pytest.raises(CheckpointFailed):
        read_metadata(data[: len(data) // 2])


@pytest.mark.parametrize("seed", range(40))
def test_a_flipped_bit_of_a_checkpoint_is_refused_or_changes_nothing(tmp_path: Path, seed: int) -> None:
    from torch.distributed.checkpoint import FileSystemWriter
    from torch.distributed.checkpoint.state_dict_saver import save

    draw = random.Random(seed)
    written = {f"w{number}": torch.randn(draw.randint(1, 400)) for number in range(3)}
    save(written, storage_writer=FileSystemWriter(tmp_path), no_dist=True)
    shard = tmp_path / "__0_0.distcp"
    data = bytearray(shard.read_bytes())
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    shard.write_bytes(data)
    read = {name: torch.zeros_like(tensor) for name, tensor in written.items()}
    try:
        load(FolderStore(str(tmp_path)), "", read, cast(Any, None))
    except CheckpointFailed:
        return
    assert all(torch.equal(read[name], tensor) for name, tensor in written.items())


def test_the_interval_grows_with_the_cost_and_shrinks_with_the_hosts() -> None:
    assert auto_interval_minutes(0.0, 0.0, 8) == 3
    assert auto_interval_minutes(1e6, 0.0, 8) == 60
    assert auto_interval_minutes(3.0, 0.0, 64) < auto_interval_minutes(3.0, 0.0, 16) < auto_interval_minutes(20.0, 0.0, 16)
    # What a copy in memory saves from does not block, but its upload takes network and cores.
    assert auto_interval_minutes(0.0, 100.0, 16) == pytest.approx(auto_interval_minutes(2.0, 0.0, 16))


GLOO = "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:545] Read error [10.0.1.7]:395: Connection reset by peer. This is typically"


@pytest.mark.parametrize(
    ("error", "kind", "lost"),
    [
        (RuntimeError(GLOO), RuntimeError, True),
        (OSError("no space left on device"), CheckpointFailed, False),
        (ConnectionResetError(104, "Connection reset by peer"), CheckpointFailed, False),
    ],
    ids=["a rank died", "storage is full", "S3 hung up"],
)
def test_a_save_that_fails_because_a_rank_died_is_no_fault_of_the_storage(error: Exception, kind: type, lost: bool) -> None:
    saver = CheckpointSaver.__new__(CheckpointSaver)
    failed: Future[Saved] = Future()
    failed.set_exception(error)
    saver._running = deque([failed])
    with pytest.raises(kind) as raised:
        saver.wait()
    summary = f"{type(raised.value).__name__}: {raised.value}"
    record = {"rank": 0, "localRank": 0, "code": 1, "errorAt": 1.0, "endedAt": 1.0, "summary": summary, "tail": [summary]}
    assert is_peer_lost(record) == lost


#: Two ranks that share a sharded tensor and have one each, and fail as FAIL says: `rank step`.
REPEATED = """
import os, sys, torch, torch.distributed as dist
from pathlib import Path
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
from slipway_trainer.checkpoint import store as stores, writing
from slipway_trainer.sharding import local_part
root, fails = Path(sys.argv[1]), sys.argv[2:]
rank = int(os.environ["RANK"])
dist.init_process_group("gloo")
mesh, planned = init_device_mesh("cpu", (2,)), []
real = writing.CheckpointWriter._planned
def counted(self):
    planned.append(1)
    return real(self)
writing.CheckpointWriter._planned = counted
def state(step):
    whole = torch.arange(70.0).view(7, 10) + step
    return {"model.w": distribute_tensor(whole, mesh, [Shard(0)]), f"random.{rank}": torch.full((3,), float(step))}
def writer_to(root):
    planner = DefaultSavePlanner()
    planner.set_up_planner(state(0), None, rank == 0)
    return writing.CheckpointWriter(stores.FolderStore(str(root)), 9, planner.create_local_plan())
def save(found, step):
    facts = {"runId": "r", "attempt": 1, "step": step, "tokens": step, "savedAt": "then"}
    # Each shard in a storage of its own, as in shared memory.
    found.write(facts, {name: local_part(tensor).clone() for name, tensor in state(step).items()})
one = writer_to(root / "repeated")
original = writing.CheckpointWriter._write_part
def write_part(self, folder, *arguments):
    if fails and (str(rank), folder) == (fails[0], f"step-{fails[1]}"):
        raise OSError("no space left on device")
    # Whatever was complete of this step before does not count any longer.
    assert self is not one or not (root / "repeated" / folder / "COMMITTED.json").exists()
    return original(self, folder, *arguments)
writing.CheckpointWriter._write_part = write_part
for step in (1, 2, 3, 3):
    try:
        save(one, step)
    except Exception as error:
        print(f"{rank} {step} {error}", flush=True)
assert len(planned) == 1, planned
save(writer_to(root / "alone"), 3)
dist.barrier()
"""


def run_repeated(root: Path, *fails: str) -> str:
    script = root / "repeated.py"
    script.write_text(REPEATED)
    codes = run_forked(root / "output", 2, {}, [str(root), *fails], script=str(script))
    found = "".join((root / f"output/{rank}.{kind}").read_text() for rank in range(2) for kind in ("out", "err"))
    assert codes == [0, 0], found
    return found


def test_a_save_that_repeats_the_plan_of_the_first_writes_the_same_bytes(tmp_path: Path) -> None:
    assert run_repeated(tmp_path) == ""
    repeated, alone = tmp_path / "repeated/step-3", tmp_path / "alone/step-3"
    names = sorted(path.name for path in alone.iterdir())
    assert names == [".metadata", "COMMITTED.json", "__0_0.distcp", "__1_0.distcp"]
    assert [(repeated / name).read_bytes() for name in names] == [(alone / name).read_bytes() for name in names]


@pytest.mark.parametrize("rank", ["0", "1"])
def test_a_rank_that_cannot_write_fails_the_save_on_all_ranks(tmp_path: Path, rank: str) -> None:
    found = run_repeated(tmp_path, rank, "2")
    reason = f"2 rank {rank}: no space left on device"
    assert sorted(found.splitlines()) == [f"0 {reason}", f"1 {reason}"]
    folder = tmp_path / "repeated"
    assert [(folder / f"step-{step}/COMMITTED.json").exists() for step in (1, 2, 3)] == [True, False, True]


def test_parts_of_different_steps_are_no_checkpoint(tmp_path: Path) -> None:
    """As in reports about copies of several ranks that were saved too early or too late (dlrover#972)."""
    store = FolderStore(str(tmp_path))
    parts = [write_object(store, f"step-{step}/__{rank}_0.distcp", b"part") for rank, step in enumerate((2, 3))]
    with pytest.raises(RuntimeError, match="all ranks must save the step of step-2, got step-3/__1_0.distcp"):
        commit(store, "step-2", {"step": 2}, parts)
    assert not list(tmp_path.rglob("COMMITTED.json"))


def test_a_folder_whose_number_is_longer_than_any_step_is_no_checkpoint() -> None:
    names = ["step-2/COMMITTED.json", "step-99999999999999999999/COMMITTED.json", "step-007/COMMITTED.json"]
    assert marked_folders(names) == [(2, "step-2")]
