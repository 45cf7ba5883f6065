"""Storage that does not answer: no failure of a checkpoint or of the code, and another attempt. What it answers is told as before."""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fake_s3 import FakeS3
from fake_world import direct_checkpoints
from rank_world import run_ranks, trainer_job

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

import torch.distributed as dist  # noqa: E402

from slipway_s3 import S3Error  # noqa: E402
from slipway_trainer.checkpoint.committed import Rollback, find_resume, forget_newer  # noqa: E402
from slipway_trainer.checkpoint.reader import load, reading  # noqa: E402
from slipway_trainer.checkpoint.saver import LibrarySaver  # noqa: E402
from slipway_trainer.checkpoint.store import FolderStore, unanswered, write_object  # noqa: E402
from slipway_trainer.exits import CHECKPOINT, DATA, TRY_AGAIN, CheckpointFailed, TrainerError  # noqa: E402
from slipway_trainer.fetch.repository import Repository, parse_source  # noqa: E402
from slipway_trainer.fetch.transfer import fetch  # noqa: E402

OUTAGES = [
    *(S3Error("GET s3://b/k", status, "SlowDown", "R") for status in (0, 408, 429, 500, 502, 503, 504)),
    S3Error("PUT s3://b/k", 400, "RequestTimeout", "R"),
    *(OSError(code, os.strerror(code)) for code in (errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ESHUTDOWN)),
]
ANSWERS = [
    S3Error("GET s3://b/k", 403, "AccessDenied", "R"),
    S3Error("GET s3://b/k", 404, "NoSuchKey", "R"),
    *(OSError(code, os.strerror(code)) for code in (errno.ENOSPC, errno.EACCES, errno.ENOENT)),
]


def described(error: Exception) -> str:
    return str(getattr(error, "status", getattr(error, "errno", "")))


class Broken(FolderStore):
    """Fails in one operation."""

    def __init__(self, root: str, operation: str, error: Exception) -> None:
        super().__init__(root)

        def fail(*_arguments: object) -> None:
            raise error

        setattr(self, operation, fail)


def committed(root: Path) -> None:
    write_object(FolderStore(str(root)), "step-6/COMMITTED.json", b'{"schema": 1, "step": 6, "attempt": 1, "objects": []}')


class Library:
    format = "deepspeed"

    def write(self, uri: str) -> None:
        Path(uri).mkdir(exist_ok=True)

    def read(self, uri: str) -> None: ...


def saved_by_library(store: FolderStore) -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        LibrarySaver(store, 3, dist.group.WORLD, Library()).start(6, {}, {"step": 6})
    finally:
        dist.destroy_process_group()


def fetched(store: FolderStore) -> None:
    fetch(Repository(parse_source("hf:a/b"), "c" * 40, None, False, []), store, None)


#: Each use of a store, the operations in which it can fail, and the exit code for what a store answers.
USES: dict[str, tuple[Callable[[FolderStore], object], str, int]] = {
    "choose": (lambda store: find_resume(store, "", 2), "list read", CHECKPOINT),
    "roll back": (lambda store: forget_newer(store, Rollback(2, 9)), "list read delete", CHECKPOINT),
    "load": (lambda store: load(store, "step-6", {}, None), "read", CHECKPOINT),
    "fetch": (fetched, "size open", DATA),
}
CASES = [(name, operation) for name, (_use, operations, _code) in USES.items() for operation in operations.split()]


@pytest.mark.parametrize(("name", "operation"), CASES)
@pytest.mark.parametrize("error", [*OUTAGES, *ANSWERS], ids=described)
def test_an_outage_asks_for_another_try_and_an_answer_does_not(tmp_path: Path, name: str, operation: str, error: Exception) -> None:
    committed(tmp_path)
    use, _operations, code = USES[name]
    with pytest.raises(TrainerError) as raised:
        use(Broken(str(tmp_path), operation, error))
    assert raised.value.code == (TRY_AGAIN if error in OUTAGES else code)
    assert str(raised.value).startswith("the storage does not answer: ") == (error in OUTAGES) and str(error) in str(raised.value)


@pytest.mark.parametrize("operation", ["delete", "list", "open"])
@pytest.mark.parametrize("error", [*OUTAGES, *ANSWERS], ids=described)
def test_a_save_by_a_library_that_fails_is_a_checkpoint_that_was_not_written(tmp_path: Path, operation: str, error: Exception) -> None:
    with pytest.raises(CheckpointFailed, match="a checkpoint could not be written: "):
        saved_by_library(Broken(str(tmp_path), operation, error))


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("[../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:29510"),
        RuntimeError("[../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation"),
        dist.DistBackendError("NCCL error in: ProcessGroupNCCL.cpp: remote process exited or there was a network error"),
    ],
)
def test_a_checkpoint_is_not_blamed_for_a_rank_that_is_gone(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, reading("step-6"):
        raise error
    assert raised.value is error


def test_a_damaged_part_of_one_rank_counts_before_an_outage_of_another() -> None:
    from torch.distributed.checkpoint.api import CheckpointException

    outage, damage = (OUTAGES[0], None), (EOFError("too short"), None)
    for failures, kind in (({0: outage, 1: damage}, CheckpointFailed), ({0: outage, 1: outage}, TrainerError)):
        with pytest.raises(TrainerError) as raised, reading("step-6"):
            raise CheckpointException("read", failures)
        assert type(raised.value) is kind


@pytest.mark.parametrize(("words", "passes"), [
    ("Client error: Request throttled", True),
    ("Client error: Unknown CRT error: CRT error 14341: aws-c-s3: AWS_ERROR_S3_INTERNAL_ERROR, Response code indicates", True),
    ("Client error: Forbidden: AccessDenied", False),
    ("Service error: The key does not exist", False),
])  # fmt: skip
def test_the_connector_names_outages_in_words(words: str, passes: bool) -> None:
    connector = pytest.importorskip("s3torchconnectorclient._mountpoint_s3_client")
    assert unanswered(connector.S3Exception(words)) == passes


@pytest.fixture
def s3() -> Iterator[FakeS3]:
    world = FakeS3()
    yield world
    world.close()


def on(operation: str, status: int) -> Callable[[str, str, str], int | None]:
    def fault(method: str, path: str, query: str) -> int | None:
        at = "listing" if "list-type" in query else path.rpartition(".")[2]
        return status if method == "GET" and at == operation else None

    return fault


@pytest.mark.jobs
def test_a_run_that_resumes_during_an_outage_of_s3_asks_for_another_try(s3: FakeS3, shards: Path, tmp_path: Path) -> None:
    patch, uri = tmp_path / "patch.py", "s3://bucket/run"
    patch.write_text("import slipway_s3.client\nslipway_s3.client.ATTEMPTS = 1\n")
    variables = s3.environ | {"SLIPWAY_CHECKPOINT_URI": uri}
    checkpoints = direct_checkpoints(tmp_path) | {"uri": uri}
    code, output = run_ranks(tmp_path / "a", 1, trainer_job(checkpoints=checkpoints), {"train": shards}, **variables)
    assert code == 0, output
    job = trainer_job(checkpoints=checkpoints | {"resumeFrom": f"{uri}/step-6"})
    for operation in ("listing", "json", "metadata", "distcp"):
        for status in (503, 403):
            s3.fault = on(operation, status)
            # A rank whose peer has failed ends seconds later.
            ranks = 2 if (operation, status) == ("distcp", 503) else 1
            code, output = run_ranks(tmp_path / f"{operation}{status}", ranks, job, {"train": shards}, patch=str(patch), **variables)
            assert (code, f"S3 answered {status}" in output) == (TRY_AGAIN if status == 503 else CHECKPOINT, True), output
