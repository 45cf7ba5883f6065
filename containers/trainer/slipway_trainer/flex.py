"""Attention with masks in a fused kernel: PyTorch's FlexAttention (arXiv 2412.05496), on GPUs.

The mask is a function of positions, so no mask of size L x L is materialized, and blocks that are completely masked are skipped: the cost
of a window is proportional to its size. The kernel supports soft-capped scores; sinks need only its logsumexp. Shape suffixes as in
model.py; S queries of this rank, L positions of the sequence.
"""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

#: The kernels support head sizes that are multiples of this.
_MULTIPLE = 16
#: Limit on the kernels that are compiled in a run: for layers with and without a window, with and without gradients, for each micro-batch
#: size and each length of preference pairs (examples.row_length: 48 up to 32,768 tokens). PyTorch's default limits are 8 per function and
#: 256 for all functions together; beyond them it would fall back to materializing all scores (52 GiB at 8,192 tokens, measured on an H200).
_MAX_KERNELS = 256
#: The first PyTorch version whose FlexAttention was compared with the other kernels (npm run test:gpu).
_SINCE = (2, 11)


@cache
def _is_here() -> bool:
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    return version >= _SINCE and find_spec("triton") is not None


def suits(device: torch.device, *head_sizes: int) -> bool:
    """Whether layers with a mask use FlexAttention on this device."""
    return device.type == "cuda" and _is_here() and not any(size % _MULTIPLE for size in head_sizes)


@cache
def _compiled() -> tuple[Callable[..., Any], Callable[..., Any]]:
    # Imported here because it imports the compiler.
    from torch._dynamo import config
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    config.recompile_limit = max(config.recompile_limit, _MAX_KERNELS)
    config.accumulated_recompile_limit = max(config.accumulated_recompile_limit, 4 * _MAX_KERNELS)
    return torch.compile(flex_attention, dynamic=False), torch.compile(create_block_mask, dynamic=False)


def blocks(
    documents_BL: Tensor | None,
    queries_S: Tensor | None,
    window: int | None,
    chunk: int | None,
    positions_BL: Tensor | None,
    length: int,
    device: torch.device,
) -> "BlockMask":
    """The block mask of the kernel: for each block of queries, the full and partial blocks of keys. A query attends to a key: causal, in
    the same document, within `window` positions, in the same chunk of `chunk` positions. `queries_S`: positions of the queries, None = all
    positions; `positions_BL`: positions within documents. Without documents, all rows are equal."""

    def sees(row: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        place = query if queries_S is None else queries_S[query]
        found = place >= key
        if window is not None:
            found = found & (place - key < window)
        if documents_BL is not None:
            found = found & (documents_BL[row, place] == documents_BL[row, key])
        if chunk is not None and positions_BL is not None:
            found = found & (positions_BL[row, place] // chunk == positions_BL[row, key] // chunk)
        elif chunk is not None:
            found = found & (place // chunk == key // chunk)
        return found

    rows = None if documents_BL is None else documents_BL.size(0)
    return _compiled()[1](sees, rows, None, length if queries_S is None else queries_S.numel(), length, device=device)


def attend(
    q_BHSE: Tensor,
    k_BKLE: Tensor,
    v_BKLE: Tensor,
    mask: "BlockMask",
    scale: float,
    softcap: float | None,
    sinks_H: Tensor | None,
) -> Tensor:
    """Like attend.attend, with a block mask."""
    from torch.nn.attention.flex_attention import AuxRequest

    def capped(score: Tensor, *_place: Tensor) -> Tensor:
        return torch.tanh(score / softcap) * softcap

    options = {"score_mod": capped if softcap is not None else None, "block_mask": mask, "scale": scale}
    options["enable_gqa"] = q_BHSE.size(1) != k_BKLE.size(1)
    if sinks_H is None:
        return _compiled()[0](q_BHSE, k_BKLE, v_BKLE, **options)
    mixed_BHSE, aux = _compiled()[0](q_BHSE, k_BKLE, v_BKLE, **options, return_aux=AuxRequest(lse=True))
    # A sink is one more term of the softmax's denominator, which scales the output.
    share_BHS1 = torch.sigmoid(aux.lse - sinks_H.float()[None, :, None]).unsqueeze(-1)
    return mixed_BHSE * share_BHS1.to(mixed_BHSE.dtype)
