"""Parameter counts of lib/core/catalog/model against transformers' own modules, for every family with a causal head.

A configuration is either counted within 0.1 %, or refused with a key or the model_type. Sizes are drawn at random; the seed is printed.
"""

import functools
import json
import os
import random
import warnings

import pytest
from described import answers

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")
from transformers import AutoModelForCausalLM  # noqa: E402
from transformers.models.auto.configuration_auto import CONFIG_MAPPING  # noqa: E402
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES  # noqa: E402

SEED = int(os.environ.get("SLIPWAY_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
DRAWS = 3
TOLERANCE = 0.001

#: Families whose published models people train today: a refusal of one of these is a failure.
READ = (
    "llama", "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "gemma", "gemma2", "gemma3_text", "llama4_text",
    "olmo", "olmo2", "olmo3", "olmoe", "phi", "phi3", "phimoe", "granite", "granitemoe", "granitemoeshared", "smollm3",
    "gpt_oss", "deepseek_v2", "deepseek_v3", "glm", "glm4", "glm4_moe", "glm4_moe_lite", "cohere", "cohere2", "starcoder2",
    "stablelm", "nemotron", "seed_oss", "ernie4_5", "ernie4_5_moe", "exaone4", "dots1", "hunyuan_v1_dense", "arcee", "apertus",
    "ministral", "minimax_m2", "solar_open", "gpt2", "gpt_neox", "gptj", "gpt_bigcode", "opt", "bloom", "youtu", "minicpm3",
    "nanochat", "qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "nemotron_h", "granitemoehybrid", "kimi_linear",
    "gemma4_text", "deepseek_v32", "deepseek_v4", "glm_moe_dsa", "minimax", "mimo_v2_flash",
    "minimax_m3_vl_text",
)  # fmt: skip

#: Biases that no published model of a family has, and that Slipway refuses.
UNBIASED = {"deepseek_v2": "mlp_bias", "ernie4_5_moe": "use_bias", "nemotron_h": "mlp_bias", "deepseek_v4": "mlp_bias"}

_LINEAR = ("linear_attention", "full_attention")
#: Types of which the layers of a family are drawn; the last layer has the last one.
LAYER_TYPES = {
    "granitemoehybrid": _LINEAR, "kimi_linear": _LINEAR, "minimax": _LINEAR,
    "minimax_m3_vl_text": ("full_attention", "minimax_m3_sparse"),
    "gemma4_text": ("sliding_attention", "full_attention"), "mimo_v2_flash": ("full_attention", "sliding_attention"),
    "deepseek_v4": ("sliding_attention", "heavily_compressed_attention", "compressed_sparse_attention"),
}  # fmt: skip


def sizes(rng: random.Random) -> dict:
    flip = functools.partial(rng.choice, [False, True])
    heads = rng.choice([4, 8])
    layers = rng.randrange(2, 6)
    experts = rng.choice([8, 16])
    return {
        "num_hidden_layers": layers, "n_layer": layers, "num_layers": layers,
        "hidden_size": 32 * heads, "n_embd": 32 * heads, "d_model": 32 * heads,
        "num_attention_heads": heads, "n_head": heads,
        "num_key_value_heads": rng.choice([1, 2, heads]), "num_kv_heads": 2,
        "head_dim": rng.choice([16, 32, 64]),
        "intermediate_size": rng.choice([96, 176]), "ffn_dim": 96, "ffn_hidden_size": 96, "intermediate_size_mlp": 112,
        "moe_intermediate_size": rng.choice([40, 56]),
        "shared_expert_intermediate_size": 72, "shared_intermediate_size": rng.choice([0, 64]),
        "vocab_size": rng.randrange(200, 400), "max_position_embeddings": 128, "n_positions": 128,
        "n_routed_experts": experts, "num_experts": experts, "num_local_experts": experts, "moe_num_experts": experts,
        "num_experts_per_tok": rng.choice([1, 2, 4]), "moe_k": 2, "moe_topk": 2, "n_group": rng.choice([1, 2]), "topk_group": 1,
        "layers_block_type": [rng.choice(["linear_attention", "full_attention", "moe", "mlp"]) for _ in range(layers)],
        "n_shared_experts": rng.choice([1, 2]), "num_shared_experts": 1, "first_k_dense_replace": rng.choice([0, 1]),
        "decoder_sparse_step": rng.choice([1, 2]), "mlp_only_layers": rng.choice([[], [1]]),
        "interleave_moe_layer_step": rng.choice([1, 2]),
        "q_lora_rank": rng.choice([None, 24]), "kv_lora_rank": 16, "qk_nope_head_dim": 12, "qk_rope_head_dim": 8, "v_head_dim": 10,
        "word_embed_proj_dim": 32 * heads, "rotary_dim": 8,
        "attention_bias": flip(), "mlp_bias": rng.choice([True, False, False]), "tie_word_embeddings": flip(),
        "use_bias": flip(), "qkv_bias": flip(), "use_qkv_bias": flip(),
        "use_qk_norm": flip(), "multi_query": flip(), "use_parallel_residual": flip(),
        "enable_moe_block": flip(), "top_k_experts": 2, "num_kv_shared_layers": rng.choice([0, 1]), "use_double_wide_mlp": flip(),
        "attention_k_eq_v": flip(), "hidden_size_per_layer_input": rng.choice([0, 8]), "vocab_size_per_layer_input": 64,
        "moe_latent_size": rng.choice([None, 48]),
        "lm_head_bias": flip(), "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    }  # fmt: skip


def small_config(family: str, rng: random.Random):
    """A configuration of a family with sizes drawn at random; None where the family refuses all that were tried."""
    made = CONFIG_MAPPING[family]
    defaults = made().to_dict()
    for _ in range(6):
        drawn = {key: value for key, value in sizes(rng).items() if key in defaults and not isinstance(defaults[key], dict)}
        if family in ("deepseek_v32", "deepseek_v4", "glm_moe_dsa"):
            drawn["q_lora_rank"] = 24  # transformers refuses null
        if family in LAYER_TYPES:
            kinds = LAYER_TYPES[family]
            drawn["layer_types"] = [*rng.choices(kinds, k=drawn["num_hidden_layers"] - 1), kinds[-1]]
        if family == "granitemoehybrid":
            drawn["num_local_experts"] = rng.choice([0, 8])
            drawn["shared_intermediate_size"] = 64
            drawn |= {"mamba_n_heads": drawn["hidden_size"] // 32, "mamba_d_head": 64}
        if family not in ("cohere", "glm4_moe"):
            drawn.pop("use_qk_norm", None)
        if family in UNBIASED:
            drawn[UNBIASED[family]] = False
        try:
            return made(**drawn)
        except Exception:  # each family raises its own for sizes that do not go together
            continue
    return None


def counts(model) -> tuple[int, int]:
    """(all parameters, those that one token meets): experts stand in one tensor with the experts first."""
    total = active = 0
    config = model.config
    visits = next(
        (getattr(config, key) for key in ("num_experts_per_tok", "moe_k", "moe_topk", "top_k_experts") if getattr(config, key, None)), None
    )
    for name, parameter in model.named_parameters():
        total += parameter.numel()
        routed = ".experts." in name and visits
        active += parameter.numel() * visits // parameter.shape[0] if routed else parameter.numel()
    return total, active


#: Keys that may be null in a config.json that is read.
OPTIONAL = ("num_key_value_heads", "q_lora_rank", "v_head_dim", "head_dim")


def families(plays_all: bool) -> list[str]:
    """All that transformers has; else those that must be read and a few of the others: what takes time is reading their modules."""
    found = sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    if plays_all:
        return found
    others = [family for family in found if family not in READ]
    return [*READ, *random.Random(SEED).sample(others, len(others) // 4)]


@functools.cache
def cases(plays_all: bool) -> list[tuple[str, dict, int, int]]:
    """(family, config.json, parameters, active parameters) of what transformers can build: one of each family, or all that are drawn."""
    transformers.logging.set_verbosity_error()
    rng, found = random.Random(SEED), []
    for family in families(plays_all):
        for _ in range(DRAWS):
            with warnings.catch_warnings(), torch.device("meta"):
                warnings.simplefilter("ignore")
                try:
                    config = small_config(family, rng)
                    if config is None:
                        break
                    model = AutoModelForCausalLM.from_config(config)
                except Exception:  # families that need packages we do not have, or sizes that only the module checks
                    continue
            found.append((family, json.loads(config.to_json_string(use_diff=False)), *counts(model)))
            if not plays_all:
                break
    return found


@pytest.mark.drawn(1)
def test_every_family_is_counted_as_transformers_counts_it_or_refused_by_name(plays_all: bool) -> None:
    found = cases(plays_all)
    wrong, read = [], set()
    for (family, config, total, active), answer in zip(found, answers([case[1] for case in found]), strict=True):
        if "problems" in answer:
            assert all(problem["key"] and problem["must"] and problem["fix"] for problem in answer["problems"]), (family, answer)
            if family in READ:
                wrong.append((family, answer["problems"][:2]))
            continue
        read.add(family)
        for name, theirs in (("parameters", total), ("activeParameters", active)):
            if abs(answer[name] - theirs) > TOLERANCE * theirs:
                wrong.append((family, name, answer[name], theirs, {k: v for k, v in config.items() if k in sizes(random.Random(1))}))
    print(f"seed {SEED}; {len(found)} configurations, {len(read)} families counted")
    assert not wrong, f"seed {SEED}: " + "\n".join(map(str, wrong))
    assert set(READ) <= read, f"seed {SEED}: {sorted(set(READ) - read)} were not built"


def changes(config: dict, plays_all: bool) -> list[tuple[str, dict]]:
    """The same config.json without a key, and with null as its value: every key, or those that are optional and one of the others."""
    always = [key for key in OPTIONAL if key in config]
    others = sorted(set(config) - {*always, "model_type"})
    keys = [*always, *(others if plays_all else random.Random(f"{SEED}{config['model_type']}").sample(others, 1))]
    return [
        (key, changed) for key in keys for changed in ({name: value for name, value in config.items() if name != key}, config | {key: None})
    ]


def must_be_read(family: str, key: str, config: dict) -> bool:
    """A missing key may be refused: what transformers then takes may contradict the sizes of the small configuration."""
    return family in READ and key in OPTIONAL and key in config


@pytest.mark.drawn(1)
def test_a_key_that_is_missing_or_null_means_what_transformers_takes_or_is_refused(plays_all: bool) -> None:
    expected = []
    once = list({case[0]: case for case in cases(plays_all)}.values())
    for family, config, _total, _active in once if plays_all else random.Random(SEED).sample(once, len(once) // 2):
        for key, changed in changes(config, plays_all):
            with warnings.catch_warnings(), torch.device("meta"):
                warnings.simplefilter("ignore")
                try:
                    made = CONFIG_MAPPING[family].from_dict(dict(changed))
                    expected.append((family, key, changed, counts(AutoModelForCausalLM.from_config(made))[0]))
                except Exception:  # a family that needs the key
                    continue
    found = zip(expected, answers([case[2] for case in expected]), strict=True)
    wrong = [
        (family, key, config.get(key, "missing"), answer, total)
        for (family, key, config, total), answer in found
        if abs(answer.get("parameters", 0) - total) > TOLERANCE * total and ("problems" not in answer or must_be_read(family, key, config))
    ]
    assert not wrong, f"seed {SEED}: " + "\n".join(map(str, wrong))
