"""Low-rank adapters (arXiv 2106.09685): the base matrix is frozen, and two low-rank matrices are trained."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from slipway_trainer.exits import Settings
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

    def forward(self, x_BLD: Tensor) -> Tensor:
        if not self.adapts:
            return F.linear(x_BLD, self.weight, self.bias)
        return F.linear(x_BLD, self.weight, self.bias) + F.linear(F.linear(x_BLD, self.lora_a), self.lora_b) * self.scale


def apply_lora(model: nn.Module, lora: Lora) -> None:
    """Freezes the model and adds an adapter to every layer named in `targets`. Raises Settings for unknown names."""
    if "head" in lora.targets and model.head.weight is model.embed.weight:
        # Merging the adapter into the head would make it differ from the tied embedding.
        raise Settings(
            ["training.lora.targets: must not name head when model.architecture.tiedEmbeddings is true; remove head from the targets"]
        )
    model.requires_grad_(False)
    found: set[str] = set()
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if name in lora.targets and isinstance(child, nn.Linear):
                setattr(module, name, LoraLinear(child, lora.rank, lora.alpha))
                found.add(name)
    unknown = sorted(set(lora.targets) - found)
    if unknown:
        linear = sorted({name.rsplit(".", 1)[-1] for name, module in model.named_modules() if isinstance(module, nn.Linear)})
        raise Settings(
            [f"training.lora.targets: must name layers of the model ({', '.join(linear)}), got {', '.join(unknown)}; correct the names"]
        )


def merged(weight: Tensor, lora_a: Tensor, lora_b: Tensor, scale: float) -> Tensor:
    """The weight with the adapter merged into it."""
    return weight + (lora_b @ lora_a) * scale
