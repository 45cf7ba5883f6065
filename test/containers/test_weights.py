"""Published weights in and out, and adapters: compared with `transformers` where it is installed."""

import json
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from test_mixture_layouts import MODELS as MIXTURES

from plain_loop import plain_steps, publish, publish_first_values
from rank_world import SMALL, events, losses_of, run_ranks, trainer_job

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from slipway_trainer.exits import DataFailed, InvalidRun  # noqa: E402
from slipway_trainer.initialise import values_of  # noqa: E402
from slipway_trainer.limits import backend_name  # noqa: E402
from slipway_trainer.lora import LoraLinear, apply_lora, merged  # noqa: E402
from slipway_trainer.model import Transformer  # noqa: E402
from slipway_trainer.published_config import config_issues, published_config  # noqa: E402
from slipway_trainer.safetensors import SafetensorsFile, write_file  # noqa: E402
from slipway_trainer.settings import Lora, resolve_settings  # noqa: E402
from slipway_trainer.sharding import fill_all  # noqa: E402
from slipway_trainer.weights import PublishedWeights, published_name  # noqa: E402

LLAMA3 = {"type": "llama3", "factor": 8, "lowFreqFactor": 1, "highFreqFactor": 4, "originalMaxPositionEmbeddings": 128}
YARN = {"type": "yarn", "factor": 4, "originalMaxPositionEmbeddings": 256}
YARN_OPTIONS = {"betaFast": 16, "betaSlow": 2, "attentionFactor": 1.3, "truncate": False}
SHAPES = {
    "llama": {},
    "llama 3.1": {"ropeTheta": 500_000, "ropeScaling": LLAMA3},
    "linear": {"ropeScaling": {"type": "linear", "factor": 2.5}},
    "yarn": {"headSize": 32, "ropeScaling": YARN},
    "yarn, every option": {"headSize": 32, "ropeScaling": YARN | YARN_OPTIONS},
    "tied": {"tiedEmbeddings": True},
    "mistral, wide heads": {"headSize": 16, "kvHeads": 1},
    "mixtral": {"experts": 4, "expertsPerToken": 2},
    "qwen3_moe, experts as large as the block": {"qkNorm": True, "experts": 4, "expertsPerToken": 2},
}
WINDOW = {"size": 16}
GPT_OSS = MIXTURES["gpt_oss"] | {"attention_bias": False, "layer_types": 2 * ["full_attention"]}
LORA = {"rank": 4, "alpha": 8.0, "targets": ["q_proj", "v_proj"]}


def load(model: Transformer, folder: Path) -> None:
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    published = PublishedWeights(folder, shapes, model.shape, 64)
    fill_all(model, lambda name, _shape: published.whole(name))


def model_of(changes: dict) -> Transformer:
    job = trainer_job(model=changes)
    model = Transformer(resolve_settings(job, [], {}).architecture)
    fill_all(model, values_of(2, 11, torch.device("cpu")))
    return model


@pytest.mark.parametrize("length", [48, 2048])
@pytest.mark.parametrize("changes", SHAPES.values(), ids=SHAPES)
def test_logits_equal_those_of_transformers_in_both_directions(tmp_path: Path, changes: dict, length: int) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    ours = model_of(changes)
    with torch.no_grad():
        for name, parameter in ours.named_parameters():
            # As large as those of a trained model, so that attention is far from uniform and positions matter.
            parameter.mul_(1.0 if "norm" in name else 8.0)
    publish(ours, tmp_path)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
    tokens = torch.randint(0, 257, (1, length), generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        expected = theirs(tokens).logits
        torch.testing.assert_close(ours(tokens), expected, atol=1e-4, rtol=0)
        if changes.get("ropeScaling"):
            ours.shape = replace(ours.shape, rope_scaling=None)
            assert (ours(tokens) - expected).abs().max() > 0.02, "the scaling must matter at this length"
    theirs.save_pretrained(tmp_path / "theirs")
    again = model_of(changes)
    torch.nn.init.zeros_(again.norm.weight)
    load(again, tmp_path / "theirs")
    with torch.no_grad():
        torch.testing.assert_close(again(tokens), expected, atol=1e-4, rtol=0)


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
    load(again, tmp_path)
    for (name, first), second in zip(ours.named_parameters(), again.parameters(), strict=True):
        assert torch.equal(first, second), name


def resident(path: Path) -> int:
    """Bytes of the mappings of a file that this process has read."""
    found, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if not line[0].isupper():
            inside = line.endswith(str(path))
        elif inside and line.startswith("Rss:"):
            found += 1024 * int(line.split()[1])
    return found


def test_a_rank_reads_only_its_part_of_a_file(tmp_path: Path) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Shard
    from torch.testing._internal.distributed.fake_pg import FakeStore

    path, size = tmp_path / "model.safetensors", 64 << 20
    whole = torch.arange(size // 4, dtype=torch.float32).reshape(8192, -1)
    write_file(path, [("weight", whole)], {"weight": (torch.float32, tuple(whole.shape))})
    torch.distributed.init_process_group("fake", rank=3, world_size=8, store=FakeStore())
    try:
        shard = DTensor.from_local(torch.zeros(1024, whole.shape[1]), init_device_mesh("cpu", (8,)), [Shard(0)], run_check=False)
        model = torch.nn.Module()
        model.weight = torch.nn.Parameter(shard)
        file = SafetensorsFile(path)
        fill_all(model, lambda name, _shape: file.tensor(name))
        assert torch.equal(model.weight.to_local(), whole[3072:4096])
        # The kernel maps some pages around those that are read.
        assert resident(path) < size / 4
    finally:
        torch.distributed.destroy_process_group()


def test_what_is_changed_in_memory_is_not_changed_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    write_file(path, [("weight", torch.ones(4))], {"weight": (torch.float32, (4,))})
    SafetensorsFile(path).tensor("weight").zero_()
    assert SafetensorsFile(path).tensor("weight").tolist() == [1.0] * 4


def test_a_header_of_any_length_is_read(tmp_path: Path) -> None:
    head = json.dumps({"weight": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    for padding in range(8):
        data = torch.tensor([1.0, 2.0]).numpy().tobytes()
        path = tmp_path / f"{padding}.safetensors"
        path.write_bytes(struct.pack("<Q", len(head) + padding) + head + b" " * padding + data)
        assert SafetensorsFile(path).tensor("weight").tolist() == [1.0, 2.0]


def test_fails_with_every_difference_when_weights_are_of_another_architecture(tmp_path: Path) -> None:
    ours = model_of({})
    publish(ours, tmp_path)
    with pytest.raises(InvalidRun, match="no model.layers.2.input_layernorm.weight"):
        load(model_of({"layers": 3}), tmp_path)
    with pytest.raises(InvalidRun, match=r"\(64, 32\) instead of \(48, 32\)"):
        load(model_of({"ffnHiddenSize": 48}), tmp_path)


def test_a_family_with_windows_may_have_none_of_them(tmp_path: Path) -> None:
    publish(model_of(GPT_OSS), tmp_path)
    load(model_of(GPT_OSS), tmp_path)
    rewrite_config(tmp_path, sliding_window=128)
    load(model_of(GPT_OSS), tmp_path)
    with pytest.raises(InvalidRun, match="model: must have layer_types .*full.* as in config.json of the weights, got .*sliding"):
        load(model_of(GPT_OSS | {"sliding_window": 16, "layer_types": 2 * ["sliding_attention"]}), tmp_path)


def test_fails_with_each_tensor_of_all_experts_named_once(tmp_path: Path) -> None:
    publish(model_of(GPT_OSS), tmp_path)
    # Of each layer: the gates and ups, their biases, and the downs.
    with pytest.raises(InvalidRun, match=r"6 differences: model.layers.0.mlp.experts.gate_up_proj \(4, 32, 128\) instead of \(4, 32, 96\)"):
        load(model_of(GPT_OSS | {"intermediate_size": 48}), tmp_path)


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


def test_fails_for_an_adapter_whose_layers_share_a_published_name() -> None:
    for targets in (["down_proj"], ["q_proj", "gate_proj"]):
        job = trainer_job(model=GPT_OSS, training={"lora": LORA | {"targets": targets}})
        with pytest.raises(InvalidRun, match="export-adapter: must be left out where training.lora.targets names experts or the router"):
            backend_name(resolve_settings(job, ["--export-adapter"], {}), "2.13.0")
        assert backend_name(resolve_settings(job, ["--export-weights"], {}), "2.13.0") == "fsdp2"
    for model in (GPT_OSS, MIXTURES["qwen3_moe"]):
        settings = resolve_settings(trainer_job(model=model, training={"lora": LORA}), ["--export-adapter"], {})
        assert backend_name(settings, "2.13.0") == "fsdp2"


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
    assert json.loads((tmp_path / "tune/model/config.json").read_text())["num_hidden_layers"] == SMALL["layers"]

    rest = trainer_job(weights="weights", training={"steps": 1})
    resumed = losses_of(tmp_path / "check", 1, rest, {"train": shards, "weights": tmp_path / "tune/model"})
    direct = losses_of(tmp_path / "check2", 2, rest, {"train": shards, "weights": tmp_path / "tune/model"})
    assert resumed == pytest.approx(direct, abs=1e-5)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("parameters", [{"replicate_degree": 2}, {"tensor_parallel_degree": 2}, {"context_parallel_degree": 2}])
def test_a_tiny_model_reaches_the_loss_of_a_plain_transformers_loop(tmp_path: Path, shards: Path, parameters: dict) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    job = trainer_job(training={"steps": 20}, parameters=parameters)
    publish_first_values(tmp_path / "start", job)
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "start", dtype=torch.float32)
    expected = plain_steps(model, lambda tokens: model(tokens).logits, shards, job)
    found = losses_of(tmp_path / "ours", 2, job, {"train": shards})
    assert found == pytest.approx(expected, abs=1e-4)


def test_the_head_of_a_tied_model_takes_no_adapter() -> None:
    lora = {"training": {"lora": LORA | {"targets": ["q_proj", "head"]}}}
    with pytest.raises(InvalidRun, match="must not name head when model.architecture.tiedEmbeddings is true"):
        backend_name(resolve_settings(trainer_job(model={"tiedEmbeddings": True}, **lora), [], {}), "2.13.0")
    assert backend_name(resolve_settings(trainer_job(**lora), [], {}), "2.13.0") == "fsdp2"


def rewrite_config(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({name: value for name, value in config.items() if value is not None}))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"rope_theta": 500_000.0}, r"must have rope_theta 500000.0 as in config.json of the weights, got 10000"),
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}, "must have rope_theta 500000.0"),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "must have rope_type linear as in config.json of the weights, got default"),
        ({"rope_scaling": {"rope_type": "longrope", "short_factor": [1.0], "long_factor": [2.0]}}, "rope_type longrope"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "finetuned": True}}, "must have rope_type yarn"),
        ({"rms_norm_eps": 1e-6}, "must have rms_norm_eps 1e-06"),
        ({"num_key_value_heads": None}, "must have num_key_value_heads 4"),
        ({"tie_word_embeddings": True}, "must have tie_word_embeddings True"),
        ({"head_dim": 16}, "must have head_dim 16"),
        ({"model_type": "mamba2"}, "must be of model_type mamba2 as config.json of the weights, got llama or mistral"),
        ({"model_type": "mistral", "sliding_window": 16}, "must have sliding_window 16 as in config.json of the weights, got None"),
        ({"attention_bias": True}, "must have attention_bias True"),
        ({"hidden_act": "gelu"}, "must have hidden_act gelu"),
        ({"partial_rotary_factor": 0.5}, "must have partial_rotary_factor 0.5"),
        ({"quantization_config": {"bits": 8}}, "got quantization_config"),
    ],
)
def test_fails_when_the_run_file_contradicts_config_json(tmp_path: Path, changes: dict, complaint: str) -> None:
    publish(model_of({}), tmp_path)
    rewrite_config(tmp_path, **changes)
    with pytest.raises(InvalidRun, match=complaint):
        load(model_of({}), tmp_path)


def test_fails_when_a_scaling_has_a_key_or_a_value_of_its_own(tmp_path: Path) -> None:
    scaled = model_of({"ropeScaling": YARN})
    publish(scaled, tmp_path)
    older = {"type": "yarn", "factor": 4, "original_max_position_embeddings": 256}
    rewrite_config(tmp_path, rope_scaling=older)
    load(scaled, tmp_path)
    rewrite_config(tmp_path, rope_scaling=older | {"finetuned": True, "beta_fast": 16})
    with pytest.raises(InvalidRun, match="beta_fast 16 as in config.json of the weights, got 32; .* finetuned True .*, got None"):
        load(scaled, tmp_path)
    rewrite_config(tmp_path, rope_scaling=None)
    with pytest.raises(InvalidRun, match="must have rope_type default as in config.json of the weights, got yarn"):
        load(scaled, tmp_path)


def test_fails_when_a_large_vocabulary_differs_by_one_word(tmp_path: Path) -> None:
    shape = resolve_settings(trainer_job(model={"qkNorm": True, "vocabularySize": 256_000}), [], {}).architecture
    (tmp_path / "config.json").write_text(json.dumps(published_config(shape, 64) | {"vocab_size": 256_001}))
    assert config_issues(tmp_path, shape, 64) == ["model: must have vocab_size 256001 as in config.json of the weights, got 256000"]


def test_a_window_that_holds_the_whole_sequence_is_no_contradiction(tmp_path: Path) -> None:
    publish(model_of({}), tmp_path)
    rewrite_config(tmp_path, model_type="mistral", sliding_window=64)
    load(model_of({}), tmp_path)


def test_fails_without_config_json(tmp_path: Path) -> None:
    publish(model_of({}), tmp_path)
    (tmp_path / "config.json").unlink()
    with pytest.raises(InvalidRun, match="model.weights: must contain a config.json"):
        load(model_of({}), tmp_path)


def with_tensor(folder: Path, name: str, tensor: torch.Tensor) -> None:
    """Without an index, and without a file for the whole, all files of the folder are the weights."""
    if (folder / "model.safetensors").is_file():
        (folder / "model.safetensors").rename(folder / "first.safetensors")
    write_file(folder / "more.safetensors", [(name, tensor)], {name: (tensor.dtype, tuple(tensor.shape))})


def test_fails_when_the_weights_hold_a_tensor_that_the_model_has_no_place_for(tmp_path: Path) -> None:
    publish(model_of({}), tmp_path)
    with_tensor(tmp_path, "model.layers.0.self_attn.rotary_emb.inv_freq", torch.ones(4))
    load(model_of({}), tmp_path)
    with_tensor(tmp_path, "model.layers.0.self_attn.q_proj.bias", torch.ones(32))
    with pytest.raises(InvalidRun, match=r"1 differences: model.layers.0.self_attn.q_proj.bias without a place"):
        load(model_of({}), tmp_path)


def test_a_stored_head_must_be_the_embedding_of_a_tied_model(tmp_path: Path) -> None:
    tied = model_of({"tiedEmbeddings": True})
    publish(tied, tmp_path)
    with_tensor(tmp_path, "lm_head.weight", tied.embed.weight.detach().to(torch.float32))
    load(model_of({"tiedEmbeddings": True}), tmp_path)
    with_tensor(tmp_path, "lm_head.weight", tied.embed.weight.detach() + 1)
    with pytest.raises(InvalidRun, match="lm_head.weight without a place"):
        load(model_of({"tiedEmbeddings": True}), tmp_path)


def test_transformers_refuses_the_export_of_a_model_that_it_does_not_have(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    plain = model_of({"gatedMlp": False})
    publish(plain, tmp_path)
    with pytest.raises(ValueError, match="slipway-plain-mlp"):
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    load(model_of({"gatedMlp": False}), tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"qkNorm": True, "slidingWindow": WINDOW},
        {"qkNorm": True, "gatedMlp": False},
        {"qkNorm": True, "logitSoftcap": {"final": 30.0}},
        {"gatedMlp": False, "slidingWindow": WINDOW},
        {"family": {"modelType": "gemma"}, "attentionBias": True, "slidingWindow": WINDOW},
    ],
)
def test_the_export_of_a_shape_that_no_family_has_is_labelled_as_none(changes: dict) -> None:
    shape = resolve_settings(trainer_job(model=changes), [], {}).architecture
    config = published_config(shape, 64)
    assert config["model_type"] == "slipway"
    assert "architectures" not in config


def test_configurations_that_transformers_writes_are_read_as_it_computes_them(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    sizes = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=257)
    shapes = {
        transformers.LlamaConfig: {"normEpsilon": 1e-6},
        transformers.MistralConfig: {"normEpsilon": 1e-6},
        transformers.MixtralConfig: {"ropeTheta": 1e6, "experts": 8, "expertsPerToken": 2},
    }
    for kind, changes in shapes.items():
        kind(**sizes).save_pretrained(tmp_path)
        job = trainer_job(model=changes)
        assert config_issues(tmp_path, resolve_settings(job, [], {}).architecture, 64) == [], kind
