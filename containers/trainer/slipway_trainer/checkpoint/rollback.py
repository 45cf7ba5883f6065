"""Rolls back to an earlier checkpoint by deleting the markers of later ones, so that none of them is found as the newest."""

from dataclasses import dataclass

from slipway_trainer.checkpoint.committed import MARKER, marked_folders, parse_record
from slipway_trainer.checkpoint.store import Store


@dataclass(frozen=True)
class Rollback:
    """Checkpoints after `to_step` that were written by attempts before `before_attempt` are discarded."""

    to_step: int
    before_attempt: int


def forget_newer(store: Store, rollback: Rollback) -> list[str]:
    """Deletes the markers and returns the folders. The other objects are kept for inspection until the folder is written again.

    Idempotent: later attempts receive the same rollback, and their own checkpoints are kept.
    """
    forgotten = []
    for step, folder in marked_folders([entry.name for entry in store.list("")]):
        if step <= rollback.to_step:
            continue
        record = parse_record(store.read(f"{folder}/{MARKER}"))
        if record is None or int(record.get("attempt", 0)) < rollback.before_attempt:
            store.delete(f"{folder}/{MARKER}")
            print(f"rolled back to step {rollback.to_step}: {folder} no longer counts", flush=True)
            forgotten.append(folder)
    return forgotten
