"""config.json of published weights: checks for imports, and the content for exports. Does not import PyTorch."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slipway_trainer.architecture import Architecture
from slipway_trainer.published_families import FAMILIES, PLAIN_FAMILIES, family_config, family_issues, family_of
from slipway_trainer.published_keys import common, stated

#: `model_type` of an export whose combination of parts exists in no published family.
OWN_SHAPE = "slipway"


def config_issues(folder: Path, shape: Architecture, sequence_length: int) -> list[str]:
    """Differences between the config.json of a weights folder and the architecture; empty if the weights fit."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        found = _beyond(config)
        if config.get("model_type") not in FAMILIES:
            return found
        kind = config["model_type"]
        if kind not in PLAIN_FAMILIES and shape.family.model_type not in ("", kind):
            return [f"model: must be of model_type {kind} as config.json of the weights, got {shape.family.model_type}"]
        return family_issues(config, shape, sequence_length) + found
    except (OSError, ValueError, TypeError, AttributeError) as error:
        return [f"model.weights: must contain a config.json of a Llama, Mistral or Mixtral model, got {error!r}"]


def _beyond(config: Mapping[str, Any]) -> list[str]:
    known = ", ".join(kind for kind, family in FAMILIES.items() if family.architecture)
    kind = config.get("model_type")
    found = [] if kind in FAMILIES else [f"model_type {kind} (known: {known})"]
    found += ["quantization_config"] if config.get("quantization_config") else []
    return [f"model.weights: must be a model that the built-in trainer computes, got {what} in config.json" for what in found]


def longest_context(shape: Architecture, sequence_length: int) -> int:
    """`max_position_embeddings` of an export: the length for which positions are scaled, or the trained length."""
    scaling = shape.rope_scaling
    return max(sequence_length, int(scaling.factor * scaling.original_max_position_embeddings)) if scaling else sequence_length


def published_config(shape: Architecture, sequence_length: int) -> dict[str, Any]:
    """The config.json of an export."""
    longest, kind = longest_context(shape, sequence_length), family_of(shape)
    if kind is not None:
        return family_config(kind, shape, longest)
    return stated(common(shape)) | {"model_type": OWN_SHAPE, "head_dim": shape.head_size, "max_position_embeddings": longest}


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
