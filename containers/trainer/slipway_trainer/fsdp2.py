"""The default backend: FSDP2 (`fully_shard`) on a mesh of replicate x shard x context x tensor ranks. PyTorch 2.6 and later.

On one rank there is nothing to shard: FSDP wraps a model there only if it computes in another precision and is not compiled. See
unsharded.py.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from slipway_trainer.backend import Backend
from slipway_trainer.batches import MicroBatch
from slipway_trainer.context_parallel import ContextParallel, context_parallel
from slipway_trainer.expert_parallel import ExpertParallel, expert_parallel
from slipway_trainer.float8 import apply_float8
from slipway_trainer.layout import Layout, data_rank
from slipway_trainer.limits import compiles
from slipway_trainer.lora import apply_lora
from slipway_trainer.model import Transformer
from slipway_trainer.objective import Objective, Reference, without_adapters
from slipway_trainer.optimizer import build_optimizer, clip_gradients, mesh_key, optimizer_tensors
from slipway_trainer.recompute import save_activation_memory
from slipway_trainer.settings import RunSettings
from slipway_trainer.sharding import fill_all, gathered, named_tensors, packed_layers
from slipway_trainer.tensor_parallel import split_model, tensor_parallel
from slipway_trainer.unsharded import compute_in
from slipway_trainer.weights import PublishedWeights, published_of, starting_values


def build_mesh(layout: Layout, device_type: str) -> DeviceMesh:
    """A mesh of replicate x (shard x context) x tensor. The tensor dimension is innermost: its ranks communicate most and are on one host.

    FSDP shards over shard and context together, so these are one dimension; neighboring ranks in it share a sequence.
    """
    sizes = (layout.replicate, layout.shard * layout.context, layout.tensor)
    return init_device_mesh(device_type, sizes, mesh_dim_names=("replicate", "shard", "tensor"))


_COMPUTE = {"bf16": torch.bfloat16, "fp8": torch.bfloat16, "fp32": torch.float32}


class Fsdp2Backend(Backend):
    """Parameters, gradients and optimizer state are sharded over the data-parallel ranks; computation uses the run's precision."""

    state_stays = True

    def __init__(self, settings: RunSettings, layout: Layout, device: torch.device, weights: Path | None = None) -> None:
        self._settings = settings
        self.layout = layout
        self.device = device
        self.mesh = build_mesh(layout, device.type)
        self.data_rank = data_rank(layout, dist.get_rank())
        context = context_parallel(layout)
        self._compiled = compiles(settings, device.type)
        self._casts = _COMPUTE[settings.training.precision] != torch.float32
        self._is_whole = layout.ranks == 1 and (self._compiled or not self._casts)
        tensor = tensor_parallel(self.mesh["tensor"])
        self._experts = expert_parallel(layout, device.type)
        self.shapes = {name: tensor.shape for name, tensor in named_tensors(self._module(None, None, packs=False))}
        published = published_of(settings, self.shapes, weights)
        self.model = model = self._module(context, self._experts)
        self._distribute(model, settings.parallel.reshard_after_forward)
        self._published = published
        self.optimizer = build_optimizer(model.named_parameters(), self.shapes, settings.arguments, fused=True)
        self._spread: dict[DeviceMesh | None, dist.ProcessGroup] = {}
        if self._experts is not None:
            experts = [parameter for name, parameter in model.named_parameters() if ".experts." in name]
            self._spread = dict.fromkeys(map(mesh_key, experts), self._experts.group)
        self._objective = Objective(settings, context, device, self._compiled, tensor, self._reference(published))

    def begin(self) -> None:
        self._fill(self.model, self._published)

    def _fill(self, model: Transformer, published: PublishedWeights | None) -> None:
        """Initializes this rank's shards."""
        fill_all(model, starting_values(self._settings, published, self.device))

    def _reference(self, published: PublishedWeights | None) -> Reference | None:
        """The reference model of DPO: the initial weights in the compute precision, to which FSDP would cast them for each layer."""
        training = self._settings.training
        if training.objective != "dpo":
            return None
        if training.lora is not None:
            return without_adapters
        copy = self._module(None, None).requires_grad_(False)
        for parameter in copy.parameters():
            # Buffers keep their dtype, as in the trained model.
            parameter.data = parameter.data.to(_COMPUTE[training.precision])
        # The copy has no backward pass, for which its parameters could stay gathered.
        self._distribute(copy, reshard=True)
        self._fill(copy, published)
        return torch.no_grad()(lambda _model, tokens_BL, sums: copy(tokens_BL, sums))

    def _module(self, context: ContextParallel | None, experts: ExpertParallel | None, packs: bool = True) -> Transformer:
        """The model without values. `packs`: weights are quantized if the run has them so."""
        training = self._settings.training
        with torch.device("meta"):
            module = Transformer(self._settings.architecture, context, experts)
            if training.lora is not None:
                apply_lora(module, training.lora)
            if packs and training.quantization is not None:
                # Imported here, because not every image has its library.
                from slipway_trainer.nf4 import apply_nf4

                apply_nf4(module, _COMPUTE[training.precision])
            if training.precision == "fp8":
                for block in module.all_blocks():
                    apply_float8(block, training.fp8_recipe or "tensorwise")
        return module

    def _distribute(self, model: Transformer, reshard: bool) -> None:
        """Divides a model without values, and allocates it on the device."""
        if self.layout.tensor > 1:
            split_model(model, self.mesh["tensor"])
        save_activation_memory(model, self._settings, self.device)
        if self._compiled:
            for block in model.all_blocks():
                block.compile()
        if not self._is_whole:
            with chunks_as_read():
                self._shard(model, reshard)
        elif self._casts:
            self._cast(model)
        model.to_empty(device=self.device)
        model.tie()

    def _cast(self, model: Transformer) -> None:
        """Mixed precision as of FSDP. Blocks that are recomputed cast their parameters again anyway."""
        training = self._settings.training
        recomputed = {*model.blocks_recomputed_alone()} if training.activation_checkpointing != "none" else set()
        inner = {module for block in recomputed for module in block.modules()}
        for module in model.modules():
            compute_in(_COMPUTE[training.precision], module, again=module not in inner)

    def _shard(self, model: Transformer, reshard: bool) -> None:
        # It includes context parallelism, because ranks that share a sequence also average their gradients.
        mesh = self.mesh["shard"] if self.layout.replicate == 1 else self.mesh["replicate", "shard"]
        # Inputs are not cast: hidden states already have the compute dtype, and the tables of rotary positions must stay in float32.
        dtype = _COMPUTE[self._settings.training.precision]
        policy = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32, cast_forward_inputs=False)
        for block in model.all_blocks():
            if self._experts is not None and hasattr(block.mlp, "experts"):
                fully_shard(block.mlp.experts, mesh=self._experts.mesh, mp_policy=policy, reshard_after_forward=reshard)
            fully_shard(block, mesh=mesh, mp_policy=policy, reshard_after_forward=reshard)
        for module in model.mtp.values():
            fully_shard(module, mesh=mesh, mp_policy=policy, reshard_after_forward=reshard)
        fully_shard(model, mesh=mesh, mp_policy=policy)

    def state(self) -> dict[str, Tensor]:
        tensors = {f"model.{name}": tensor for name, tensor in named_tensors(self.model)}
        return tensors | optimizer_tensors(self.model, self.optimizer)

    @torch.no_grad()
    def whole_tensors(self) -> Iterator[tuple[str, Tensor]]:
        held, packed = dict(named_tensors(self.model)), packed_layers(self.model)
        for name, shape in self.shapes.items():
            if name in packed:
                whole = packed[name].unpacked()
            else:
                whole = gathered(held[name]) if name in held else torch.empty(shape, device=self.device)
            holder = self._experts.holder(name, self._settings.architecture.experts) if self._experts is not None else None
            if holder is not None:
                dist.broadcast(whole, src=holder)
            yield name, whole

    def forward_backward(self, batch: MicroBatch, share: float | Tensor, last: bool) -> Tensor:
        if not self._is_whole and self._settings.parallel.no_sync:
            # Until the last micro-step, gradients stay local and unsharded, and parameters stay gathered.
            self.model.set_requires_gradient_sync(last)
            self.model.set_reshard_after_backward(last)
        elif not self._is_whole:
            # Gradients are reduce-scattered after every micro-step, so that no rank holds all of them, and all-reduced across replicas once
            # per step.
            self.model.set_requires_all_reduce(last)
        loss = self._objective(self.model, batch)
        (loss * share).backward()
        return loss.detach()

    def next_tokens(self, tokens_BL: Tensor, last_B: Tensor) -> Tensor:
        # Rows with a length other than that of training would cause a recompilation.
        with not_compiled(self.model.all_blocks()):
            return super().next_tokens(tokens_BL, last_B)

    def clip(self, max_norm: float) -> Tensor:
        return clip_gradients(self.optimizer, max_norm, self._spread)


@contextmanager
def not_compiled(modules: Iterable[nn.Module]) -> Iterator[None]:
    """Temporarily disables `compile` of modules. FlexAttention in them stays compiled; with PyTorch's stance `force_eager` it would
    materialize all scores."""
    compiled = {module: module._compiled_call_impl for module in modules}
    try:
        for module in compiled:
            module._compiled_call_impl = None
        yield
    finally:
        for module, call in compiled.items():
            module._compiled_call_impl = call


#: FSDP2's module and its function that makes the chunks, which are private. Without them, nothing changes.
MODULE, FUNCTION = "torch.distributed.fsdp._fully_shard._fsdp_param", "_chunk_with_empty"


class Chunks(Sequence[Tensor]):
    """Like `torch.chunk`, with an empty tensor for each rank without a part; each chunk is made when it is read.

    FSDP2 makes the chunks of all ranks for each parameter and reads two of them, its own and the first. On thousands of ranks, this takes
    most of the time of building a model: 46 s of 48 s for Llama 3 70B on 10,000 ranks (PyTorch 2.15, one CPU core, 2026-11-29).
    """

    def __init__(self, tensor: Tensor, num_chunks: int, dim: int) -> None:
        self._tensor, self._count, self._dim = tensor, num_chunks, dim
        self._length = -(-tensor.size(dim) // num_chunks)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        if not 0 <= index < self._count:
            raise IndexError(index)
        start = index * self._length
        left = self._tensor.size(self._dim) - start
        return self._tensor.narrow(self._dim, start, min(self._length, left)) if left > 0 else self._tensor.new_empty(0)


@contextmanager
def chunks_as_read() -> Iterator[None]:
    """Within this context, FSDP2 makes only the chunks that it reads."""
    try:
        module = import_module(MODULE)
    except ImportError:
        module = None
    before = getattr(module, FUNCTION, None)
    if before is None:
        yield
        return
    setattr(module, FUNCTION, Chunks)
    try:
        yield
    finally:
        setattr(module, FUNCTION, before)
