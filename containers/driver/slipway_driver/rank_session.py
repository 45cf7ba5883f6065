"""The processes of a rank. Its script leads a session, to which the programs belong that it starts, also those that `timeout` or a shell
with job control put into process groups of their own."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Dict, List, NamedTuple, Set

#: A shell runs its trap only when the program that it waits for has ended, so that program needs the signal as well.
_SHELLS = ("sh", "bash", "dash", "ash", "zsh", "ksh", "busybox")


class Member(NamedTuple):
    """One process. `handles`: it has a handler for SIGTERM. `reads`, `writes`: pipes of its standard input, and of its outputs."""

    parent: int
    handles: bool
    reads: str
    writes: Set[str]


def send(pid: int, number: int) -> None:
    """Sends a signal to a process; ignored if it has already ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def send_group(pid: int, number: int) -> None:
    """Sends a signal to a process group; ignored if it has already ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def members(session: int) -> Dict[int, Member]:
    """The processes of a session by process id, without zombies."""
    found: Dict[int, Member] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if name.isdigit():
            try:
                member = _member(name, session)
            except (OSError, ValueError, IndexError):
                continue  # It has just ended.
            if member is not None:
                found[int(name)] = member
    return found


def _member(pid: str, session: int) -> "Member | None":
    with open("/proc/%s/stat" % pid, encoding="utf-8", errors="replace") as opened:
        before, _, after = opened.read().rpartition(")")
    state, parent, _group, of_session = after.split()[:4]
    if int(of_session) != session or state in ("Z", "X"):
        return None
    with open("/proc/%s/status" % pid, encoding="utf-8", errors="replace") as opened:
        caught = next((int(line.split()[1], 16) for line in opened if line.startswith("SigCgt:")), 0)
    handles = bool(caught >> (signal.SIGTERM - 1) & 1) and before.partition("(")[2] not in _SHELLS
    return Member(int(parent), handles, _pipe(pid, 0), {_pipe(pid, 1), _pipe(pid, 2)} - {""})


def _pipe(pid: str, descriptor: int) -> str:
    try:
        target = os.readlink("/proc/%s/fd/%d" % (pid, descriptor))
    except OSError:
        return ""
    return target if target.startswith("pipe:") else ""


def receivers(session: int) -> List[int]:
    """The processes of a session that a stop is sent to: all except the workers of a program that handles the signal, which it needs while
    it saves, and the readers of a pipeline (`| tee log`), which end with their input and without which the program could not print."""
    found = members(session)

    def is_worker(member: Member) -> bool:
        parent = found.get(member.parent)
        return parent is not None and (parent.handles or is_worker(parent))

    def is_reader(pid: int, member: Member) -> bool:
        return not member.handles and any(member.reads in other.writes for at, other in found.items() if at != pid)

    return [pid for pid, member in found.items() if not is_worker(member) and not is_reader(pid, member)]


def stop_session(session: int) -> None:
    """Sends SIGTERM to the processes of a session that a stop is sent to."""
    pids = receivers(session)
    for pid in pids:
        send(pid, signal.SIGTERM)
    if not pids:  # There is no /proc.
        send_group(session, signal.SIGTERM)


def kill_session(session: int) -> None:
    """Sends SIGKILL to all processes of a session."""
    for pid in members(session):
        send(pid, signal.SIGKILL)
    send_group(session, signal.SIGKILL)


def is_running(pid: int) -> bool:
    """Whether a process is running. A zombie does not count, because it holds no resources."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as opened:
            return opened.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (OSError, IndexError):
        return False
