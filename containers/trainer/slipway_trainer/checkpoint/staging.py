"""Copies of sharded tensors in host memory, so that training continues while they are written."""

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
    """Host buffers that are allocated once and reused by every save; pinned if the tensors are on a GPU.

    The two helper functions are those of DCP's async_save. They preserve the sharding of each tensor, which a plain copy would not.
    """

    def __init__(self, pinned: bool) -> None:
        self._pinned = pinned
        self._buffers: dict[str, Any] | None = None
        self._stream: torch.cuda.Stream | None = None

    def prepare(self, state: dict[str, torch.Tensor]) -> None:
        """Allocates the buffers, so that the first save is as fast as later ones and a save during a hang needs no new pinned memory."""
        if self._buffers is None or self._buffers.keys() != state.keys():
            self._buffers = self._make(state)
        if self._pinned and self._stream is None:
            # The initialization at the first use of a stream waits for all running kernels (observed on an H200), including hung ones.
            self._stream = torch.cuda.Stream()
            with torch.cuda.stream(self._stream):
                torch.zeros(1, device="cuda").cpu()

    def _make(self, state: dict[str, torch.Tensor]) -> dict[str, Any]:
        return _create_cpu_state_dict(state, pin_memory=self._pinned)

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Copies in this context do not wait for the kernels of training. `prepare` must have been called."""
        if self._stream is None:
            yield
            return
        with torch.cuda.stream(self._stream):
            yield

    def copy(self, state: dict[str, torch.Tensor]) -> dict[str, Any]:
        """A snapshot of `state`, valid until the next call."""
        self.prepare(state)
        return _copy_state_dict(state, self._buffers)


class SharedStaging(Staging):
    """Buffers in memory shared with the checkpoint process. They contain local shards, because that process has no sharding information."""

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
                print(f"host memory for saves is not pinned ({error}): each save blocks training for longer", flush=True)
        self._process.set_up(self._target, self._group, places, state)
        return buffers

    @torch.no_grad()
    def copy(self, state: dict[str, torch.Tensor]) -> dict[str, Any]:
        self.prepare(state)
        assert self._buffers is not None
        for name, buffer in self._buffers.items():
            buffer.copy_(local_part(state[name]), non_blocking=self._pinned)
        if self._pinned and any(local_part(tensor).is_cuda for tensor in state.values()):
            torch.cuda.current_stream().synchronize()
        return self._buffers
