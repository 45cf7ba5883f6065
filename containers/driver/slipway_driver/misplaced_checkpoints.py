"""Says when a trainer saves below the folder in which its checkpoints are looked for: its run would be taken for one that saves nothing."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any, Callable, Dict

from slipway_driver.attempt import Attempt
from slipway_driver.newest_checkpoint import newest_checkpoint
from slipway_driver.tables import TRAINER_CHECKPOINTS

Facts = Callable[[], Dict[str, Any]]


def noticing(attempt: Attempt, facts: Facts, log: Callable[[str], None]) -> Facts:
    """`facts`, which looks for such checkpoints whenever it is called, until there are any, and logs once where the first one is.

    Only for the marker that comes with `progress.format`; a marker of the run file is a decision.
    """
    job, folder = attempt.job, Path(attempt.environ.get("SLIPWAY_CHECKPOINT_URI") or "/nonexistent")
    usual = TRAINER_CHECKPOINTS.get(job.progress_format)
    if usual is None or job.committed_marker != usual.marker or job.checkpoint_mode != "managed":
        return facts
    marker, searching = usual.marker, [True]

    def noticed() -> Dict[str, Any]:
        # Files come and go while the trainer saves.
        with contextlib.suppress(OSError):
            found = next(folder.rglob(marker), None) if searching[0] else None
            searching[0] = searching[0] and found is None
            if found and not newest_checkpoint(str(folder), marker=marker):
                place = found.relative_to(folder)
                log(
                    "no checkpoint is seen: %s is below the folder in which those of format %s are looked for; "
                    'set checkpoints.committedMarker: "%s"' % (place.as_posix(), job.progress_format, _marker_of(place, marker))
                )
        return facts()

    return noticed


def _marker_of(place: Path, marker: str) -> str:
    """The marker with the folders in front of it. Numbers in them differ between starts."""
    folders = place.parts[: -len(marker.split("/"))]
    return "/".join([*(re.sub(r"\d+", "*", folder) for folder in folders), marker])
