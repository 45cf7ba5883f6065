"""bench:trainer runs small on a CPU: loops over the same tokens, and no figure that was not measured."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

from fake_world import REPOSITORY

pytest.importorskip("transformers")


@pytest.mark.slow
def test_every_loop_that_is_installed_is_measured_and_learns_from_the_same_tokens() -> None:
    command = [sys.executable, str(REPOSITORY / "bench/trainer"), "--steps", "4"]
    output = subprocess.run(command, capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": ""})
    rows = [line.split() for line in output.stdout.splitlines()[2:]]
    assert [row[0] for row in rows] == ["slipway", "transformers", "torchtitan"]
    if find_spec("torchtitan") is None:
        assert rows.pop() == ["torchtitan", "not", "installed"]
    for row in rows:
        assert float(row[1].replace(",", "")) > 0 and row[2] == "-" and float(row[3]) > 0
        # Random tokens of 512: a model that has learned nothing has a loss of 6.24.
        assert abs(float(row[4]) - 6.24) < 0.2
