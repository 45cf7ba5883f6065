"""The SM_* variables equal what AWS's own code computes from the same files, wherever the two of them agree.

fixtures/sm-variables.json holds what sagemaker-training 5.1.4 and sagemaker-train 1.27.0 (both from PyPI) printed through
toolkit_reference.py. Where the toolkit is installed (.slipway/toolkit, by `npm run test:e2e`, or SLIPWAY_TOOLKIT_PYTHON) it is asked
again, and for generated configurations; with SLIPWAY_SDK_FOLDER (the unpacked wheel of sagemaker-train) set, the SDK too. With both,
`python test_sm_parity.py` writes the fixture again.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fake_world import REPOSITORY

HERE = Path(__file__).parent
TOOLKIT = os.environ.get("SLIPWAY_TOOLKIT_PYTHON", str(REPOSITORY / ".slipway/toolkit/bin/python"))
SDK = os.environ.get("SLIPWAY_SDK_FOLDER", "")
needs_toolkit = pytest.mark.skipif(not Path(TOOLKIT).exists(), reason="no Python with sagemaker-training (.slipway/toolkit)")
FIXTURE = HERE / "fixtures/sm-variables.json"
HOMOGENEOUS = [{"instance_group_name": "homogeneousCluster", "instance_type": "ml.p4d.24xlarge", "hosts": ["algo-1", "algo-2"]}]
MIXED = [
    {"instance_group_name": "gpu", "instance_type": "ml.p4d.24xlarge", "hosts": ["algo-10", "algo-2"]},
    {"instance_group_name": "cpu", "instance_type": "ml.c5.18xlarge", "hosts": ["algo-1"]},
]
CHANNEL = {"TrainingInputMode": "File", "S3DistributionType": "FullyReplicated", "RecordWrapperType": "None"}


def resources(current: str, hosts: list[str], groups: list[dict], group: str, **more: object) -> dict[str, Any]:
    return {"current_host": current, "current_instance_type": "ml.p4d.24xlarge", "current_group_name": group, "hosts": hosts,
            "instance_groups": groups, "network_interface_name": "eth0", **more}  # fmt: skip


TOPOLOGY = [{"hostName": "algo-1", "capacityUnitId": "a"}, {"hostName": "algo-2", "capacityUnitId": "b"}]
CASES: dict[str, dict[str, Any]] = {
    "two hosts": {
        "resourceconfig": resources("algo-2", ["algo-1", "algo-2"], HOMOGENEOUS, "homogeneousCluster"),
        "inputdataconfig": {"train": CHANNEL, "my-eval": CHANNEL},
        "hyperparameters": {"learning-rate": "0.1", "name": "a b", "flag": "true", "list": "[1, 2]", "nested": '{"b": 2, "a": "x"}'},
    },
    "groups, string-sorted hosts": {
        "resourceconfig": resources("algo-10", ["algo-1", "algo-10", "algo-2"], MIXED, "gpu"),
        "inputdataconfig": {"train": CHANNEL},
        "hyperparameters": {},
    },
    "hyperparameters that need care": {
        "resourceconfig": resources("algo-1", ["algo-1"], HOMOGENEOUS[:1], "homogeneousCluster"),
        "inputdataconfig": {},
        "hyperparameters": {
            "quote": "it''s \"so\"",
            "shell": "$(id); `id` & |",
            "unicode": "漢字 é",
            "number": "1e3",
            "n": "null",
            "text": '"quoted"',
            "empty": "",
            "x": "1",
        },  # fmt: skip
    },
    "topology": {
        "resourceconfig": resources("algo-1", ["algo-1", "algo-2"], HOMOGENEOUS, "homogeneousCluster", topology=TOPOLOGY),
        "inputdataconfig": {"train": CHANNEL},
        "hyperparameters": {"a": "1"},
    },
}


def write_case(base: Path, case: dict[str, Any]) -> None:
    (base / "input/config").mkdir(parents=True)
    for name, content in case.items():
        (base / f"input/config/{name}.json").write_text(json.dumps(content))
    for channel in case["inputdataconfig"]:
        (base / "input/data" / channel).mkdir(parents=True)


def ask(cases: Sequence[dict[str, Any]], path: str = "") -> list[dict[str, dict[str, str]]]:
    """What the packages that are here say now, with the base folder written as {base}."""
    packages = {"toolkit": "toolkit"} | ({"sdk": "sdk:" + SDK} if SDK else {})
    found: list[dict[str, dict[str, str]]] = [{} for _ in cases]
    with tempfile.TemporaryDirectory() as folder:
        bases = [Path(folder) / str(number) for number in range(len(cases))]
        for base, case in zip(bases, cases, strict=True):
            write_case(base, case)
        environ = os.environ | {"TRAINING_JOB_NAME": "job", "AWS_REGION": "us-west-2", "PATH": path + os.environ["PATH"]}
        for name, word in packages.items():
            command = [TOOLKIT, str(HERE / "toolkit_reference.py"), word, *map(str, bases)]
            output = subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout
            lines = [line for line in output.splitlines() if line.startswith("REFERENCE ")]
            for at, line in enumerate(lines):
                said = line.removeprefix("REFERENCE ").replace(str(bases[at]), "{base}").replace("/opt/ml", "{base}")
                found[at][name] = json.loads(said)
    return found


def ours(base: Path, counts: "dict[str, int] | None" = None) -> dict[str, str]:
    from slipway_driver.cluster import read_cluster
    from slipway_driver.job import Paths, parse_job
    from slipway_driver.process_environment import sm_variables

    paths = Paths(base, processing=False)
    cluster = read_cluster(paths.config / "resourceconfig.json", ())
    hardware = counts or {"cpus": os.cpu_count() or 1, "gpus": 0, "neurons": 0}
    variables = sm_variables(
        parse_job({"schema": 1, "runId": "r", "attempt": 1, "entryPoint": "train.py", "restartSecret": "s"}),
        cluster,
        paths,
        hardware,
        "job",
    )
    variables |= {"SM_MASTER_ADDR": cluster.master, "SM_MASTER_PORT": "7777"}
    return {name: value.replace(str(base), "{base}") for name, value in variables.items()}


def counts_of(instance_type: str) -> dict[str, int]:
    """Processors of this machine as the driver finds them for an instance type."""
    from slipway_driver.inventory import inventory

    found = inventory(0, instance_type)
    return {"cpus": found["cpus"], "gpus": found["gpus"], "neurons": found["neurons"]}


def plain(name: str, value: str) -> Any:
    """A value for comparison: JSON by content, and lists of names whose order means nothing as sets."""
    try:
        decoded = json.loads(value)
    except ValueError:
        decoded = value
    return sorted(decoded) if name == "SM_CHANNELS" else decoded


#: About the machine or the entry point; SM_USER_ARGS: the toolkit makes arguments of hyperparameters, a run file has its own.
NOT_COMPARED = {"SM_NUM_CPUS", "SM_TRAINING_ENV", "SM_USER_ENTRY_POINT", "SM_MODULE_NAME", "SM_USER_ARGS"}


@pytest.fixture(scope="module")
def recorded() -> dict[str, dict[str, dict[str, str]]]:
    return json.loads(FIXTURE.read_text())


def agreed(references: dict[str, dict[str, str]]) -> dict[str, Any]:
    """Variables that both packages set to the same, and those that only one of them has."""
    found: dict[str, Any] = {}
    for name in {name for reference in references.values() for name in reference}:
        values = [plain(name, reference[name]) for reference in references.values() if name in reference]
        plumbing = name.startswith(("SM_HP_SAGEMAKER_", "SM_HP__TUNING_"))  # The toolkit reads these and keeps them from the script.
        if name not in NOT_COMPARED and not plumbing and all(value == values[0] for value in values):
            found[name] = values[0]
    return found


@pytest.mark.parametrize("name", CASES)
def test_variables_equal_those_of_toolkit_and_sdk_where_they_agree(name: str, tmp_path: Path, recorded: dict) -> None:
    write_case(tmp_path, CASES[name])
    found = ours(tmp_path)
    expected = agreed(recorded[name])
    assert len(expected) >= 25
    assert {key: plain(key, found[key]) if key in found else "absent" for key in expected} == expected


@pytest.mark.parametrize("name", CASES)
def test_where_they_differ_the_toolkit_is_followed_to_the_letter(name: str, tmp_path: Path, recorded: dict) -> None:
    write_case(tmp_path, CASES[name])
    found = ours(tmp_path)
    expected = {key: value for key, value in recorded[name]["toolkit"].items() if key not in NOT_COMPARED}
    assert {key: found.get(key, "absent") for key in expected} == expected


@pytest.mark.parametrize("name", CASES)
def test_the_facts_in_sm_training_env_equal_the_toolkit_s(name: str, tmp_path: Path, recorded: dict) -> None:
    write_case(tmp_path, CASES[name])
    found = json.loads(ours(tmp_path)["SM_TRAINING_ENV"])
    expected = json.loads(recorded[name]["toolkit"]["SM_TRAINING_ENV"])
    own_business = {"is_modelparallel_enabled", "is_smddpmprun_installed", "is_smddprun_installed", "num_cpus"}
    names = expected.keys() - own_business - {"user_entry_point", "module_name"}
    assert {key: found.get(key, "absent") for key in names} == {key: expected[key] for key in names}


@needs_toolkit
@pytest.mark.jobs
def test_the_recorded_values_are_still_what_the_packages_say(recorded: dict) -> None:
    for name, fresh in zip(CASES, ask(list(CASES.values())), strict=True):
        for package in fresh:
            names = fresh[package].keys() - NOT_COMPARED
            assert {key: fresh[package][key] for key in names} == {key: recorded[name][package].get(key) for key in names}


TEXTS = ["", "a b", "it's \"so\"", "; touch x", "$HOME `id` $(id)", "new\nline", "ünïcode — 漢字", "\\\\", "null", "True", "NaN", "-0",
         "1e400", "007", "[1, 2", '{"a": {"b": [null, 1.5, "x"]}}', "[]", '"quoted"', " 1 ", "\t", "s3://b/k?x=1&y=2", "0x1f"]  # fmt: skip
NAMES = ["lr", "learning-rate", "learning_rate", "Ünï", "a.b", "X", "x", "with space", "sagemaker_program", "sagemaker_container_log_level",
         "_tuning_objective_metric", "mp_parameters", "9lives"]  # fmt: skip
TYPES = ["ml.p4d.24xlarge", "ml.p5.48xlarge", "ml.g5.48xlarge", "ml.c5.18xlarge", "ml.trn1.32xlarge", "ml.trn2.48xlarge"]


def generated(seed: int) -> dict[str, Any]:
    """A configuration as the service writes it, with values that need care."""
    draw = random.Random(seed)
    hosts = sorted(f"algo-{number + 1}" for number in range(draw.choice([1, 1, 2, 3, 11, 40])))
    cut = draw.randrange(len(hosts)) if draw.random() < 0.4 else 0
    parts = [hosts[:cut], hosts[cut:]] if cut else [hosts]
    groups = [
        {"instance_group_name": f"group-{at}" if cut else "homogeneousCluster", "instance_type": draw.choice(TYPES), "hosts": part}
        for at, part in enumerate(parts)
    ]
    current = draw.choice(hosts)
    own = next(group for group in groups if current in group["hosts"])
    names = draw.sample(NAMES, draw.randrange(len(NAMES)))
    hyperparameters = {name: "30" if name.endswith("log_level") else draw.choice(TEXTS) for name in names}
    return {
        "resourceconfig": {"current_host": current, "current_instance_type": own["instance_type"], "hosts": hosts,
                           "current_group_name": own["instance_group_name"], "network_interface_name": draw.choice(["eth0", "ens5"]),
                           **({"instance_groups": groups} if draw.random() < 0.9 else {}),
                           **({"topology": TOPOLOGY} if draw.random() < 0.2 else {})},
        "inputdataconfig": {name: CHANNEL for name in draw.sample(["train", "my-eval", "Test_2", "x"], draw.randrange(5))},
        "hyperparameters": hyperparameters,
    }  # fmt: skip


def write_tool(folder: Path, name: str, output: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("#!/bin/sh\ncat <<'END'\n%s\nEND\n" % output)
    (folder / name).chmod(0o755)


@needs_toolkit
@pytest.mark.jobs
@pytest.mark.drawn(1)
@pytest.mark.parametrize("accelerators", ["none", "GPUs", "Neuron cores"])
def test_generated_configurations_give_the_variables_of_toolkit_and_sdk(
    tmp_path: Path, accelerators: str, monkeypatch, plays_all: bool
) -> None:
    if accelerators == "GPUs":
        write_tool(tmp_path / "bin", "nvidia-smi", "\n".join(f"GPU {n}: NVIDIA H100 80GB HBM3 (UUID: GPU-{n})" for n in range(8)))
    elif accelerators == "Neuron cores":
        write_tool(tmp_path / "bin", "neuron-ls", json.dumps([{"neuron_device": n, "nc_count": 2} for n in range(16)]))
    path = f"{tmp_path / 'bin'}:"
    monkeypatch.setenv("PATH", path + os.environ["PATH"])
    drawn = range(25) if plays_all else random.Random(os.environ["SLIPWAY_TEST_SEED"] + accelerators).sample(range(25), 8)
    cases = [generated(seed) for seed in drawn]
    for number, (case, references) in enumerate(zip(cases, ask(cases, path), strict=True)):
        base = tmp_path / str(number)
        write_case(base, case)
        found = ours(base, counts_of(case["resourceconfig"]["current_instance_type"]))
        letters = {name: value for name, value in references["toolkit"].items() if name not in NOT_COMPARED}
        assert {name: found.get(name, "absent") for name in letters} == letters, case
        expected = agreed(references)
        # As text: NaN is not equal to itself.
        assert {key: repr(plain(key, found.get(key, "absent"))) for key in expected} == {key: repr(expected[key]) for key in expected}, case


if __name__ == "__main__":
    FIXTURE.parent.mkdir(exist_ok=True)
    FIXTURE.write_text(
        json.dumps(dict(zip(CASES, ask(list(CASES.values())), strict=True)), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    )
    print("wrote", FIXTURE, file=sys.stderr)
