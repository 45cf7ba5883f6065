"""Runs a tool of the host, such as nvidia-smi, with a time limit that holds even if the tool cannot be killed."""

from __future__ import annotations

import shutil
import subprocess
from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple


class Answer(NamedTuple):
    """The end of a command. `text`: its standard output; None if it is not installed, cannot start or did not end in time. `code`: its exit
    code; None without one. `late`: it did not end in time."""

    text: Optional[str] = None
    code: Optional[int] = None
    late: bool = False


def answer_of(command: Sequence[str], seconds: float) -> Answer:
    """Runs a command for at most `seconds`."""
    if shutil.which(command[0]) is None:
        return Answer()
    try:
        process = subprocess.Popen(list(command), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return Answer()
    try:
        text, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        # A process that waits in NVIDIA's kernel driver does not end on SIGKILL, and subprocess.run would wait for it indefinitely.
        process.kill()
        if process.stdout is not None:
            process.stdout.close()
        return Answer(late=True)
    return Answer(text.decode("utf-8", "replace"), process.returncode)


def gpu_query(fields: str, query: str = "query-gpu") -> Tuple[str, ...]:
    """The command with which nvidia-smi prints fields of each GPU as CSV (https://docs.nvidia.com/deploy/nvidia-smi/, 2026-11-22)."""
    return "nvidia-smi", "--%s=%s" % (query, fields), "--format=csv,noheader,nounits"


def rows(text: Optional[str], cells: int) -> Iterator[List[str]]:
    """The rows of such output that have the expected number of cells. Of a lost GPU, nvidia-smi prints an error instead of a row."""
    for line in (text or "").splitlines():
        row = [cell.strip() for cell in line.split(",")]
        if len(row) == cells:
            yield row
