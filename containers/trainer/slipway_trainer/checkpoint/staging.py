"""Copies of sharded tensors in host memory, so that training can go on while they are written."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.distributed._state_dict_utils import _copy_state_dict, _create_cpu_state_dict


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
            self._buffers = _create_cpu_state_dict(state, pin_memory=self._pinned)
        if self._pinned and self._stream is None:
            # What CUDA makes when a stream is first used waits for every kernel that runs (seen on an H200), a hung one too.
            self._stream = torch.cuda.Stream()
            with torch.cuda.stream(self._stream):
                torch.zeros(1, device="cuda").cpu()

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
