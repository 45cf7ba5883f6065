"""Copies of sharded tensors in host memory, so that training can go on while they are written."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed._state_dict_utils import _copy_state_dict, _create_cpu_state_dict

from slipway_trainer.checkpoint.process import SaverProcess, Target
from slipway_trainer.checkpoint.shared_state import local_part, pin, places_of, reserve, tensors_at, whole_bytes
from slipway_trainer.exits import CheckpointFailed


class Staging:
    """Host buffers that are made once and used by every save; pinned where there is a GPU to copy from.

    The two helpers are DCP's own (its async_save uses them). They keep each tensor's sharding, which a plain copy would lose.
    """

    def __init__(self, pinned: bool) -> None:
        self._pinned = pinned
        self._buffers: dict[str, Any] | None = None
        self._stream: torch.cuda.Stream | None = None

    def prepare(self, state: dict[str, torch.Tensor]) -> None:
        """Makes the buffers. The first save then takes as long as any other, and one beside a hung kernel needs no pinned memory."""
        if self._buffers is None or self._buffers.keys() != state.keys():
            self._buffers = self._make(state)
        if self._pinned and self._stream is None:
            # What CUDA makes when a stream is first used waits for every kernel that runs (seen on an H200), a hung one too.
            self._stream = torch.cuda.Stream()
            with torch.cuda.stream(self._stream):
                torch.zeros(1, device="cuda").cpu()

    def _make(self, state: dict[str, torch.Tensor]) -> dict[str, Any]:
        return _create_cpu_state_dict(state, pin_memory=self._pinned)

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Copies in here do not wait for the kernels of training. The buffers must be prepared."""
        if self._stream is None:
            yield
            return
        with torch.cuda.stream(self._stream):
            yield

    def copy(self, state: dict[str, torch.Tensor]) -> dict[str, Any]:
        """A snapshot of `state`. Valid until the next call."""
        self.prepare(state)
        return _copy_state_dict(state, self._buffers)


class SharedStaging(Staging):
    """Buffers in memory that the process has too, which writes them. They hold local parts: that process knows no sharding."""

    def __init__(self, pinned: bool, process: SaverProcess, target: Target, group: dist.ProcessGroup) -> None:
        super().__init__(pinned)
        self._process, self._target, self._group = process, target, group

    def _make(self, state: dict[str, torch.Tensor]) -> dict[str, Any]:
        places = places_of(state)
        size = whole_bytes(places)
        try:
            reserve(self._process.descriptor, size)
        except OSError as error:
            reason = f"host memory for saves: must have room for {size / 2**30:.1f} GiB beside training, got {error.strerror}"
            raise CheckpointFailed(f"{reason}; use more instances, or a type with more memory") from error
        buffers = tensors_at(self._process.descriptor, places)
        if self._pinned:
            try:
                pin(buffers)
            except OSError as error:
                print(f"host memory for saves is not pinned ({error}): each save keeps training waiting longer", flush=True)
        self._process.set_up(self._target, self._group, places, state)
        return buffers

    @torch.no_grad()
    def copy(self, state: dict[str, torch.Tensor]) -> dict[str, Any]:
        self.prepare(state)
        assert self._buffers is not None
        for name, buffer in self._buffers.items():
            buffer.copy_(local_part(state[name]), non_blocking=self._pinned)
        if self._pinned:
            torch.cuda.current_stream().synchronize()
        return self._buffers
