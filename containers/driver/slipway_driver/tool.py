"""Runs a tool of the host, such as nvidia-smi, with a time limit that holds even if the tool cannot be killed."""

from __future__ import annotations

import shutil
import subprocess
from typing import NamedTuple, Optional, Sequence


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
