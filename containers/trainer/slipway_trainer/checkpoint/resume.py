"""Which checkpoint a start continues from."""

from dataclasses import dataclass

from slipway_trainer.checkpoint.committed import Committed, newest_complete, read_checkpoint
from slipway_trainer.checkpoint.store import Store, open_store


@dataclass(frozen=True)
class Found:
    """A complete checkpoint and the store it is in."""

    store: Store
    committed: Committed


def find_resume(own: Store | None, resume_from: str) -> tuple[Found | None, list[str]]:
    """The newest complete checkpoint of the run's own store and `resume_from`, with complaints about those passed over.

    The own store counts too: when the service restarts a container, job.json is as old as the attempt. `resume_from` may lie in another
    run (checkpoints.startFrom) and wins only while the own store has nothing newer.
    """
    candidates: list[Found] = []
    complaints: list[str] = []
    if own is not None:
        committed, complaints = newest_complete(own)
        if committed is not None:
            candidates.append(Found(own, committed))
    if resume_from:
        store = open_store(resume_from)
        named, complaint = read_checkpoint(store, "", list(store.list("")))
        if named is not None:
            candidates.append(Found(store, named))
        else:
            complaints.append(complaint)
    # max keeps the first of equals: the own store.
    return max(candidates, key=lambda found: found.committed.step, default=None), complaints
