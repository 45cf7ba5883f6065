"""Selects the checkpoint from which a start continues."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slipway_trainer.checkpoint.committed import Committed, newest_complete, read_checkpoint
from slipway_trainer.checkpoint.store import Store, open_store


@dataclass(frozen=True)
class Found:
    """A complete checkpoint and its store."""

    store: Store
    committed: Committed


def find_resume(own: Store | None, resume_from: str, attempt: int) -> tuple[Found | None, list[str]]:
    """The newest complete checkpoint in the run's own store and in `resume_from`, and the reasons why others were rejected.

    The own store is searched as well, because job.json is outdated when the service restarts a container. `resume_from` may be a checkpoint
    of another run (checkpoints.startFrom); it is used only if the own store has no newer one. If it is an older checkpoint of the own store
    (a rollback), newer ones count only if this attempt wrote them.
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
            # First, because max returns the first of equal elements.
            candidates.insert(0, Found(own, committed))
    return max(candidates, key=lambda found: found.committed.step, default=None), complaints


def _counts(record: Mapping[str, Any], chosen: int | None, attempt: int) -> str:
    """Why a complete checkpoint of the own store is rejected; empty if it is not."""
    if chosen is None or record["step"] <= chosen or int(record.get("attempt", 0)) >= attempt:
        return ""
    return f"is of attempt {record.get('attempt')} and newer than step {chosen}, from which this attempt must continue"
