"""Selects the backend of a run and checks its limits. Does not import PyTorch, so that run files can be checked without it."""

from slipway_trainer.exits import Settings
from slipway_trainer.settings import RunSettings

#: The first PyTorch version with which this trainer uses FSDP2.
FSDP2_SINCE = (2, 6)


def backend_name(settings: RunSettings, torch_version: str) -> str:
    """The name of the backend. Raises Settings with every option that the backend does not support."""
    if settings.library in ("smp-v2", "deepspeed"):
        name, why = settings.library, "this library"
    else:
        major, minor = torch_version.split(".")[:2]
        old = (int(major), int(minor)) < FSDP2_SINCE
        asked = settings.arguments.backend
        name = asked if asked != "auto" else "fsdp1" if old or settings.collectives == "smddp" else "fsdp2"
        why = f"{name.upper()} (PyTorch {torch_version}, collectives {settings.collectives})"
        if name == "fsdp2" and old:
            raise Settings([f"--backend: must be fsdp1 under PyTorch {torch_version}, got fsdp2; use an image with PyTorch 2.6 or later"])
    issues = [f"{option}: must be {allowed} with {why}, got {found}" for option, allowed, found in _beyond(settings, name)]
    if issues:
        raise Settings(issues)
    return name


def compiles(settings: RunSettings, device_type: str) -> bool:
    """Whether FSDP2's blocks and loss are compiled. By default, only dense models on GPUs without tensor parallelism are: the shapes of
    experts depend on the data, and with PyTorch 2.15, compiled tensor-parallel blocks give different results. lib/distribution/fsdp.ts has
    the same rule."""
    if settings.parallel.compile is not None:
        return settings.parallel.compile
    return device_type == "cuda" and not settings.architecture.experts and settings.parallel.tensor == 1


def _beyond(settings: RunSettings, name: str) -> list[tuple[str, object, object]]:
    """Violated limits of a backend: (option, allowed value, actual value)."""
    limits = [
        *_limits(settings, name),
        *_objective(settings, name),
        *_document_mask(settings, name),
        *_balance(settings, name),
        *_samples(settings, name),
        *_further_tokens(settings, name),
    ]
    return [(option, allowed, found) for option, allowed, found, wrong in limits if wrong]


def _balance(settings: RunSettings, name: str) -> list[tuple[str, object, object, bool]]:
    """Limits of the load balancing of experts. lib/rules/model/expert-balance.ts has the same limits."""
    given, shape, parallel = settings.arguments, settings.architecture, settings.parallel
    rate = given.routing_bias_rate
    found: list[tuple[str, object, object, bool]] = [
        ("--routing-bias-rate", "0 for a model without routing.bias", rate, rate != 0 and not shape.routing.has_bias),
        ("--routing-bias-rate", "0 with lora", rate, rate != 0 and settings.training.lora is not None),
    ]
    for option, value in (("--balance-loss", given.balance_loss), ("--router-z-loss", given.router_z_loss), ("--routing-bias-rate", rate)):
        found += [
            (option, "at least 0", value, value < 0),
            (option, "0 for a model without experts", value, value != 0 and not shape.experts),
            (option, 0, value, value != 0 and name in ("smp-v2", "deepspeed")),
            (option, "0 with compile", value, value != 0 and bool(shape.experts) and parallel.compile is True),
        ]
        if option != "--routing-bias-rate":
            found.append((option, "0 with context parallelism", value, value != 0 and parallel.context > 1))
    return found


def _further_tokens(settings: RunSettings, name: str) -> list[tuple[str, object, object, bool]]:
    """Limits of multi-token prediction. lib/rules/model/further-tokens.ts has the same limits."""
    training, modules, weight = settings.training, settings.architecture.mtp_layers, settings.arguments.mtp_loss
    if not modules:
        return []
    return [
        ("--mtp-loss", "above 0 for a model with mtpLayers", weight, weight <= 0),
        ("model.mtpLayers", "left out with this library", modules, name in ("smp-v2", "deepspeed")),
        ("model.mtpLayers", "left out with lora", modules, training.lora is not None),
        ("model.mtpLayers", "left out with objective dpo", modules, training.objective == "dpo"),
        ("model.mtpLayers", "less than sequenceLength", modules, modules >= training.sequence_length),
    ]


def _samples(settings: RunSettings, name: str) -> list[tuple[str, object, object, bool]]:
    """Limits of sample generations. lib/rules/model/samples.ts has the same limits."""
    given, length = settings.arguments, settings.training.sequence_length
    count, tokens, prompt = given.samples, given.sample_tokens, given.sample_prompt_tokens
    room = length - prompt if settings.training.objective == "pretrain" else length - 1
    return [
        ("--samples", "at least 0", count, count < 0),
        ("--samples", 0, count, count > 0 and name == "smp-v2"),
        ("--sample-prompt-tokens", "at least 1", prompt, count > 0 and prompt < 1),
        ("--sample-tokens", f"1 to {room}, what sequenceLength {length} leaves", tokens, count > 0 and not 1 <= tokens <= room),
    ]


def _document_mask(settings: RunSettings, name: str) -> list[tuple[str, object, object, bool]]:
    """Limits of `documentMask`. lib/rules/model/document-mask.ts has the same limits."""
    training = settings.training
    if not training.document_mask:
        return []
    return [
        ("training.documentMask", False, True, name in ("smp-v2", "deepspeed")),
        ("training.documentMask", f"left out with objective {training.objective}, which has it", True, training.objective != "pretrain"),
    ]


def _objective(settings: RunSettings, name: str) -> list[tuple[str, object, object, bool]]:
    """Limits of the objectives of fine-tuning. lib/rules/model/objective.ts has the same limits."""
    parallel, training, objective = settings.parallel, settings.training, settings.training.objective
    if objective == "pretrain":
        return []
    dpo = objective == "dpo"
    return [
        ("training.objective", "pretrain", objective, name in ("smp-v2", "deepspeed") or (dpo and name == "fsdp1")),
        ("context_parallel_degree", "1 with objective dpo", parallel.context, dpo and parallel.context > 1),
        ("tensor_parallel_degree", "1 with objective dpo", parallel.tensor, dpo and parallel.tensor > 1),
        ("expert_parallel_degree", "1 with objective dpo", parallel.expert, dpo and parallel.expert > 1),
        ("training.precision", "bf16 or fp32 with objective dpo", training.precision, dpo and training.precision == "fp8"),
        ("--z-loss", "0 with objective dpo", settings.arguments.z_loss, dpo and settings.arguments.z_loss != 0),
    ]


#: Layers inside experts, and the router and gate of a mixture. lib/rules/model/builtin-layout.ts has the same list.
_OF_MIXTURES = ("gate_proj", "up_proj", "down_proj", "router", "shared_gate")


def _adapted_experts(settings: RunSettings) -> str:
    lora = settings.training.lora
    targets = lora.targets if lora is not None and settings.architecture.experts else ()
    return ", ".join(name for name in targets if name in _OF_MIXTURES)


def _limits(settings: RunSettings, name: str) -> list[tuple[str, object, object, bool]]:
    parallel, training, adapted = settings.parallel, settings.training, _adapted_experts(settings)
    only_fsdp2 = [
        ("training.precision", "bf16 or fp32", training.precision, training.precision == "fp8"),
        ("compile", False, True, parallel.compile),
    ]
    whole_layers = ("--recompute-layers", 1, settings.arguments.recompute_layers, settings.arguments.recompute_layers > 1)
    by_backend = {
        "fsdp2": [
            ("tensor_parallel_degree", "1 with expert_parallel_degree", parallel.tensor, parallel.expert > 1 and parallel.tensor > 1),
            ("training.lora.targets", "layers outside experts with tensor parallelism", adapted, bool(adapted) and parallel.tensor > 1),
            # With PyTorch 2.15, the losses of a compiled model differ (by 0.08 after 20 steps of a small model on a CPU).
            ("compile", "False with tensor parallelism", True, parallel.compile is True and parallel.tensor > 1),
            ("training.precision", "bf16 with tensor parallelism", "fp8", training.precision == "fp8" and parallel.tensor > 1),
        ],
        "fsdp1": [
            ("tensor_parallel_degree", 1, parallel.tensor, parallel.tensor > 1),
            ("expert_parallel_degree", 1, parallel.expert, parallel.expert > 1),
            *only_fsdp2,
        ],
        "smp-v2": [*only_fsdp2, whole_layers],
        # Its engine would round the bias to the precision of the run, and its checkpoints do not contain it.
        "deepspeed": [*only_fsdp2, whole_layers, ("model.routing.bias", False, True, settings.architecture.routing.has_bias)],
    }
    return by_backend[name]
