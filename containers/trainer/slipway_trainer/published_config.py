"""config.json of published weights: checks for imports, and the content for exports. Does not import PyTorch.

What files of a family say is known before a launch alone (lib/core/catalog/model/published.ts): `model.published` of job.json has the
config.json of an export, and each accepted value of each key, once for every `model_type` that can describe the model.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slipway_trainer.architecture import Architecture

_TOLERANCE = 1e-6
#: Keys of a section with RoPE settings that repeat others.
_REPEATED = ("type", "rope_theta", "partial_rotary_factor", "max_position_embeddings")


def config_issues(folder: Path, shape: Architecture, sequence_length: int) -> list[str]:
    """Differences between the config.json of a weights folder and the architecture; empty if the weights fit."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        kind, quantized = config.get("model_type"), config.get("quantization_config")
        found = ["model.weights: must not be quantized, got quantization_config in config.json"] if quantized else []
        known = {one["config"]["model_type"]: one for one in shape.published if one["accepted"]}
        if kind not in known:
            ours = " or ".join(known) or shape.family.model_type or "a model of no published family"
            return [f"model: must be of model_type {kind} as config.json of the weights, got {ours}", *found]
        return _differences(config, known[kind], sequence_length) + found
    except (OSError, ValueError, TypeError, AttributeError) as error:
        return [f"model.weights: must contain a config.json with the keys of its model, got {error!r}"]


def _differences(config: Mapping[str, Any], published: Mapping[str, Any], sequence_length: int) -> list[str]:
    """Differences between the config.json of published weights and the model of the run, by key."""
    accepted, missing = published["accepted"], published["missing"]
    given, rope = _given(config, published)
    replaced = {key for name, keys in published["replaced"].items() if given.get(name) for key in keys}
    pairs = {key: (given.get(key, missing.get(key, values[0])), values) for key, values in accepted.items() if key not in replaced}
    if rope.get("rope_type") == accepted["rope_type"][0]:
        pairs |= {key: (value, [None]) for key, value in rope.items() if key not in (*accepted, *_REPEATED)}
    return [
        f"model: must have {key} {found} as in config.json of the weights, got {values[0]}"
        for key, (found, values) in pairs.items()
        if not any(same(found, value) for value in values) and not _holds_all(key, found, values, sequence_length)
    ]


def _holds_all(key: str, found: Any, values: list[Any], sequence_length: int) -> bool:
    """Whether this is a window that holds the whole rows of a run without one."""
    return key == "sliding_window" and values[0] is None and (found or 0) >= sequence_length


def _given(config: Mapping[str, Any], published: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The keys of a config.json by their first names, with those of its section with RoPE settings; and the latter alone."""
    given = dict(config)
    for other, name in published["names"].items():
        if given.get(name) is None and given.get(other) is not None:
            given[name] = given[other]
    section = config.get("rope_parameters") or config.get("rope_scaling")
    if not section:
        return given | published["unscaled"], {}
    windows = section.get("sliding_attention")
    whole = section.get("full_attention") or ({} if windows else section)
    rope = {key: value for key, value in whole.items() if value is not None}
    rope["rope_type"] = rope.get("rope_type") or rope.get("type") or "default"
    if rope["rope_type"] not in ("default", "linear") and given.get("original_max_position_embeddings") is None:
        # The default of transformers is the model's longest context.
        rope.setdefault("original_max_position_embeddings", config.get("max_position_embeddings"))
    if windows and windows.get("rope_theta") is not None:
        given["rope_local_base_freq"] = windows["rope_theta"]
    if windows and windows.get("rope_type", "default") != "default":
        rope["rope_type of windowed layers"] = windows["rope_type"]
    return given | rope, rope


def same(given: Any, wanted: Any) -> bool:
    """Whether two values of a config.json are equal. Integers are compared exactly, floats with a tolerance for rounding."""
    numbers = all(isinstance(value, (int, float)) for value in (given, wanted))
    if numbers and any(isinstance(value, float) for value in (given, wanted)):
        return math.isclose(given, wanted, rel_tol=_TOLERANCE)
    return given == wanted


def published_config(shape: Architecture, sequence_length: int) -> dict[str, Any]:
    """The config.json of an export. Its longest context is the length for which positions are scaled, or the trained length."""
    published, scaling = shape.published[0], shape.rope_scaling
    scaled = int(scaling.factor * scaling.original_max_position_embeddings) if scaling else 0
    found = published["config"] | {"max_position_embeddings": max(sequence_length, scaled)}
    found |= {key: float(found[key]) for key in published["fractions"] if found.get(key) is not None}
    return found | ({"num_nextn_predict_layers": shape.mtp_layers} if shape.mtp_layers else {})


def write_config(
    folder: Path,
    shape: Architecture,
    sequence_length: int,
    imported: Path | None = None,
    precision: str = "",
    end_of_turn: int | None = None,
) -> None:
    """Writes config.json of an export: a copy of that in `imported` with the precision of the run, or one generated from the
    architecture. `end_of_turn`: a token that ends the trained turns, at which libraries stop if `eos_token_id` has it."""
    config = published_config(shape, sequence_length)
    if imported is not None:
        config = json.loads((imported / "config.json").read_text(encoding="utf-8"))
        key = "dtype" if "dtype" in config else "torch_dtype"
        config[key] = "float32" if precision == "fp32" else "bfloat16"
    if end_of_turn is not None:
        config["eos_token_id"] = with_end(config.get("eos_token_id"), end_of_turn)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")


def with_end(given: Any, token: int) -> Any:
    """`eos_token_id` with a token: one id, or a list of several."""
    known = given if isinstance(given, list) else [] if given is None else [given]
    return given if token in known else [*known, token] if known else token
