"""The SM_* variables equal what AWS's own code computes from the same files, wherever the two of them agree.

fixtures/sm-variables.json holds what sagemaker-training 5.1.4 and sagemaker-train 1.27.0 (both from PyPI) printed through
toolkit_reference.py. With SLIPWAY_TOOLKIT_PYTHON (a Python that has sagemaker-training) and SLIPWAY_SDK_FOLDER (the unpacked wheel of
sagemaker-train) set, they are asked again; `python test_sm_parity.py` then writes the fixture anew.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
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


def ask(case: dict[str, Any]) -> dict[str, dict[str, str]]:
    """What both packages say now, with the base folder written as {base}."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        write_case(Path(folder), case)
        environ = os.environ | {"SAGEMAKER_BASE_DIR": folder, "TRAINING_JOB_NAME": "job", "AWS_REGION": "us-west-2"}
        for name, words in (("toolkit", []), ("sdk", [os.environ["SLIPWAY_SDK_FOLDER"]])):
            command = [os.environ["SLIPWAY_TOOLKIT_PYTHON"], str(HERE / "toolkit_reference.py"), folder, name, *words]
            output = subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout
            line = next(line for line in output.splitlines() if line.startswith("REFERENCE "))
            found[name] = json.loads(line.removeprefix("REFERENCE ").replace(folder, "{base}").replace("/opt/ml", "{base}"))
    return found


def ours(base: Path) -> dict[str, str]:
    from slipway_driver import sm_environment as sm
    from slipway_driver.cluster import read_cluster
    from slipway_driver.paths import Paths

    paths = Paths(base, processing=False)
    cluster = read_cluster(paths.config / "resourceconfig.json", ())
    raw = sm.read_json(paths.config / "hyperparameters.json")
    counts = {"num_cpus": os.cpu_count() or 1, "num_gpus": 0, "num_neurons": 0}
    hyperparameters = sm.parse_hyperparameters(raw)
    channels = sm.read_json(paths.config / "inputdataconfig.json")
    facts = sm.training_environment(cluster, paths, hyperparameters, channels, "train.py", (), counts, "job")
    variables = sm.sm_variables(facts, cluster, paths, [])
    variables |= {"SM_MASTER_ADDR": cluster.master, "SM_MASTER_PORT": "7777"}
    return {name: value.replace(str(base), "{base}") for name, value in variables.items()}


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
    for name in references["toolkit"].keys() | references["sdk"].keys():
        values = [plain(name, reference[name]) for reference in references.values() if name in reference]
        if name not in NOT_COMPARED and all(value == values[0] for value in values):
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


@pytest.mark.skipif("SLIPWAY_TOOLKIT_PYTHON" not in os.environ, reason="no Python with sagemaker-training: SLIPWAY_TOOLKIT_PYTHON")
@pytest.mark.parametrize("name", CASES)
def test_the_recorded_values_are_still_what_the_packages_say(name: str, recorded: dict) -> None:
    fresh = ask(CASES[name])
    for package in fresh:
        names = fresh[package].keys() - NOT_COMPARED
        assert {key: fresh[package][key] for key in names} == {key: recorded[name][package].get(key) for key in names}


if __name__ == "__main__":
    FIXTURE.parent.mkdir(exist_ok=True)
    FIXTURE.write_text(json.dumps({name: ask(case) for name, case in CASES.items()}, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    print("wrote", FIXTURE, file=sys.stderr)
