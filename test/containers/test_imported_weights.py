"""What `validate` accepts for model.weights, the built-in trainer imports: every preset, and every published file of the table.

A file of the table is imported as it is published; a preset by the config.json that the trainer exports for it, which must name a family.
"""

import functools
import json
import os
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from described import IMPORTED, answers, described

from slipway_trainer.architecture import Architecture, read_architecture
from slipway_trainer.published_config import config_issues, published_config

ROOT = Path(__file__).resolve().parents[2]
SEED = os.environ["SLIPWAY_TEST_SEED"]
LENGTH = 2048
LONGER_THAN_WINDOWS = 1 << 40
#: `model_type` of an export whose combination of parts exists in no published family.
OWN_SHAPE = "slipway"


def published() -> list[dict[str, Any]]:
    lines = Path(ROOT / "test/fixtures/published-configs.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@functools.cache
def validated() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The runs with weights of every preset, and those of each published file."""
    configs = [json.dumps(row["config"]) for row in published()]
    command = [str(ROOT / "node_modules/.bin/tsx"), "scripts/weight-runs.ts"]
    done = subprocess.run(command, cwd=ROOT, input="\n".join(configs) + "\n", capture_output=True, text=True, check=True)
    runs = [json.loads(line) for line in done.stdout.splitlines()]
    return runs[: -len(configs)], runs[-len(configs) :]


def refusals(architecture: dict[str, Any], config: dict[str, Any] | None, folder: Path, length: int = LENGTH) -> list[str]:
    """Why the trainer does not import weights with this config.json, or with that of its own export."""
    issues: list[str] = []
    shape: Architecture = read_architecture(architecture, lambda key, default=None: architecture.get(key, default), issues)
    if issues:
        return issues
    exported = published_config(shape, LENGTH) if config is None else config
    if exported["model_type"] == OWN_SHAPE:
        return [f"the export of this shape has model_type {OWN_SHAPE}, which is no family"]
    (folder / "config.json").write_text(json.dumps(exported), encoding="utf-8")
    return config_issues(folder, shape, length)


def test_what_validate_accepts_as_weights_the_trainer_imports(tmp_path: Path) -> None:
    rows, (presets, others) = published(), validated()
    configs = [None] * len(presets) + [row["config"] for row in rows]
    names = [run["name"] for run in presets] + [row["model"] for row in rows]
    accepted, wrong = 0, []
    for name, run, config in zip(names, presets + others, configs, strict=True):
        if run["errors"]:
            continue
        accepted += 1
        if found := refusals(run["architecture"], config, tmp_path):
            wrong.append((name, found))
    assert not wrong, "\n".join(map(str, wrong))
    assert len(presets) > 60
    assert accepted > len(presets) // 2


def imported() -> Iterator[dict[str, Any]]:
    """Files of families that the trainer imports: published ones, and one for each family that it exports for a preset."""
    families: set[str] = set()
    for row in published():
        if "refused" not in row and row["config"]["model_type"] in IMPORTED:
            families.add(row["config"]["model_type"])
            yield {key: value for key, value in row["config"].items() if key != "quantization_config"}
    for run in validated()[0]:
        shape = read_architecture(run["architecture"], lambda key, default=None, run=run: run["architecture"].get(key, default), [])
        kind = published_config(shape, LENGTH)["model_type"]
        if not run["errors"] and kind in IMPORTED and kind not in families:
            families.add(kind)
            yield published_config(shape, LENGTH)
    assert families == {*IMPORTED}


def otherwise(config: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The file without each of its keys, with null, and with another value, each with the key."""
    for key, value in config.items():
        if key == "model_type" or (key == "rope_theta" and "rope_parameters" in config):
            # A theta beside the one of the section is refused before a launch; the trainer reads the latter, as transformers does.
            continue
        yield key, {name: given for name, given in config.items() if name != key}
        others = [not value] if isinstance(value, bool) else [2 * value, 1] if isinstance(value, (int, float)) else []
        yield from ((key, config | {key: other}) for other in (None, *others) if other != value)


def read(architecture: dict[str, Any] | None) -> Architecture | None:
    issues: list[str] = []
    shape = architecture and read_architecture(architecture, lambda key, default=None: architecture.get(key, default), issues)
    return None if issues else shape


def test_law_a_run_takes_files_that_are_read_as_its_model_and_no_others(tmp_path: Path, plays_all: bool) -> None:
    cases = [(config, key, variant) for config in imported() for key, variant in otherwise(config)]
    cases = cases if plays_all else random.Random(SEED).sample(cases, 600)
    taken, refused, wrong = 0, 0, []
    for (config, key, variant), answer in zip(cases, answers([variant for *_rest, variant in cases]), strict=True):
        run = described(config)
        is_same, found = read(answer.get("shape")) == read(run), refusals(run, variant, tmp_path, length=LONGER_THAN_WINDOWS)
        taken, refused = taken + is_same, refused + (not is_same)
        if is_same != (not found):
            wrong.append((config["model_type"], key, variant.get(key, "left out"), found))
    assert not wrong, f"seed {SEED}: " + "\n".join(map(str, wrong))
    assert min(taken, refused) > 100, (taken, refused)


SIZES = {
    "num_hidden_layers": 4, "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 512,
    "vocab_size": 1024, "max_position_embeddings": 65536,
}  # fmt: skip
LLAMA = SIZES | {"model_type": "llama"}
SCALED = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
NEWER = LLAMA | {"rope_parameters": SCALED | {"rope_theta": 500_000}}
OLDER = LLAMA | {"rope_scaling": SCALED, "rope_theta": 500_000}
QWEN_MOE = SIZES | {"model_type": "qwen3_moe", "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64}


@pytest.mark.parametrize(
    ("run", "file", "refused"),
    [
        pytest.param(OLDER, NEWER, "", id="Open-Athena/MarinFold#198"),
        pytest.param(NEWER, OLDER, "", id="Open-Athena/MarinFold#198, the other way round"),
        pytest.param(LLAMA, NEWER, "must have rope_theta 500000 .*, got 10000", id="Open-Athena/MarinFold#198, as a library reads it"),
        pytest.param(
            SIZES | {"model_type": "qwen3", "rope_theta": 1e6},
            SIZES | {"model_type": "qwen3", "rope_parameters": {"rope_theta": 1e6, "rope_type": "default"}},
            "",
            id="ml-explore/mlx-lm#1898",
        ),
        pytest.param(
            QWEN_MOE | {"norm_topk_prob": True}, QWEN_MOE, "norm_topk_prob False .* got True", id="huggingface/transformers#41151"
        ),
        pytest.param(
            LLAMA | {"rope_scaling": {"type": "linear", "factor": 4.0}},
            LLAMA,
            "rope_type default .*, got linear",
            id="JIA-Lab-research/LongLoRA#181",
        ),
        pytest.param(
            SIZES | {"model_type": "mistral", "sliding_window": 2048},
            SIZES | {"model_type": "mistral"},
            "sliding_window 4096 .*, got 2048",
            id="a sibling of NVIDIA-NeMo/Megatron-Bridge#4800",
        ),
        pytest.param(LLAMA, SIZES | {"model_type": "mistral"}, "sliding_window 4096 .*, got None", id="Mistral's window in a run of Llama"),
        pytest.param(LLAMA, SIZES | {"model_type": "mistral", "sliding_window": None}, "", id="Mistral without a window is Llama"),
    ],
)
def test_files_of_public_reports_are_the_model_of_a_run_or_refused(
    tmp_path: Path, run: dict[str, Any], file: dict[str, Any], refused: str
) -> None:
    found = refusals(described(run), file, tmp_path, length=LONGER_THAN_WINDOWS)
    assert re.search(refused, "; ".join(found)) if refused else not found, found


def test_what_validate_refuses_as_weights_it_refuses_by_a_rule_of_the_model() -> None:
    presets, others = validated()
    for run in presets + others:
        assert all(error.startswith("model/") for error in run["errors"]), run
