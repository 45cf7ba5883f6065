"""Mixed precision without FSDP, for a rank that holds the whole model: parameters and gradients stay in float32, and layers compute with
parameters in the compute dtype.

FSDP on one rank copies each layer's parameters twice and its gradients twice per step. Here the cast is a part of the compiled layer. The
parameters are properties of the modules, as in SimpleFSDP (arXiv 2411.00284), so that their names do not change.
"""

from collections.abc import Callable
from functools import cache, partial

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

#: Reads a parameter in the dtype of the computation.
Cast = Callable[[Tensor], Tensor]


def compute_in(dtype: torch.dtype, module: nn.Module, again: bool) -> None:
    """Lets a module, without its children, compute with its parameters in `dtype`. `again`: the compiled backward pass casts them again;
    otherwise it would need saved copies, unless the module is in a part of the model that is recomputed."""
    if module._parameters:
        module.__class__ = _class(type(module), tuple(module._parameters), dtype, again)


@cache
def _class(kind: type[nn.Module], names: tuple[str, ...], dtype: torch.dtype, again: bool) -> type[nn.Module]:
    """`kind` with these members. One class for all layers: compiled code is used again only for modules of the same class."""
    if issubclass(kind, nn.Embedding):
        return type(kind.__name__, (kind,), {"forward": _embedded(dtype)})
    cast = partial(_cast_again if again else _cast, dtype=dtype)
    return type(kind.__name__, (kind,), {name: property(_reader(name, cast)) for name in names})


def _embedded(dtype: torch.dtype) -> Callable[[nn.Embedding, Tensor], Tensor]:
    """The forward pass of an embedding that casts the rows of the tokens instead of the whole table."""
    return lambda module, tokens_BL: nn.Embedding.forward(module, tokens_BL).to(dtype)


def _reader(name: str, cast: Cast) -> Callable[[nn.Module], Tensor | None]:
    """The getter of a parameter: a function, because PyTorch 2.6 compiles no other getters."""

    def read(module: nn.Module) -> Tensor | None:
        parameter = module._parameters[name]
        return None if parameter is None else cast(parameter)

    return read


def _cast(parameter: Tensor, dtype: torch.dtype) -> Tensor:
    return parameter.to(dtype)


def _cast_again(parameter: Tensor, dtype: torch.dtype) -> Tensor:
    return checkpoint(_cast, parameter, dtype, use_reentrant=False, preserve_rng_state=False)
