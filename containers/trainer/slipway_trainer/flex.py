"""Attention with a mask in one kernel that skips what the mask leaves out: PyTorch's FlexAttention (arXiv 2412.05496), on GPUs.

What a query sees is a function of positions, so no mask of length x length is ever in memory, and blocks of keys that no query of a block
sees are not computed: a window of 128 tokens costs what it holds and not the square of the sequence. Scores may be capped inside the
kernel, and sinks need its sums of exponentials alone. Shape suffixes as in model.py; S queries of this rank, L positions of the sequence.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

#: Sizes of heads that the kernels take are multiples of it.
_MULTIPLE = 16
#: Kernels that one run may have compiled: for layers with and without a window, with and without gradients, for each micro-batch size and
#: each length of preference pairs (examples.row_length: 48 of them up to 32,768 tokens). PyTorch's own limits are 8 and 256 for all
#: functions together, behind which it would compute with all scores in memory (52 GiB at 8,192 tokens, seen on an H200).
_MOST_KERNELS = 256
#: The first PyTorch whose FlexAttention has been compared with the other kernels (npm run test:gpu).
_SINCE = (2, 11)


@cache
def _is_here() -> bool:
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    return version >= _SINCE and find_spec("triton") is not None


def suits(device: torch.device, *head_sizes: int) -> bool:
    """Whether layers with a mask compute with it here."""
    return device.type == "cuda" and _is_here() and not any(size % _MULTIPLE for size in head_sizes)


@cache
def _compiled() -> tuple[Callable[..., Any], Callable[..., Any]]:
    # Not at the top: it brings the compiler along.
    from torch._dynamo import config
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    config.recompile_limit = max(config.recompile_limit, _MOST_KERNELS)
    config.accumulated_recompile_limit = max(config.accumulated_recompile_limit, 4 * _MOST_KERNELS)
    return torch.compile(flex_attention, dynamic=False), torch.compile(create_block_mask, dynamic=False)


@dataclass(frozen=True)
class Sees:
    """Whether a query sees a key, as FlexAttention asks: up to itself, of its document, of the `window` positions that end with it, and of
    its chunk of `chunk` positions. `queries_S`: where queries stand among the keys; None = they are all there. `positions_BL`: those
    within documents."""

    documents_BL: Tensor | None
    queries_S: Tensor | None
    window: int | None
    chunk: int | None
    positions_BL: Tensor | None

    def function(self) -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]:
        """Of a batch's row, a head, a query and a key. The compiler takes plain functions."""
        documents_BL, queries_S, positions_BL, window, chunk = (
            self.documents_BL, self.queries_S, self.positions_BL, self.window, self.chunk,
        )  # fmt: skip

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

        return sees


def blocks(sees: Sees, rows: int | None, queries: int, keys: int, device: torch.device) -> "BlockMask":
    """What the kernel reads: which blocks of keys each block of queries sees, wholly or in part. `rows`: None where all are alike."""
    return _compiled()[1](sees.function(), rows, None, queries, keys, device=device)


def attend(
    q_BHSE: Tensor,
    k_BKLE: Tensor,
    v_BKLE: Tensor,
    mask: "BlockMask",
    scale: float,
    softcap: float | None,
    sinks_H: Tensor | None,
) -> Tensor:
    """As attend.attend with a mask."""
    from torch.nn.attention.flex_attention import AuxRequest

    def capped(score: Tensor, *_place: Tensor) -> Tensor:
        return torch.tanh(score / softcap) * softcap

    options = {"score_mod": capped if softcap is not None else None, "block_mask": mask, "scale": scale}
    options["enable_gqa"] = q_BHSE.size(1) != k_BKLE.size(1)
    if sinks_H is None:
        return _compiled()[0](q_BHSE, k_BKLE, v_BKLE, **options)
    mixed_BHSE, aux = _compiled()[0](q_BHSE, k_BKLE, v_BKLE, **options, return_aux=AuxRequest(lse=True))
    # A sink is one more term of the sum in the softmax: values get what it leaves.
    share_BHS1 = torch.sigmoid(aux.lse - sinks_H.float()[None, :, None]).unsqueeze(-1)
    return mixed_BHSE * share_BHS1.to(mixed_BHSE.dtype)
