"""The client of zygote.py: runs scripts and ranks without paying for the import of PyTorch each time."""

import atexit
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from fake_world import REPOSITORY

PATHS = (f"{REPOSITORY}/containers/driver", f"{REPOSITORY}/containers/trainer")
STUBS = REPOSITORY / "test/containers/stubs"
#: Take seconds to import; SMP's images have them.
HUGGING_FACE_MODELS = tuple(f"transformers.models.{name}.modeling_{name}" for name in ("llama", "mixtral"))
STUB_TRANSFORMERS = REPOSITORY / "test/containers/stub_transformers"


class Zygote:
    """The process that forks: one for all tests of this process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).parent / "zygote.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONPATH": ":".join(PATHS), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        )  # fmt: skip
        self._read()
        atexit.register(self._process.kill)

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the zygote ended"
        return line

    def run(self, order: dict[str, Any]) -> dict[str, Any]:
        """What zygote.py answers to an order."""
        return json.loads(self._ask(order))

    def end_waiting(self) -> None:
        """Ends the ranks that wait for another order."""
        self._ask({})

    def _ask(self, order: dict[str, Any]) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return self._read()


@cache
def _zygote() -> Zygote:
    return Zygote()


_stores: dict[tuple[tuple[str, ...], tuple[str, ...], int, str], Any] = {}


def end_waiting_ranks() -> None:
    """Ends the ranks that wait for another run: also those that wait cost time."""
    if _zygote.cache_info().currsize:
        _zygote().end_waiting()
    _stores.clear()


def run_forked(
    root: Path,
    ranks: int,
    environ: dict[str, str],
    argv: list[str],
    script: str | None = None,
    paths: tuple[str, ...] = PATHS,
    preload: tuple[str, ...] = (),
    patch: str = "",
) -> list[int]:
    """Exit codes of `ranks` processes: of the trainer, or of a Python script. Their output is in `root`: <rank>.out and <rank>.err.

    `preload`: modules that they find imported, beside PyTorch and the trainer.
    `patch`: a file that ranks of the trainer run before they train; it replaces parts of the trainer.
    """
    from torch.distributed import TCPStore

    root.mkdir(parents=True, exist_ok=True)
    # The meeting point is here and its port the system's choice, as torchrun does it: a port chosen beforehand may be taken meanwhile.
    # Ranks that stay keep theirs.
    key = (preload, paths, ranks, patch)
    kept = None if script else _stores.pop(key, None)
    store = kept or TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port)}
    meeting |= {"TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "0"}
    world = {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks)}
    order = {
        "root": str(root),
        "ranks": ranks,
        "environ": meeting | world | environ,
        "argv": argv,
        "patch": patch,
        "paths": paths,
        "preload": preload,
    }
    answer = _zygote().run(order | ({"script": script} if script else {}))
    if answer["kept"]:
        _stores[key] = store
    return answer["codes"]
