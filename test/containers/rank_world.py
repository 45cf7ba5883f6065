"""Ranks of the trainer without a driver: the quickest way to compare layouts."""

import json
import random
from pathlib import Path
from typing import Any

from described import described

from fake_world import SMALL, TINY_CONFIG, job_json
from forked import PATHS, run_forked

TRAINING = {"sequenceLength": 32, "microBatchSize": 1, "globalBatchSize": 4, "steps": 6, "precision": "fp32", "seed": 7,
            "activationCheckpointing": "none", "activationOffload": False}  # fmt: skip
ONE_RANK = str(Path(__file__).parent / "one_rank.py")
ARGUMENTS = ["--learning-rate", "0.01", "--warmup-steps", "1"]


def write_shards(folder: Path, tokens: int = 6000, seed: int = 1) -> Path:
    """Token shards that can be learned: words of a small vocabulary, in random order."""
    from slipway_trainer.tokenize.documents import documents
    from slipway_trainer.tokenize.shard_writer import ShardWriter, new_index
    from slipway_trainer.tokenize.tokenizers import ByteTokenizer

    chooser = random.Random(seed)
    text = " ".join(chooser.choice(["the", "run", "resumes", "from", "its", "newest", "checkpoint"]) for _ in range(tokens // 5))
    folder.mkdir(parents=True, exist_ok=True)
    (folder.parent / (folder.name + ".txt")).write_text(text[:tokens])
    writer = ShardWriter(folder, 0, new_index(ByteTokenizer(), "fixture"), 2500)
    writer.write_all(documents([folder.parent / (folder.name + ".txt")], (0, 0), "text"), ByteTokenizer())
    return folder


def trainer_job(**changes: Any) -> dict[str, Any]:
    """A job of the built-in trainer. `training`, `model` and `parameters` are merged into the defaults; `arguments` are added.

    `model`: fields of `model.architecture`, or the keys of a config.json, which states its `model_type`.
    """
    training = TRAINING | changes.pop("training", {})
    model = changes.pop("model", {})
    model = described((TINY_CONFIG if "model_type" in model else SMALL) | model)
    distribution = {"library": changes.pop("library", "fsdp"), "collectives": "gloo", "parameters": changes.pop("parameters", {})}
    arguments = [*ARGUMENTS, *changes.pop("arguments", [])]
    return job_json(entryPoint="builtin", training=training, model=model, distribution=distribution, arguments=arguments) | changes


def run_ranks(
    root: Path,
    ranks: int,
    job: dict[str, Any],
    channels: dict[str, Path],
    paths: tuple[str, ...] = PATHS,
    fresh: bool = False,
    preload: tuple[str, ...] = (),
    patch: str = "",
    **environ: str,
) -> tuple[int, str]:
    """Trains with `ranks` processes; (worst exit code, rank 0's output followed by all that went to stderr).

    `fresh`: processes of their own, for libraries that can be started only once in a process. `patch`: a file that replaces parts of the
    trainer in these ranks.
    """
    root.mkdir(parents=True, exist_ok=True)
    (root / "job.json").write_text(json.dumps(job))
    variables = {"SLIPWAY_JOB_FILE": str(root / "job.json"), "SM_MODEL_DIR": str(root / "model")} | environ
    variables |= {f"SM_CHANNEL_{name.upper()}": str(folder) for name, folder in channels.items()}
    script = ONE_RANK if fresh else None
    codes = run_forked(root, ranks, variables, job["arguments"], script=script, paths=paths, preload=preload, patch=patch)
    texts = [(root / f"{rank}.err").read_text() for rank in range(ranks)]
    return max(codes, key=abs), (root / "0.out").read_text() + "".join(texts)


def events(output: str, kind: str) -> list[dict[str, Any]]:
    found = [json.loads(line[len("slipway ") :]) for line in output.splitlines() if line.startswith("slipway {")]
    return [event for event in found if event["event"] == kind]


def losses_of(root: Path, ranks: int, job: dict[str, Any], channels: dict[str, Path], preload: tuple[str, ...] = ()) -> list[float]:
    """Losses of a run that must succeed."""
    code, output = run_ranks(root, ranks, job, channels, preload=preload)
    assert code == 0, output
    return [event["loss"] for event in events(output, "step")]
