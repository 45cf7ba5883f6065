"""Families beyond Llama: logits, gradients, 20 steps of training, import and export, compared with `transformers` on random weights.

The shape comes from the family's config.json by the reader of the product (scripts/model-counts.ts), as `model.config` has it.
"""

import functools
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from plain_loop import publish
from rank_world import trainer_job

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.torch

from transformers import AutoModelForCausalLM  # noqa: E402
from transformers.models.auto.configuration_auto import CONFIG_MAPPING  # noqa: E402

from slipway_trainer.attention import window_mask  # noqa: E402
from slipway_trainer.exits import Settings  # noqa: E402
from slipway_trainer.initialise import initialise  # noqa: E402
from slipway_trainer.model import Transformer  # noqa: E402
from slipway_trainer.published_config import write_config  # noqa: E402
from slipway_trainer.recompute import apply_recompute  # noqa: E402
from slipway_trainer.settings import resolve_settings  # noqa: E402
from slipway_trainer.weights import PublishedWeights, load_weights, published_name  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
LENGTH = 48
SMALL = {
    "vocab_size": 257, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 128, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 32}
MOE = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 40}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "mistral, window": ("mistral", {"sliding_window": 16, "head_dim": 16}),
    "llama, biases": ("llama", {"attention_bias": True}),
    "qwen2": ("qwen2", {}),
    "qwen2, tied": ("qwen2", {"tie_word_embeddings": True, "rope_parameters": YARN}),
    "qwen3": ("qwen3", {"head_dim": 32}),
    "qwen3, biases": ("qwen3", {"head_dim": 32, "attention_bias": True}),
    "qwen3_moe": ("qwen3_moe", MOE | {"head_dim": 16, "norm_topk_prob": True}),
    "qwen3_moe, dense layers": ("qwen3_moe", MOE | {"head_dim": 16, "mlp_only_layers": [0, 2]}),
    "olmo2": ("olmo2", {"rope_parameters": ROPE | {"rope_theta": 500000.0}}),
    "gemma": ("gemma", {"head_dim": 32}),
    "gemma2": ("gemma2", {"head_dim": 32, "sliding_window": 16, "query_pre_attn_scalar": 24}),
    "gemma3": ("gemma3_text", {"head_dim": 32, "sliding_window": 16, "query_pre_attn_scalar": 24, "num_hidden_layers": 7}),
}


@functools.cache
def shapes() -> dict[str, dict[str, Any]]:
    """What `model` of job.json says of each case."""
    lines = [json.dumps(json.loads(config_of(name).to_json_string(use_diff=False))) for name in CASES]
    command = [str(ROOT / "node_modules/.bin/tsx"), "scripts/model-counts.ts"]
    done = subprocess.run(command, cwd=ROOT, input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert all("shape" in answer for answer in answers), [answer.get("problems") for answer in answers]
    return {name: answer["shape"] for name, answer in zip(CASES, answers, strict=True)}


def config_of(name: str) -> Any:
    family, changes = CASES[name]
    return CONFIG_MAPPING[family](**(SMALL | changes))


def ours_of(name: str) -> Transformer:
    job = trainer_job()
    model = Transformer(resolve_settings(job | {"model": shapes()[name]}, [], {}).architecture)
    initialise(model, 4, 11, torch.device("cpu"))
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
    return model


def load(model: Transformer, folder: Path) -> None:
    sizes = {name: parameter.shape for name, parameter in model.named_parameters()}
    load_weights(model, PublishedWeights(folder, sizes, model.shape, LENGTH))


def pair(name: str, folder: Path) -> tuple[Transformer, Any]:
    theirs = theirs_of(name)
    theirs.save_pretrained(folder)
    ours = ours_of(name)
    load(ours, folder)
    return ours, theirs


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
    gradients = {key: value.grad for key, value in theirs.named_parameters()}
    compared = 0
    for key, parameter in ours.named_parameters():
        published = published_name(key, ours.shape)
        if published in gradients:
            torch.testing.assert_close(parameter.grad, gradients[published], atol=1e-4, rtol=1e-3)
            compared += 1
    assert compared >= 20
    publish(ours, tmp_path / "ours")
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "ours", dtype=torch.float32, attn_implementation="eager").eval()
    with torch.no_grad():
        torch.testing.assert_close(again(tokens).logits, expected, atol=1e-4, rtol=0)


def test_the_scale_of_embeddings_is_rounded_to_their_precision_as_that_of_transformers() -> None:
    ours = ours_of("gemma2").to(torch.bfloat16)
    seen = []
    ours.blocks["0"].register_forward_pre_hook(lambda _block, arguments: seen.append(arguments[0]))
    ours(TOKENS)
    expected = ours.embed(TOKENS) * torch.tensor(ours.shape.embedding_scale, dtype=torch.bfloat16)
    assert torch.equal(seen[0], expected)


def test_masks_are_made_once_for_all_layers_and_their_recomputation(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def counted(length: int, window: int, device: torch.device) -> torch.Tensor:
        made.append(window)
        return window_mask(length, window, device)

    monkeypatch.setattr("slipway_trainer.model.window_mask", counted)
    ours = ours_of("gemma2")
    for block in ours.blocks.values():
        apply_recompute(block, "full")
    ours(TOKENS[:, :-1]).sum().backward()
    assert sorted(made) == [16, LENGTH]


@pytest.mark.parametrize("name", ["qwen2", "qwen3_moe", "olmo2", "gemma2", "gemma3", "mistral, window"])
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
    assert losses[0] == pytest.approx(losses[1], abs=2e-3)
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
    with pytest.raises(Settings, match=key):
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
    with pytest.raises(Settings, match="quantization_config"):
        load(ours_of("qwen3"), tmp_path)
