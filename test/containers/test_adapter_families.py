"""Adapters of every family that the trainer imports give PEFT the logits that they give us; those of experts and routers are refused."""

import json
import random
import warnings
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")
pytestmark = pytest.mark.torch

from described import IMPORTED  # noqa: E402
from test_model_families import CONFIG_MAPPING, SEED, answers, small_config  # noqa: E402
from test_trained_families import OTHER_TENSORS, our_model, their_model  # noqa: E402

from slipway_trainer.architecture import read_architecture  # noqa: E402
from slipway_trainer.lora import apply_lora  # noqa: E402
from slipway_trainer.weights import export_adapter  # noqa: E402

#: Refused with --export-adapter for mixtures (limits.py).
REFUSED = {"gate_proj", "up_proj", "down_proj", "router"}


@pytest.mark.drawn(3)
@pytest.mark.parametrize("family", sorted({*IMPORTED} - {"kimi_k2", *OTHER_TENSORS}))
def test_an_adapter_has_the_logits_that_peft_gives_it(tmp_path: Path, family: str) -> None:
    transformers.logging.set_verbosity_error()
    config = json.loads(small_config(family, random.Random(SEED)).to_json_string(use_diff=False))
    if config.get("kv_lora_rank"):
        # Eager attention of transformers computes with no other sizes.
        config |= {"num_key_value_heads": config["num_attention_heads"], "head_dim": config["qk_rope_head_dim"]}
    (answer,) = answers([config])
    issues: list[str] = []
    shape = read_architecture(answer["shape"], answer["shape"].__getitem__, issues)
    if issues:
        pytest.skip(f"seed {SEED}: {issues}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        their_model(CONFIG_MAPPING[family].from_dict(dict(config))).save_pretrained(tmp_path / "weights")
        ours = our_model(family, shape, tmp_path / "weights")
        modules = [(path, module) for path, module in ours.named_modules() if isinstance(module, torch.nn.Linear)]
        found = [(path.rpartition(".")[2], module) for path, module in modules if path.startswith("blocks.")]
        linear = {name for name, _module in found}
        sizes = Counter((name, module.in_features, module.out_features) for name, module in found)
        assert sizes == {tuple(one[:3]): one[3] for one in answer["linearLayers"]}, "as the plan counts them"
        lora = SimpleNamespace(rank=2, alpha=4.0, targets=sorted(linear - REFUSED if shape.experts else linear))
        weights = {name: tensor.clone() for name, tensor in ours.state_dict().items()}
        apply_lora(ours, lora)
        ours.load_state_dict(weights, strict=False)
        with torch.no_grad():
            for name, tensor in ours.named_parameters():
                if "lora_" in name:
                    tensor.copy_(torch.randn_like(tensor) * 0.2)
        whole = [(name, tensor.detach()) for name, tensor in ours.named_parameters()]
        settings = SimpleNamespace(training=SimpleNamespace(lora=lora), architecture=shape)
        export_adapter(whole, {name: tuple(tensor.shape) for name, tensor in whole}, tmp_path, settings, 0)
        base = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "weights", dtype=torch.float32, attn_implementation="eager")
        adapted = peft.PeftModel.from_pretrained(base, tmp_path / "adapter")
    tokens = torch.randint(3, 190, (1, 24), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        torch.testing.assert_close(ours(tokens), adapted(tokens).logits, atol=1e-4, rtol=1e-4)
