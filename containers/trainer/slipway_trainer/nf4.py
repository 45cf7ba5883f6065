"""Frozen linear layers with 4-bit weights (NormalFloat, QLoRA, arXiv 2305.14314), by the library bitsandbytes.

Two elements share a byte, and each block of 64 elements has a scale in float32. The number of inputs is a multiple of 64, so that no block
crosses rows: a shard of rows is quantized alone, and equals the shard of the quantized weight.

The bytes are in tensors of the compute dtype, as with `quant_storage` of bitsandbytes. FSDP and unsharded.py cast parameters to that dtype,
which would change the bytes in a tensor of another floating-point dtype, and FSDP2 accepts integer parameters only in recent versions of
PyTorch (https://github.com/pytorch/pytorch/issues/177844, 2026-11-28).
"""

from collections.abc import Mapping

import torch
from bitsandbytes import matmul_4bit
from bitsandbytes.functional import QuantState, dequantize_4bit, quantize_4bit
from torch import Tensor, nn

from slipway_trainer.architecture import PACKED_BLOCK
from slipway_trainer.exits import InvalidRun
from slipway_trainer.lora import LoraLinear
from slipway_trainer.model import Transformer
from slipway_trainer.recompute import KEPT
from slipway_trainer.sharding import gathered, is_linear, local_part, local_slices

_KIND = "nf4"
#: Parameters that replace the weight, and how many of its elements share a byte of them.
_PARTS = {"weight": 2, "scales": PACKED_BLOCK // torch.float32.itemsize}

KEPT.add(torch.ops.bitsandbytes.gemm_4bit.default)


class _Nf4(nn.Linear):
    """The methods of packed layers. `scales`: one for each block, as bytes like `weight`."""

    scales: nn.Parameter

    @torch.no_grad()
    def pack(self, whole: Tensor) -> None:
        """Sets this rank's shard to the rows of a full weight."""
        weight, scales = (local_part(part) for part in self._stored())
        if not weight.numel():
            return
        rows = whole[local_slices(self._stored()[0])[0]].to(weight.device).contiguous()
        packed, state = quantize_4bit(rows, blocksize=PACKED_BLOCK, quant_type=_KIND, quant_storage=weight.dtype)
        weight.copy_(packed.view_as(weight))
        scales.copy_(state.absmax.view(scales.dtype).view_as(scales))

    @torch.no_grad()
    def unpacked(self) -> Tensor:
        """The full weight in float32, as the computation rounds it. All ranks that hold a shard must call it at the same time."""
        weight, scales = map(gathered, self._stored())
        return dequantize_4bit(weight.view(-1, 1), self._state(scales)).float()

    def product(self, x_BLD: Tensor) -> Tensor:
        """The output of the layer without an adapter. The backward pass unpacks the weight again."""
        return matmul_4bit(x_BLD, self.weight, self._state(self.scales), bias=self.bias)

    def _stored(self) -> tuple[Tensor, Tensor]:
        """The parameters, as attributes of unsharded.py would not return them."""
        return self._parameters["weight"], self._parameters["scales"]

    def _state(self, scales: Tensor) -> QuantState:
        size = torch.Size((self.out_features, self.in_features))
        flat = scales.view(torch.float32).flatten()
        return QuantState(flat, size, blocksize=PACKED_BLOCK, quant_type=_KIND, dtype=scales.dtype)


class Nf4Linear(_Nf4):
    """A linear layer with a packed weight."""

    def forward(self, x_BLD: Tensor) -> Tensor:
        return self.product(x_BLD)


class Nf4LoraLinear(LoraLinear, _Nf4):
    """The same with an adapter."""

    def base(self, x_BLD: Tensor) -> Tensor:
        return self.product(x_BLD)


def apply_nf4(model: Transformer, dtype: torch.dtype) -> None:
    """Packs the frozen weights of the linear layers in blocks, except routers and the gates of shared experts, which are small and decide
    for whole tokens. `dtype`: of the computation. The model has no values yet. Raises InvalidRun if blocks of a layer would cross rows."""
    frozen = {
        name: layer
        for block in model.all_blocks()
        for name, layer in block.named_modules(prefix=str(id(block)))
        if isinstance(layer, LoraLinear) or (is_linear(layer) and not name.endswith("shared_gate"))
    }
    _require_whole_blocks(frozen)
    for layer in frozen.values():
        layer.__class__ = Nf4LoraLinear if isinstance(layer, LoraLinear) else Nf4Linear
        for part, elements in _PARTS.items():
            columns = layer.in_features // (elements * dtype.itemsize)
            packed = torch.empty(layer.out_features, columns, dtype=dtype, device=layer.weight.device)
            layer.register_parameter(part, nn.Parameter(packed, requires_grad=False))


def _require_whole_blocks(layers: Mapping[str, nn.Linear]) -> None:
    found = {f"{name.rpartition('.')[2]} {layer.in_features}" for name, layer in layers.items() if layer.in_features % PACKED_BLOCK}
    if found:
        must = f"must be left out where layers have inputs that are not a multiple of {PACKED_BLOCK}: {', '.join(sorted(found))}"
        raise InvalidRun(f"training.lora.quantization: {must}, got {_KIND}; remove it")
