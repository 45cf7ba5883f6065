"""Grouped matrix multiplication: one kernel per projection for all experts of a layer, on rows that are sorted by expert.

A loop over the experts would launch hundreds of small kernels and would have to read the number of rows per expert from the device. Shape
suffixes as in feed_forward.py; H experts of this rank, R rows, D and F dimensions of a matrix.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from slipway_trainer.sharding import is_linear, own, own_bias, stored_weight

if TYPE_CHECKING:
    from slipway_trainer.feed_forward import FeedForward

#: Rows of a matrix must be aligned to 16 bytes: 8 bfloat16 elements.
_MULTIPLE = 8
#: Limit on the elements of a matrix. Larger experts fill the GPU one after the other, and stacking their matrices costs more than it saves
#: (on an H200, forward and backward of 8,192 tokens: 30.2 ms grouped and 26.7 ms in a loop with Mixtral's 59 million, 16.0 and 20.2 with
#: GPT-OSS's 8 million, 5.3 and 37.6 with the 1.6 million of Qwen3-30B-A3B; docs/evidence/2026-11-23-h200.md).
_LARGEST = 1 << 24
#: Hopper, on which the kernel was measured. On Blackwell, experts without rows get gradients from uninitialized memory
#: (https://github.com/pytorch/pytorch/issues/172439, open 2026-11-23).
_CAPABILITY = (9, 0)


class _GroupedProduct(torch.autograd.Function):
    """Multiplies x_RD with the transposed matrix of each row's expert. The separate matrices are saved for the backward pass instead of the
    stacked tensor, because FSDP frees and gathers them again."""

    @staticmethod
    def forward(ctx: Any, x_RD: Tensor, ends_H: Tensor, *weights_FD: Tensor) -> Tensor:
        ctx.save_for_backward(x_RD, ends_H, *weights_FD)
        return F.grouped_mm(x_RD, torch.stack(weights_FD).transpose(1, 2), offs=ends_H)

    @staticmethod
    def backward(ctx: Any, gradient_RF: Tensor) -> tuple[Tensor | None, ...]:
        x_RD, ends_H, *weights_FD = ctx.saved_tensors
        gradient_RF = gradient_RF.contiguous()
        to_x_RD = F.grouped_mm(gradient_RF, torch.stack(weights_FD), offs=ends_H)
        to_weights_HFD = F.grouped_mm(gradient_RF.t(), x_RD, offs=ends_H)
        return to_x_RD, None, *to_weights_HFD.unbind()


def suits(x_RD: Tensor, experts: Collection[nn.Module]) -> bool:
    """Whether the kernel supports these rows and experts: bfloat16 on Hopper, plain linear layers with supported sizes."""
    if not hasattr(F, "grouped_mm") or x_RD.dtype != torch.bfloat16 or not x_RD.is_cuda or not experts:
        return False
    # A rank whose experts receive no tokens has no rows, which the kernel does not support
    # (https://github.com/pytorch/pytorch/pull/192497).
    if not x_RD.size(0) or torch.cuda.get_device_capability(x_RD.device) != _CAPABILITY:
        return False
    layers = [layer for layer in next(iter(experts)).children() if layer is not None]
    return all(is_linear(layer) and _suits(*own(stored_weight(layer)).shape) for layer in layers)


def _suits(outputs: int, inputs: int) -> bool:
    return not (inputs % _MULTIPLE or outputs % _MULTIPLE) and inputs * outputs <= _LARGEST


def visit(x_RD: Tensor, experts: Sequence["FeedForward"], visits_H: Tensor) -> Tensor:
    """Applies the experts to rows that are sorted by expert; `visits_H`: rows per expert."""
    ends_H = visits_H.cumsum(0, dtype=torch.int32)
    up_RF = _product(x_RD, (expert.up_proj for expert in experts), ends_H)
    gate_RF = None if experts[0].gate_proj is None else _product(x_RD, (expert.gate_proj for expert in experts), ends_H)
    return _product(experts[0].activated(gate_RF, up_RF), (expert.down_proj for expert in experts), ends_H)


def _product(x_RD: Tensor, layers: Iterable[nn.Linear], ends_H: Tensor) -> Tensor:
    layers = list(layers)
    product_RF = _GroupedProduct.apply(x_RD, ends_H, *(own(layer.weight) for layer in layers))
    if layers[0].bias is None:
        return product_RF
    rows_R = torch.arange(x_RD.size(0), device=x_RD.device, dtype=ends_H.dtype)
    return product_RF + torch.stack([own_bias(layer) for layer in layers])[torch.searchsorted(ends_H, rows_R, right=True)]
