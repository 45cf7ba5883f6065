"""Activation checkpointing: none, selective (save matrix products and attention, recompute the rest), full, or in groups of layers."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from slipway_trainer.offload import Offload
from slipway_trainer.settings import RunSettings

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


def layers_recomputed(layers: Sequence[nn.Module], x_BLD: torch.Tensor, *tables: torch.Tensor | None) -> torch.Tensor:
    """Runs several layers and saves only the input of the first one: less memory than one input per layer, for the same computation."""

    def run(x_BLD: torch.Tensor) -> torch.Tensor:
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
