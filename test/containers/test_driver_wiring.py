"""What a job on a host with GPUs gets from its driver: parts that have tests of their own, where the driver uses them."""

from pathlib import Path

import pytest

from fake_world import FakeWorld, direct_checkpoints, job_json, with_gpus

pytestmark = pytest.mark.jobs

#: The first start leaves memory of its GPU in use for three more queries; the second one says how much is left of that.
SCRIPT = """
import os, pathlib
held = pathlib.Path(os.environ["SAGEMAKER_BASE_DIR"], "held")
print('slipway {"event":"step","step":%d}' % (1 + int(os.environ.get("SLIPWAY_RESTART", 0))), flush=True)
if not held.exists():
    held.write_text("held\\n" * 3)
    raise RuntimeError("the first start fails")
print("left to wait for:", len(held.read_text().split()), flush=True)
"""


def test_the_ranks_start_again_only_when_the_memory_of_their_gpus_is_free(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    checkpoints = direct_checkpoints(tmp_path / "checkpoints")
    job = job_json(restartsInPlace=1, checkpoints=checkpoints)
    world = FakeWorld(tmp_path / "world", 1, job, {"train.py": SCRIPT}, name=f"wiring-{tmp_path.name}")
    world.start(with_gpus(tmp_path))
    assert world.wait() == [0], world.log("algo-1")
    assert "left to wait for: 0" in world.log("algo-1")


#: In place of the built-in trainer, and as a script.
SHOW = """
import os
found = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith("PYTORCH") and name.endswith("ALLOC_CONF"))
print("allocator:", *found, flush=True)
"""


@pytest.mark.parametrize(
    ("job", "gpus", "environ", "expected"),
    [
        ({"entryPoint": "builtin"}, True, {}, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"),
        ({"entryPoint": "builtin"}, False, {}, ""),
        ({}, True, {}, ""),
        ({"entryPoint": "builtin", "env": {"PYTORCH_ALLOC_CONF": "backend:native"}}, True, {}, "PYTORCH_ALLOC_CONF=backend:native"),
        (
            {"entryPoint": "builtin"},
            True,
            {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64"},
            "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64",
        ),
    ],
)
def test_the_builtin_trainer_on_gpus_gets_expandable_segments(
    tmp_path: Path, job: "dict[str, object]", gpus: bool, environ: "dict[str, str]", expected: str
) -> None:
    world = FakeWorld(tmp_path / "world", 1, job_json(**job), {"train.py": SHOW}, name=f"allocator-{tmp_path.name}")
    program = world.base("algo-1") / "input/data/driver/slipway_trainer/__main__.py"
    program.unlink()
    program.write_text(SHOW)
    world.start({**(with_gpus(tmp_path) if gpus else {}), **environ})
    assert world.wait() == [0], world.log("algo-1")
    [line] = [line for line in world.log("algo-1").splitlines() if "allocator:" in line]
    assert line.partition("allocator:")[2].strip() == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"progress": {"format": "lightning"}}, "1 200"),
        ({"progress": {"format": "lightning"}, "env": {"TTY_COMPATIBLE": "0", "COLUMNS": "90"}}, "0 90"),
        ({"progress": {"format": "auto"}}, "None None"),
    ],
)
def test_lightning_draws_its_bar_by_rich_although_a_log_is_no_terminal(
    tmp_path: Path, changes: "dict[str, dict[str, str]]", expected: str
) -> None:
    script = "import os; print('terminal:', os.environ.get('TTY_COMPATIBLE'), os.environ.get('COLUMNS'))"
    world = FakeWorld(tmp_path / "world", 1, job_json(**changes), {"train.py": script}, name=f"terminal-{tmp_path.name}")
    world.start()
    assert world.wait() == [0], world.log("algo-1")
    assert f"terminal: {expected}" in world.log("algo-1")


def test_the_log_compares_the_driver_of_the_host_with_the_cuda_version_of_the_image(tmp_path: Path) -> None:
    torch = tmp_path / "python/torch"
    torch.mkdir(parents=True)
    (torch / "__init__.py").write_text("")
    (torch / "version.py").write_text("cuda = '13.0'\n")
    world = FakeWorld(tmp_path / "world", 1, job_json(), {"train.py": "print('trained')"}, name=f"driver-{tmp_path.name}")
    world.start({**with_gpus(tmp_path), "PYTHONPATH": str(torch.parent)})
    assert world.wait() == [0], world.log("algo-1")
    expected = "slipway-driver: NVIDIA driver 580.95.05, PyTorch built for CUDA 13.0: compatible"
    assert expected in world.log("algo-1"), world.log("algo-1")
