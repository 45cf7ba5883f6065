"""Selects the backend of a run, and refuses what it does not support. Does not import PyTorch.

The checks before a launch refuse the same with the same words (lib/core/rules/model); test/core/rules/trainer-layout.test.ts compares both.
"""

from collections.abc import Iterator

from slipway_trainer.exits import InvalidRun, Limit, or_list, refused
from slipway_trainer.settings import PRECISIONS, RunSettings

DEGREES = "distribution.parameters"


def limits_of(settings: RunSettings, name: str) -> Iterator[Limit]:
    """All limits of the backend `name`."""
    yield from _backend(settings, name)
    yield from _objective(settings, name)
    yield from _document_mask(settings, name)
    yield from _balance(settings, name)
    yield from _samples(settings, name)
    yield from _further_tokens(settings, name)
    yield from _adapters(settings, name)
    yield from _quantization(settings, name)


def _backend(settings: RunSettings, name: str) -> Iterator[Limit]:
    training, arguments = settings.training, settings.arguments
    precisions = PRECISIONS if settings.library in ("fsdp", "ddp") else ("bf16", "fp32")
    must = f"be {or_list(precisions)} for the built-in trainer with {settings.library}"
    yield training.precision not in precisions, "training.precision", must, training.precision, "use bf16"
    layers, given = arguments.recompute_layers, _given(settings, "recompute-layers")
    full = training.activation_checkpointing == "full"
    yield layers > 1 and not full, "code.arguments.recompute-layers", "be 1 without activationCheckpointing full", given, "remove it"
    if name in ("smp-v2", "deepspeed"):
        yield layers > 1, "code.arguments.recompute-layers", f"be 1 with {name}", given, "remove it"
    yield from _BY_BACKEND[name](settings)


def _fsdp1(settings: RunSettings) -> Iterator[Limit]:
    parallel, training = settings.parallel, settings.training
    with_backend, fix = _why_fsdp1(settings)
    yield parallel.tensor > 1, f"{DEGREES}.tensor_parallel_degree", f"be 1 {with_backend}", parallel.tensor, fix
    yield parallel.expert > 1, f"{DEGREES}.expert_parallel_degree", f"be 1 {with_backend}", parallel.expert, fix
    yield parallel.compile is True, f"{DEGREES}.compile", f"be false {with_backend}", True, fix
    yield training.precision == "fp8", "training.precision", f"be bf16 or fp32 {with_backend}", training.precision, fix


def _fsdp2(settings: RunSettings) -> Iterator[Limit]:
    parallel, training = settings.parallel, settings.training
    if parallel.tensor == 1:
        return
    path, degree = f"{DEGREES}.tensor_parallel_degree", parallel.tensor
    yield parallel.expert > 1, path, "be 1 with expert_parallel_degree in the built-in trainer", degree, "use one of the two"
    yield training.precision == "fp8", path, "be 1 with precision fp8 in the built-in trainer", degree, "use bf16, or remove the degree"
    # With PyTorch 2.15, the losses of a compiled model differ (by 0.08 after 20 steps of a small model on a CPU).
    must = "be false with tensor_parallel_degree in the built-in trainer, whose compiled layers would have different results"
    yield parallel.compile is True, f"{DEGREES}.compile", must, True, "remove it"


def _smp_v2(settings: RunSettings) -> Iterator[Limit]:
    shape = settings.architecture
    parts = ", ".join(shape.limits.get("beyondLlama", ()))
    must = f"be fsdp or deepspeed for a model with {parts} in the built-in trainer"
    yield bool(parts), "distribution.library", must, "smp-v2", "use fsdp"
    must = "be true with smp-v2 in the built-in trainer"
    yield not shape.gated_mlp, "model.architecture.gatedMlp", must, False, "use fsdp"
    must = "be left out with smp-v2 in the built-in trainer"
    yield settings.arguments.export_weights, "code.arguments.export-weights", must, True, "use fsdp"


def _deepspeed(settings: RunSettings) -> Iterator[Limit]:
    # Its engine would round the bias to the precision of the run, and its checkpoints do not contain it.
    must = "be fsdp for a model with routing.bias in the built-in trainer"
    yield settings.architecture.routing.has_bias, "distribution.library", must, "deepspeed", "use fsdp"
    must, configured = "be left out with the built-in trainer, which has its own", settings.job["distribution"].get("parameters") or {}
    for own in ("optimizer", "scheduler"):
        yield own in configured, f"{DEGREES}.{own}", must, "given", "remove it, and use code.arguments"
    must = "be fsx or managed with deepspeed, which writes to a folder, in the built-in trainer"
    yield settings.checkpoints.uri.startswith("s3://"), "checkpoints.mode", must, "direct", "use managed"


_BY_BACKEND = {"fsdp1": _fsdp1, "fsdp2": _fsdp2, "smp-v2": _smp_v2, "deepspeed": _deepspeed}


def _objective(settings: RunSettings, name: str) -> Iterator[Limit]:
    """Limits of the objectives of fine-tuning."""
    parallel, training, objective = settings.parallel, settings.training, settings.training.objective
    if objective == "pretrain":
        return
    must = f"be fsdp with objective {objective}"
    yield name in ("smp-v2", "deepspeed"), "distribution.library", must, settings.library, "use fsdp"
    if objective != "dpo":
        return
    if _chose_fsdp1(settings):
        smddp = settings.collectives == "smddp"
        option, found = ("distribution.collectives", "smddp") if smddp else ("code.arguments.backend", "fsdp1")
        yield name == "fsdp1", option, "not disable FSDP2 with objective dpo", found, "remove it"
    else:
        why, fix = _why_fsdp1(settings)
        yield name == "fsdp1", "training.objective", f"be pretrain or sft {why}", objective, fix
    for degree, ranks in (("context", parallel.context), ("tensor", parallel.tensor), ("expert", parallel.expert)):
        path, fix = f"{DEGREES}.{degree}_parallel_degree", "remove it, and shard over more ranks"
        yield ranks > 1 and name.startswith("fsdp"), path, "be 1 with objective dpo", ranks, fix
    must = "be bf16 or fp32 with objective dpo"
    yield training.precision == "fp8", "training.precision", must, training.precision, "use bf16"
    z_loss = settings.arguments.z_loss
    yield z_loss != 0, "code.arguments.z-loss", "be 0 with objective dpo", _given(settings, "z-loss"), "remove it"


def _chose_fsdp1(settings: RunSettings) -> bool:
    """Whether the run file asks for FSDP1, and not only the PyTorch of the image."""
    backend = settings.arguments.backend
    return backend == "fsdp1" or (backend != "fsdp2" and settings.collectives == "smddp")


def _why_fsdp1(settings: RunSettings) -> tuple[str, str]:
    """What the limits of FSDP1 follow from, and what to do about them."""
    if _chose_fsdp1(settings):
        return "with the built-in trainer's backend fsdp1", "change it, or leave out backend fsdp1 and collectives smddp"
    return "with PyTorch before 2.6", "use an image with PyTorch 2.6 or later"


def _document_mask(settings: RunSettings, name: str) -> Iterator[Limit]:
    """Limits of `documentMask`."""
    option, objective = "training.documentMask", settings.training.objective
    if settings.training.document_mask:
        yield name in ("smp-v2", "deepspeed"), option, f"be false with {name} in the built-in trainer", True, "use fsdp"
        must = f"be omitted with objective {objective}, which always uses it"
        yield objective != "pretrain", option, must, True, "remove it"


def _balance(settings: RunSettings, name: str) -> Iterator[Limit]:
    """Limits of the load balancing of experts."""
    shape, parallel = settings.architecture, settings.parallel
    for option in ("balance-loss", "router-z-loss", "routing-bias-rate"):
        if getattr(settings.arguments, option.replace("-", "_")) == 0:
            continue
        mixture, is_rate = shape.experts > 0, option == "routing-bias-rate"
        for is_beyond, reason in (
            (not mixture, "for a model without experts"),
            (name in ("smp-v2", "deepspeed"), f"with {name}"),
            (mixture and parallel.compile is True, "with compile"),
            (not is_rate and parallel.context > 1, "with context parallelism"),
            (is_rate and mixture and not shape.routing.has_bias, "for a model without routing.bias"),
            (is_rate and settings.training.lora is not None, "with lora"),
        ):
            yield is_beyond, f"code.arguments.{option}", f"be 0 {reason}", _given(settings, option), "remove it"


def _samples(settings: RunSettings, name: str) -> Iterator[Limit]:
    """Limits of sample generations."""
    given, length = settings.arguments, settings.training.sequence_length
    if given.samples == 0:
        return
    yield name == "smp-v2", "code.arguments.samples", "be 0 with smp-v2", _given(settings, "samples"), "remove it"
    prompt = given.sample_prompt_tokens if settings.training.objective == "pretrain" else 1
    remaining, path = length - prompt, "code.arguments.sample-prompt-tokens"
    yield remaining < 1, path, f"be less than sequenceLength {length}", _given(settings, "sample-prompt-tokens"), "use a smaller number"
    must, path = f"be 1 to {remaining}, what sequenceLength {length} leaves", "code.arguments.sample-tokens"
    yield remaining >= 1 and given.sample_tokens > remaining, path, must, _given(settings, "sample-tokens"), "use a smaller number"


def _further_tokens(settings: RunSettings, name: str) -> Iterator[Limit]:
    """Limits of multi-token prediction."""
    training, modules = settings.training, settings.architecture.mtp_layers
    if not modules:
        return
    for is_beyond, must in (
        (name in ("smp-v2", "deepspeed"), f"be left out with {name} in the built-in trainer"),
        (training.lora is not None, "be left out with training.lora"),
        (training.objective == "dpo", "be left out with objective dpo"),
        (modules >= training.sequence_length, "be less than sequenceLength"),
    ):
        yield is_beyond, "model.architecture.mtpLayers", must, modules, "remove it"
    must = "be a number above 0 for a model with mtpLayers"
    weight = settings.arguments.mtp_loss
    yield weight == 0, "code.arguments.mtp-loss", must, _given(settings, "mtp-loss"), "remove it, or remove mtpLayers"


#: Layers of experts that PEFT 0.21 gives no adapter, or a different one, because transformers 5 stores all experts in one tensor.
OF_EXPERTS = ("gate_proj", "up_proj", "down_proj", "router")


def _adapters(settings: RunSettings, name: str) -> Iterator[Limit]:
    """Limits of low-rank adapters."""
    lora, shape, exports = settings.training.lora, settings.architecture, settings.arguments.export_adapter
    option = "code.arguments.export-adapter"
    if lora is None:
        yield exports, option, "be used with training.lora", True, "remove it, or use export-weights"
        return
    must = "be left out with smp-v2 in the built-in trainer"
    yield name == "smp-v2", "training.lora", must, f"rank {lora.rank}", "use fsdp"
    path, targets = "training.lora.targets", set(lora.targets)
    has_tied_head = shape.tied_embeddings and "head" in targets
    yield has_tied_head, path, "not name head when model.architecture.tiedEmbeddings is true", "head", "remove it"
    if not shape.experts:
        return
    must = "be left out where training.lora.targets names experts or the router"
    fix = "use export-weights, or adapters of attention only"
    yield exports and not targets.isdisjoint(OF_EXPERTS), option, must, ", ".join(lora.targets), fix
    inside = ", ".join(target for target in lora.targets if target in OF_EXPERTS or target == "shared_gate")
    must = "only contain layers outside experts with tensor_parallel_degree in the built-in trainer"
    is_beyond = bool(inside) and settings.parallel.tensor > 1 and name == "fsdp2"
    yield is_beyond, path, must, inside, "remove them, or the degree"


def _quantization(settings: RunSettings, name: str) -> Iterator[Limit]:
    """Limits of 4-bit weights."""
    training, path = settings.training, "training.lora.quantization"
    found = training.quantization
    if found is None:
        return
    beyond = {
        "with deepspeed": name == "deepspeed",
        "with tensor_parallel_degree": name == "fsdp2" and settings.parallel.tensor > 1,
        "with precision fp8": training.precision == "fp8",
    }
    for reason, is_beyond in beyond.items():
        yield is_beyond, path, f"be left out {reason} in the built-in trainer", found, "remove it"
    with_backend, fix = _why_fsdp1(settings)
    yield name == "fsdp1", path, f"be left out {with_backend}", found, fix


def _given(settings: RunSettings, option: str) -> str:
    """The text of an argument, or its default."""
    return settings.arguments.written.get(option, str(getattr(settings.arguments, option.replace("-", "_"))))


#: The first PyTorch version with which this trainer uses FSDP2.
FSDP2_SINCE = (2, 6)
#: The first PyTorch version whose FSDP2 shards frozen parameters of other dtypes than the trained ones
#: (https://github.com/pytorch/pytorch/pull/154103, 2026-11-28).
NF4_SINCE = (2, 8)


def backend_name(settings: RunSettings, torch_version: str) -> str:
    """The name of the backend. Raises InvalidRun with every option that the backend does not support."""
    name = _chosen(settings, torch_version)
    issues, found = refused(limits_of(settings, name)), settings.training.quantization
    if found is not None and _version(torch_version) < NF4_SINCE:
        fix = f"use an image with PyTorch {NF4_SINCE[0]}.{NF4_SINCE[1]} or later"
        issues.append(f"training.lora.quantization: must be left out under PyTorch {torch_version}, got {found}; {fix}")
    if issues:
        raise InvalidRun(*issues)
    return name


def _version(torch_version: str) -> tuple[int, int]:
    major, minor = torch_version.split(".")[:2]
    return int(major), int(minor)


def _chosen(settings: RunSettings, torch_version: str) -> str:
    if settings.library in ("smp-v2", "deepspeed"):
        return settings.library
    old = _version(torch_version) < FSDP2_SINCE
    requested = settings.arguments.backend
    if requested == "fsdp2" and old:
        must = f"must be fsdp1 under PyTorch {torch_version}, got fsdp2"
        raise InvalidRun(f"code.arguments.backend: {must}; use an image with PyTorch 2.6 or later")
    return requested if requested != "auto" else "fsdp1" if old or settings.collectives == "smddp" else "fsdp2"


def compiles(settings: RunSettings, device_type: str) -> bool:
    """Whether FSDP2's blocks and loss are compiled. By default, only dense models on GPUs without tensor parallelism are: the shapes of
    experts depend on the data, and with PyTorch 2.15, compiled tensor-parallel blocks give different results.
    lib/core/distribution/fsdp.ts has the same rule."""
    if settings.parallel.compile is not None:
        return settings.parallel.compile
    return device_type == "cuda" and not settings.architecture.experts and settings.parallel.tensor == 1
