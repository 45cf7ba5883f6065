"""What saves take for granted about the GPU: shared memory that CUDA pins, and a state that can be copied while a collective hangs. Each
runs in processes of its own, because the first must fork before it uses CUDA."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from case import Case, Found
from machine import Machine, lacks_gpu

#: Part of the speed of PyTorch's own pinned memory that shared memory must reach.
MIN_SHARE = 0.9
PATIENCE_SECONDS = 180


def _answer_of(script: str, folder: Path) -> dict[str, Any]:
    """What a script of this folder prints in its last line. Raises RuntimeError with the end of what it said."""
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, str(Path(__file__).parent / script)]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    (folder / "err").write_text(done.stderr)
    if done.returncode != 0:
        raise RuntimeError(" ".join(done.stderr.split())[-300:])
    return json.loads(done.stdout.splitlines()[-1])


def pinned_shared_memory(_machine: Machine, folder: Path) -> Found:
    found = _answer_of("pinned.py", folder)
    shared, own, pageable = (found[name] for name in ("shared", "own", "pageable"))
    figure = f"{shared:.1f} GiB/s to shared memory, {own:.1f} to PyTorch's pinned memory, {pageable:.1f} to memory that is not pinned"
    return Found(
        f"{figure}; the other process read {found['read']:.0f}, of {found['written']:.0f}",
        shared >= MIN_SHARE * own and found["read"] == found["written"],
    )


def copy_beside_a_hung_collective(_machine: Machine, folder: Path) -> Found:
    found = _answer_of("hung_collective.py", folder)
    figure = f"copied {found['values']} as step {found['step']} in {found['seconds']:.2f} s while it hung; then step {found['after']}"
    return Found(figure, found["values"] == [5.0] and found["step"] == 5 and found["still"] and found["hung"] and found["after"] == 6)


CASES = (
    Case(
        "shared memory of the process that writes checkpoints",
        "as fast as PyTorch's pinned memory, within 10 %",
        lacks_gpu,
        pinned_shared_memory,
    ),
    Case(
        "copy of the state behind a collective that hangs",
        "is of the step before, and a later update shows",
        lacks_gpu,
        copy_beside_a_hung_collective,
    ),
)
