"""Mixtures of experts of today in every layout that takes them: losses equal those of one process, and the export that of one rank."""

import re
from pathlib import Path
from typing import Any

import pytest

from fake_world import direct_checkpoints
from plain_loop import first_model, plain_steps, publish
from rank_world import losses_of, run_ranks, trainer_job

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.jobs]

#: The loop of one process differs from itself by 2.8e-5 with PyTorch's kernels for another processor (ATEN_CPU_CAPABILITY).
ROUNDING = 1e-4
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 40}
MODELS: dict[str, dict[str, Any]] = {
    "qwen3_moe": EXPERTS | {"model_type": "qwen3_moe", "head_dim": 8, "num_experts": 4, "norm_topk_prob": True},
    "gpt_oss": {
        "model_type": "gpt_oss", "head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 8,
        "rope_scaling": {"rope_type": "default"},
    },
    "llama4_text": {
        "model_type": "llama4_text", "head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 1, "intermediate_size": 40,
        "intermediate_size_mlp": 64, "moe_layers": [1], "no_rope_layers": [1, 0], "attention_chunk_size": 8, "floor_scale": 8,
    },
    "deepseek_v3": EXPERTS | {
        "model_type": "deepseek_v3", "q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8,
        "v_head_dim": 12, "n_routed_experts": 4, "n_group": 2, "topk_group": 1, "first_k_dense_replace": 1,
    },
}  # fmt: skip
LAYOUTS: dict[str, tuple[int, dict[str, Any]]] = {
    "shard 2": (2, {}),
    "FSDP1 2": (2, {"arguments": ["--backend", "fsdp1"]}),
    "shard 2, selective recomputation": (2, {"training": {"activationCheckpointing": "selective"}}),
    "expert 2 with full recomputation": (
        2,
        {"parameters": {"expert_parallel_degree": 2}, "training": {"activationCheckpointing": "full"}},
    ),
    "expert 2 x shard 4": (4, {"parameters": {"expert_parallel_degree": 2}}),
    "tensor 2": (2, {"parameters": {"tensor_parallel_degree": 2}}),
    "tensor 2 x shard 2 with full recomputation": (
        4,
        {"parameters": {"tensor_parallel_degree": 2}, "training": {"activationCheckpointing": "full"}},
    ),
    "expert 2 x replicate 2": (4, {"parameters": {"expert_parallel_degree": 2, "replicate_degree": 2}}),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, shards: Path) -> tuple[dict, Path, list[float]]:
    """A shape, a folder with weights of it, whose biases and sinks are not zero, and the losses of a plain loop from there."""
    shape = MODELS[request.param]
    job = trainer_job(model=shape)
    whole = first_model(job)
    with torch.no_grad():
        for name, tensor in (*whole.named_parameters(), *whole.named_buffers()):
            if name.endswith(("bias", "sinks")):
                tensor.normal_(0.0, 0.2, generator=torch.Generator().manual_seed(9))
    folder = tmp_path_factory.mktemp("weights")
    publish(whole, folder)
    return shape, folder, plain_steps(whole, whole, shards, job)


@pytest.mark.drawn(1, of="layouts of mixtures")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_trains_the_same_and_exports_what_one_rank_exports(tmp_path: Path, shards: Path, model: tuple, layout: str) -> None:
    from slipway_trainer.safetensors import SafetensorsFile

    (shape, weights, expected), (ranks, changes) = model, LAYOUTS[layout]
    checkpoints = direct_checkpoints(tmp_path / "checkpoints")
    arguments = ["--export-weights", "--save-every-steps", "3"]
    common = {"model": shape, "weights": "weights", "checkpoints": checkpoints}
    spread = trainer_job(**common, **(changes | {"arguments": [*arguments, *changes.get("arguments", [])]}))
    channels = {"train": shards, "weights": weights}
    assert losses_of(tmp_path / "spread", ranks, spread, channels) == pytest.approx(expected, abs=ROUNDING)
    (tmp_path / "checkpoints/step-6/COMMITTED.json").unlink()
    one = trainer_job(**(common | {"weights": None}), arguments=arguments)
    assert losses_of(tmp_path / "one", 1, one, {"train": shards}) == pytest.approx(expected[3:], abs=ROUNDING)
    first, second, before = (
        SafetensorsFile(folder / "model.safetensors") for folder in (tmp_path / "spread/model", tmp_path / "one/model", weights)
    )
    assert first.names == second.names == before.names
    for name in first.names:
        torch.testing.assert_close(first.tensor(name), second.tensor(name), atol=1e-4, rtol=0)
        if name.endswith("e_score_correction_bias"):
            assert torch.equal(first.tensor(name), before.tensor(name)), "nothing but a checkpoint may change it"


@pytest.mark.drawn(1, of="layouts of mixtures")
@pytest.mark.parametrize(
    ("precision", "backend", "within"),
    [("bf16", "fsdp2", 0.1), ("bf16", "fsdp1", 0.1), ("fp8", "fsdp2", 0.3)],
)
def test_lower_precision_follows_fp32(tmp_path: Path, shards: Path, model: tuple, precision: str, backend: str, within: float) -> None:
    shape, weights, expected = model
    job = trainer_job(model=shape, weights="weights", training={"precision": precision}, arguments=["--backend", backend])
    found = losses_of(tmp_path, 2, job, {"train": shards, "weights": weights})
    assert found == pytest.approx(expected, abs=within)
    assert found != pytest.approx(expected, abs=1e-5)


@pytest.mark.drawn(1, of="layouts of mixtures")
def test_adapters_train_and_are_exported_merged(tmp_path: Path, shards: Path, model: tuple) -> None:
    shape, weights, expected = model
    lora = {"rank": 4, "alpha": 8, "targets": ["o_proj", "gate_proj", "down_proj"]}
    job = trainer_job(model=shape, weights="weights", training={"lora": lora}, arguments=["--export-weights"])
    found = losses_of(tmp_path / "tuned", 2, job, {"train": shards, "weights": weights})
    assert found[0] == pytest.approx(expected[0], abs=1e-5), "adapters begin as nothing"
    rest = trainer_job(model=shape, weights="weights", training={"steps": 1})
    again = losses_of(tmp_path / "check", 1, rest, {"train": shards, "weights": tmp_path / "tuned/model"})
    assert again[0] < expected[0] - 0.01


def test_fails_for_expert_parallelism_of_split_experts(tmp_path: Path, shards: Path) -> None:
    job = trainer_job(model=MODELS["deepseek_v3"], parameters={"tensor_parallel_degree": 2, "expert_parallel_degree": 2})
    code, output = run_ranks(tmp_path, 4, job, {"train": shards})
    assert code == 77
    assert re.search("tensor_parallel_degree: must be 1 with expert_parallel_degree", output)
