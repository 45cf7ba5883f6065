"""Prefetches micro-batches with threads, so that a step does not wait for storage. Reads do not hold the GIL."""

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

import torch
from torch import Tensor

from slipway_trainer.batches import Batches, MicroBatch, Sample

#: Number of prefetched micro-batches: a read from S3 takes 50 to 100 ms, a micro-batch of a small model less.
DEPTH = 8
THREADS = 4


class Prefetch:
    """The micro-batches of a rank in training order. Other orders work as well, without prefetching."""

    def __init__(self, batches: Batches, pinned: bool, depth: int = DEPTH) -> None:
        self._batches, self._pinned, self._depth = batches, pinned, depth
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="data")
        self._ahead: deque[tuple[tuple[int, int], Future[Tensor]]] = deque()

    def _following(self, key: tuple[int, int]) -> tuple[int, int]:
        batch, micro_step = key
        return (batch, micro_step + 1) if micro_step + 1 < self._batches.micro_steps else (batch + 1, 0)

    def _read(self, numbers: list[Sample]) -> Tensor:
        rows = self._batches.rows(numbers)
        return rows.pin_memory() if self._pinned else rows

    def _ask(self, key: tuple[int, int]) -> None:
        # The order is computed in this thread, because its cache is not thread-safe.
        self._ahead.append((key, self._pool.submit(self._read, self._batches.numbers(*key))))

    def micro_batch(self, batch: int, micro_step: int, device: torch.device) -> MicroBatch:
        """The micro-batch of a step. Raises DataFailed if it could not be read."""
        key = (batch, micro_step)
        if not self._ahead or self._ahead[0][0] != key:
            # The first micro-batch, or the first after skipped batches.
            self._drop()
            self._ask(key)
        while len(self._ahead) <= self._depth:
            self._ask(self._following(self._ahead[-1][0]))
        rows = self._ahead.popleft()[1].result()
        if device.type == "cuda":
            rows = rows.to(device, non_blocking=True)
        return self._batches.split(rows)

    def _drop(self) -> None:
        for _key, future in self._ahead:
            future.cancel()
        self._ahead.clear()

    def close(self) -> None:
        """Discards the prefetched data and stops the threads without waiting for them."""
        self._drop()
        self._pool.shutdown(wait=False, cancel_futures=True)
