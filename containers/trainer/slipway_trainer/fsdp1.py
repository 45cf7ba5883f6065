"""The FSDP1 backend (`FullyShardedDataParallel`): for PyTorch 2.1-2.5, for SMDDP, and as the base of SMP v2.

Process groups are passed explicitly and no device mesh is created, because SMDDP supports only explicit groups.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import (
    FullyShardedDataParallel,
    MixedPrecision,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictType,
)
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

from slipway_trainer.backend import Backend
from slipway_trainer.batches import MicroBatch
from slipway_trainer.context_parallel import ContextParallel, context_parallel
from slipway_trainer.layout import Layout, data_rank
from slipway_trainer.lora import apply_lora
from slipway_trainer.model import Block, Transformer
from slipway_trainer.objective import Objective
from slipway_trainer.optimizer import build_optimizer
from slipway_trainer.recompute import save_activation_memory
from slipway_trainer.settings import RunSettings
from slipway_trainer.sharding import named_tensors
from slipway_trainer.weights import published_of, starting_values

#: Compute dtype by the run's precision; parameters and gradient reduction stay in fp32.
COMPUTE = {"bf16": torch.bfloat16, "fp32": torch.float32}
_WRAPPERS = ("_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")


def plain_name(name: str) -> str:
    """The parameter name without the prefixes of wrapper modules."""
    for wrapper in _WRAPPERS:
        name = name.replace(wrapper, "")
    return name


class Fsdp1Backend(Backend):
    """Parameters in flat shards, one per layer. Numerical results and checkpoints are the same as with FSDP2."""

    def __init__(self, settings: RunSettings, layout: Layout, device: torch.device, weights: Path | None = None) -> None:
        self._settings, self.layout, self.device = settings, layout, device
        self.data_rank = data_rank(layout, dist.get_rank())
        context = context_parallel(layout)
        self._objective = Objective(settings, context, device)
        with torch.device("meta"):
            module = self._module(context)
        self.shapes = {name: tensor.shape for name, tensor in named_tensors(module)}
        self._published = published_of(settings, self.shapes, weights)
        self.model = self._wrap(module)
        named = [(plain_name(name), parameter) for name, parameter in self.model.named_parameters()]
        self.optimizer = build_optimizer(named, self.shapes, settings.arguments, fused=device.type == "cuda")
        self._groups: Any = None

    def _module(self, context: ContextParallel | None) -> nn.Module:
        module = Transformer(self._settings.architecture, context)
        if self._settings.training.lora is not None:
            apply_lora(module, self._settings.training.lora)
        save_activation_memory(module, self._settings, self.device)
        return module

    def _wrap(self, module: nn.Module) -> FullyShardedDataParallel:
        compute = COMPUTE[self._settings.training.precision]
        strategy, group = self._sharding()
        return FullyShardedDataParallel(
            module,
            process_group=group,
            sharding_strategy=strategy,
            auto_wrap_policy=ModuleWrapPolicy({Block}),
            mixed_precision=MixedPrecision(param_dtype=compute, reduce_dtype=torch.float32),
            param_init_fn=self._first_values(module),
            device_id=self.device,
            use_orig_params=True,
            limit_all_gathers=True,
        )

    def _sharding(self) -> tuple[ShardingStrategy, Any]:
        """The sharding strategy and its process groups: for hybrid sharding, the ranks of one replica, and the ranks with the same
        shard."""
        layout, keep = self.layout, not self._settings.parallel.reshard_after_forward
        shards = layout.shard * layout.context
        if shards == 1:
            return ShardingStrategy.NO_SHARD, dist.group.WORLD
        if layout.replicate == 1:
            return (ShardingStrategy.SHARD_GRAD_OP if keep else ShardingStrategy.FULL_SHARD), dist.group.WORLD
        inside = [list(range(first, first + shards)) for first in range(0, layout.ranks, shards)]
        across = [list(range(first, layout.ranks, shards)) for first in range(shards)]
        backend = dist.get_backend()
        groups = tuple(dist.new_subgroups_by_enumeration(ranks, backend=backend)[0] for ranks in (inside, across))
        return (ShardingStrategy._HYBRID_SHARD_ZERO2 if keep else ShardingStrategy.HYBRID_SHARD), groups

    def _first_values(self, root: nn.Module) -> Any:
        """Returns a function that initializes a module's own parameters and buffers; FSDP calls it before it shards them."""
        names = {id(module): prefix for prefix, module in root.named_modules()}
        values = starting_values(self._settings, self._published, self.device)

        def first(name: str, tensor: Tensor) -> Tensor:
            return values(name, tensor.shape).to(self.device, torch.float32).contiguous()

        def fill(module: nn.Module) -> None:
            for short, parameter in list(module.named_parameters(recurse=False)):
                name = f"{names[id(module)]}.{short}"
                if name not in self.shapes:
                    # The head of a model with tied embeddings.
                    module.register_parameter(short, root.embed.weight)
                    continue
                module.register_parameter(short, nn.Parameter(first(name, parameter), requires_grad=parameter.requires_grad))
            for short, buffer in list(module.named_buffers(recurse=False)):
                module.register_buffer(short, first(f"{names[id(module)]}.{short}", buffer))

        return fill

    def _sharded_states(self) -> Any:
        return FullyShardedDataParallel.state_dict_type(
            self.model, StateDictType.SHARDED_STATE_DICT, ShardedStateDictConfig(), ShardedOptimStateDictConfig()
        )

    def state(self) -> dict[str, Tensor]:
        with self._sharded_states():
            weights = self.model.state_dict()
            moments = FullyShardedDataParallel.optim_state_dict(self.model, self.optimizer)
        self._groups = moments["param_groups"]
        tensors = {f"model.{name}": value for name, value in weights.items() if name in self.shapes}
        states = moments["state"].items()
        return tensors | {f"optimizer.{name}.{kind}": value for name, kinds in states for kind, value in kinds.items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        weights = {name.removeprefix("model."): value for name, value in state.items() if name.startswith("model.")}
        moments: dict[str, dict[str, Tensor]] = {}
        for name, value in state.items():
            if name.startswith("optimizer."):
                parameter, _, kind = name.removeprefix("optimizer.").rpartition(".")
                moments.setdefault(parameter, {})[kind] = value
        with self._sharded_states():
            self.model.load_state_dict(weights, strict=False)
            flat = FullyShardedDataParallel.optim_state_dict_to_load(
                model=self.model, optim=self.optimizer, optim_state_dict={"state": moments, "param_groups": self._groups}
            )
            self.optimizer.load_state_dict(flat)

    def whole_tensors(self) -> Iterator[tuple[str, Tensor]]:
        units = [(name, unit) for name, unit in self.model.named_modules() if isinstance(unit, FullyShardedDataParallel)]
        # Inner units come after the units that contain them.
        owner = {plain_name(f"{prefix}.{name}").lstrip("."): unit for prefix, unit in units for name, _ in unit.named_parameters()}
        for _prefix, unit in units:
            with FullyShardedDataParallel.summon_full_params(unit, recurse=False, writeback=False):
                for name, parameter in self.model.named_parameters():
                    if owner[plain_name(name)] is unit:
                        # A copy, because FSDP frees the full parameter when the context ends.
                        yield plain_name(name), parameter.detach().clone()
        yield from ((plain_name(name), buffer) for name, buffer in self.model.named_buffers() if plain_name(name) in self.shapes)

    def forward_backward(self, batch: MicroBatch, share: float | Tensor, last: bool) -> Tensor:
        # With no_sync, FSDP1 keeps the full gradients on every rank until the last micro-step.
        with self.model.no_sync() if self._settings.parallel.no_sync and not last else nullcontext():
            loss = self._objective(self.model, batch)
            (loss * share).backward()
        return loss.detach()

    def clip(self, max_norm: float) -> Tensor:
        return self.model.clip_grad_norm_(max_norm if max_norm > 0 else float("inf"))
