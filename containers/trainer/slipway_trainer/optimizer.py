"""AdamW with its state allocated before the first step, so that a checkpoint can be loaded into it."""

import argparse
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh

from slipway_trainer.gradients import mesh_key

#: Per-parameter tensors of AdamW, with PyTorch's names.
MOMENTS = ("exp_avg", "exp_avg_sq")


def plain_adamw(
    parameters: Iterable[tuple[str, nn.Parameter]], shapes: Mapping[str, Sequence[int]], arguments: argparse.Namespace, fused: bool = False
) -> torch.optim.AdamW:
    """AdamW for the trainable parameters, with weight decay only for matrices.

    `shapes`: shapes of the full parameters, because a shard does not have the original number of dimensions.
    """
    groups: dict[tuple[bool, DeviceMesh | None], list[nn.Parameter]] = {}
    for name, parameter in parameters:
        if not parameter.requires_grad:
            continue
        # Grouped by device mesh as well, because a fused operation cannot mix meshes.
        groups.setdefault((len(shapes[name]) > 1, mesh_key(parameter)), []).append(parameter)
    return torch.optim.AdamW(
        [{"params": held, "weight_decay": arguments.weight_decay if decays else 0.0} for (decays, _mesh), held in groups.items()],
        lr=arguments.learning_rate,
        betas=(arguments.beta1, arguments.beta2),
        eps=arguments.adam_epsilon,
        fused=fused,
    )


def build_optimizer(
    parameters: Iterable[tuple[str, nn.Parameter]], shapes: Mapping[str, Sequence[int]], arguments: argparse.Namespace, fused: bool
) -> torch.optim.AdamW:
    """`plain_adamw` with its state initialized to zeros."""
    optimizer = plain_adamw(parameters, shapes, arguments, fused)
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            # The fused kernel needs the step counter on the parameter's device; otherwise it is on the host.
            step = torch.zeros((), dtype=torch.float32, device=parameter.device if fused else "cpu")
            optimizer.state[parameter] = {"step": step} | {name: torch.zeros_like(parameter) for name in MOMENTS}
    return optimizer


def optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's tensors by stable names: `optimizer.<parameter>.<state>`."""
    return {
        f"optimizer.{name}.{kind}": value
        for name, parameter in model.named_parameters()
        for kind, value in optimizer.state.get(parameter, {}).items()
    }


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Sets the learning rate of all parameters."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def step_unless(optimizer: torch.optim.Optimizer, bad: Tensor) -> None:
    """Runs an optimizer step that has no effect if `bad` is not zero. A fused kernel evaluates `bad` on the device, as for gradient
    scalers, without synchronizing; otherwise the host reads it."""
    if getattr(optimizer, "defaults", {}).get("fused"):
        optimizer.found_inf = bad
        optimizer.step()
    elif not float(bad):
        optimizer.step()
