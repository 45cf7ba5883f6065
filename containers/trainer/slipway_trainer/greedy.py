"""Greedy decoding with the sharded training model, by full forward passes, which every layout supports.

Shape suffixes as in model.py; S positions of this rank.
"""

from collections.abc import Callable, Sequence
from math import lcm

import torch
import torch.distributed as dist
from torch import Tensor, nn

from slipway_trainer.backend import Backend
from slipway_trainer.context_parallel import ContextParallel
from slipway_trainer.loss import gathered_positions
from slipway_trainer.tensor_parallel import TensorParallel

#: Rows are padded to a multiple of this, so that ranks can split the positions and float8 kernels support the size.
_MULTIPLE = 128


def likeliest(
    last_B: Tensor, length: int, context: ContextParallel | None, tensor: TensorParallel | None
) -> Callable[[nn.Module, Tensor], Tensor]:
    """A function for Transformer.forward that returns the most likely token (B) after position `last_B` of each row, equal on all ranks
    that share the row. Rows have `length` positions; logits are computed only for the last ones."""

    def choose(head: nn.Module, x_BSD: Tensor) -> Tensor:
        if tensor is not None:
            x_BSD = gathered_positions(x_BSD, tensor)
        held_S = torch.arange(length, device=x_BSD.device) if context is None else context.positions(length, x_BSD.device)
        is_last_BS = held_S == last_B[:, None]
        place_B11 = is_last_BS.int().argmax(dim=1)[:, None, None]
        logits_BV = head(x_BSD.gather(1, place_B11.expand(-1, 1, x_BSD.size(2))))[:, 0]
        found_B = torch.where(is_last_BS.any(dim=1), logits_BV.float().argmax(dim=-1), -1)
        if context is not None:
            # Only one of the ranks holds the position.
            dist.all_reduce(found_B, op=dist.ReduceOp.MAX, group=context.group)
        return found_B

    return choose


def continued(backend: Backend, prompts: Sequence[Sequence[int]], count: int, end: int | None) -> list[list[int]]:
    """Generates at most `count` tokens after each prompt, up to and including `end`. All ranks must call it with the same prompts.

    The tokens of rank 0 are broadcast, so that rounding differences between ranks cannot lead to different rows.
    """
    layout = backend.layout
    # Each rank of a context parallel group holds two chunks of a sequence, whose positions are split by tensor parallelism.
    longest, multiple = max(map(len, prompts)) + count, lcm(_MULTIPLE, 2 * layout.context * layout.tensor)
    tokens_BL = torch.zeros(len(prompts), longest + -longest % multiple, dtype=torch.long, device=backend.device)
    for row_L, prompt in zip(tokens_BL, prompts, strict=True):
        row_L[: len(prompt)] = torch.tensor(prompt)
    last_B = torch.tensor([len(prompt) - 1 for prompt in prompts], device=backend.device)
    rows_B, ended_B = torch.arange(len(prompts), device=backend.device), torch.zeros_like(last_B, dtype=torch.bool)
    for _ in range(count):
        next_B = backend.next_tokens(tokens_BL, last_B)
        dist.broadcast(next_B, src=0)
        last_B = last_B + 1
        tokens_BL[rows_B, last_B] = next_B
        ended_B |= next_B == (-1 if end is None else end)
        if bool(ended_B.all()):
            break
    rows = [row_L[len(prompt) : last + 1] for row_L, prompt, last in zip(tokens_BL.tolist(), prompts, last_B.tolist(), strict=True)]
    return [row[: row.index(end) + 1] if end in row else row for row in rows]
