"""Which checkpoint a start continues from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slipway_trainer.checkpoint.committed import Committed, newest_complete, read_checkpoint
from slipway_trainer.checkpoint.store import Store, open_store


@dataclass(frozen=True)
class Found:
    """A complete checkpoint and the store it is in."""

    store: Store
    committed: Committed


def find_resume(own: Store | None, resume_from: str, attempt: int) -> tuple[Found | None, list[str]]:
    """The newest complete checkpoint of the run's own store and `resume_from`, with complaints about those passed over.

    The own store counts too: when the service restarts a container, job.json is as old as the attempt. `resume_from` may lie in another
    run (checkpoints.startFrom) and wins only while the own store has nothing newer. When it names an older one of the own store, that is
    meant: newer ones count only if this attempt wrote them.
    """
    candidates: list[Found] = []
    complaints: list[str] = []
    named = None
    if resume_from:
        store = open_store(resume_from)
        named, complaint = read_checkpoint(store, "", list(store.list("")))
        if named is not None:
            candidates.append(Found(store, named))
        else:
            complaints.append(complaint)
    if own is not None:
        chosen = named.step if named is not None and resume_from.startswith(own.uri + "/") else None
        committed, passed_over = newest_complete(own, lambda record: _counts(record, chosen, attempt))
        complaints += passed_over
        if committed is not None:
            # First, because max keeps the first of equals.
            candidates.insert(0, Found(own, committed))
    return max(candidates, key=lambda found: found.committed.step, default=None), complaints


def _counts(record: Mapping[str, Any], chosen: int | None, attempt: int) -> str:
    """Why a complete checkpoint of the own store does not count; empty when it does."""
    if chosen is None or record["step"] <= chosen or int(record.get("attempt", 0)) >= attempt:
        return ""
    return f"is of attempt {record.get('attempt')} and newer than step {chosen}, from which this attempt was told to go on"
