"""What waiting for runs has in common."""

from __future__ import annotations

#: States of a run that is over.
ENDED = ("completed", "failed", "stopped")
#: Failed observations in a row before waiting gives up; the run itself goes on.
PATIENCE = 10
