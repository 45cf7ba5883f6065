"""Memory of activations: recomputed in the backward pass (none, selective: save matrix products and attention, full, or in groups of
layers), or offloaded to host memory until then (`training.activationOffload`).

Copies to the host run in a separate stream, concurrently with the computation; copies back run in the stream of the computation. Only
activations are offloaded: otherwise every forward pass would copy all weights of the model on every rank, because autograd saves them as
well.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from slipway_trainer.settings import RunSettings

#: Smaller tensors are not offloaded.
MIN_BYTES = 1 << 20


@dataclass(frozen=True)
class _Held:
    """A host copy, and the event after which it is complete; None if the copy is synchronous."""

    copy: Tensor
    done: torch.cuda.Event | None


class _Weights:
    """Recognizes the weights of layers by their storage. Sharded weights are allocated only while their FSDP unit computes, and
    expert-parallel experts later than the rest of their layer."""

    def __init__(self, layers: nn.Module) -> None:
        self._layers = layers
        self._found: set[int] = set()
        self._all = False

    def have(self, tensor: Tensor) -> bool:
        """Whether a tensor is a weight or a view of one."""
        if not self._all and _storage(tensor) not in self._found:
            places = [_storage(parameter) for parameter in self._layers.parameters()]
            self._found.update(filter(None, places))
            self._all = all(places)
        return _storage(tensor) in self._found


class Offload:
    """Offloads the activations of one model on one device."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def of(self, layers: nn.Module) -> saved_tensors_hooks:
        """Context for the forward pass of `layers`: saved tensors are offloaded to the host."""
        weights = _Weights(layers)

        def pack(tensor: Tensor) -> Tensor | _Held:
            return self._copied(tensor) if self._goes(tensor) and not weights.have(tensor) else tensor

        return saved_tensors_hooks(pack, self._back)

    def _goes(self, tensor: Tensor) -> bool:
        """Whether a tensor is large, dense and not overlapping. Expanded ones cannot be copied with their strides, and their source is
        small."""
        is_large = tensor.device.type == self._device.type and tensor.nbytes >= MIN_BYTES
        return is_large and type(tensor) is Tensor and torch.ops.aten.is_non_overlapping_and_dense.default(tensor)

    def _copied(self, tensor: Tensor) -> _Held:
        # Keeps the strides, on which compiled code depends.
        copy = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, pin_memory=self._stream is not None)
        if self._stream is None:
            return _Held(copy.copy_(tensor), None)
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(self._stream):
            copy.copy_(tensor, non_blocking=True)
        # Allows reuse of its memory after the copy is complete.
        tensor.record_stream(self._stream)
        return _Held(copy, self._stream.record_event())

    def _back(self, found: Tensor | _Held) -> Tensor:
        if isinstance(found, Tensor):
            return found
        if found.done is not None:
            torch.cuda.current_stream(self._device).wait_event(found.done)
        back = torch.empty_strided(found.copy.size(), found.copy.stride(), dtype=found.copy.dtype, device=self._device)
        return back.copy_(found.copy, non_blocking=True)


def _storage(tensor: Tensor) -> int:
    """The address of a tensor's storage; 0 if it has none, such as a sharded parameter that is not gathered."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return 0


#: Creates the context manager in which a model runs a layer.
AroundLayers = Callable[[nn.Module], saved_tensors_hooks]

_aten = torch.ops.aten
#: Fused attention kernels of scaled_dot_product_attention. Not every PyTorch version has all of them.
_ATTENTION = (
    "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_fused_attention_overrideable",
)
#: Outputs that are saved because their recomputation is expensive. nf4.py adds its product.
KEPT = {_aten.mm.default, _aten._scaled_mm.default}
KEPT |= {getattr(_aten, name).default for name in (*_ATTENTION, "_grouped_mm") if hasattr(_aten, name)}
if hasattr(torch.ops.higher_order, "flex_attention"):
    KEPT.add(torch.ops.higher_order.flex_attention)
# Under tensor parallelism, recomputing these outputs would repeat communication.
KEPT |= {torch.ops._c10d_functional.reduce_scatter_tensor.default}


def _policy(_context, operation, *_args, **_kwargs) -> CheckpointPolicy:
    return CheckpointPolicy.MUST_SAVE if operation in KEPT else CheckpointPolicy.PREFER_RECOMPUTE


def layers_recomputed(layers: Sequence[nn.Module], x_BLD: Tensor, *tables: Tensor | None) -> Tensor:
    """Runs several layers and saves only the input of the first one: less memory than one input per layer, for the same computation."""

    def run(x_BLD: Tensor) -> Tensor:
        for layer in layers:
            x_BLD = layer(x_BLD, *tables)
        return x_BLD

    return checkpoint(run, x_BLD, use_reentrant=False, preserve_rng_state=False)


def apply_recompute(block: nn.Module, mode: str) -> None:
    """Changes `block` to recompute its activations in the backward pass. Parameter names do not change."""
    if mode == "none":
        return
    inner, options = block.forward, {}
    if mode == "selective":
        options["context_fn"] = partial(create_selective_checkpoint_contexts, _policy)
    block.forward = lambda *arguments: checkpoint(inner, *arguments, use_reentrant=False, preserve_rng_state=False, **options)


def save_activation_memory(model: Any, settings: RunSettings, device: torch.device) -> None:
    """Applies activation checkpointing and offloading to a Transformer, as the run requests them."""
    model.recompute_layers = settings.arguments.recompute_layers
    if settings.training.activation_offload:
        model.around = Offload(device).of
    for block in model.blocks_recomputed_alone():
        apply_recompute(block, settings.training.activation_checkpointing)
