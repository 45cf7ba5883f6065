"""The examples against stubs that hold the contracts of their libraries; FSDP, DDP and gloo are the real ones, on CPU."""

import argparse
import ast
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fake_world import NETWORK, REPOSITORY
from forked import STUB_TRANSFORMERS, STUBS, run_forked

EXAMPLES = REPOSITORY / "runs/scripts"

pytest.importorskip("torch", reason="the examples train with PyTorch")

pytestmark = pytest.mark.jobs
np = pytest.importorskip("numpy", reason="the examples read tokens with numpy")


class Job:
    """One script on one host: its channels, its environment, what it printed and which library calls it made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "calls"
        self.runs = 0
        self.log.touch()
        for name in ("train", "test", "model"):
            (folder / name).mkdir()
        rng = np.random.default_rng(0)
        for shard in range(2):
            rng.integers(0, 64, 700).astype("uint16").tofile(folder / "train" / ("tokens-%d.bin" % shard))

    def start(self, script: str, arguments: tuple[str, ...], ranks: int, more: dict[str, str]) -> tuple[list[int], str, str]:
        """Exit codes, what rank 0 printed, and what all of them complained about."""
        self.runs += 1
        root = self.folder / f"run-{self.runs}"
        channels = {"SM_CHANNEL_TRAIN": "train", "SM_CHANNEL_TEST": "test", "SM_MODEL_DIR": "model"}
        environ = {name: str(self.folder / folder) for name, folder in channels.items()} | {"STUB_LOG": str(self.log)} | more
        paths = (str(STUBS), str(STUB_TRANSFORMERS), str(REPOSITORY / "containers/driver"))
        codes = run_forked(root, ranks, environ, list(arguments), script=str(EXAMPLES / script), paths=paths)
        complaints = "".join((root / f"{rank}.err").read_text() for rank in range(ranks))
        return codes, (root / "0.out").read_text(), complaints

    def run(self, script: str, *arguments: str, ranks: int = 1, **more: str) -> str:
        codes, out, complaints = self.start(script, arguments, ranks, more)
        assert codes == [0] * ranks, complaints
        return out

    def fails(self, script: str, *arguments: str, **more: str) -> str:
        codes, _out, complaints = self.start(script, arguments, 1, more)
        assert codes != [0]
        return complaints

    @property
    def calls(self) -> list:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def named(self, name: str) -> list:
        return [arguments for called, arguments in self.calls if called == name]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def losses(output: str) -> list:
    return [float(found) for found in re.findall(r"loss\"?[=:] ?([\d.]+)", output)]


@pytest.mark.parametrize(
    "parameters",
    [
        {"ddp": True, "tensor_parallel_degree": 4, "pipeline_parallel_degree": 1, "microbatches": 1, "fp16": True, "prescaled_batch": True},
        {"ddp": True, "tensor_parallel_degree": 1, "pipeline_parallel_degree": 2, "microbatches": 2, "auto_partition": True},
    ],
    ids=["tensor-fp16", "pipeline"],
)
def test_gpt_j_is_fine_tuned_with_smp_v1(job: Job, parameters: dict) -> None:
    rows = "sentence\tlabel\n" + "".join("it's a fine film %d\t%d\n" % (i, i % 2) for i in range(9))
    (job.folder / "train/train.tsv").write_text(rows)
    (job.folder / "test/dev.tsv").write_text(rows)
    arguments = ["--train-batch-size", "2", "--max-context-width", "48", "--mp_parameters", "ddp=True", "--task", "sst2"]
    out = job.run("smp-v1/finetune_sst2.py", *arguments, SM_HP_MP_PARAMETERS=json.dumps(parameters))

    assert [name for name, _ in job.calls][:5] == [
        "smp.init",
        "smp.model_creation",
        "AutoModelForCausalLM.from_pretrained",
        "smp.DistributedModel",
        "smp.DistributedOptimizer",
    ]
    fp16 = parameters.get("fp16", False)
    creation = {"tensor_parallelism": parameters["tensor_parallel_degree"] > 1, "dtype": "torch.float16" if fp16 else "torch.float32"}
    assert job.named("smp.model_creation") == [creation]
    assert len(job.named("optimizer.step")) == 4
    assert len(job.named("model.backward")) == 4 * parameters["microbatches"]
    assert len(job.named("optimizer.clip_master_grads")) == (4 if fp16 else 0)
    assert "test_loss=" in out
    assert job.named("smp.save_checkpoint")[0]["partial"] is False


@pytest.mark.parametrize(
    ("parameters", "arguments", "config"),
    [
        (
            {"tensor_parallel_degree": 8, "pipeline_parallel_degree": 2, "microbatches": 4, "fp16": True, "prescaled_batch": True},
            [],
            "GPT2Config",
        ),
        ({"sharded_data_parallel_degree": 16, "tensor_parallel_degree": 1, "bf16": True}, ["--model-type", "gpt_neox"], "GPTNeoXConfig"),
    ],
    ids=["gpt2-60b", "gpt-neox-20b"],
)
def test_gpt_is_trained_from_scratch_with_smp_v1(job: Job, parameters: dict, arguments: list, config: str) -> None:
    sizes = ["--vocab-size", "64", "--max-context-width", "32", "--train-batch-size", "4", "--max-steps", "3"]
    out = job.run("smp-v1/pretrain.py", *sizes, *arguments, SM_HP_MP_PARAMETERS=json.dumps(parameters))
    assert len(losses(out)) == 3
    assert job.named(config)[0]["vocab_size"] == 64
    assert len(job.named("smp.set_activation_checkpointing")) == 2
    assert job.named("smp.DistributedModel") == [{"trace_device": "cpu" if parameters.get("pipeline_parallel_degree") else "gpu"}]
    assert len(job.named("optimizer.clip_master_grads")) == (3 if parameters.get("fp16") else 0)


SHAPE = {"vocabularySize": 64, "hiddenSize": 16, "ffnHiddenSize": 32, "layers": 2, "attentionHeads": 2, "kvHeads": 2, "ropeTheta": 10000}


def smp_v2(job: Job, *arguments: str, parameters: dict, shape: dict = SHAPE, **more: str) -> str:
    (job.folder / "job.json").write_text(json.dumps({"model": shape, "training": {"activationOffload": True}}))
    sizes = ["--max-context-width", "32", "--train-batch-size", "2", "--max-steps", "3", "--token-dtype", "uint16", *arguments]
    places = {"SLIPWAY_JOB_FILE": str(job.folder / "job.json"), "SLIPWAY_RUN_ID": "run-1", "SM_HP_MP_PARAMETERS": json.dumps(parameters)}
    return job.run("smp-v2/train.py", "--backend", "smddp", *sizes, **places, **more)


def test_smp_v2_initialises_late_offloads_and_saves(job: Job) -> None:
    (job.folder / "saved/step-3").mkdir(parents=True)
    parameters = {"hybrid_shard_degree": 8, "sm_activation_offloading": True, "activation_loading_horizon": 2}
    out = smp_v2(job, parameters=parameters, SLIPWAY_CHECKPOINT_URI=str(job.folder / "saved"))

    order = [name for name, _ in job.calls]
    expected = [
        "import smddp",
        "tsm.init",
        "tsm.transform",
        "DelayedParamIniter",
        "FSDP",
        "post_param_init_fn",
        "param_init_fn",
        "validated",
    ]
    places = [order.index(name) for name in [*expected, "tsm.save"]]
    assert places == sorted(places)
    assert job.named("tsm.init")[0]["parameters"] == parameters
    assert job.named("FSDP") == [{"strategy": "HYBRID_SHARD", "param": "torch.bfloat16", "reduce": "torch.float32", "sync": False}]
    assert len(losses(out)) == 3
    assert job.named("tsm.save")[0]["checkpoint_id"].endswith("/saved/step-3")
    assert json.loads((job.folder / "saved/step-3/COMMITTED.json").read_text())["step"] == 3


def test_smp_v2_trains_mixtral_with_expert_parallelism(job: Job) -> None:
    shape = {**SHAPE, "experts": 8, "expertsPerToken": 2}
    smp_v2(job, "--model-type", "mixtral", "--moe", "1", "--delayed-param", "0", parameters={"expert_parallel_degree": 2}, shape=shape)
    assert job.named("MixtralConfig")[0]["num_local_experts"] == 8
    assert job.named("tsm.transform")[0]["config"] == "MoEConfig"


def test_smp_v2_resumes_from_the_runs_checkpoint(job: Job) -> None:
    out = smp_v2(job, parameters={"hybrid_shard_degree": 8}, SLIPWAY_RESUME_FROM="s3://bucket/run/step-1")
    assert job.named("tsm.load") == [{"checkpoint_id": "s3://bucket/run/step-1", "keys": ["model", "optimizer", "step"]}]
    assert len(losses(out)) == 3


def taken_from(script: str, name: str, namespace: dict) -> Any:
    """One function or class of a script that cannot be imported as a whole."""
    parsed = ast.parse((EXAMPLES / script).read_text()).body
    node = next(node for node in parsed if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name)
    exec(ast.unparse(node), namespace)
    return namespace[name]


@pytest.mark.parametrize("script", ["smp-v1/pretrain.py", "smp-v2/train.py"])
def test_token_blocks_are_read_in_order_and_never_across_files(job: Job, script: str) -> None:
    import torch

    names = {"np": np, "torch": torch, "Path": Path, "Dataset": object}
    (job.folder / "own").mkdir()
    for number, tokens in enumerate([range(1000, 1010), range(2000, 2003), range(3000, 3008)]):
        np.array(tokens, dtype="uint16").tofile(job.folder / "own" / ("%d.bin" % number))
    blocks = taken_from(script, "TokenBlocks", names)(job.folder / "own", 4, "uint16")
    firsts = [[1000, 1001, 1002, 1003], [1004, 1005, 1006, 1007], [3000, 3001, 3002, 3003], [3004, 3005, 3006, 3007]]
    assert [blocks[index].tolist() for index in range(len(blocks))] == firsts


def test_context_parts_cover_the_sequence_and_balance_its_causal_cost() -> None:
    import torch

    context_part = taken_from("smp-v2/train.py", "context_part", {"torch": torch})
    parts = [context_part(torch.arange(16).reshape(1, 16), 4, rank)[0].tolist() for rank in range(4)]
    assert sorted(sum(parts, [])) == list(range(16))
    assert {sum(part) for part in parts} == {30}


OWN = ["--vocab-size", "64", "--width", "16", "--layers", "2", "--heads", "2", "--sequence-length", "16", "--batch-size", "2"]


def test_an_own_model_trains_under_real_fsdp_with_the_smddp_backend(job: Job) -> None:
    out = job.run("fsdp-smddp/train.py", *OWN, "--max-steps", "30", "--learning-rate", "0.01")
    assert job.named("import smddp") == [{}]
    assert job.named("smddp group") == [{"ranks": 1}]
    assert len(losses(out)) == 30
    assert losses(out)[-1] < losses(out)[0]


ZERO3 = {
    "train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": 2,
    "zero_optimization": {"stage": 3},
    "bf16": {"enabled": True},
}
SMALL = [
    "--hidden-width",
    "16",
    "--num-layers",
    "2",
    "--num-heads",
    "2",
    "--vocab-size",
    "64",
    "--sequence-length",
    "16",
    "--save-every",
    "2",
]


def test_deepspeed_takes_its_configuration_and_smddp_from_the_job(job: Job) -> None:
    config = {**ZERO3, "dist_backend": "smddp"}
    saved = str(job.folder / "saved")
    out = job.run(
        "deepspeed/train.py", *SMALL, "--max-steps", "4", SLIPWAY_DEEPSPEED_CONFIG=json.dumps(config), SLIPWAY_CHECKPOINT_URI=saved
    )
    order = [name for name, _ in job.calls]
    places = [order.index(name) for name in ("import smddp", "deepspeed.init_distributed", "zero.Init", "deepspeed.initialize")]
    assert places == sorted(places)
    assert job.named("deepspeed.init_distributed") == [{"dist_backend": "smddp"}]
    assert job.named("deepspeed.initialize")[0]["config"] == ZERO3
    assert len(job.named("engine.step")) == 8
    assert [call["client_state"] for call in job.named("engine.save_checkpoint")] == [{"step": 2}, {"step": 4}]
    assert len(losses(out)) == 4


def test_deepspeed_resumes_and_refuses_a_folder_in_s3(job: Job) -> None:
    (job.folder / "saved").mkdir()
    (job.folder / "saved/latest").write_text("global_step7")
    config = json.dumps(ZERO3)
    job.run(
        "deepspeed/train.py", *SMALL, "--max-steps", "8", SLIPWAY_DEEPSPEED_CONFIG=config, SLIPWAY_CHECKPOINT_URI=str(job.folder / "saved")
    )
    assert len(job.named("engine.step")) == 2
    error = job.fails("deepspeed/train.py", *SMALL, SLIPWAY_DEEPSPEED_CONFIG=config, SLIPWAY_CHECKPOINT_URI="s3://bucket/run")
    assert "checkpoints.mode: must be fsx or managed" in error


def test_megatrons_entry_point_gets_the_flags_and_the_checkpoint_folder(job: Job) -> None:
    home = job.folder / "Megatron-LM"
    home.mkdir()
    (home / "own_package.py").write_text("NAME = 'own'\n")
    (home / "pretrain_gpt.py").write_text("import json, sys, own_package\nprint(json.dumps([__name__, *sys.argv[1:]]))\n")
    places = {"MEGATRON_PATH": str(home), "SLIPWAY_CHECKPOINT_URI": "/opt/ml/checkpoints"}
    out = job.run("megatron/train.py", "--num-layers", "64", "--load", "/elsewhere", **places)
    assert json.loads(out) == ["__main__", "--num-layers", "64", "--load", "/elsewhere", "--save", "/opt/ml/checkpoints"]
    assert "MEGATRON_PATH: must be a folder with pretrain_gpt.py" in job.fails("megatron/train.py", MEGATRON_PATH=str(job.folder))


def test_ddp_on_two_ranks_goes_on_from_its_checkpoint(job: Job) -> None:
    small = ["--vocab-size", "64", "--width", "16", "--sequence-length", "16", "--batch-size", "4", "--save-every", "4", "--epochs", "2"]
    arguments = [*small, "--checkpoints", str(job.folder / "checkpoints")]

    def both(*more: str) -> str:
        return job.run("torchrun/train.py", *arguments, *more, ranks=2)

    whole = both()
    steps = [int(found) for found in re.findall(r"step=(\d+)", whole)]
    assert steps == list(range(1, 21))
    for path in (job.folder / "checkpoints").iterdir():
        path.unlink()
    first, second = both("--max-steps", "8"), both()
    # The printed losses agree to the last digit: the second half starts from the weights and moments that were saved.
    assert (first + second).splitlines() == whole.splitlines()


def test_hosts_of_another_group_feed_those_that_train(job: Job) -> None:
    (job.folder / "raw").mkdir()
    (job.folder / "raw/a.txt").write_text("all that is prepared here is text " * 30)
    script, quick = "heterogeneous/train.py", ["--width", "16", "--sequence-length", "8", "--batch-size", "4", "--save-every", "5"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    groups = json.dumps({"cpu": {"hosts": ["algo-3", "algo-4"]}, "gpu": {"hosts": ["algo-1", "algo-2"]}})
    own = NETWORK.rsplit(".", 1)[0]
    addresses = {f"algo-{number}": f"{own}.9.{number}" for number in range(1, 5)}
    shared = {
        "SM_INSTANCE_GROUPS_DICT": groups,
        "SLIPWAY_HOSTS": json.dumps(addresses),
        "SM_CHANNEL_RAW": str(job.folder / "raw"),
        "SLIPWAY_CHECKPOINT_URI": str(job.folder / "checkpoints"),
    }

    def train(steps: int) -> str:
        feeders = [
            subprocess.Popen(
                [sys.executable, str(EXAMPLES / script), "--feed-port", port, *quick],
                env=os.environ | shared | {"SM_CURRENT_INSTANCE_GROUP": "cpu", "SLIPWAY_BIND_ADDRESS": addresses[host]},
                stderr=subprocess.PIPE,
            )
            for host in ("algo-3", "algo-4")
        ]
        out = job.run(script, "--feed-port", port, "--max-steps", str(steps), *quick, ranks=2, SM_CURRENT_INSTANCE_GROUP="gpu", **shared)
        assert [feeder.communicate(timeout=60)[1] for feeder in feeders] == [b"", b""]
        assert [feeder.returncode for feeder in feeders] == [0, 0]
        return out

    whole = train(10)
    assert len(losses(whole)) == 10 and losses(whole)[-1] < losses(whole)[0]
    (job.folder / "checkpoints/step-10.pt").unlink()
    # Batches follow from step and rank: the second half is that of the undisturbed run.
    assert train(10).splitlines() == whole.splitlines()[5:]


def test_preparation_writes_below_the_hosts_own_name(job: Job) -> None:
    (job.folder / "raw/deep").mkdir(parents=True)
    (job.folder / "raw/deep/a.txt").write_text("one\n\n two \none\n")
    (job.folder / "raw/b.txt").write_text("three\n")
    places = {"SM_CHANNEL_RAW": str(job.folder / "raw"), "SM_OUTPUT_DATA_DIR": str(job.folder / "out"), "SM_CURRENT_HOST": "algo-3"}
    assert job.run("prepare/prepare.py", **places) == "files=2 lines=5 kept=3\n"
    assert (job.folder / "out/algo-3/deep/a.txt").read_text() == "one\ntwo\n"


class StrictParser(argparse.ArgumentParser):
    """Refuses what a script would pass over in silence."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        found, unknown = super().parse_known_args(args, namespace)
        assert unknown == []
        return found, unknown


def runs_of_examples() -> list:
    yaml = pytest.importorskip("yaml", reason="run files are YAML")
    runs = [(path.stem, yaml.safe_load(path.read_text())["code"]) for path in sorted((REPOSITORY / "runs").glob("*/*.yaml"))]
    return [(name, code) for name, code in runs if code["source"].startswith("../scripts/")]


def test_every_run_file_of_an_example_names_a_script_that_takes_its_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    runs = runs_of_examples()
    assert len(runs) >= 20
    strict = argparse.Namespace(ArgumentParser=StrictParser)
    for name, code in runs:
        script = Path(code["source"]).name + "/" + code.get("entryPoint", "train.py")
        words = [word for key, value in code.get("arguments", {}).items() for word in ("--" + key, str(value))]
        monkeypatch.setattr(sys, "argv", [script, *words])
        assert (EXAMPLES / script).is_file(), name
        if "def arguments" in (EXAMPLES / script).read_text():
            taken_from(script, "arguments", {"argparse": strict, "torch": torch, "os": os, "Path": Path})()
