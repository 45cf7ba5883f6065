"""The chunks into which FSDP2 divides a parameter when a model is built.

FSDP2 makes the chunks of all ranks for each parameter and reads two of them, its own and the first. On thousands of ranks, this takes most
of the time of building a model: 46 s of 48 s for Llama 3 70B on 10,000 ranks (PyTorch 2.15, one CPU core, 2026-11-29).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

from torch import Tensor

#: FSDP2's module and its function that makes the chunks, which are private. Without them, nothing changes.
MODULE, FUNCTION = "torch.distributed.fsdp._fully_shard._fsdp_param", "_chunk_with_empty"


class Chunks(Sequence[Tensor]):
    """Like `torch.chunk`, with an empty tensor for each rank without a part; each chunk is made when it is read."""

    def __init__(self, tensor: Tensor, num_chunks: int, dim: int) -> None:
        self._tensor, self._count, self._dim = tensor, num_chunks, dim
        self._length = -(-tensor.size(dim) // num_chunks)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        if not 0 <= index < self._count:
            raise IndexError(index)
        start = index * self._length
        left = self._tensor.size(self._dim) - start
        return self._tensor.narrow(self._dim, start, min(self._length, left)) if left > 0 else self._tensor.new_empty(0)


@contextmanager
def chunks_as_read() -> Iterator[None]:
    """Within this context, FSDP2 makes only the chunks that it reads."""
    try:
        module = import_module(MODULE)
    except ImportError:
        module = None
    before = getattr(module, FUNCTION, None)
    if before is None:
        yield
        return
    setattr(module, FUNCTION, Chunks)
    try:
        yield
    finally:
        setattr(module, FUNCTION, before)
