"""Models as the launcher describes them in job.json, with what files of published weights say of them."""

import atexit
import functools
import json
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
#: Each `model_type` whose published weights the trainer imports, with its class in transformers.
IMPORTED: dict[str, str] = json.loads((ROOT / "lib/core/catalog/model/imported-families.json").read_text())
_LAUNCHER = ROOT / "node_modules/.bin/tsx"


@functools.cache
def _launcher() -> "subprocess.Popen[str]":
    """Answers a line with a line, until the tests end."""
    command = [str(_LAUNCHER), "scripts/model-sections.ts"]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(process.communicate)
    return process


@functools.cache
def _answer(line: str) -> str:
    process = _launcher()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()
    return process.stdout.readline()


def answers(configs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the reader of config.json says of each: shape and parameters, or its problems."""
    lines = "\n".join(json.dumps(config) for config in configs) + "\n"
    command = [str(_LAUNCHER), "scripts/model-counts.ts"]
    done = subprocess.run(command, cwd=ROOT, input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def described(model: dict[str, Any]) -> dict[str, Any]:
    """`model` of job.json for a config.json, or for `model.architecture` of a run file. Without Node.js, that must be a dense model."""
    if "model_type" not in model and not _LAUNCHER.exists():
        return {"headSize": model["hiddenSize"] // model["attentionHeads"]} | model
    # Fields of an architecture beside the keys of a config.json, in which no letter is a capital one.
    beside = {key: value for key, value in model.items() if "model_type" in model and key != key.lower()}
    found = json.loads(_answer(json.dumps({key: value for key, value in model.items() if key not in beside})))
    assert "problems" not in found, found
    return found | beside
