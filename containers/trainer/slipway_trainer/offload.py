"""Offloads activations to host memory until the backward pass (`training.activationOffload`).

Copies to the host run in a separate stream, concurrently with the computation; copies back run in the stream of the computation. Only
activations are offloaded: otherwise every forward pass would copy all weights of the model on every rank, because autograd saves them as
well.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

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
