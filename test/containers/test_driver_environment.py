"""The environment of training processes: EFA and NCCL by instance and devices, SLIPWAY_*, and the order of the layers."""

import sys
from pathlib import Path

import pytest

from slipway_driver.cluster import Cluster, parse_cluster
from slipway_driver.inventory import torch_version
from slipway_driver.launchers import script_command, torchrun_command
from slipway_driver.process_environment import compose, deadline, efa_changes, master_port, python_path

BAKED = {"FI_PROVIDER": "efa", "NCCL_PROTO": "simple"}


def cluster(instance_type: str, hosts: int) -> Cluster:
    names = [f"algo-{number + 1}" for number in range(hosts)]
    return parse_cluster(
        {"current_host": "algo-1", "current_instance_type": instance_type, "hosts": names, "network_interface_name": "eth0"}, ()
    )


def after(instance_type: str, hosts: int, devices: int, pinned: tuple[str, ...] = (), baked: dict[str, str] = BAKED,
          variables: str = "auto") -> dict[str, str]:  # fmt: skip
    values, unset = efa_changes(cluster(instance_type, hosts), devices, True, baked, pinned, variables)
    environ = compose(baked, [values], unset, {})
    return {name: environ[name] for name in ("FI_PROVIDER", "NCCL_PROTO", "FI_EFA_USE_DEVICE_RDMA") if name in environ}


@pytest.mark.parametrize(
    ("instance_type", "hosts", "devices", "expected"),
    [
        ("ml.p4d.24xlarge", 2, 4, {"FI_PROVIDER": "efa", "NCCL_PROTO": "simple"}),
        ("ml.p4d.24xlarge", 1, 4, {}),
        ("ml.p4d.24xlarge", 2, 0, {"NCCL_PROTO": "simple"}),
        ("ml.p5.48xlarge", 2, 32, {"FI_PROVIDER": "efa"}),
        ("ml.p5en.48xlarge", 4, 16, {"FI_PROVIDER": "efa"}),
        ("ml.p6-b200.48xlarge", 2, 8, {"FI_PROVIDER": "efa"}),
        ("ml.m5.large", 2, 0, {"NCCL_PROTO": "simple"}),
        ("ml.unheard-of.48xlarge", 2, 8, {"FI_PROVIDER": "efa", "NCCL_PROTO": "simple"}),
    ],
)
def test_baked_variables_go_where_they_harm(instance_type: str, hosts: int, devices: int, expected: dict[str, str]) -> None:
    assert after(instance_type, hosts, devices) == expected


def test_what_the_user_pinned_stays() -> None:
    assert after("ml.p5.48xlarge", 1, 0, pinned=("NCCL_PROTO", "FI_PROVIDER")) == BAKED


def test_the_provider_is_set_where_devices_are_and_the_image_has_none() -> None:
    assert after("ml.p5.48xlarge", 2, 32, baked={}) == {"FI_PROVIDER": "efa"}
    assert after("ml.p5.48xlarge", 2, 0, baked={}) == {}


def test_device_rdma_is_never_left_on_and_never_set() -> None:
    assert after("ml.p4d.24xlarge", 2, 4, baked={"FI_EFA_USE_DEVICE_RDMA": "1"}) == {"FI_PROVIDER": "efa"}


def test_guide_2023_is_that_set_word_for_word() -> None:
    assert after("ml.p4d.24xlarge", 2, 4, baked={}, variables="guide-2023") == {
        "FI_PROVIDER": "efa",
        "NCCL_PROTO": "simple",
        "FI_EFA_USE_DEVICE_RDMA": "1",
    }


def test_every_variable_that_is_taken_away_is_said_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    _values, unset = efa_changes(cluster("ml.p5.48xlarge", 1), 32, False, BAKED, (), "auto")
    compose(BAKED, [], unset, {})
    said = [line.split(" unset ")[0] for line in capsys.readouterr().out.splitlines()]
    assert said == ["slipway-driver: environment: FI_PROVIDER=efa", "slipway-driver: environment: NCCL_PROTO=simple"]


def test_sockets_bind_to_the_interface_that_the_service_names() -> None:
    environ, _ = efa_changes(cluster("ml.m5.large", 2), 0, True, {}, (), "auto")
    assert (environ["NCCL_SOCKET_IFNAME"], environ["GLOO_SOCKET_IFNAME"]) == ("eth0", "eth0")
    absent, _ = efa_changes(cluster("ml.m5.large", 2), 0, False, {}, (), "auto")
    assert "NCCL_SOCKET_IFNAME" not in absent


def test_the_user_s_own_variables_win_over_everything() -> None:
    values, unset = efa_changes(cluster("ml.p5.48xlarge", 2), 32, True, BAKED, ("NCCL_DEBUG",), "auto")
    layers = [{"A": "ours", "B": "ours"}, values]
    environ = compose({"A": "inherited", **BAKED}, layers, unset, {"B": "user", "NCCL_DEBUG": "WARN"})
    assert (environ["A"], environ["B"], environ["NCCL_DEBUG"]) == ("ours", "user", "WARN")


def test_the_deadline_leaves_5_percent_and_at_most_15_minutes() -> None:
    assert deadline(1000.0, None) is None
    assert deadline(1000.0, 3600) == 1000 + 3600 - 180
    assert deadline(0.0, 432000) == 432000 - 900


def test_jobs_on_one_machine_get_ports_of_their_own_and_jobs_on_sagemaker_7777() -> None:
    assert master_port("any", shared_machine=False) == 7777
    ports = {master_port(f"job-{number}", shared_machine=True) for number in range(50)}
    assert len(ports) > 40
    assert all(20000 <= port < 30000 for port in ports)


def test_the_user_s_code_comes_before_ours_on_the_python_path(tmp_path) -> None:
    assert python_path(tmp_path / "driver", tmp_path / "code", f"{tmp_path}/driver:/site") == f"{tmp_path}/code:/site:{tmp_path}/driver"


@pytest.mark.parametrize(
    ("entry_point", "builtin", "expected"),
    [
        ("train.py", None, [sys.executable, "-u", "train.py", "--a", "b c"]),
        ("scripts/run.sh", None, ["/bin/bash", "./scripts/run.sh", "--a", "b c"]),
        ("my_package.train", None, [sys.executable, "-u", "-m", "my_package.train", "--a", "b c"]),
        ("builtin", "slipway_trainer", [sys.executable, "-u", "-m", "slipway_trainer", "--a", "b c"]),
    ],
)
def test_scripts_are_started_as_argument_lists(entry_point: str, builtin: str | None, expected: list[str]) -> None:
    assert script_command(entry_point, builtin, ["--a", "b c"]) == expected


def test_torchrun_gets_a_static_rendezvous_and_every_argument_as_one_word() -> None:
    command = torchrun_command(cluster("ml.p5.48xlarge", 3), 8, "algo-1", 7777, ["shim", "$(x); 'y'"])
    assert command == [
        sys.executable, "-m", "torch.distributed.run", "--nnodes=3", "--nproc-per-node=8", "--node-rank=0", "--rdzv-backend=static",
        "--master-addr=algo-1", "--master-port=7777", "--max-restarts=0", "--no-python", "shim", "$(x); 'y'",
    ]  # fmt: skip


def test_a_user_s_python_path_comes_first_and_hides_nothing_of_the_driver() -> None:
    environ = compose({}, [{"PYTHONPATH": "/code:/mine:/driver"}], {}, {"PYTHONPATH": "/mine:/other"})
    assert environ["PYTHONPATH"] == "/mine:/other:/code:/driver"


@pytest.mark.parametrize(
    ("metadata", "version"),
    [
        (b"Metadata-Version: 2.1\nName: torch\nVersion: 9.8.7+cu130\n", "9.8.7+cu130"),
        (b"Metadata-Version: 2.1\nName: torch\n", None),
        (b"\xff\xfe", None),
        (None, None),
    ],
)
def test_the_inventory_has_the_version_of_pytorch_where_its_metadata_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, metadata: "bytes | None", version: "str | None"
) -> None:
    if metadata is not None:
        (tmp_path / "torch-9.8.7.dist-info").mkdir()
        (tmp_path / "torch-9.8.7.dist-info/METADATA").write_bytes(metadata)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert torch_version() == version
