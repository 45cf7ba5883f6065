"""Attention masks: causal, per document, sliding window, and chunks.

Shape suffixes as in model.py; S queries of this rank, L positions of the sequence.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Union

import torch
from torch import Tensor

from slipway_trainer import flex
from slipway_trainer.architecture import Architecture

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

#: A mask for attend: a summand of the scores, a block mask of FlexAttention, or None for causal attention.
Mask = Union[Tensor, "BlockMask", None]


@dataclass(frozen=True)
class Places:
    """Positions of tokens. `positions_L`: (L), or (B, 1, L) if each document starts at 0; `queries_S`: indices of this rank's queries in
    the sequence, None = all positions; `documents_BL`: document indices, None = one document."""

    length: int
    device: torch.device
    positions_L: Tensor
    queries_S: Tensor | None
    documents_BL: Tensor | None


class Masks:
    """The masks of one model."""

    def __init__(self, shape: Architecture) -> None:
        self._shape = shape
        latent = shape.latent
        self._head_sizes = (shape.head_size,) if latent is None else (latent.head_size, latent.value_head_size)
        #: Block masks of FlexAttention that do not depend on the batch.
        self._held: dict[tuple[int, bool], BlockMask] = {}

    def of(self, dtype: torch.dtype, places: Places) -> tuple[Mask, Mask]:
        """The masks of layers without and with a window. Tensors have the dtype of the hidden states."""
        window = self._shape.window
        if window is not None and window.size >= places.length:
            window = None
        if flex.suits(places.device, *self._head_sizes):
            # Causal attention needs no mask, but soft-capped scores and sinks also require FlexAttention.
            needs_blocks = places.documents_BL is not None or self._shape.attention_softcap is not None or self._shape.attention_sinks
            everywhere = self._blocks(places, False) if needs_blocks else None
            return everywhere, self._blocks(places, True) if window is not None else everywhere
        mask_SL = self._everywhere(places)
        added_SL = summand(mask_SL, dtype)
        if window is None:
            return added_SL, added_SL
        if window.chunked:
            window_SL = chunk_mask(places.positions_L, window.size, places.queries_S)
        else:
            window_SL = window_mask(places.length, window.size, places.device, places.queries_S)
        window_SL = window_SL if mask_SL is None else mask_SL & window_SL
        return added_SL, summand(window_SL, dtype)

    def _blocks(self, places: Places, windowed: bool) -> "BlockMask":
        key = places.length, windowed
        if places.documents_BL is None and key in self._held:
            return self._held[key]
        window = self._shape.window if windowed else None
        found = flex.blocks(
            documents_BL=places.documents_BL,
            queries_S=places.queries_S,
            window=None if window is None or window.chunked else window.size,
            chunk=window.size if window is not None and window.chunked else None,
            positions_BL=None if places.documents_BL is None else places.positions_L.flatten(0, -2),
            length=places.length,
            device=places.device,
        )
        if places.documents_BL is None:
            self._held[key] = found
        return found

    def _everywhere(self, places: Places) -> Tensor | None:
        # Soft-capped scores require a mask, as do sinks with context parallelism.
        shape, queries_S = self._shape, places.queries_S
        needs_mask = shape.attention_softcap is not None or (shape.attention_sinks and queries_S is not None)
        mask_SL = window_mask(places.length, places.length, places.device, queries_S) if needs_mask else None
        return mask_SL if places.documents_BL is None else document_mask(places.documents_BL, mask_SL, queries_S)


def window_mask(length: int, window: int, device: torch.device, queries_S: Tensor | None = None) -> Tensor:
    """(S, L): whether a query (row) attends to a key (column): its own position and the `window` - 1 before it. `queries_S`: indices of the
    queries in the sequence; None = all positions, S = L."""
    keys_L = torch.arange(length, device=device)
    before_SL = (keys_L if queries_S is None else queries_S)[:, None] - keys_L[None, :]
    return (before_SL >= 0) & (before_SL < window)


def chunk_mask(positions_L: Tensor, size: int, queries_S: Tensor | None = None) -> Tensor:
    """Whether a query attends to a key: its own position and earlier ones in the same chunk of `size` positions. (S, L), or (B, 1, S, L) if
    each sequence has its own positions."""
    chunks_L = positions_L // size
    chunks_S = chunks_L if queries_S is None else chunks_L[..., queries_S]
    length = positions_L.size(-1)
    return (chunks_S[..., :, None] == chunks_L[..., None, :]) & window_mask(length, length, positions_L.device, queries_S)


def summand(mask_SL: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """Converts a boolean mask to a summand of the scores: 0 or minus infinity. PyTorch would do this in every layer and keep each result
    until the backward pass."""
    if mask_SL is None:
        return None
    return torch.zeros(mask_SL.shape, dtype=dtype, device=mask_SL.device).masked_fill_(~mask_SL, float("-inf"))


def document_mask(documents_BL: Tensor, mask_SL: Tensor | None, queries_S: Tensor | None = None) -> Tensor:
    """(B, 1, S, L): `mask_SL` (default: causal), restricted to the document of the query."""
    if mask_SL is None:
        mask_SL = window_mask(documents_BL.size(1), documents_BL.size(1), documents_BL.device, queries_S)
    documents_BS = documents_BL if queries_S is None else documents_BL[:, queries_S]
    return (documents_BS[:, None, :, None] == documents_BL[:, None, None, :]) & mask_SL
