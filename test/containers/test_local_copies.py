"""Copies of checkpoints on the host's own disk, and how often to save."""

from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from slipway_trainer.checkpoint import local_copies  # noqa: E402
from slipway_trainer.checkpoint import store as stores  # noqa: E402
from slipway_trainer.checkpoint.interval import History, auto_interval_minutes  # noqa: E402
from slipway_trainer.checkpoint.local_copies import CopyingStore, digest_file  # noqa: E402
from slipway_trainer.checkpoint.store import FolderStore, write_object  # noqa: E402


def test_the_interval_learns_from_the_failures_of_the_run() -> None:
    calm, rough = History(0.0, 2000.0), History(48.0, 2000.0)
    assert auto_interval_minutes(5.0, 0.0, 64, rough) < auto_interval_minutes(5.0, 0.0, 64) < auto_interval_minutes(5.0, 0.0, 64, calm)
    # 48 failures in 2,000 node-days are RSC-1's 24 per 1,000; the prior hardly counts any more.
    assert rough.failures_per_node_day == pytest.approx(24e-3, rel=0.1)
    # The same case as in test/bench/goodput.test.ts: the simulation must save as the trainer does.
    assert auto_interval_minutes(5.0, 0.0, 64, rough) * 60 == pytest.approx(772.3, abs=0.5)


class CountingStore(FolderStore):
    reads = 0

    def read(self, name: str, first: int = 0, length: int | None = None) -> bytes:
        self.reads += 1
        return super().read(name, first, length)


def record_of(*written: stores.Written) -> dict:
    return {"objects": [{"key": entry.name.split("/")[1], "bytes": entry.bytes, "sha256": entry.sha256} for entry in written]}


def test_a_copy_is_read_only_where_the_record_names_its_digest(tmp_path: Path) -> None:
    remote = CountingStore(str(tmp_path / "remote"))
    store = CopyingStore(remote, tmp_path / "copies")
    written = write_object(store, "step-5/__0_0.distcp", b"0123456789")
    assert store.read("step-5/__0_0.distcp", 2, 3) == b"234"
    assert remote.reads == 1, "nothing is trusted before a record was seen"
    assert store.trust("step-5", record_of(written)) == 1
    assert store.read("step-5/__0_0.distcp", 2, 3) == b"234"
    assert remote.reads == 1
    # The same name was written again by somebody else: another digest, so the copy is stale.
    other = CopyingStore(remote, tmp_path / "copies")
    assert other.trust("step-5", record_of(written._replace(sha256="0" * 64))) == 0
    (tmp_path / "copies/step-5/__0_0.distcp").write_bytes(b"01234")
    assert other.trust("step-5", record_of(written)) == 0, "cut short"


def test_only_the_newest_copies_stay_and_a_delete_takes_both(tmp_path: Path) -> None:
    store = CopyingStore(FolderStore(str(tmp_path / "remote")), tmp_path / "copies")
    for step in (9, 10, 11):
        write_object(store, f"step-{step}/__0_0.distcp", b"x")
    kept = sorted(path.name for path in (tmp_path / "copies").iterdir())
    assert kept == ["step-10", "step-11"]
    store.delete("step-11/__0_0.distcp")
    assert not digest_file(tmp_path / "copies/step-11/__0_0.distcp").exists()
    assert [entry.name for entry in store.list("")] == ["step-10/__0_0.distcp", "step-9/__0_0.distcp"]


def test_a_disk_without_room_costs_nothing_but_the_copy(tmp_path: Path) -> None:
    (tmp_path / "copies").write_text("a file where the folder should be")
    store = CopyingStore(FolderStore(str(tmp_path / "remote")), tmp_path / "copies")
    written = write_object(store, "step-1/__0_0.distcp", b"data")
    assert store.trust("step-1", record_of(written)) == 0
    assert store.read("step-1/__0_0.distcp") == b"data"


def test_a_disk_that_is_nearly_full_gets_no_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_copies.shutil, "disk_usage", lambda _path: SimpleNamespace(free=local_copies.MIN_FREE_BYTES))
    store = CopyingStore(FolderStore(str(tmp_path / "remote")), tmp_path / "copies")
    written = write_object(store, "step-1/__0_0.distcp", b"data")
    assert store.trust("step-1", record_of(written)) == 0
    assert not list((tmp_path / "copies").rglob("*.tmp"))
