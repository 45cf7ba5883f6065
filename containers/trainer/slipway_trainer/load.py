"""Loads the newest complete checkpoint of a run, with the state of the random number generators of each rank."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from slipway_trainer import progress
from slipway_trainer.backend import Backend
from slipway_trainer.checkpoint.committed import find_resume
from slipway_trainer.checkpoint.local_copies import CopyingStore
from slipway_trainer.checkpoint.reader import load, reading
from slipway_trainer.checkpoint.store import Store, open_store
from slipway_trainer.exits import CheckpointFailed
from slipway_trainer.settings import RunSettings
from slipway_trainer.world import World


def random_state(world: World) -> dict[str, Tensor]:
    """Random number generator states of this rank, with the rank in the name."""
    states = {f"random.cpu.{world.rank}": torch.get_rng_state()}
    if world.device.type == "cuda":
        states[f"random.cuda.{world.rank}"] = torch.cuda.get_rng_state(world.device)
    return states


def restore_random_state(world: World, states: Mapping[str, Tensor]) -> None:
    """Continues with the states of a checkpoint."""
    torch.set_rng_state(states[f"random.cpu.{world.rank}"])
    if world.device.type == "cuda":
        torch.cuda.set_rng_state(states[f"random.cuda.{world.rank}"], world.device)


def load_newest(settings: RunSettings, world: World, backend: Backend, own: Store | None) -> tuple[Mapping[str, Any] | None, bool]:
    """Loads the checkpoint into the backend's state on all ranks. Returns its record, None if there is none, and whether it is in the run's
    `own` store. Raises CheckpointFailed."""
    resume_from = settings.checkpoints.resume_from
    found = None
    if world.rank == 0:
        # All ranks must load the same checkpoint, and listings of the store may differ.
        found, complaints = find_resume(own, resume_from, settings.attempt)
        for complaint in complaints:
            print(f"checkpoint rejected: {complaint}", flush=True)
    chosen = world.from_first((found.store.uri, found.folder, dict(found.record)) if found else None)
    if chosen is None:
        if resume_from:
            raise CheckpointFailed(f"{resume_from}: no complete checkpoint to resume from; see the lines above for what was rejected")
        return None, False
    uri, folder, record = chosen
    _load(world, backend, own, uri, folder, record)
    return record, own is not None and uri == own.uri


def _load(world: World, backend: Backend, own: Store | None, uri: str, folder: str, record: Mapping[str, Any]) -> None:
    place = f"{uri}/{folder}".rstrip("/")
    library = backend.library_checkpoints
    wanted = library.format if library is not None else "dcp"
    if record.get("format", "dcp") != wanted:
        raise CheckpointFailed(
            f"{place}: must be a checkpoint of format {wanted} for this library, got {record['format']}; "
            "resume with the library that wrote it"
        )
    source = "s3" if uri.startswith("s3://") else "disk"
    if library is not None:
        with reading(place):
            library.read(place)
    elif _load_tensors(world, backend, own, uri, folder, record):
        source = "disk"
    if world.rank == 0:
        progress.emit("resume", step=record["step"], uri=place, source=source)


def _load_tensors(world: World, backend: Backend, own: Store | None, uri: str, folder: str, record: Mapping[str, Any]) -> bool:
    """Returns whether all objects were read from this host's copies."""
    random = random_state(world)
    store: Store = open_store(uri)
    here = 0
    if isinstance(own, CopyingStore) and own.uri == uri:
        store = own
        here = own.trust(folder, record)
        if world.rank == 0:
            print(f"{here} objects of {folder} are read from copies on this host", flush=True)
    state = backend.state()
    missing = load(store, folder, state | random, world.saving)
    lacking = sorted(name for name in missing if not name.startswith("random."))
    if lacking:
        raise CheckpointFailed(
            f"{uri}/{folder}: lacks {len(lacking)} tensors of this model ({', '.join(lacking[:3])}); "
            "resume with the model that wrote the checkpoint"
        )
    backend.restore(state)
    if not missing:
        # A checkpoint of a different number of ranks lacks some of these states; this trainer uses no random numbers after the start.
        restore_random_state(world, random)
    return here == len(record["objects"])
