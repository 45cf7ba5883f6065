"""Families beyond Llama: logits, gradients, 20 steps of training, import and export, compared with `transformers` on random weights.

The shape comes from the family's config.json by the reader of the product (scripts/model-counts.ts), as `model.config` has it.
"""

import functools
import json
from pathlib import Path
from typing import Any

import pytest
from described import answers as read_configs
from described import described

from plain_loop import publish
from rank_world import trainer_job

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.torch

from transformers import AutoModelForCausalLM  # noqa: E402
from transformers.models.auto.configuration_auto import CONFIG_MAPPING  # noqa: E402

from slipway_trainer.exits import InvalidRun  # noqa: E402
from slipway_trainer.initialise import values_of  # noqa: E402
from slipway_trainer.masks import window_mask  # noqa: E402
from slipway_trainer.model import Transformer  # noqa: E402
from slipway_trainer.published_config import write_config  # noqa: E402
from slipway_trainer.recompute import apply_recompute  # noqa: E402
from slipway_trainer.settings import resolve_settings  # noqa: E402
from slipway_trainer.sharding import fill_all, named_tensors  # noqa: E402
from slipway_trainer.weights import PublishedWeights  # noqa: E402

LENGTH = 48
SMALL = {
    "vocab_size": 257, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 128, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 32}
MOE = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 40}
OSS = {"num_local_experts": 8, "num_experts_per_tok": 2, "head_dim": 16, "sliding_window": 16}
LLAMA4 = {
    "head_dim": 16, "num_local_experts": 4, "num_experts_per_tok": 1, "intermediate_size_mlp": 80, "attention_chunk_size": 16,
    "floor_scale": 8,
}  # fmt: skip
LATENT = {"q_lora_rank": 24, "kv_lora_rank": 20, "qk_nope_head_dim": 12, "qk_rope_head_dim": 8, "v_head_dim": 10, "num_key_value_heads": 4}
SPARSE = LATENT | {"n_routed_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 40, "n_shared_experts": 2}
GROUPS = {"n_group": 4, "topk_group": 2}
MSCALE = YARN | {"mscale": 1.0, "mscale_all_dim": 0.8}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "mistral, window": ("mistral", {"sliding_window": 16, "head_dim": 16}),
    "llama, biases": ("llama", {"attention_bias": True}),
    "qwen2": ("qwen2", {}),
    "qwen2, tied": ("qwen2", {"tie_word_embeddings": True, "rope_parameters": YARN}),
    "qwen3": ("qwen3", {"head_dim": 32}),
    "qwen3, biases": ("qwen3", {"head_dim": 32, "attention_bias": True}),
    "qwen3_moe": ("qwen3_moe", MOE | {"head_dim": 16, "norm_topk_prob": True}),
    "qwen3_moe, dense layers": ("qwen3_moe", MOE | {"head_dim": 16, "mlp_only_layers": [0, 2]}),
    "qwen2_moe": ("qwen2_moe", MOE | {"shared_expert_intermediate_size": 56}),
    "qwen2_moe, dense layers": ("qwen2_moe", MOE | {"qkv_bias": False, "decoder_sparse_step": 2, "norm_topk_prob": True}),
    "llama4": ("llama4_text", LLAMA4),
    "llama4, dense layers": ("llama4_text", LLAMA4 | {"interleave_moe_layer_step": 2, "use_qk_norm": False, "attention_bias": True}),
    "llama4, other lists": ("llama4_text", LLAMA4 | {"no_rope_layers": [1, 0, 1, 1], "attn_temperature_tuning": False}),
    "gpt_oss": ("gpt_oss", OSS | {"rope_parameters": YARN | {"truncate": False}}),
    "gpt_oss, no biases of attention": ("gpt_oss", OSS | {"attention_bias": False, "rope_parameters": ROPE}),
    "deepseek_v2": ("deepseek_v2", SPARSE | GROUPS | {"topk_method": "group_limited_greedy", "routed_scaling_factor": 16.0}),
    "deepseek_v2, queries projected directly": ("deepseek_v2", SPARSE | {"q_lora_rank": None, "first_k_dense_replace": 1}),
    "deepseek_v3": ("deepseek_v3", SPARSE | GROUPS | {"first_k_dense_replace": 1, "rope_parameters": MSCALE, "num_mtp_layers": 0}),
    "deepseek_v3, biases, halves of heads turn": (
        "deepseek_v3",
        SPARSE | {"n_group": 1, "topk_group": 1, "attention_bias": True, "rope_interleave": False, "norm_topk_prob": False},
    ),
    "olmo2": ("olmo2", {"rope_parameters": ROPE | {"rope_theta": 500000.0}}),
    "gemma": ("gemma", {"head_dim": 32}),
    "gemma2": ("gemma2", {"head_dim": 32, "sliding_window": 16, "query_pre_attn_scalar": 24}),
    "gemma3": ("gemma3_text", {"head_dim": 32, "sliding_window": 16, "query_pre_attn_scalar": 24, "num_hidden_layers": 7}),
}


@functools.cache
def answers() -> dict[str, dict[str, Any]]:
    """Shape and number of parameters of each case, by the product."""
    configs = [json.loads(config_of(name).to_json_string(use_diff=False)) for name in CASES]
    found = zip(CASES, configs, read_configs(configs), strict=True)
    return {name: answer | {"shape": described(config)} for name, config, answer in found}


def config_of(name: str) -> Any:
    family, changes = CASES[name]
    return CONFIG_MAPPING[family](**(SMALL | changes))


def ours_of(name: str) -> Transformer:
    job = trainer_job()
    model = Transformer(resolve_settings(job | {"model": answers()[name]["shape"]}, [], {}).architecture)
    fill_all(model, values_of(4, 11, torch.device("cpu")))
    return model


def theirs_of(name: str) -> Any:
    torch.manual_seed(5)
    config = config_of(name)
    config._attn_implementation = "eager"
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            # As large as those of a trained model, so that attention is far from uniform.
            parameter.add_(torch.randn_like(parameter) * (0.1 if parameter.dim() == 1 else 0.08))
        for name, buffer in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                buffer.add_(torch.randn_like(buffer) * 0.1)
    return model


def load(model: Transformer, folder: Path) -> None:
    sizes = {name: tensor.shape for name, tensor in named_tensors(model)}
    published = PublishedWeights(folder, sizes, model.shape, LENGTH)
    fill_all(model, lambda name, _shape: published.whole(name))


def pair(name: str, folder: Path) -> tuple[Transformer, Any]:
    theirs = theirs_of(name)
    theirs.save_pretrained(folder)
    ours = ours_of(name)
    load(ours, folder)
    return ours, theirs


def published_gradients(theirs: Any, folder: Path, ours: Transformer) -> PublishedWeights:
    """Their gradients through their own export, which names and stacks them as it does weights."""
    with torch.no_grad():
        weights = [parameter.clone() for parameter in theirs.parameters()]
        for parameter in theirs.parameters():
            parameter.copy_(parameter.grad)
        theirs.save_pretrained(folder)
        for parameter, weight in zip(theirs.parameters(), weights, strict=True):
            parameter.copy_(weight)
    return PublishedWeights(folder, {name: tensor.shape for name, tensor in named_tensors(ours)}, ours.shape, LENGTH)


TOKENS = torch.randint(0, 257, (2, LENGTH + 1), generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("name", CASES)
def test_logits_gradients_and_export_equal_those_of_transformers(tmp_path: Path, name: str) -> None:
    ours, theirs = pair(name, tmp_path / "theirs")
    tokens, targets = TOKENS[:, :-1], TOKENS[:, 1:].flatten()
    expected = theirs(tokens).logits
    found = ours(tokens)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)
    assert expected.std() > 0.05, "logits must say something"
    torch.nn.functional.cross_entropy(expected.flatten(0, 1), targets).backward()
    torch.nn.functional.cross_entropy(found.flatten(0, 1), targets).backward()
    gradients = published_gradients(theirs, tmp_path / "gradients", ours)
    for key, parameter in ours.named_parameters():
        torch.testing.assert_close(parameter.grad, gradients.whole(key), atol=1e-4, rtol=1e-3)
    publish(ours, tmp_path / "ours")
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "ours", dtype=torch.float32, attn_implementation="eager").eval()
    with torch.no_grad():
        torch.testing.assert_close(again(tokens).logits, expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", CASES)
def test_the_plan_counts_exactly_the_parameters_that_are_trained(name: str) -> None:
    assert sum(parameter.numel() for parameter in ours_of(name).parameters()) == answers()[name]["parameters"]


def test_the_scale_of_embeddings_is_rounded_to_their_precision_as_that_of_transformers() -> None:
    ours = ours_of("gemma2").to(torch.bfloat16)
    seen = []
    ours.blocks["0"].register_forward_pre_hook(lambda _block, arguments: seen.append(arguments[0]))
    ours(TOKENS)
    expected = ours.embed(TOKENS) * torch.tensor(ours.shape.embedding_scale, dtype=torch.bfloat16)
    assert torch.equal(seen[0], expected)


def test_masks_are_made_once_for_all_layers_and_their_recomputation(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def counted(length: int, window: int, *others: Any) -> torch.Tensor:
        made.append(window)
        return window_mask(length, window, *others)

    monkeypatch.setattr("slipway_trainer.masks.window_mask", counted)
    ours = ours_of("gemma2")
    for block in ours.blocks.values():
        apply_recompute(block, "full")
    ours(TOKENS[:, :-1]).sum().backward()
    assert sorted(made) == [16, LENGTH]


MIXTURES = ("qwen2_moe", "qwen3_moe", "gpt_oss", "deepseek_v2", "deepseek_v3", "llama4")
TRAINED = ("qwen2", "olmo2", "gemma2", "gemma3", "mistral, window", *MIXTURES)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", TRAINED)
def test_twenty_steps_give_the_losses_of_transformers(tmp_path: Path, name: str) -> None:
    ours, theirs = pair(name, tmp_path)
    tokens, targets = TOKENS[:, :-1], TOKENS[:, 1:].flatten()
    losses = []
    for model in (ours, theirs):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        seen = []
        for _ in range(20):
            output = model(tokens)
            logits = output if model is ours else output.logits
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen.append(loss.item())
        losses.append(seen)
    # Rounding may assign a token of a mixture to another expert; from then on the losses are only close.
    same = 5 if ours.shape.experts else 20
    assert losses[0][:same] == pytest.approx(losses[1][:same], abs=2e-3)
    assert losses[0] == pytest.approx(losses[1], abs=0.1)
    assert losses[0][-1] < losses[0][0] - 0.5


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [("qwen3", "num_hidden_layers", 3), ("gemma2", "attn_logit_softcapping", 40.0), ("gemma3", "rope_local_base_freq", 5000.0)],
)
def test_fails_when_config_json_contradicts_the_run(tmp_path: Path, name: str, key: str, value: Any) -> None:
    theirs_of(name).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    if key == "rope_local_base_freq":
        config["rope_parameters"]["sliding_attention"]["rope_theta"] = value
    path.write_text(json.dumps(config | {key: value}))
    with pytest.raises(InvalidRun, match=key):
        load(ours_of(name), tmp_path)


def test_an_export_keeps_the_config_json_of_the_weights_but_for_the_precision(tmp_path: Path) -> None:
    ours, _theirs = pair("qwen3", tmp_path)
    before = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "out").mkdir()
    write_config(tmp_path / "out", ours.shape, LENGTH, tmp_path, "bf16")
    after = json.loads((tmp_path / "out" / "config.json").read_text())
    assert after == before | {"dtype": "bfloat16"}
    assert before["dtype"] == "float32"


def test_fails_for_weights_that_are_quantised(tmp_path: Path) -> None:
    pair("qwen3", tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"quantization_config": {"quant_method": "fp8"}}))
    with pytest.raises(InvalidRun, match="quantization_config"):
        load(ours_of("qwen3"), tmp_path)
