"""A config.json that says less, or says it in an older way, is the model that transformers makes of it: same logits, or refused.

Each key of a family's config.json is left out, set to null, turned round or doubled, and positions and windows are written as older files
write them. What the reader takes and the trainer computes must have the logits of transformers' module for the same file.
"""

import copy
import json
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.torch

from described import IMPORTED  # noqa: E402
from test_model_families import CONFIG_MAPPING, SEED, answers, small_config  # noqa: E402
from test_trained_families import OTHER_TENSORS, our_model, their_model  # noqa: E402

from slipway_trainer.architecture import Architecture, read_architecture  # noqa: E402

Config = dict[str, Any]

#: Sizes, which other tests vary, and what changes no logits.
LEFT_ALONE = {
    "architectures", "bos_token_id", "chunk_size_feed_forward", "dtype", "eos_token_id", "hidden_size", "initializer_range", "model_type",
    "pad_token_id", "transformers_version", "vocab_size",
}  # fmt: skip
SCALINGS: list[Config] = [
    {"type": "linear", "factor": 4.0},
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32},
    {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "mscale": 1.0, "mscale_all_dim": 0.7, "beta_fast": 16},
    {"rope_type": "yarn", "factor": 4.0, "attention_factor": 1.3, "truncate": False},
    {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32},
    {"rope_type": "dynamic", "factor": 2.0},
    {"rope_type": "default", "partial_rotary_factor": 0.5},
]


def without(config: Config, *keys: str) -> Config:
    return {key: value for key, value in config.items() if key not in keys}


def other_values(value: Any) -> Iterator[Any]:
    if value is not None:
        yield None
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield 2 * value or 1
    elif isinstance(value, float):
        yield 2 * value or 0.5


def other_positions(config: Config) -> Iterator[Config]:
    rest = without(config, "rope_parameters")
    given = config.get("rope_parameters") or {}
    if "full_attention" in given:
        linear = {"rope_type": "linear", "factor": 8.0, "rope_theta": 700.0}
        yield rest | {"rope_theta": 5000.0, "rope_local_base_freq": 300.0}
        yield rest | {"rope_theta": 5000.0, "rope_local_base_freq": 300.0, "rope_scaling": linear}
        yield rest | {"rope_parameters": {"full_attention": linear, "sliding_attention": {"rope_type": "default", "rope_theta": 90.0}}}
    elif "rope_theta" in given:
        yield rest | {"rope_theta": 12345.0}
        yield rest | {"partial_rotary_factor": 0.5}
        for scaling in SCALINGS:
            yield rest | {"rope_theta": 10_000.0, "rope_scaling": scaling}
            yield rest | {"rope_parameters": scaling | {"rope_theta": 10_000.0}}
            yield rest | {"rope_parameters": scaling}


def other_windows(config: Config, rng: random.Random) -> Iterator[Config]:
    rest = without(config, "layer_types") | {"sliding_window": 8}
    layers = config["num_hidden_layers"]
    yield rest
    if "layer_types" in config:
        drawn = [rng.choice(["full_attention", "sliding_attention"]) for _ in range(layers)]
        yield rest | {"layer_types": drawn, "use_sliding_window": True}
        yield rest | {"layer_types": drawn}
        yield rest | {"sliding_window_pattern": 2}
    if "use_sliding_window" in config:
        for first in (0, 1, layers):
            yield rest | {"use_sliding_window": True, "max_window_layers": first}
    if "no_rope_layers" in config:
        yield without(config, "no_rope_layers") | {"no_rope_layer_interval": 2}
        yield config | {"no_rope_layers": [rng.choice([0, 1]) for _ in range(layers)]}


def written_otherwise(config: Config, rng: random.Random) -> Iterator[Config]:
    yield from other_positions(config)
    yield from other_windows(config, rng)
    for key in sorted(set(config) - LEFT_ALONE):
        yield without(config, key)
        for value in other_values(config[key]):
            yield config | {key: value}
    for key in ("num_experts", "num_local_experts", "n_routed_experts"):
        for other in {"num_experts", "num_local_experts", "n_routed_experts"} - {*config}:
            if key in config:
                yield without(config, key) | {other: config[key]}


def drawn(each: int | None) -> list[Config]:
    """So many variants of every family that the trainer imports from transformers' files, or all of them."""
    found: list[Config] = []
    for family in sorted({*IMPORTED} - {"kimi_k2", *OTHER_TENSORS}):
        rng = random.Random(f"{SEED}{family}")
        config = json.loads(small_config(family, rng).to_json_string(use_diff=False))
        if config.get("kv_lora_rank"):
            # Eager attention of transformers computes with no other sizes.
            config |= {"num_key_value_heads": config["num_attention_heads"], "head_dim": config["qk_rope_head_dim"]}
        variants = list(written_otherwise(config, rng))
        found += variants if each is None else rng.sample(variants, each)
    return found


def trained(configs: list[Config]) -> Iterator[tuple[Config, Architecture]]:
    for config, answer in zip(configs, answers(configs), strict=True):
        issues: list[str] = []
        raw = answer.get("shape")
        if raw is None:
            continue
        shape = read_architecture(raw, raw.__getitem__, issues)
        if not issues:
            yield config, shape


def distance(config: Config, shape: Architecture, folder: Path) -> float | None:
    """The largest difference of logits; None where transformers does not take the file."""
    tokens = torch.randint(3, 190, (1, 40), generator=torch.Generator().manual_seed(1))
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        try:
            # transformers completes nested dictionaries where they are.
            theirs = their_model(CONFIG_MAPPING[config["model_type"]].from_dict(copy.deepcopy(config)))
            logits = theirs(tokens).logits
            theirs.save_pretrained(folder)
        except Exception:  # each family raises its own
            return None
        return float((our_model(config["model_type"], shape, folder)(tokens) - logits).abs().max())


def test_scaled_positions_of_olmo_3_have_the_logits_of_transformers_in_both_forms(tmp_path: Path) -> None:
    saved = json.loads(small_config("olmo3", random.Random(SEED)).to_json_string(use_diff=False)) | {"sliding_window": 8}
    saved |= {"layer_types": ["sliding_attention" if layer % 2 == 0 else "full_attention" for layer in range(saved["num_hidden_layers"])]}
    scaling, theta = SCALINGS[1], {"rope_theta": 500_000.0}
    flat = without(saved, "rope_parameters") | {"rope_scaling": scaling} | theta
    nested = saved | {"rope_parameters": {"full_attention": scaling | theta, "sliding_attention": {"rope_type": "default"} | theta}}
    found = [distance(config, shape, tmp_path / str(number)) for number, (config, shape) in enumerate(trained([flat, nested]))]
    assert len(found) == 2
    assert all(off is not None and off <= 1e-4 for off in found), f"seed {SEED}: {found}"


@pytest.mark.drawn(1)
def test_a_config_that_is_written_otherwise_is_the_model_of_transformers_or_refused(tmp_path: Path, plays_all: bool) -> None:
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    compared, wrong = 0, []
    for number, (config, shape) in enumerate(trained(drawn(None if plays_all else 4))):
        try:
            off = distance(config, shape, tmp_path / str(number))
        except (RuntimeError, KeyError) as error:  # tensors of other sizes, or none of the name
            off = float("inf")
            print(error)
        if off is None:
            continue
        compared += 1
        if not off <= 1e-4:
            wrong.append((off, config))
    print(f"seed {SEED}: {compared} compared")
    assert not wrong, f"seed {SEED}: " + "\n".join(map(str, wrong))
    assert compared > 10, f"seed {SEED}: {compared} compared"
