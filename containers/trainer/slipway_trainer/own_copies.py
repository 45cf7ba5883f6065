"""Copies in memory of the state of a script with its own training loop (slipway_helper.keep_in_memory)."""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

from slipway_trainer import progress
from slipway_trainer.checkpoint.interval import History
from slipway_trainer.checkpoint.memory_plan import read_memory_plan
from slipway_trainer.checkpoint.memory_restore import gathered
from slipway_trainer.host_groups import host_group
from slipway_trainer.memory import Memory, open_memory
from slipway_trainer.world import World

#: The ranks agree on copies every so many steps, unless the run file says how often to copy.
AGREE_EVERY = 10
#: Numbers and texts of the state are kept as one tensor, whose size must be the same in the next start: it has at least so many bytes more
#: than they need at first, and is a power of two.
SPARE_BYTES = 64 << 10
VALUES = "values"


class ScriptRanks(World):
    """The ranks of a script, whose process group exists already."""

    def __init__(self) -> None:
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.device = torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")
        self.control = host_group()


class OwnCopies:
    """The copies of one rank. All ranks must call each method in the same order."""

    def __init__(self, model: torch.nn.Module, optimizer: Any, replicas: int, more: Mapping[str, Any]) -> None:
        """`more`: further objects with `state_dict` and `load_state_dict`. Raises ValueError for replicas that do not divide the ranks."""
        if replicas < 1 or dist.get_world_size() % replicas:
            raise ValueError(f"keep_in_memory: replicas must divide the {dist.get_world_size()} ranks, got {replicas}")
        job = json.loads(Path(os.environ["SLIPWAY_JOB_FILE"]).read_text(encoding="utf-8"))
        self._model, self._optimizer, self._more, self._ranks = model, optimizer, more, ScriptRanks()
        self._replicas, self._capacity = replicas, 0
        self._plan = read_memory_plan(job["checkpoints"].get("memory"), os.environ)
        self._every = (self._plan.every_steps if self._plan else None) or AGREE_EVERY
        #: None before the first copy, or without memory for it.
        self._memory: Memory | None = None
        self._is_open = False
        self._identity = {
            "runId": job["runId"],
            "attempt": job["attempt"],
            "configHash": job["configHash"],
            "codeDigest": job["digests"]["code"],
            "worldSize": self._ranks.ranks,
            "layout": "script",
        }
        self._calls, self._began_at = 0, time.monotonic()

    def load(self, newer_than: int = 0) -> int | None:
        """Loads the newest copy that all ranks have, unless it is older than step `newer_than`. Returns its step; None without a copy."""
        kept = self._plan is not None and os.stat(self._plan.files[self._ranks.local_rank]).st_size > 0
        if not any(gathered(kept, self._ranks.control)):
            return None
        # The state must be complete to be loaded. PyTorch completes that of an optimizer by a step, which must not count without a copy.
        optimizers = [self._optimizer] if isinstance(self._optimizer, torch.optim.Optimizer) else self._optimizer
        empty = [one for one in optimizers if not one.state]
        state = self._flattened()
        self._open(state)
        found = self._memory.resume(state, self._identity, newer_than) if self._memory else None
        if found is None:
            for one in empty:
                one.state.clear()
            return None
        # Some owners replace their tensors.
        tensors = {name: tensor.detach().clone() for name, tensor in state.items()}
        whole = rebuilt(self._whole(), "", tensors, json.loads(state[VALUES].numpy().tobytes()))
        set_state_dict(self._model, self._optimizer, model_state_dict=whole["model"], optim_state_dict=whole["optimizer"])
        for name, one in self._more.items():
            one.load_state_dict(whole[name])
        step = int(found.record["step"])
        if self._ranks.rank == 0:
            progress.emit("resume", step=step, source=found.source)
        return step

    def step(self, number: int) -> None:
        """Must follow each update of the state, with the number of the step. Takes a copy if one is due. Raises ValueError for a state with
        values that JSON does not have."""
        self._calls += 1
        if self._calls % self._every:
            return
        if not self._is_open:
            self._open(self._flattened())
        if self._memory is None:
            return
        self._memory.collect()
        own = self._memory.requests(number)
        answers = torch.tensor(list(own.values()), dtype=torch.int32)
        dist.all_reduce(answers, dist.ReduceOp.MAX, group=self._ranks.control)
        requests = frozenset(name for name, answer in zip(own, answers.tolist(), strict=True) if answer)
        now = time.monotonic()
        seconds, self._began_at = (now - self._began_at) / self._every, now
        state = self._flattened() if self._memory.is_due(requests) else None
        self._memory.after_step(requests, number, self._identity | {"step": number}, seconds, state)
        # The script does not say when its next update begins.
        self._memory.copies.before_update()

    def wait(self) -> None:
        """Waits until the last copy is complete."""
        if self._memory is not None:
            self._memory.copies.wait()

    def close(self) -> None:
        """Waits for the last copy, for a limited time. Belongs before the end of the process group."""
        if self._memory is not None:
            self._memory.copies.close()

    def _open(self, state: Mapping[str, Tensor]) -> None:
        self._is_open = True
        self._memory = open_memory(self._plan, self._ranks, self._replicas, state, History())

    def _whole(self) -> dict[str, Any]:
        model, optimizer = get_state_dict(self._model, self._optimizer)
        return {"model": model, "optimizer": optimizer, **{name: one.state_dict() for name, one in self._more.items()}}

    def _flattened(self) -> dict[str, Tensor]:
        """The tensors of the state by name, and its other values as one tensor."""
        tensors: dict[str, Tensor] = {}
        values: dict[str, Any] = {}
        flatten(self._whole(), "", tensors, values)
        text = json.dumps(values).encode()
        self._capacity = self._capacity or 1 << (len(text) + SPARE_BYTES).bit_length()
        if len(text) > self._capacity:
            raise ValueError(f"keep_in_memory: numbers and texts of the state must have at most {self._capacity} bytes, got {len(text)}")
        return tensors | {VALUES: torch.frombuffer(bytearray(text.ljust(self._capacity)), dtype=torch.uint8)}


def _parts(value: Any) -> "list[tuple[Any, Any]] | None":
    """The entries of a value that contains others; None for a tensor, a number, a text or a list of them."""
    if isinstance(value, Mapping):
        return list(value.items())
    is_deep = isinstance(value, (list, tuple)) and any(isinstance(one, (Tensor, Mapping, list, tuple)) for one in value)
    return list(enumerate(value)) if is_deep else None


def flatten(value: Any, path: str, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
    """Adds the tensors and other values in `value` by their paths. Raises ValueError for one that JSON does not have."""
    parts = _parts(value)
    if isinstance(value, Tensor):
        tensors[path] = value
    elif parts is not None:
        for key, part in parts:
            flatten(part, f"{path}/{key}", tensors, values)
    else:
        try:
            json.dumps(value)
        except TypeError:
            kind = type(value).__name__
            raise ValueError(f"keep_in_memory: {path[1:]} must be a tensor, a number, a text or a list of them, got {kind}") from None
        values[path] = value


def rebuilt(value: Any, path: str, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> Any:
    """`value` with the tensors and other values of these paths."""
    parts = _parts(value)
    if isinstance(value, Tensor):
        return tensors[path]
    if parts is None:
        return tuple(values[path]) if isinstance(value, tuple) else values[path]
    found = {key: rebuilt(part, f"{path}/{key}", tensors, values) for key, part in parts}
    return found if isinstance(value, Mapping) else type(value)(found.values())
