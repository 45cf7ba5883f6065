"""Writes families.json: a small shape of each family that the trainer takes, drawn as the Python tests draw them.

    SLIPWAY_TEST_SEED=7 .slipway/python/bin/python bench/gpu/draw_families.py

Needs transformers and the built command line (`npm run build`).
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("test/containers", "containers/driver", "containers/trainer")]

from test_model_families import answers  # noqa: E402
from test_trained_families import drawn  # noqa: E402

from slipway_trainer.architecture import read_architecture  # noqa: E402

shapes = {}
configs = drawn()
texts = [json.loads(config.to_json_string(use_diff=False)) for _family, config in configs]
for (family, _config), answer in zip(configs, answers(texts), strict=True):
    raw, issues = answer.get("shape"), []
    if raw is None or family in shapes:
        continue
    read_architecture(raw, raw.__getitem__, issues)
    if not issues:
        shapes[family] = {key: value for key, value in raw.items() if key != "limits"}
lines = ",\n".join(f'  "{family}": {json.dumps(raw)}' for family, raw in sorted(shapes.items()))
(Path(__file__).parent / "families.json").write_text("{\n" + lines + "\n}\n")
print(f"{len(shapes)} families")
