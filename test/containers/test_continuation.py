"""A checkpoint is continued by the run that it belongs to: same data, same length, same model."""

import json
from pathlib import Path

import pytest

from fake_world import direct_checkpoints
from rank_world import events, run_ranks, trainer_job, write_shards

pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.jobs]


#: Of a model in the record of a checkpoint, as a version wrote it that knew less of routing, rope scaling, windows and families.
OLDER_MODEL = {
    "layers": 2, "hidden_size": 32, "attention_heads": 4, "kv_heads": 2, "head_size": 8, "ffn_hidden_size": 64, "vocabulary_size": 257,
    "gated_mlp": True, "tied_embeddings": False, "rope_theta": 10000.0, "norm_epsilon": 1e-05, "experts": 4, "experts_per_token": 2,
    "expert_ffn_hidden_size": 0, "dense_layers": [], "routing": {"normalises": True}, "norm_placement": "pre", "qk_norm": True,
    "rope_scaling": {
        "kind": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "beta_fast": 32.0, "beta_slow": 1.0, "attention_factor": None, "truncate": True,
    },
    "attention_bias": False, "window": {"size": 8, "pattern": [0]}, "embedding_scale": 1.0,
    "family": {
        "model_type": "qwen3_moe", "norm": "rms", "qk_norm": "head", "output_bias": None, "activation": None, "attention_scale": None,
        "local_rope_theta": None,
    },
}  # fmt: skip


def job_at(root: Path, **changes: object) -> dict:
    checkpoints = direct_checkpoints(root / "checkpoints")
    return trainer_job(checkpoints=checkpoints, **changes)


@pytest.fixture(scope="module")
def finished(shards: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of six steps and its last checkpoint."""
    root = tmp_path_factory.mktemp("finished")
    code, output = run_ranks(root, 1, job_at(root), {"train": shards})
    assert code == 0, output
    return root


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"training": {"sequenceLength": 16, "steps": 8}}, "training.sequenceLength: must be that of the checkpoint, 32, got 16"),
        ({"training": {"seed": 8, "steps": 8}}, "seed and globalBatchSize must be those of the checkpoint"),
        (
            {"training": {"steps": 8}, "model": {"ropeTheta": 5e5}},
            "model rope_theta: must be that of the checkpoint, 10000.0, got 500000.0",
        ),
        ({"training": {"steps": 8}, "model": {"normEpsilon": 1e-6}}, "model norm_epsilon: must be that of the checkpoint"),
    ],
)
def test_fails_with_77_when_a_run_is_continued_with_other_settings(
    finished: Path, shards: Path, tmp_path: Path, changes: dict, message: str
) -> None:
    code, output = run_ranks(tmp_path, 1, job_at(finished, **changes), {"train": shards})
    assert code == 77
    assert message in output


def test_fails_with_77_when_the_data_of_a_run_has_changed(finished: Path, tmp_path: Path) -> None:
    other = write_shards(tmp_path / "other", seed=9)
    code, output = run_ranks(tmp_path / "again", 1, job_at(finished, training={"steps": 8}), {"train": other})
    assert code == 77
    assert "the token shards of the channel: must be that of the checkpoint" in output


def test_another_run_may_differ_and_says_how(finished: Path, shards: Path, tmp_path: Path) -> None:
    changes = {"training": {"sequenceLength": 16, "steps": 8}, "model": {"ropeTheta": 5e5}}
    job = job_at(tmp_path, runId="other", **changes)
    job["checkpoints"]["resumeFrom"] = str(finished / "checkpoints/step-6")
    code, output = run_ranks(tmp_path, 1, job, {"train": shards}, SLIPWAY_RUN_ID="other")
    assert code == 0, output
    assert "with a difference: model rope_theta" in output
    # Six steps of 4 x 32 tokens, then steps of 4 x 16.
    assert [event["tokens"] for event in events(output, "step")] == [6 * 128 + 64, 6 * 128 + 128]


def test_a_finished_run_that_is_started_again_writes_nothing(finished: Path, shards: Path, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in finished.rglob("checkpoints/**/*")}
    code, output = run_ranks(tmp_path, 1, job_at(finished), {"train": shards})
    assert code == 0, output
    assert {path: path.stat().st_mtime_ns for path in finished.rglob("checkpoints/**/*")} == before
    assert events(output, "checkpoint") == []


@pytest.mark.parametrize("steps", [1, 5, 6, 7])
def test_another_run_that_has_no_step_left_is_refused(finished: Path, shards: Path, tmp_path: Path, steps: int) -> None:
    start = job_at(tmp_path, runId="other-261101090000", training={"steps": steps})
    start["checkpoints"]["resumeFrom"] = str(finished / "checkpoints/step-6")
    code, output = run_ranks(tmp_path, 1, start, {"train": shards})
    assert (code, len(events(output, "step"))) == ((0, 1) if steps > 6 else (77, 0)), output
    message = f"training.steps: must be more than 6, the steps of the checkpoint from which the run starts, got {steps}; raise it"
    assert (message in output) == (steps <= 6)


def test_a_checkpoint_that_says_less_is_continued(finished: Path, shards: Path, tmp_path: Path) -> None:
    marker = finished / "checkpoints/step-6/COMMITTED.json"
    record = json.loads(marker.read_text())
    text = marker.read_text()
    marker.write_text(json.dumps(record | {"data": {"seed": 7, "nextSample": 24}, "model": None}))
    try:
        code, output = run_ranks(tmp_path, 1, job_at(finished, training={"sequenceLength": 16}), {"train": shards})
    finally:
        marker.write_text(text)
    assert code == 0, output


def test_a_record_of_an_older_version_is_of_the_same_model_and_tuples_are_lists_there() -> None:
    from types import SimpleNamespace

    from slipway_trainer.continuation import Continuation
    from slipway_trainer.settings import resolve_settings

    changed = {"experts": 4, "expertsPerToken": 2}
    plain, experts = (resolve_settings(trainer_job(model=model), [], {}) for model in ({}, changed))
    batches = SimpleNamespace(samples=10, digest="d", mixed=False, epoch=lambda _step: 0)
    for settings in (plain, experts):
        run = Continuation(settings, batches)
        record = json.loads(json.dumps(run.facts(3)))
        assert run.take(record) == []
        # Fields that came later are not there.
        later = ("dense_layers", "norm_placement", "qk_norm", "attention_bias", "embedding_scale", "family")
        record["model"] = {name: value for name, value in record["model"].items() if name not in later}
        assert run.take(record) == []
    other = json.loads(json.dumps(Continuation(plain, batches).facts(3)))
    assert any("model experts:" in found for found in Continuation(experts, batches).take(other))


def test_a_record_of_a_version_that_knew_less_of_a_part_is_of_the_same_model() -> None:
    from types import SimpleNamespace

    from slipway_trainer.continuation import Continuation
    from slipway_trainer.settings import resolve_settings

    model = {
        "experts": 4,
        "expertsPerToken": 2,
        "qkNorm": True,
        "slidingWindow": {"size": 8, "pattern": [0]},
        "ropeScaling": {"type": "yarn", "factor": 4.0, "originalMaxPositionEmbeddings": 32},
    }
    batches = SimpleNamespace(samples=10, digest="d", mixed=False, epoch=lambda _step: 0)
    run = Continuation(resolve_settings(trainer_job(model=model), [], {}), batches)
    assert run.take(run.facts(3) | {"model": OLDER_MODEL}) == []
    differing = {
        "routing": OLDER_MODEL | {"routing": {"normalises": False}},
        "window": OLDER_MODEL | {"window": {"size": 9, "pattern": [0]}},
        "family": OLDER_MODEL | {"family": OLDER_MODEL["family"] | {"norm": "rms-offset"}},
    }
    for part, record in differing.items():
        found = run.take(run.facts(3) | {"model": record, "runId": "other"})
        assert [difference.split(":")[0] for difference in found] == [f"model {part}"]
