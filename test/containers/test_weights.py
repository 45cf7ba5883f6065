"""Published weights in and out, and adapters: compared with `transformers` where it is installed."""

import json
from pathlib import Path

import pytest

from plain_loop import plain_steps, publish, publish_first_values
from rank_world import TINY, events, losses_of, run_ranks, trainer_job

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from slipway_trainer.exits import DataFailed, Settings  # noqa: E402
from slipway_trainer.initialise import initialise  # noqa: E402
from slipway_trainer.lora import LoraLinear, apply_lora, merged  # noqa: E402
from slipway_trainer.model import Transformer  # noqa: E402
from slipway_trainer.safetensors import SafetensorsFile, write_file  # noqa: E402
from slipway_trainer.settings import Lora, resolve_settings  # noqa: E402
from slipway_trainer.weights import load_weights, published_name  # noqa: E402

SHAPES = {
    "llama": {},
    "tied": {"tiedEmbeddings": True},
    "mistral, wide heads": {"headSize": 16, "kvHeads": 1},
    "mixtral": {"experts": 4, "expertsPerToken": 2},
}
LORA = {"rank": 4, "alpha": 8.0, "targets": ["q_proj", "v_proj"]}


def model_of(changes: dict) -> Transformer:
    job = trainer_job(model=changes)
    model = Transformer(resolve_settings(job, [], {}).architecture)
    initialise(model, 2, 11, torch.device("cpu"))
    return model


@pytest.mark.parametrize("changes", SHAPES.values(), ids=SHAPES)
def test_logits_equal_those_of_transformers_in_both_directions(tmp_path: Path, changes: dict) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    ours = model_of(changes)
    publish(ours, tmp_path)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
    tokens = torch.randint(0, 257, (2, 48), generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        expected = theirs(tokens).logits
        torch.testing.assert_close(ours(tokens), expected, atol=1e-5, rtol=0)
    theirs.save_pretrained(tmp_path / "theirs")
    again = model_of(changes)
    torch.nn.init.zeros_(again.norm.weight)
    load_weights(again, tmp_path / "theirs")
    with torch.no_grad():
        torch.testing.assert_close(again(tokens), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_the_safetensors_package_reads_what_we_write_and_we_what_it_writes(tmp_path: Path, dtype: torch.dtype) -> None:
    package = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
    tensors = {"a": torch.arange(6).reshape(2, 3).to(dtype), "b.c": torch.ones(1).to(dtype), "empty": torch.zeros(0, 4).to(dtype)}
    write_file(tmp_path / "x.safetensors", tensors.items(), {name: (dtype, tuple(value.shape)) for name, value in tensors.items()})
    theirs = package.load_file(tmp_path / "x.safetensors")
    assert all(torch.equal(theirs[name], value) for name, value in tensors.items())
    package.save_file(tensors, tmp_path / "y.safetensors")
    file = SafetensorsFile(tmp_path / "y.safetensors")
    assert all(torch.equal(file.tensor(name), value) for name, value in tensors.items())


def test_weights_go_out_and_in_again_bit_for_bit(tmp_path: Path) -> None:
    ours = model_of({})
    publish(ours, tmp_path)
    again = model_of({})
    with torch.no_grad():
        for parameter in again.parameters():
            parameter.zero_()
    load_weights(again, tmp_path)
    for (name, first), second in zip(ours.named_parameters(), again.parameters(), strict=True):
        assert torch.equal(first, second), name


def test_fails_with_every_difference_when_weights_are_of_another_architecture(tmp_path: Path) -> None:
    ours = model_of({})
    publish(ours, tmp_path)
    with pytest.raises(Settings, match="no model.layers.2.input_layernorm.weight"):
        load_weights(model_of({"layers": 3}), tmp_path)
    with pytest.raises(Settings, match=r"\(64, 32\) instead of \(48, 32\)"):
        load_weights(model_of({"ffnHiddenSize": 48}), tmp_path)


@pytest.mark.parametrize("data", [b"", b"\xff" * 16, b"\x02\0\0\0\0\0\0\0{]"], ids=["empty", "long header", "no JSON"])
def test_fails_with_the_data_error_for_a_file_that_is_no_safetensors(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.safetensors").write_bytes(data)
    with pytest.raises(DataFailed, match="must be a safetensors file"):
        SafetensorsFile(tmp_path / "x.safetensors")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("embed.weight", "model.embed_tokens.weight"),
        ("blocks.3.attention.q_proj.weight", "model.layers.3.self_attn.q_proj.weight"),
        ("blocks.0.attention_norm.weight", "model.layers.0.input_layernorm.weight"),
        ("blocks.0.mlp.gate_proj.weight", "model.layers.0.mlp.gate_proj.weight"),
        ("blocks.1.mlp.experts.2.down_proj.weight", "model.layers.1.block_sparse_moe.experts.2.w2.weight"),
        ("blocks.1.mlp.router.weight", "model.layers.1.block_sparse_moe.gate.weight"),
    ],
)
def test_names_of_published_checkpoints(ours: str, theirs: str) -> None:
    assert published_name(ours) == theirs


def test_an_adapter_starts_as_nothing_and_merges_into_the_same_function() -> None:
    base = torch.nn.Linear(16, 8, bias=False)
    adapter = LoraLinear(base, 4, 8.0)
    with torch.no_grad():
        adapter.weight.copy_(base.weight)
        adapter.lora_a.normal_()
        adapter.lora_b.zero_()
    x = torch.randn(3, 16)
    torch.testing.assert_close(adapter(x), base(x))
    with torch.no_grad():
        adapter.lora_b.normal_()
        whole = merged(adapter.weight, adapter.lora_a, adapter.lora_b, adapter.scale)
    torch.testing.assert_close(adapter(x), torch.nn.functional.linear(x, whole), atol=1e-5, rtol=1e-5)


def test_only_adapters_train() -> None:
    model = model_of({})
    apply_lora(model, Lora(4, 8.0, ("q_proj", "v_proj")))
    trained = {name.split(".", 2)[2] for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert trained == {f"attention.{layer}.lora_{part}" for layer in ("q_proj", "v_proj") for part in "ab"}


def test_fine_tuning_from_weights_trains_adapters_and_exports_them_merged(tmp_path: Path, shards: Path) -> None:
    pretrain = trainer_job(arguments=["--export-weights"])
    code, output = run_ranks(tmp_path / "base", 2, pretrain, {"train": shards})
    assert code == 0, output
    last_of_base = events(output, "step")[-1]["loss"]
    weights = tmp_path / "base/model"
    tune = trainer_job(training={"lora": LORA}, weights="weights", arguments=["--export-weights"])
    code, output = run_ranks(tmp_path / "tune", 2, tune, {"train": shards, "weights": weights})
    assert code == 0, output
    assert events(output, "step")[0]["loss"] == pytest.approx(last_of_base, abs=0.3), "it must start from the trained weights"

    before, after = (SafetensorsFile(tmp_path / run / "model/model.safetensors") for run in ("base", "tune"))
    changed = {name for name in before.names if not torch.equal(before.tensor(name), after.tensor(name))}
    assert changed == {f"model.layers.{layer}.self_attn.{part}.weight" for layer in (0, 1) for part in ("q_proj", "v_proj")}
    assert json.loads((tmp_path / "tune/model/config.json").read_text())["num_hidden_layers"] == TINY["layers"]

    rest = trainer_job(weights="weights", training={"steps": 1})
    resumed = losses_of(tmp_path / "check", 1, rest, {"train": shards, "weights": tmp_path / "tune/model"})
    direct = losses_of(tmp_path / "check2", 2, rest, {"train": shards, "weights": tmp_path / "tune/model"})
    assert resumed == pytest.approx(direct, abs=1e-5)


@pytest.mark.parametrize("parameters", [{"replicate_degree": 2}, {"tensor_parallel_degree": 2}, {"context_parallel_degree": 2}])
def test_a_tiny_model_reaches_the_loss_of_a_plain_transformers_loop(tmp_path: Path, shards: Path, parameters: dict) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    job = trainer_job(training={"steps": 20}, parameters=parameters)
    publish_first_values(tmp_path / "start", job)
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "start", dtype=torch.float32)
    expected = plain_steps(model, lambda tokens: model(tokens).logits, shards, job)
    found = losses_of(tmp_path / "ours", 2, job, {"train": shards})
    assert found == pytest.approx(expected, abs=1e-4)
