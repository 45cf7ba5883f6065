"""Stores of objects: what fails while they are written or read."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fake_s3 import FakeS3
from forked import PATHS
from slipway_s3 import S3Client, S3Error
from slipway_trainer.checkpoint import store as stores
from slipway_trainer.checkpoint.local_copies import CopyingStore
from slipway_trainer.checkpoint.store import S3Store, Store, write_object


@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("fails", ["POST", "PUT", "complete"])
@pytest.mark.parametrize("abort", [403, 500, 503])
def test_the_first_error_of_a_write_is_told_when_its_clean_up_fails_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, abort: int, fails: str, copies: bool
) -> None:
    monkeypatch.setattr(stores, "PART_BYTES", 1000)
    s3 = FakeS3()

    def fault(method: str, _path: str, query: str) -> "int | tuple[int, str] | None":
        at = "complete" if method == "POST" and "uploadId" in query else method
        return (400, "FirstError") if at == fails else abort if method == "DELETE" else None

    s3.fault = fault
    store: Store = S3Store("s3://bucket/p", S3Client(s3.environ, sleep=lambda seconds: None))
    store = CopyingStore(store, tmp_path) if copies else store
    try:
        with pytest.raises(S3Error, match="FirstError"):
            write_object(store, "step-1/big", bytes(4500))
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    finally:
        s3.close()


def test_an_object_that_does_not_fit_on_the_disk_leaves_nothing_there(tmp_path: Path) -> None:
    # The kernel takes as much as fits, and the rest fails again when the file is closed.
    code = f"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
from slipway_trainer.checkpoint.store import FolderStore, write_object
write_object(FolderStore({str(tmp_path)!r}), "big", bytes(5000))
"""
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": ":".join(PATHS)}, capture_output=True, text=True)
    assert "File too large" in done.stderr and [*tmp_path.iterdir()] == []
