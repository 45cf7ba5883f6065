"""The SM_* variables that training scripts written for SageMaker expect.

The service itself sets none of them: they come from the sagemaker-training toolkit and the Python SDK's own driver, whose names and formats
are used here (https://github.com/aws/sagemaker-training-toolkit, release 5.1.4; sagemaker-python-sdk v3, 2026-08-21). The driver's internal
channels are not in SM_CHANNELS, so that a script that iterates over its channels finds only its data.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Dict, Mapping, Sequence

from slipway_driver.cluster import Cluster
from slipway_driver.paths import Paths

PLUMBING_CHANNELS = ("driver", "job", "code")
LOG_LEVEL_INFO = 20


def encoded(value: Any) -> str:
    """Formats a value like the toolkit: strings unchanged, everything else as compact JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _decoded(value: str) -> Any:
    try:
        return json.loads(value)
    except (TypeError, ValueError):
        return value


def parse_hyperparameters(raw: Mapping[str, str]) -> Dict[str, Any]:
    """The script's hyperparameters, decoded if they are JSON, without internal ones of the toolkit."""
    internal = ("_tuning_objective_metric", "default_user_module_name")
    return {name: _decoded(value) for name, value in raw.items() if not name.startswith("sagemaker_") and name not in internal}


def log_level(raw: Mapping[str, str]) -> Any:
    """SM_LOG_LEVEL: the toolkit's hyperparameter if set, otherwise INFO."""
    return _decoded(raw["sagemaker_container_log_level"]) if "sagemaker_container_log_level" in raw else LOG_LEVEL_INFO


def read_json(path: Path) -> Dict[str, Any]:
    """Reads one of the service's config files. A missing file is an empty object, because processing jobs have fewer files."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}


def training_environment(
    cluster: Cluster,
    paths: Paths,
    hyperparameters: Mapping[str, str],
    channels: Mapping[str, Mapping[str, Any]],
    entry_point: str,
    training_groups: Sequence[str],
    counts: Mapping[str, int],
    job_name: str,
) -> Dict[str, Any]:
    """The values of the variables. `hyperparameters`: as the service wrote them; `counts`: num_cpus, num_gpus, num_neurons."""
    data_channels = {name: config for name, config in channels.items() if name not in PLUMBING_CHANNELS}
    groups = {str(group["instance_group_name"]): dict(group) for group in cluster.raw.get("instance_groups") or []}
    return {
        "additional_framework_parameters": {},
        "channel_input_dirs": {name: str(paths.channel(name)) for name in data_channels},
        "current_host": cluster.current_host,
        "current_instance_group": cluster.current_group,
        "current_instance_group_hosts": list(groups.get(cluster.current_group, {}).get("hosts", [])),
        "current_instance_type": cluster.instance_type,
        "distribution_hosts": list(cluster.training_hosts) if training_groups or not groups else [],
        "distribution_instance_groups": list(training_groups),
        "framework_module": None,
        "hosts": list(cluster.hosts),
        "hyperparameters": parse_hyperparameters(hyperparameters),
        "input_config_dir": str(paths.config),
        "input_data_config": data_channels,
        "input_data_dir": str(paths.data),
        "input_dir": str(paths.base / "input"),
        "instance_groups": list(groups),
        "instance_groups_dict": groups,
        "is_hetero": cluster.heterogeneous,
        "is_master": cluster.has_rank_0,
        "job_name": job_name,
        "log_level": log_level(hyperparameters),
        "master_hostname": cluster.master,
        "model_dir": str(paths.model),
        "module_dir": str(paths.code),
        "module_name": entry_point[:-3] if entry_point.endswith(".py") else entry_point,
        "network_interface_name": cluster.network_interface,
        "num_cpus": counts.get("num_cpus", os.cpu_count() or 1),
        "num_gpus": counts.get("num_gpus", 0),
        "num_neurons": counts.get("num_neurons", 0),
        "output_data_dir": str(paths.output_data),
        "output_dir": str(paths.output),
        "output_intermediate_dir": str(paths.output / "intermediate"),
        "resource_config": dict(cluster.raw),
        "topology": cluster.raw.get("topology", []),
        "user_entry_point": entry_point,
    }


#: Values of training_environment() that have no variable of their own, or have one under another condition.
_WITHOUT_VARIABLE = ("channel_input_dirs", "distribution_hosts", "is_master", "job_name", "master_hostname", "topology")
#: Variables that are not named after their value.
_NAMES = {"hyperparameters": "SM_HPS", "additional_framework_parameters": "SM_FRAMEWORK_PARAMS"}


def sm_variables(facts: Mapping[str, Any], cluster: Cluster, paths: Paths, arguments: Sequence[str]) -> Dict[str, str]:
    """All SM_* variables of one host. `arguments`: the command line arguments of the script."""
    variables = {_NAMES.get(name, "SM_" + name.upper()): encoded(value) for name, value in facts.items() if name not in _WITHOUT_VARIABLE}
    folders: Dict[str, str] = facts["channel_input_dirs"]
    variables.update({"SM_CHANNEL_" + name.upper(): folder for name, folder in folders.items()})
    hyperparameters = {"SM_HP_" + name.upper(): encoded(value) for name, value in facts["hyperparameters"].items()}
    # The toolkit keeps dashes, which are not valid in shell variable names; the Python SDK v3 replaces them by underscores. Scripts use
    # both.
    variables.update({name.replace("-", "_"): value for name, value in hyperparameters.items()})
    variables.update(hyperparameters)
    if facts["topology"]:
        variables["SM_TOPOLOGY"] = encoded(facts["topology"])
    return {
        **variables,
        "SM_CHANNELS": encoded(sorted(folders)),
        "SM_USER_ARGS": encoded(list(arguments)),
        "SM_TRAINING_ENV": encoded(facts),
        # Variables of the Python SDK v3's own driver.
        "SM_HOST_COUNT": str(len(cluster.hosts)),
        "SM_CURRENT_HOST_RANK": str(cluster.hosts.index(cluster.current_host)),
        "SM_SOURCE_DIR": str(paths.code),
        "SM_ENTRY_SCRIPT": str(facts["user_entry_point"]),
        "SM_OUTPUT_FAILURE": str(paths.failure),
    }
