"""Low-rank adapters (arXiv 2106.09685): the base matrix is frozen, and two low-rank matrices are trained."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from slipway_trainer.exits import InvalidRun
from slipway_trainer.settings import Lora


class LoraLinear(nn.Linear):
    """A linear layer with an adapter. `weight` keeps its name, so that weights load as into a plain layer."""

    def __init__(self, base: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__(base.in_features, base.out_features, bias=base.bias is not None, device=base.weight.device)
        self.requires_grad_(False)
        self.lora_a = nn.Parameter(torch.empty(rank, base.in_features, device=base.weight.device))
        self.lora_b = nn.Parameter(torch.empty(base.out_features, rank, device=base.weight.device))
        self.scale = alpha / rank
        #: False disables the adapter, so that the layer computes the base model.
        self.adapts = True

    def base(self, x_BLD: Tensor) -> Tensor:
        """The output of the layer without the adapter."""
        return F.linear(x_BLD, self.weight, self.bias)

    def forward(self, x_BLD: Tensor) -> Tensor:
        if not self.adapts:
            return self.base(x_BLD)
        return self.base(x_BLD) + F.linear(F.linear(x_BLD, self.lora_a), self.lora_b) * self.scale


def apply_lora(model: nn.Module, lora: Lora) -> None:
    """Freezes the model and adds an adapter to every layer named in `targets`. Raises InvalidRun for names that the model does not have."""
    model.requires_grad_(False)
    linear = [(path.rpartition("."), layer) for path, layer in model.named_modules() if isinstance(layer, nn.Linear)]
    known = list(dict.fromkeys(name for (_path, _dot, name), _layer in linear))
    unknown = ", ".join(target for target in lora.targets if target not in known)
    if unknown:
        must = f"must name layers of the model ({', '.join(known)}), got {unknown}"
        raise InvalidRun(f"training.lora.targets: {must}; correct the names")
    for (path, _dot, name), layer in linear:
        if name in lora.targets:
            setattr(model.get_submodule(path), name, LoraLinear(layer, lora.rank, lora.alpha))


def merged(weight: Tensor, lora_a: Tensor, lora_b: Tensor, scale: float) -> Tensor:
    """The weight with the adapter merged into it."""
    return weight + (lora_b @ lora_a) * scale
