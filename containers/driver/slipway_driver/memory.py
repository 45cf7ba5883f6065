"""Detects processes of this container that the kernel killed because of memory."""

from __future__ import annotations

from pathlib import Path

#: cgroup v2 and v1 (https://docs.kernel.org/admin-guide/cgroup-v2.html, memory.events; v1: memory.oom_control).
_COUNTERS = (Path("/sys/fs/cgroup/memory.events"), Path("/sys/fs/cgroup/memory/memory.oom_control"))


def parse_oom_kills(text: str) -> int:
    """The `oom_kill` counter in a memory.events or memory.oom_control file; 0 if it is missing."""
    for line in text.splitlines():
        words = line.split()
        if len(words) == 2 and words[0] == "oom_kill" and words[1].isdigit():
            return int(words[1])
    return 0


def oom_kills() -> int:
    """Number of processes of this container that the out-of-memory killer has killed so far."""
    for path in _COUNTERS:
        try:
            return parse_oom_kills(path.read_text())
        except OSError:
            continue
    return 0
