"""Rolls back to an earlier checkpoint: removes the markers of later checkpoints, so that none of them is used as the newest of the run."""

from dataclasses import dataclass

from slipway_trainer.checkpoint.committed import MARKER, marked_folders, parse_record
from slipway_trainer.checkpoint.store import Store


@dataclass(frozen=True)
class Rollback:
    """Checkpoints beyond `to_step` that attempts before `before_attempt` wrote do not count."""

    to_step: int
    before_attempt: int


def forget_newer(store: Store, rollback: Rollback) -> list[str]:
    """Takes the markers away and returns the folders. The objects stay for inspection until the folder is written again.

    A later attempt carries the same order, and what it wrote itself stays: doing this again changes nothing.
    """
    forgotten = []
    for step, folder in marked_folders([entry.name for entry in store.list("")]):
        if step <= rollback.to_step:
            continue
        record = parse_record(store.read(f"{folder}/{MARKER}"))
        if record is None or int(record.get("attempt", 0)) < rollback.before_attempt:
            store.delete(f"{folder}/{MARKER}")
            forgotten.append(folder)
    return forgotten
