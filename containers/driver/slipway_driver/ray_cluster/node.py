"""The processes of Ray on one host: the words of `ray start`, its object store, and how it is stopped."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

from slipway_driver.exit_codes import ENVIRONMENT, TRY_AGAIN, class_of, shell_code
from slipway_driver.launcher_end import LauncherEnd
from slipway_driver.log import log
from slipway_driver.rank import die_with_parent
from slipway_driver.ray_cluster.launch import HOST_RESOURCE, option_name
from slipway_driver.restart_policy import HARDWARE

#: Shares of Ray's default (30 % of the memory, at most 200 GB), and of the free part of /dev/shm, where NCCL keeps buffers too.
MEMORY_SHARE, SHM_SHARE, MOST_BYTES = 0.3, 0.8, 200 * 10**9
#: Ray refuses less (OBJECT_STORE_MINIMUM_MEMORY_BYTES of ray 2.60.0).
LEAST_BYTES = 75 * 2**20
#: Sockets lie below the folder, and a socket's path has at most 107 characters on Linux: Ray's part of it takes up to 80.
TEMPORARY, LONGEST_TEMPORARY = "/tmp", 24
#: How `ray start` ends when it does not know an option, or the value of one.
USAGE_ERROR = 2
#: Ray drains a node for as long as its tasks need, up to 30 s; here nothing runs any more that counts.
STOP_SECONDS = 10.0
TAIL_LINES = 20


def memory_bytes(proc: Path = Path("/proc/meminfo"), cgroup: Path = Path("/sys/fs/cgroup/memory.max")) -> int:
    """Memory that the container may use: what the host has available, or the limit of the container's group."""
    available = next(int(line.split()[1]) * 1024 for line in proc.read_text().splitlines() if line.startswith("MemAvailable:"))
    try:
        return min(available, int(cgroup.read_text()))
    except (OSError, ValueError):  # "max", or another version of control groups.
        return available


def object_store_bytes(memory: int, shared_memory: int, nodes_here: int = 1) -> Optional[int]:
    """The size of one node's object store; None when /dev/shm is too small for any, and Ray must use a slower place."""
    size = int(min(MEMORY_SHARE * memory, SHM_SHARE * shared_memory, MOST_BYTES) / nodes_here)
    return size if size >= LEAST_BYTES else None


def free_shared_memory(folder: str = "/dev/shm") -> int:
    """Free bytes of the container's shared memory; 0 without any."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return 0
    return found.f_bsize * found.f_bavail


def start_words(
    where: Sequence[str], host: str, resources: Mapping[str, Any], parameters: Mapping[str, Any], python: str = sys.executable
) -> List[str]:
    """`ray start` on one host. `where`: head or address. `resources`: options with the driver's values; `parameters`: the run file's,
    which win."""
    given = {option_name(name): value for name, value in parameters.items()}
    own = given.pop("resources", None)
    labels = {HOST_RESOURCE + host: 1, **(own if isinstance(own, dict) else {})}
    options: Dict[str, Any] = {**resources, **given}
    words = [python, "-m", "ray.scripts.scripts", "start", "--block", *where]
    words += ["--%s=%s" % (name, _text(value)) for name, value in options.items() if value is not None]
    return [*words, "--resources=%s" % json.dumps(labels, separators=(",", ":"))]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def temporary_folder() -> str:
    """Where Ray keeps its session: the usual place for temporary files, unless its name is too long for Ray's sockets."""
    usual = tempfile.gettempdir()
    return usual if len(usual) <= LONGEST_TEMPORARY else TEMPORARY


class RayNode:
    """`ray start --block` and all that it starts, which die with this process."""

    def __init__(self, words: Sequence[str], environ: Mapping[str, str]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ray-", dir=temporary_folder()))
        self._log = self.folder / "ray-start.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*words, "--temp-dir=%s" % self.folder], env=dict(environ), stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, preexec_fn=die_with_parent,
            )  # fmt: skip

    @property
    def code(self) -> Optional[int]:
        """How `ray start` ended; None while it runs."""
        return self._process.poll()

    def unexpected_end(self, host: str) -> LauncherEnd:
        """Why the processes of this host ended unexpectedly; includes their last output."""
        code, lines = shell_code(self.code or 0), self._last_lines()
        for line in lines:
            log("ray: %s" % line)
        if code == USAGE_ERROR:
            said = next((line for line in reversed(lines) if line.strip()), "")
            return LauncherEnd(ENVIRONMENT, class_of(ENVIRONMENT), host, "distribution.parameters: ray start refused an option: %s" % said)
        return LauncherEnd(TRY_AGAIN, HARDWARE, host, "Ray's own processes ended with %d" % code)

    def _last_lines(self) -> List[str]:
        """Of `ray start` and its node manager."""
        found: List[str] = []
        for path in [self._log, *sorted(self.folder.glob("session_2*/logs/raylet.err"))]:
            found += path.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL_LINES:]
        return found

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Ends all processes of the node; by force after `seconds`."""
        if self.code is None:
            self._process.terminate()
            try:
                self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(str(self.folder), ignore_errors=True)
