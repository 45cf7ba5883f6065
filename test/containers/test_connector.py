"""The S3 connector for PyTorch, the real library, against an S3 over HTTP: the same objects as without it, complete or absent."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_checkpoints import run_save

from fake_s3 import FakeS3

pytest.importorskip("s3torchconnector", reason="s3torchconnector is not installed")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.jobs]

from slipway_s3.client import S3Client  # noqa: E402
from slipway_trainer.checkpoint import store as stores  # noqa: E402
from slipway_trainer.checkpoint.committed import newest_complete  # noqa: E402
from slipway_trainer.checkpoint.connector import Connector, find_connector  # noqa: E402
from slipway_trainer.checkpoint.reader import ObjectStoreReader, TensorsOnlyPlanner  # noqa: E402
from slipway_trainer.checkpoint.store import S3Store  # noqa: E402

#: The least that S3 takes as a part.
PART = 5 << 20
URI = "s3://bucket/runs/x"
DATA = os.urandom(2 * PART + 1000)


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeS3]:
    monkeypatch.setattr(stores, "PART_BYTES", PART)
    world = FakeS3()
    for name, value in world.environ.items():
        monkeypatch.setenv(name, value)
    yield world
    world.close()


class NothingLarge(S3Client):
    """A client that must not be used for what is larger than a part."""

    def create_upload(self, bucket: str, key: str) -> str:
        raise AssertionError(f"{key}: must go through the connector")

    def get(self, bucket: str, key: str, first: int = 0, length: int | None = None) -> bytes:
        assert length is None or length <= PART, f"{key}: must come through the connector"
        return super().get(bucket, key, first, length)


def connected(s3: FakeS3) -> S3Store:
    return S3Store(URI, NothingLarge(s3.environ), Connector(s3.environ, PART))


def plain(s3: FakeS3) -> S3Store:
    return S3Store(URI, S3Client(s3.environ))


def test_what_one_way_writes_both_read(s3: FakeS3) -> None:
    for write in (connected(s3), plain(s3)):
        s3.objects.clear()
        written = stores.write_object(write, "step-1/a", DATA)
        assert s3.objects == {"/bucket/runs/x/step-1/a": DATA}
        assert written == stores.write_object(plain(s3), "step-1/a", DATA)
        for read in (connected(s3), plain(s3)):
            assert read.read("step-1/a", 7, 2 * PART) == DATA[7 : 7 + 2 * PART]
            assert read.read("step-1/a", 7, 100) == DATA[7:107]


def test_an_aborted_object_never_appears(s3: FakeS3) -> None:
    store = connected(s3)
    writer = store.open("gone")
    writer.write(DATA)
    writer.abort()
    del writer
    # What the connector still does, it does before this: its parts, its abort where it sends one.
    stores.write_object(store, "next", DATA)
    assert s3.objects == {"/bucket/runs/x/next": DATA}
    assert not [sent for sent in s3.requests if sent.startswith("POST /bucket/runs/x/gone?uploadId")]


def test_fails_when_s3_refuses_and_leaves_nothing(s3: FakeS3) -> None:
    s3.fault = lambda method, path, query: 403 if method == "PUT" else None
    writer = connected(s3).open("denied")
    with pytest.raises(Exception, match="Client error"):
        writer.write(DATA)
        writer.close()
    writer.abort()
    assert s3.objects == {}


def test_503_is_tried_again(s3: FakeS3) -> None:
    s3.be_slow(2)
    stores.write_object(connected(s3), "a", DATA)
    assert s3.objects["/bucket/runs/x/a"] == DATA


def test_fails_for_an_object_that_ends_early(s3: FakeS3) -> None:
    stores.write_object(plain(s3), "short", DATA[: PART + 10])
    with pytest.raises(EOFError, match="runs/x/short: ends"):
        connected(s3).read("short", 0, 2 * PART)


def saved_values(s3: FakeS3, store: S3Store, folder: str, elements: int) -> list[Any]:
    from torch.distributed.checkpoint.state_dict_loader import load

    state = {f"model.w{number}": torch.zeros(elements) for number in range(4)}
    load(state, storage_reader=ObjectStoreReader(store, folder), planner=TensorsOnlyPlanner(), no_dist=True)
    return [value.unique().tolist() for value in state.values()]


@pytest.mark.parametrize(("stage", "code", "complete"), [("never", 0, 3), ("in-shard", 1, 1), ("before-marker", 1, 1)])
def test_a_save_is_complete_or_absent_wherever_it_is_killed(tmp_path: Path, s3: FakeS3, stage: str, code: int, complete: int) -> None:
    elements = PART // 4 + 1000
    environ = s3.environ | {"ELEMENTS": str(elements), "PART_BYTES": str(PART)}
    # The rank survives the process that writes, and ends with an error of its own.
    assert run_save(tmp_path, URI, stage, environ)[0] == code
    found, complaints = newest_complete(plain(s3))
    assert found is not None and found.step == complete and complaints == []
    for store in (connected(s3), plain(s3)):
        assert saved_values(s3, store, found.folder, elements) == [[float(complete)]] * 4


def test_it_can_be_turned_off() -> None:
    assert find_connector({}, PART) is not None
    assert find_connector({"SLIPWAY_S3_CONNECTOR": "off"}, PART) is None
    # Its uploads can name no key.
    assert find_connector({"SLIPWAY_KMS_KEY_ARN": "arn:aws:kms:us-west-2:111122223333:key/k"}, PART) is None
