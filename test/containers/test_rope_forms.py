"""Rotary positions of every family that is read: a config.json in the makers' form and in that of transformers 5 has the settings that
transformers' configuration of the family takes from it, or is refused by name. Values are drawn at random; the seed is printed.
"""

import json
import random
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

transformers = pytest.importorskip("transformers")
pytest.importorskip("torch")

from test_model_families import CONFIG_MAPPING, READ, SEED, answers, small_config  # noqa: E402

Config = dict[str, Any]

#: Sections without which a family has no rotary positions, or has them in keys of its own.
OWN_KEYS = ("bloom", "gpt2", "gpt_bigcode", "gpt_neox", "gptj", "kimi_linear", "opt")
#: What transformers' configuration forgets: `convert_rope_params_to_dict` takes rope_theta for one of two sections.
THETA_OF_BOTH = ("olmo3",)


def scalings(rng: random.Random) -> Iterator[Config]:
    factor = rng.choice([2.0, 4.0, 8.0])
    yield {"rope_type": "default"}
    yield {"rope_type": "linear", "factor": factor}
    yield {"rope_type": "yarn", "factor": factor, "original_max_position_embeddings": 64, "attention_factor": rng.choice([1.1, 1.3])}
    yield {
        **{"rope_type": "llama3", "factor": factor, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
        "original_max_position_embeddings": rng.choice([32, 64]),
    }


def forms(config: Config, rng: random.Random) -> Iterator[Config]:
    """One fact in the forms of files that makers publish and that transformers saves."""
    rest = {key: value for key, value in config.items() if key not in ("rope_parameters", "rope_scaling", "rope_theta")}
    layered = "full_attention" in (config.get("rope_parameters") or {})
    yield rest
    for scaling in scalings(rng):
        theta = rng.choice([10_000.0, 20_000.0, 500_000.0])
        yield rest | {"rope_theta": theta, "rope_scaling": scaling}
        if not layered:
            yield rest | {"rope_parameters": scaling | {"rope_theta": theta}}
            continue
        window = {"rope_type": "default", "rope_theta": rng.choice([theta, 10_000.0])}
        full = scaling | {"rope_theta": theta}
        yield rest | {"rope_parameters": {"full_attention": full, "sliding_attention": window}}
        yield rest | {"rope_parameters": {"full_attention": full, "sliding_attention": full}}


def settings(rope: Config | None, *names: str) -> tuple[Any, ...]:
    rope = rope or {}
    kind = rope.get("rope_type", "default")
    return (rope.get("rope_theta"), kind, *(rope.get(name) for name in names if kind != "default"))


NAMES = ("factor", "original_max_position_embeddings", "attention_factor", "low_freq_factor", "high_freq_factor")
OURS = ("factor", "originalMaxPositionEmbeddings", "attentionFactor", "lowFreqFactor", "highFreqFactor")


def of_transformers(family: str, config: Config) -> tuple[Any, Any] | None:
    """(settings of layers without a window, of those with one); None where transformers does not take the file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            made = CONFIG_MAPPING[family].from_dict(json.loads(json.dumps(config)))
        except Exception:  # each family raises its own
            return None
    rope = made.rope_parameters
    if rope is None or "full_attention" not in rope:
        return settings(rope, *NAMES), settings(rope, *NAMES)
    if family in THETA_OF_BOTH and "rope_theta" in config:
        rope["sliding_attention"]["rope_theta"] = config["rope_theta"]
    return settings(rope["full_attention"], *NAMES), settings(rope["sliding_attention"], *NAMES)


def of_shape(shape: Config) -> tuple[Any, Any]:
    scaling = shape.get("ropeScaling") or {}
    kind = scaling.get("type", "default")
    full = (shape.get("ropeTheta"), kind, *(scaling.get(name) for name in OURS if kind != "default"))
    local = shape["family"].get("localRopeTheta")
    return full, full if local is None else (local, "default")


def has_windows(shape: Config) -> bool:
    return "slidingWindow" in shape


def test_positions_in_every_form_are_those_of_transformers_or_refused() -> None:
    transformers.logging.set_verbosity_error()
    rng, drawn = random.Random(SEED), []
    for family in sorted({*READ} - {*OWN_KEYS}):
        config = small_config(family, rng)
        if config is None:
            continue
        text = json.loads(config.to_json_string(use_diff=False))
        drawn += [(family, form) for form in forms(text, rng)]
    wrong, compared = [], 0
    for (family, config), answer in zip(drawn, answers([config for _family, config in drawn]), strict=True):
        theirs = of_transformers(family, config)
        shape = answer.get("shape")
        if theirs is None or shape is None or shape["family"].get("untrained"):
            continue
        compared += 1
        ours = of_shape(shape)
        if ours[0] != theirs[0] or (has_windows(shape) and ours[1] != theirs[1]):
            wrong.append((family, {key: value for key, value in config.items() if "rope" in key}, ours, theirs))
    print(f"seed {SEED}: {compared} of {len(drawn)} compared")
    assert not wrong, f"seed {SEED}: " + "\n".join(map(str, wrong))
    assert compared > len(drawn) // 2, f"seed {SEED}: {compared} of {len(drawn)} compared"
