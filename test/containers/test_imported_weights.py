"""What `validate` accepts for model.weights, the built-in trainer imports: every preset, and every published file of the table.

A file of the table is imported as it is published; a preset by the config.json that the trainer exports for it, which must name a family.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from slipway_trainer.architecture import Architecture, read_architecture
from slipway_trainer.published_config import OWN_SHAPE, config_issues, published_config
from slipway_trainer.published_families import FAMILIES, family_of

ROOT = Path(__file__).resolve().parents[2]
LENGTH = 2048


def published() -> list[dict[str, Any]]:
    lines = Path(ROOT / "test/fixtures/published-configs.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def validated(configs: list[str]) -> list[dict[str, Any]]:
    """The runs with weights of every preset, then of each config.json."""
    command = [str(ROOT / "node_modules/.bin/tsx"), "scripts/weight-runs.ts"]
    done = subprocess.run(command, cwd=ROOT, input="\n".join(configs) + "\n", capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def refusals(architecture: dict[str, Any], config: dict[str, Any] | None, folder: Path) -> list[str]:
    """Why the trainer does not import weights with this config.json, or with that of its own export."""
    issues: list[str] = []
    shape: Architecture = read_architecture(architecture, lambda key, default=None: architecture.get(key, default), issues)
    if issues:
        return issues
    exported = published_config(shape, LENGTH) if config is None else config
    if exported["model_type"] == OWN_SHAPE:
        return [f"the export of this shape has model_type {OWN_SHAPE}, which is no family"]
    (folder / "config.json").write_text(json.dumps(exported), encoding="utf-8")
    return config_issues(folder, shape, LENGTH)


def test_what_validate_accepts_as_weights_the_trainer_imports(tmp_path: Path) -> None:
    rows = published()
    runs = validated([json.dumps(row["config"]) for row in rows])
    presets = len(runs) - len(rows)
    configs = [None] * presets + [row["config"] for row in rows]
    names = [run["name"] for run in runs[:presets]] + [row["model"] for row in rows]
    accepted, wrong = 0, []
    for name, run, config in zip(names, runs, configs, strict=True):
        if run["errors"]:
            continue
        accepted += 1
        if found := refusals(run["architecture"], config, tmp_path):
            wrong.append((name, found))
    assert not wrong, "\n".join(map(str, wrong))
    assert presets > 60
    assert accepted > presets // 2


def imported() -> Iterator[dict[str, Any]]:
    """Files of families that the trainer imports: published ones, and one for each family that it exports for a preset."""
    families: set[str] = set()
    for row in published():
        if "refused" not in row and row["config"]["model_type"] in FAMILIES:
            families.add(row["config"]["model_type"])
            yield {key: value for key, value in row["config"].items() if key != "quantization_config"}
    for run in validated([]):
        shape = read_architecture(run["architecture"], lambda key, default=None, run=run: run["architecture"].get(key, default), [])
        kind = family_of(shape)
        if not run["errors"] and kind is not None and FAMILIES[kind].architecture and kind not in families:
            families.add(kind)
            yield published_config(shape, LENGTH)
    assert families == {kind for kind, family in FAMILIES.items() if family.architecture}


def test_a_file_without_one_of_its_keys_is_the_same_model_to_both(tmp_path: Path) -> None:
    variants = [(without(config, left), left) for config in imported() for left in config]
    runs = validated([json.dumps(config) for config, _left in variants])[-len(variants) :]
    accepted, wrong = 0, []
    for run, (config, left) in zip(runs, variants, strict=True):
        if run["errors"]:
            continue
        accepted += 1
        if found := refusals(run["architecture"], config, tmp_path):
            wrong.append((config["model_type"], left, found))
    assert not wrong, "\n".join(map(str, wrong))
    assert accepted > len(variants) // 2


def without(config: dict[str, Any], left: str) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key != left}


def test_what_validate_refuses_as_weights_it_refuses_by_a_rule_of_the_model() -> None:
    rows = published()
    for run in validated([json.dumps(row["config"]) for row in rows]):
        assert all(error.startswith("model/") for error in run["errors"]), run
