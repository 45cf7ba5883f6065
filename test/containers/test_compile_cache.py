"""Compiled code that is kept over attempts: what is in a bundle, who may use it, and jobs that find it."""

import hashlib
import io
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fake_s3 import FakeS3
from fake_world import FakeWorld, job_json, pack_code
from slipway_driver.compile_cache import BUNDLE, DIGEST, FOLDERS, MAX_BYTES, CompileCache, bundle_key, compile_cache_of
from slipway_driver.job import Paths, parse_job
from slipway_s3 import S3Client

pytestmark = pytest.mark.jobs

URI = "s3://checkpoints/runs/team/compile-cache/"


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeS3]:
    found = FakeS3()
    for name, value in found.environ.items():
        monkeypatch.setenv(name, value)
    yield found
    found.close()


def cache(root: Path, writes: bool = True) -> CompileCache:
    found = CompileCache(URI + "key", {name: str(root / folder) for name, folder in FOLDERS.items()}, S3Client())
    found.writes = writes
    return found


def restored(root: Path, writes: bool = True) -> CompileCache:
    found = cache(root, writes)
    found.begin()
    found.wait()
    return found


def compiled(root: Path, text: str = "kernel") -> None:
    (root / "inductor/ab").mkdir(parents=True)
    (root / "inductor/ab/kernel.py").write_text(text)
    (root / "inductor/ab/main").write_text("program")
    (root / "inductor/ab/main").chmod(0o755)
    (root / "triton").mkdir()
    (root / "triton/kernel.cubin").write_bytes(b"\0cubin")
    (root / "triton/half.tmp").write_text("half")
    (root / "triton/link").symlink_to("/etc/passwd")


def files(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_another_host_finds_what_the_first_has_compiled(tmp_path: Path, s3: FakeS3) -> None:
    first = restored(tmp_path / "first")
    compiled(tmp_path / "first")
    first.close()
    restored(tmp_path / "second", writes=False)
    names = ["inductor/ab/kernel.py", "inductor/ab/main", "triton/kernel.cubin"]
    assert files(tmp_path / "second") == {name: files(tmp_path / "first")[name] for name in names}
    assert (tmp_path / "second/inductor/ab/main").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "second/inductor/ab/kernel.py").stat().st_mode & 0o777 == 0o600


def test_only_the_first_host_writes_and_only_the_first_bundle(tmp_path: Path, s3: FakeS3) -> None:
    other = restored(tmp_path / "other", writes=False)
    compiled(tmp_path / "other")
    other.close()
    assert s3.objects == {}
    first = restored(tmp_path / "first")
    compiled(tmp_path / "first")
    first.close()
    before = dict(s3.objects)
    assert {path.rpartition("/")[2] for path in before} == {BUNDLE, DIGEST}
    later = restored(tmp_path / "later")
    (tmp_path / "later/inductor/more.py").write_text("more")
    later.close()
    assert s3.objects == before


def test_nothing_is_written_without_compiled_code(tmp_path: Path, s3: FakeS3) -> None:
    restored(tmp_path).close()
    assert s3.objects == {}


def poison(s3: FakeS3, members: dict[str, str], digest: "str | None" = None, link: str = "") -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as opened:
        for name, text in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            opened.addfile(member, io.BytesIO(text.encode()))
        if link:
            member = tarfile.TarInfo("inductor/link")
            member.type, member.linkname = tarfile.SYMTYPE, link
            opened.addfile(member)
    data = packed.getvalue()
    s3.objects["/checkpoints/runs/team/compile-cache/key/" + BUNDLE] = data
    s3.objects["/checkpoints/runs/team/compile-cache/key/" + DIGEST] = (digest or hashlib.sha256(data).hexdigest()).encode()


def test_a_bundle_writes_nothing_outside_its_folders(tmp_path: Path, s3: FakeS3) -> None:
    outside = ["../evil", "/evil", "inductor/../../evil", "other/evil", "inductor"]
    poison(s3, dict.fromkeys([*outside, "inductor/good.py"], "x"), link="/etc")
    restored(tmp_path / "host/caches")
    assert list(files(tmp_path)) == ["host/caches/inductor/good.py"]
    assert not (tmp_path / "host/caches/inductor/link").is_symlink()


def test_a_bundle_with_another_digest_is_not_used(tmp_path: Path, s3: FakeS3, capsys: pytest.CaptureFixture[str]) -> None:
    poison(s3, {"inductor/kernel.py": "x"}, digest="0" * 64)
    restored(tmp_path)
    assert files(tmp_path) == {}
    assert "cannot be used: the bundle does not have the digest that was written with it" in capsys.readouterr().out


def test_an_unreachable_store_delays_nothing_else(tmp_path: Path, s3: FakeS3, capsys: pytest.CaptureFixture[str]) -> None:
    s3.fault = lambda method, path, query: 403
    found = restored(tmp_path)
    compiled(tmp_path)
    found.close()
    said = capsys.readouterr().out
    assert "compiled code of an earlier attempt cannot be used" in said and "compiled code is not kept" in said


def test_more_than_the_limit_is_not_kept(tmp_path: Path, s3: FakeS3) -> None:
    found = restored(tmp_path)
    (tmp_path / "inductor").mkdir(parents=True)
    with (tmp_path / "inductor/large").open("wb") as opened:
        opened.truncate(MAX_BYTES + 1)
    found.close()
    assert s3.objects == {}


def key(image: str = "image", hardware: "dict[str, Any] | None" = None, **changes: Any) -> str:
    return bundle_key(parse_job(job_json(entryPoint="builtin", **changes)), image, hardware or {"torch": "2.15.0", "gpu": "NVIDIA H100"})


@pytest.mark.parametrize(
    "other",
    [
        key(image="another"),
        key(hardware={"torch": "2.14.0", "gpu": "NVIDIA H100"}),
        key(hardware={"torch": "2.15.0", "gpu": "NVIDIA H200"}),
        key(model={"layers": 3}),
        key(distribution={"library": "fsdp", "collectives": "gloo", "parameters": {"shard_degree": 2}}),
        key(training={"sequenceLength": 8}),
    ],
    ids=["image", "PyTorch", "GPU", "model", "layout", "shapes"],
)
def test_a_bundle_belongs_to_what_determines_compiled_code(other: str) -> None:
    assert other != key()


@pytest.mark.parametrize("changes", [{"attempt": 2}, {"runId": "other-261121120000"}, {"training": {"steps": 5, "seed": 8}}])
def test_a_bundle_serves_other_attempts_and_runs(changes: dict[str, Any]) -> None:
    assert key(**changes) == key()


def test_caches_with_a_folder_of_their_own_are_left_alone(tmp_path: Path) -> None:
    job = replace(parse_job(job_json()), compile_cache_uri=URI, env={"TRITON_CACHE_DIR": "/mine"})
    found = compile_cache_of(job, Paths(tmp_path, False), {"CUDA_CACHE_PATH": "/image"}, {})
    assert found is not None and list(found.variables) == ["TORCHINDUCTOR_CACHE_DIR"]
    assert compile_cache_of(replace(job, compile_cache_uri=None), Paths(tmp_path, False), {}, {}) is None


SCRIPT = """
import os, pathlib
kernel = pathlib.Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]) / "kernel.py"
print("found" if kernel.exists() else "compiles", flush=True)
kernel.parent.mkdir(parents=True, exist_ok=True)
kernel.write_text("kernel")
"""


def test_own_code_finds_its_compiled_code_in_a_later_job(tmp_path: Path) -> None:
    s3, logs = FakeS3(), []
    digest = pack_code(tmp_path / "code", {"train.py": SCRIPT})
    try:
        for attempt in (1, 2):
            job = job_json(attempt=attempt, compileCacheUri=URI, digests={"code": digest, "requirements": None})
            world = FakeWorld(tmp_path / str(attempt), 1, job)
            world.add_channel("code", tmp_path / "code")
            world.start(s3.environ)
            assert world.wait() == [0], world.log("algo-1")
            logs.append(world.log("algo-1"))
    finally:
        s3.close()
    assert "compiles" in logs[0] and "compiled code is kept for later attempts" in logs[0]
    assert "found" in logs[1] and "compiled code of an earlier attempt: 1 files" in logs[1] and "is kept" not in logs[1]
