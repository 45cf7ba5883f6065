"""What launchers within a script, and PyTorch, put before each line of a rank."""

from __future__ import annotations

import re
from typing import Tuple

#: torchrun --tee and PyTorch's excepthook; mpirun --tag-output, also of Open MPI 5 and as AWS's toolkit rewrites it; Ray.
_LABEL = re.compile(
    r"\[(?:default|rank)(\d+)\]: ?"
    r"|\[(?:[\w.-]+@)?\d+,(?:mpirank:)?(\d+)(?:,[\w.-]+)?\]<std(?:out|err)>: ?"
    r"|\((?:\w+(?: rank=(\d+))?,? )?pid=\d+(?:, ip=[\d.]+)?\) "
)
#: A launcher's label, and PyTorch's within it.
MAX_LABELS = 2


def without_label(line: str) -> Tuple[str, str]:
    """The number of the rank in the first label of a line ("" if it has none), and the line behind the label."""
    found = _LABEL.match(line) if line.startswith(("[", "(")) else None
    if found is None:
        return "", line
    return (found[found.lastindex] if found.lastindex else ""), line[found.end() :]


def without_labels(line: str) -> Tuple[str, str]:
    """All labels at the beginning of a line, and the line behind them."""
    if not line.startswith(("[", "(")):
        return "", line
    rest = line
    for _ in range(MAX_LABELS):
        rest = without_label(rest)[1]
    return line[: len(line) - len(rest)].rstrip(), rest
