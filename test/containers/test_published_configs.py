"""Files as their makers publish them (test/fixtures/published-configs.jsonl) beside the same files as transformers saves them.

The counts of the table are those of transformers' modules on the meta device. Both forms of a file must give one shape.
"""

import functools
import json
import random
import warnings
from pathlib import Path
from typing import Any

import pytest

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")

from test_model_families import CONFIG_MAPPING, SEED, AutoModelForCausalLM, answers, counts  # noqa: E402
from transformers.models.step3p7.modeling_step3p7 import Step3p7TextModel  # noqa: E402

ROOT = Path(__file__).parents[2]
#: Files with the class of another family.
SAME_CLASS = {
    **{"kimi_k2": "deepseek_v3", "qwen3_vl_text": "qwen3", "qwen3_vl_moe_text": "qwen3_moe"},
    **{"mimo": "qwen2", "minimax_m3": "minimax_m3_vl_text"},
}
#: Models that transformers 5.23 does not compute; their counts are those of the shapes of the published weights, and of their own code.
NO_MODULES = ("moonshotai/Kimi-K3", "nvidia/Llama-3_3-Nemotron-Super-49B-v1")
#: Text models of multimodal ones, for which transformers has no class with a head. Theirs is not tied.
WITHOUT_HEAD = {"step3p5": Step3p7TextModel}
DRAWN = 12


@functools.cache
def table() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (ROOT / "test/fixtures/published-configs.jsonl").read_text(encoding="utf-8").splitlines()]


def read_files() -> list[dict[str, Any]]:
    return [row for row in table() if "refused" not in row and row["model"] not in NO_MODULES]


def configuration(row: dict[str, Any]) -> Any:
    """Transformers' configuration of a published file."""
    transformers.logging.set_verbosity_error()
    kind = row["config"]["model_type"]
    kind = SAME_CLASS.get(kind, kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Quantizers need packages of their own, and change no count.
        config = {key: value for key, value in row["config"].items() if key != "quantization_config"}
        return CONFIG_MAPPING[kind].from_dict(json.loads(json.dumps(config)) | {"model_type": kind})


def test_the_counts_of_the_table_are_those_of_transformers(plays_all: bool) -> None:
    counted = [row for row in read_files() if "parameters" in row]
    assert len(counted) > DRAWN
    for row in counted if plays_all else random.Random(SEED).sample(counted, DRAWN):
        config = configuration(row)
        body = WITHOUT_HEAD.get(config.model_type)
        with torch.device("meta"):
            model = body(config) if body else AutoModelForCausalLM.from_config(config)
        head = config.vocab_size * config.hidden_size if body else 0
        assert tuple(count + head for count in counts(model)) == (row["parameters"], row["active"]), f"seed {SEED}: {row['model']}"


def test_a_published_file_and_the_one_that_transformers_saves_have_one_shape() -> None:
    rows = read_files()
    saved = [json.loads(configuration(row).to_json_string(use_diff=False)) | {"model_type": row["config"]["model_type"]} for row in rows]
    wrong = []
    for row, ours, theirs in zip(rows, answers([row["config"] for row in rows]), answers(saved), strict=True):
        shapes = ours["shape"], theirs.get("shape", theirs)
        if shapes[0] != shapes[1]:
            wrong.append((row["model"], *shapes))
    assert len(rows) > 40
    assert not wrong, "\n".join(map(str, wrong))
