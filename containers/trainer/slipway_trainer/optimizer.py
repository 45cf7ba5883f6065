"""AdamW with its state allocated before the first step, so that a checkpoint can be loaded into it; clipping of gradients with different
shardings; and the learning rate as a pure function of the step, so that a resumed run needs no scheduler state."""

import argparse
import math
from collections.abc import Iterable, Mapping, Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import ProcessGroup
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Placement

from slipway_trainer.sharding import local_part


def mesh_key(parameter: nn.Parameter) -> DeviceMesh | None:
    """A key that is equal for parameters on the same mesh, which one operation can process together: caches of DTensor may have replaced
    the mesh of some by an equal one."""
    return parameter.device_mesh if isinstance(parameter, DTensor) else None


@torch.no_grad()
def global_norm(parameters: Iterable[nn.Parameter], spread: Mapping[DeviceMesh | None, ProcessGroup]) -> Tensor:
    """The L2 norm of all gradients over all ranks.

    Computed from the shards of this rank, which are summed over the ranks that hold the others: operations on DTensors would take the host
    4 ms for the 291 parameters of an 8B model. `spread`: by mesh, a group whose ranks hold different parameters (experts), over which the
    squares are summed.
    """
    placed: dict[tuple[DeviceMesh | None, tuple[Placement, ...]], list[Tensor]] = {}
    for parameter in parameters:
        gradient = parameter.grad
        if gradient is not None:
            placements = gradient.placements if isinstance(gradient, DTensor) else ()
            placed.setdefault((mesh_key(parameter), placements), []).append(gradient)
    held: dict[tuple[ProcessGroup, ...], list[Tensor]] = {}
    for (mesh, placements), gradients in placed.items():
        # The groups over which the gradients are sharded.
        sharded = [mesh.get_group(dim) for dim, placement in enumerate(placements) if not placement.is_replicate()] if mesh else []
        holders = (*sharded, *([spread[mesh]] if mesh in spread else []))
        held.setdefault(holders, []).extend(map(local_part, gradients))
    squares = [torch.nn.utils.get_total_norm(locals_).float() ** 2 for locals_ in held.values()]
    together = torch.stack(squares)
    for group in dict.fromkeys(group for holders in held for group in holders):
        if dist.get_world_size(group) == 1:
            continue
        numbers = [number for number, holders in enumerate(held) if group in holders]
        if len(numbers) == len(together):
            dist.all_reduce(together, group=group)
            continue
        chosen = torch.stack([together[number] for number in numbers])
        dist.all_reduce(chosen, group=group)
        for number, value in zip(numbers, chosen, strict=True):
            together[number] = value
    return together.sum().sqrt()


@torch.no_grad()
def clip_gradients(optimizer: torch.optim.Optimizer, max_norm: float, spread: Mapping[DeviceMesh | None, ProcessGroup]) -> Tensor:
    """Clips the norm of all gradients of a fused optimizer to `max_norm` (0: no clipping) in its next step; returns the norm before
    clipping. `spread`: as in `global_norm`."""
    # Walking the modules for their parameters would take longer.
    norm = global_norm([parameter for group in optimizer.param_groups for parameter in group["params"]], spread)
    # The optimizer's kernel divides by it, as for gradient scalers, which saves a pass over the gradients.
    optimizer.grad_scale = torch.clamp((norm + 1e-6) / max_norm, min=1.0) if max_norm > 0 else None
    return norm


def warmup_steps(requested: int | None, steps: int) -> int:
    """Number of warm-up steps; by default 1 % of all steps."""
    return requested if requested is not None else max(1, steps // 100)


def learning_rate(step: int, steps: int, highest: float, warmup: int, kind: str, last_ratio: float, decay_share: float) -> float:
    """The learning rate of `step` (from 0) of `steps`: linear warm-up, then cosine, wsd (constant, then linear decay) or constant.

    wsd decays in the last `decay_share` of the steps, at least in one, and reaches the lowest rate in the last step.
    """
    if step < warmup:
        return highest * (step + 1) / warmup
    lowest = highest * last_ratio
    if kind == "constant":
        return highest
    if kind == "wsd":
        falling = max(1, round(steps * decay_share))
        done = min(1.0, max(0.0, (step + 1 - (steps - falling)) / falling))
        return highest + (lowest - highest) * done
    done = min(1.0, (step - warmup) / max(1, steps - warmup))
    return lowest + (highest - lowest) * 0.5 * (1.0 + math.cos(math.pi * done))


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
