"""4-bit base weights: the steps of PEFT with bitsandbytes, bytes that no layout and no resume changes, and the memory that they take."""

import random
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import rank_world
from fake_world import direct_checkpoints
from plain_loop import plain_history, publish_first_values
from rank_world import TRAINING, events, trainer_job

pytest.importorskip("torch")
pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed")
pytestmark = [pytest.mark.torch, pytest.mark.jobs]

import peft  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from bitsandbytes.functional import dequantize_4bit, quantize_4bit  # noqa: E402
from conftest import SEED  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from slipway_trainer import backend as backends  # noqa: E402
from slipway_trainer.checkpoint.reader import load  # noqa: E402
from slipway_trainer.checkpoint.store import open_store  # noqa: E402
from slipway_trainer.exits import InvalidRun  # noqa: E402
from slipway_trainer.initialise import first_values, values_of  # noqa: E402
from slipway_trainer.limits import backend_name  # noqa: E402
from slipway_trainer.lora import apply_lora  # noqa: E402
from slipway_trainer.model import Transformer  # noqa: E402
from slipway_trainer.nf4 import apply_nf4  # noqa: E402
from slipway_trainer.recompute import apply_recompute  # noqa: E402
from slipway_trainer.safetensors import SafetensorsFile  # noqa: E402
from slipway_trainer.settings import RunSettings, resolve_settings  # noqa: E402
from slipway_trainer.sharding import fill_all, named_tensors, packed_layers  # noqa: E402
from slipway_trainer.weights import adapter_name  # noqa: E402

#: Ranks find bitsandbytes imported: it imports the compiler of PyTorch, which takes longer than a run.
run_ranks = partial(rank_world.run_ranks, preload=("bitsandbytes",))
losses_of = partial(rank_world.losses_of, preload=("bitsandbytes",))
#: The smallest sizes whose rows are whole blocks.
MODEL = {"hiddenSize": 64, "ffnHiddenSize": 128, "attentionHeads": 4, "kvHeads": 2}
TARGETS = ["q_proj", "v_proj", "down_proj"]
LORA = {"rank": 4, "alpha": 12, "targets": TARGETS, "quantization": "nf4"}
PLAIN = {name: value for name, value in LORA.items() if name != "quantization"}
MIXTURE = {"experts": 4, "expertsPerToken": 2}


def job_of(**changes: Any) -> dict[str, Any]:
    training = {"lora": LORA} | changes.pop("training", {})
    return trainer_job(training=training, model=MODEL | changes.pop("model", {}), weights="weights", **changes)


def saving(root: Path, every: int, **changes: Any) -> dict[str, Any]:
    places = direct_checkpoints(root / "checkpoints", keep=9)
    return job_of(checkpoints=places, arguments=["--save-every-steps", str(every), *changes.pop("arguments", [])], **changes)


def settings_of(job: dict[str, Any]) -> RunSettings:
    return resolve_settings(job, job["arguments"], {})


def empty_model(settings: RunSettings, packs: bool = True) -> Transformer:
    with torch.device("meta"):
        model = Transformer(settings.architecture)
        assert settings.training.lora is not None
        apply_lora(model, settings.training.lora)
        if packs:
            apply_nf4(model, torch.bfloat16 if settings.training.precision == "bf16" else torch.float32)
    return model.to_empty(device="cpu")


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    publish_first_values(folder, trainer_job(model=MODEL))
    return folder


@pytest.fixture(scope="module")
def losses(tmp_path_factory: pytest.TempPathFactory, shards: Path, weights: Path) -> list[float]:
    """Those of one rank."""
    return losses_of(tmp_path_factory.mktemp("one"), 1, job_of(), {"train": shards, "weights": weights})


def their_model(weights: Path, adapter: Path | None = None) -> Any:
    """The model of transformers with weights quantized by bitsandbytes, and an adapter of PEFT."""
    config = transformers.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.float32)
    options = {"dtype": torch.float32, "quantization_config": config, "device_map": "cpu"}
    # In evaluation, bitsandbytes computes with a layout for CPUs that rounds to bfloat16.
    base = transformers.AutoModelForCausalLM.from_pretrained(weights, **options).train()
    if adapter is not None:
        return peft.PeftModel.from_pretrained(base, adapter).train()
    lora = peft.LoraConfig(r=LORA["rank"], lora_alpha=LORA["alpha"], target_modules=TARGETS, lora_dropout=0.0, task_type="CAUSAL_LM")
    model = peft.get_peft_model(base, lora)
    shape = settings_of(job_of()).architecture
    begun = 0
    for layer in [name for name, _ in Transformer(shape).named_modules() if name.rpartition(".")[2] in TARGETS]:
        name = f"{layer}.lora_a"
        parameter = model.get_parameter(adapter_name(name, shape).replace("lora_A.", "lora_A.default."))
        parameter.data.copy_(first_values(name, parameter.shape, shape.layers, TRAINING["seed"], parameter.device))
        begun += 1
    assert begun == 6, "two layers with three adapters each"
    return model


def steps_of(root: Path, ranks: int, job: dict[str, Any], shards: Path, weights: Path) -> list[tuple[float, float]]:
    code, output = run_ranks(root, ranks, job, {"train": shards, "weights": weights})
    assert code == 0, output
    return [(event["loss"], event["gradientNorm"]) for event in events(output, "step")]


def test_steps_are_those_of_peft_with_bitsandbytes(tmp_path: Path, shards: Path, weights: Path) -> None:
    job = job_of(training={"steps": 12}, arguments=["--export-weights", "--export-adapter"])
    model = their_model(weights)
    expected = plain_history(model, lambda tokens: model(tokens).logits, shards, job)
    assert expected[-1][0] < expected[0][0] - 0.1, "the reference itself must learn"
    plain = steps_of(tmp_path / "plain", 1, job_of(training={"steps": 12, "lora": PLAIN}), shards, weights)
    assert abs(plain[0][0] - expected[0][0]) > 1e-4, "quantization must change the loss"
    for ranks in (1, 2):
        found = steps_of(tmp_path / str(ranks), ranks, job, shards, weights)
        for ours, theirs in zip(found, expected, strict=True):
            assert ours == pytest.approx(theirs, abs=1e-5, rel=1e-5)
    folder = tmp_path / "2/model"
    tokens = torch.randint(0, 257, (2, 40), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        trained = model(tokens).logits
        torch.testing.assert_close(their_model(weights, folder / "adapter")(tokens).logits, trained, atol=1e-4, rtol=1e-4)
        merged = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        torch.testing.assert_close(merged(tokens).logits, trained, atol=1e-4, rtol=1e-4)


def packed_of(root: Path, step: int, job: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The model's tensors in a checkpoint."""
    model = empty_model(settings_of(job))
    found = {f"model.{name}": torch.zeros_like(tensor) for name, tensor in named_tensors(model)}
    assert load(open_store(str(root / "checkpoints")), f"step-{step}", found, None) == set()
    return {name.removeprefix("model."): tensor for name, tensor in found.items()}


def is_same(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Equality of bytes: as numbers, some of them are not equal to themselves."""
    return torch.equal(first.view(torch.uint8), second.view(torch.uint8))


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_shards_of_two_ranks_are_those_of_the_whole_and_never_change(tmp_path: Path, shards: Path, weights: Path, precision: str) -> None:
    job = saving(tmp_path, 2, training={"steps": 2, "precision": precision})
    losses_of(tmp_path / "run", 2, job, {"train": shards, "weights": weights})
    found = packed_of(tmp_path, 2, job)
    layers = packed_layers(empty_model(settings_of(job)))
    assert len(layers) == 2 * 7
    file = SafetensorsFile(weights / "model.safetensors")
    for ours, theirs in (("attention.q_proj", "self_attn.q_proj"), ("mlp.down_proj", "mlp.down_proj"), ("mlp.up_proj", "mlp.up_proj")):
        whole = file.tensor(f"model.layers.1.{theirs}.weight")
        packed, state = quantize_4bit(whole, blocksize=64, quant_type="nf4")
        assert is_same(found[f"blocks.1.{ours}.weight"].flatten(), packed.flatten())
        assert is_same(found[f"blocks.1.{ours}.scales"].flatten(), state.absmax)
    assert is_same(found["embed.weight"], file.tensor("model.embed_tokens.weight")), "only layers in blocks are packed"


def test_each_shard_of_rows_is_packed_like_the_rows_of_the_whole() -> None:
    dice = random.Random(SEED)
    for _ in range(30):
        rows, blocks, dtype = dice.randint(1, 40), dice.randint(1, 5), dice.choice([torch.float32, torch.bfloat16])
        whole = torch.randn(rows, 64 * blocks, generator=torch.Generator().manual_seed(dice.randrange(1 << 30))).to(dtype)
        packed, state = quantize_4bit(whole, blocksize=64, quant_type="nf4")
        begin = dice.randrange(rows)
        part, of_part = quantize_4bit(whole[begin:], blocksize=64, quant_type="nf4")
        assert torch.equal(part.flatten(), packed.flatten()[begin * 32 * blocks :]), f"seed {SEED}"
        assert torch.equal(of_part.absmax, state.absmax[begin * blocks :]), f"seed {SEED}"


@pytest.mark.drawn(1)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_run_that_was_killed_continues_bit_for_bit(tmp_path: Path, shards: Path, weights: Path, precision: str) -> None:
    channels, training = {"train": shards, "weights": weights}, {"steps": 6, "precision": precision}
    whole = saving(tmp_path / "whole", 3, training=training)
    expected = losses_of(tmp_path / "a", 2, whole, channels)
    cut = saving(tmp_path / "cut", 3, training=training)
    losses_of(tmp_path / "b", 2, cut, channels)
    # As if the job had ended while it wrote the last checkpoint.
    (tmp_path / "cut/checkpoints/step-6/COMMITTED.json").unlink()
    code, output = run_ranks(tmp_path / "c", 2, cut, channels)
    assert code == 0, output
    assert events(output, "resume")[0]["step"] == 3
    assert [event["loss"] for event in events(output, "step")] == expected[3:]
    first, second = (packed_of(tmp_path / name, 6, whole) for name in ("whole", "cut"))
    assert [name for name, tensor in first.items() if not is_same(tensor, second[name])] == []


def test_fails_on_a_checkpoint_whose_weights_are_not_quantized(tmp_path: Path, shards: Path, weights: Path) -> None:
    channels = {"train": shards, "weights": weights}
    losses_of(tmp_path / "a", 1, saving(tmp_path, 2, training={"steps": 2, "lora": PLAIN}), channels)
    code, output = run_ranks(tmp_path / "b", 1, saving(tmp_path, 2, training={"steps": 4}), channels)
    assert code == 71
    assert re.search(r"step-2: could not be read: .*Size\(\[32, 64\]\).*Size\(\[32, 8\]\) for model\.blocks\.0\.attention\.k_proj", output)


LAYOUTS: dict[str, tuple[int, dict[str, Any]]] = {
    "fully sharded": (2, {}),
    "rows that ranks share unevenly": (3, {"training": {"globalBatchSize": 6, "steps": 2}}),
    "parameters kept after forward": (2, {"parameters": {"reshard_after_forward": False}}),
    "replicated only": (2, {"library": "ddp"}),
    "hybrid sharded": (4, {"parameters": {"replicate_degree": 2}}),
    "context parallel": (2, {"parameters": {"context_parallel_degree": 2}}),
    "full recomputation": (2, {"training": {"activationCheckpointing": "full"}}),
    "selective recomputation": (2, {"training": {"activationCheckpointing": "selective"}}),
    "layers recomputed in groups": (1, {"training": {"activationCheckpointing": "full"}, "arguments": ["--recompute-layers", "2"]}),
    "activations offloaded": (1, {"training": {"activationOffload": True}}),
    "one gradient reduction per step": (2, {"parameters": {"no_sync": True}, "training": {"globalBatchSize": 8}}),
}


@pytest.mark.drawn(3)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_has_the_losses_of_one_rank(tmp_path: Path, shards: Path, weights: Path, losses: list[float], layout: str) -> None:
    ranks, changes = LAYOUTS[layout]
    channels = {"train": shards, "weights": weights}
    training = {key: value for key, value in changes.get("training", {}).items() if key in ("globalBatchSize", "steps")}
    expected = losses_of(tmp_path / "one", 1, job_of(training=training), channels) if training else losses
    assert losses_of(tmp_path / "run", ranks, job_of(**changes), channels) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(("ranks", "limit"), [(1, 0.02), (2, 0.02)])
def test_bf16_stays_close_to_fp32(tmp_path: Path, shards: Path, weights: Path, losses: list[float], ranks: int, limit: float) -> None:
    job = job_of(training={"precision": "bf16"})
    assert losses_of(tmp_path, ranks, job, {"train": shards, "weights": weights}) == pytest.approx(losses, abs=limit)


@pytest.mark.slow
@pytest.mark.parametrize(("ranks", "precision", "limit"), [(1, "fp32", 1e-5), (1, "bf16", 0.02), (2, "bf16", 0.02)])
def test_compiled_blocks_have_the_losses_of_others(
    tmp_path: Path, shards: Path, weights: Path, losses: list[float], ranks: int, precision: str, limit: float
) -> None:
    job = job_of(training={"precision": precision}, parameters={"compile": True})
    assert losses_of(tmp_path, ranks, job, {"train": shards, "weights": weights}) == pytest.approx(losses, abs=limit)


def test_experts_are_packed_and_routers_are_not(tmp_path: Path, shards: Path) -> None:
    job = job_of(model=MIXTURE, training={"steps": 3}, arguments=["--export-weights"])
    publish_first_values(tmp_path / "weights", trainer_job(model=MODEL | MIXTURE))
    channels = {"train": shards, "weights": tmp_path / "weights"}
    names = set(packed_layers(empty_model(settings_of(job))))
    assert sum(".experts." in name for name in names) == 2 * 4 * 3
    assert not [name for name in names if "router" in name]
    expected = losses_of(tmp_path / "one", 1, job, channels)
    split = job | {"distribution": job["distribution"] | {"parameters": {"expert_parallel_degree": 2}}}
    for name, changed in (("two", job), ("split", split)):
        assert losses_of(tmp_path / name, 2, changed, channels) == pytest.approx(expected, abs=1e-5)
        first, second = (SafetensorsFile(tmp_path / run / "model/model.safetensors") for run in ("one", name))
        torch.testing.assert_close(
            second.tensor("model.layers.1.block_sparse_moe.experts.3.w2.weight"),
            first.tensor("model.layers.1.block_sparse_moe.experts.3.w2.weight"),
        )


def test_parameters_take_the_memory_that_the_plan_counts() -> None:
    settings = settings_of(job_of(training={"precision": "bf16"}))
    packed, plain = empty_model(settings), empty_model(settings, packs=False)
    quantized = sum(layer.in_features * layer.out_features for layer in packed_layers(packed).values())
    others = sum(tensor.numel() for tensor in plain.parameters()) - quantized
    allocated = sum(tensor.untyped_storage().nbytes() for _, tensor in named_tensors(packed))
    assert allocated == quantized * (0.5 + 4 / 64) + 4 * others
    assert quantized == 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128)


def test_nothing_but_the_packed_weight_is_kept_for_the_backward_pass() -> None:
    settings = settings_of(job_of(model={"hiddenSize": 256, "ffnHiddenSize": 512}, training={"precision": "bf16"}))
    layer = packed_layers(empty_model(settings))["blocks.0.mlp.up_proj.weight"]
    assert isinstance(layer, nn.Linear)
    layer.pack(torch.randn(512, 256))
    kept: list[torch.Size] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor.shape) or tensor, lambda tensor: tensor):
        x = torch.randn(3, 256, dtype=torch.bfloat16, requires_grad=True)
        out = layer(x)
    assert kept == []
    out.sum().backward()
    torch.testing.assert_close(x.grad, layer.unpacked().sum(0).expand(3, -1).bfloat16(), atol=0.5, rtol=0.05)


class _Products(TorchDispatchMode):
    """Counts the products with packed weights."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func is torch.ops.bitsandbytes.gemm_4bit.default
        return func(*args, **(kwargs or {}))


def test_selective_recomputation_saves_products_with_packed_weights() -> None:
    found = {}
    for mode in ("none", "selective", "full"):
        model = empty_model(settings_of(job_of()))
        fill_all(model, values_of(2, 7, torch.device("cpu")))
        for block in model.all_blocks():
            apply_recompute(block, mode)
        with _Products() as products:
            model(torch.zeros(1, 8, dtype=torch.long)).sum().backward()
        found[mode] = products.count
    assert found == {"none": 14, "selective": 14, "full": 28}


def test_a_weight_is_packed_from_rows_of_its_own_dtype() -> None:
    settings = settings_of(job_of(training={"precision": "bf16"}))
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        model, whole = empty_model(settings), torch.randn(64, 64).to(dtype)
        fill_all(model, lambda name, shape, whole=whole: whole if shape == (64, 64) else None)
        packed, state = quantize_4bit(whole.float(), blocksize=64, quant_type="nf4")
        layer = packed_layers(model)["blocks.0.attention.o_proj.weight"]
        torch.testing.assert_close(layer.unpacked(), dequantize_4bit(packed, state).bfloat16().float(), rtol=0, atol=0)


def test_preferences_are_held_to_the_quantized_model_without_adapters(tmp_path: Path, weights: Path) -> None:
    import chat_data as data

    lines = [{"prompt": "Go on:", "chosen": " word" * number, "rejected": " no" * (9 - number)} for number in range(1, 5)]
    shards = data.tokenise(tmp_path, lines, Path("byte"))
    training = {"objective": "dpo", "sequenceLength": 96, "globalBatchSize": 4, "steps": 4}
    found = losses_of(tmp_path / "run", 2, job_of(training=training), {"train": shards, "weights": weights})
    assert found[0] == pytest.approx(0.693147, abs=1e-5), "at first, the adapters change nothing"
    assert found[-1] < found[0] - 0.01


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"parameters": {"tensor_parallel_degree": 2}}, "must be left out with tensor_parallel_degree in the built-in trainer, got nf4"),
        ({"training": {"precision": "fp8"}}, "must be left out with precision fp8 in the built-in trainer, got nf4"),
        ({"library": "deepspeed"}, "must be left out with deepspeed in the built-in trainer, got nf4"),
        ({"arguments": ["--backend", "fsdp1"]}, "must be left out with the built-in trainer's backend fsdp1, got nf4"),
        ({"training": {"lora": LORA | {"quantization": "fp4"}}}, "must be nf4 for the built-in trainer, got fp4"),
    ],
)
def test_fails_with_the_name_of_what_it_cannot_be_combined_with(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidRun, match=re.escape(f"training.lora.quantization: {expected}")):
        backend_name(settings_of(job_of(**changes)), "2.15.0")


@pytest.mark.parametrize(
    ("model", "layers"),
    [
        ({"ffnHiddenSize": 96}, "down_proj 96"),
        ({"headSize": 24}, "o_proj 96"),
        ({"hiddenSize": 96}, "gate_proj 96, k_proj 96, o_proj 96, q_proj 96, up_proj 96, v_proj 96"),
        (MIXTURE | {"expertFfnHiddenSize": 96}, "down_proj 96"),
    ],
)
def test_fails_with_the_layers_whose_rows_are_not_whole_blocks(model: dict[str, Any], layers: str) -> None:
    must = f"must be left out where layers have inputs that are not a multiple of 64: {layers}, got nf4"
    with pytest.raises(InvalidRun, match=re.escape(f"training.lora.quantization: {must}")):
        empty_model(settings_of(job_of(model=model)))


def test_fails_under_a_pytorch_that_cannot_shard_it() -> None:
    with pytest.raises(InvalidRun, match=r"must be left out under PyTorch 2\.7\.1, got nf4; use an image with PyTorch 2\.8 or later"):
        backend_name(settings_of(job_of()), "2.7.1")
    assert backend_name(settings_of(job_of()), "2.8.0") == "fsdp2"


def test_fails_in_an_image_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "find_spec", lambda _name: None)
    with pytest.raises(InvalidRun, match="must be left out in an image without bitsandbytes, got nf4"):
        backends.require_bitsandbytes()
