"""What the driver reads: job.json, resourceconfig.json, the hosts file, the code archive."""

import io
import os
import random
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from fake_world import job_json
from slipway_driver.cluster import own_address, parse_cluster, read_hosts_file, wait_for_hosts
from slipway_driver.code import prepare_code, refuse_windows_text, sha256_of
from slipway_driver.exit_codes import DriverError
from slipway_driver.job import Paths, parse_job

SEED = int(os.environ.get("SLIPWAY_TEST_SEED", random.randrange(1 << 30)))


def resources(hosts: list[str], current: str = "algo-1", **changes: object) -> dict:
    return {"current_host": current, "current_instance_type": "ml.m5.large", "hosts": hosts, **changes}


def test_ranks_follow_the_string_order_of_hosts() -> None:
    hosts = [f"algo-{number}" for number in range(1, 12)]
    assert parse_cluster(resources(hosts, "algo-10"), ()).rank == 1
    assert parse_cluster(resources(hosts, "algo-11"), ()).rank == 2
    assert parse_cluster(resources(hosts, "algo-2"), ()).rank == 3
    assert parse_cluster(resources(hosts, "algo-2"), ()).master == "algo-1"


def test_three_hundred_hosts_get_three_hundred_ranks_whatever_order_they_are_listed_in() -> None:
    hosts = [f"algo-{number}" for number in range(1, 301)]
    ranks = [parse_cluster(resources(hosts[::-1], host), ()).rank for host in hosts]
    assert sorted(ranks) == list(range(300))
    assert {parse_cluster(resources(hosts, host), ()).master for host in hosts} == {"algo-1"}


def test_hosts_of_one_ultra_server_have_ranks_beside_each_other() -> None:
    hosts = [f"algo-{number}" for number in range(1, 13)]
    topology = [{"hostName": host, "capacityUnitId": "unit-" + "ba"[number % 2]} for number, host in enumerate(hosts)]
    for order in (topology, topology[::-1]):
        ranked = parse_cluster(resources(hosts[::-1], topology=order), ()).training_hosts
        assert ranked == ("algo-1", "algo-11", "algo-3", "algo-5", "algo-7", "algo-9",
                          "algo-10", "algo-12", "algo-2", "algo-4", "algo-6", "algo-8")  # fmt: skip


@pytest.mark.parametrize(
    "topology", [[], None, "none", {"algo-2": "a"}, [["algo-2", "a"], {"hostName": "algo-9"}], [{"capacityUnitId": "a"}]]
)
def test_hosts_without_a_readable_topology_keep_the_string_order(topology: object) -> None:
    hosts = [f"algo-{number}" for number in range(1, 12)]
    assert parse_cluster(resources(hosts, topology=topology), ()).training_hosts == tuple(sorted(hosts))


GROUPS = [
    {"instance_group_name": "gpu", "instance_type": "ml.p4d.24xlarge", "hosts": ["algo-3", "algo-2"]},
    {"instance_group_name": "cpu", "instance_type": "ml.c5.18xlarge", "hosts": ["algo-1"]},
]


def test_only_the_training_groups_have_ranks() -> None:
    inside = parse_cluster(resources(["algo-1", "algo-2", "algo-3"], "algo-3", instance_groups=GROUPS), ("gpu",))
    assert (inside.takes_part, inside.rank, inside.master, inside.training_hosts) == (True, 1, "algo-2", ("algo-2", "algo-3"))
    outside = parse_cluster(resources(["algo-1", "algo-2", "algo-3"], "algo-1", instance_groups=GROUPS), ("gpu",))
    assert (outside.takes_part, outside.rank) == (False, 0)


def test_fails_with_77_for_a_group_that_the_job_does_not_have() -> None:
    with pytest.raises(DriverError, match=r"must name groups of the job \(gpu, cpu\), got tpu") as raised:
        parse_cluster(resources(["algo-1", "algo-2", "algo-3"], instance_groups=GROUPS), ("tpu",))
    assert raised.value.code == 77


def test_every_wrong_field_of_a_job_file_is_named_at_once() -> None:
    with pytest.raises(DriverError) as raised:
        parse_job(job_json(launcher="slurm", processesPerHost="8", env={"A": 1}, schema=2, runId=None))
    for part in ("schema: must be 1, got 2", "launcher: must be one of torchrun, mpi, ray, script, got slurm",
                 "processesPerHost: must be a whole number", "env: must contain only strings", "runId: must be a string"):  # fmt: skip
        assert part in raised.value.reason


@pytest.mark.parametrize("entry_point", ["builtin", "builtin-tokenize"])
def test_fails_with_77_when_the_built_in_code_is_given_requirements(entry_point: str) -> None:
    with pytest.raises(DriverError, match="requirements: must not be given with entryPoint " + entry_point) as raised:
        parse_job(job_json(entryPoint=entry_point, requirements="requirements.txt"))
    assert raised.value.code == 77


def test_the_hosts_file_gives_every_name_its_first_address(tmp_path: Path) -> None:
    assert read_hosts_file(tmp_path / "hosts") == {}
    (tmp_path / "hosts").write_text("# sandbox\n127.0.1.1 algo-1 master\n127.0.1.2\talgo-2 # second\n127.0.9.9 algo-1\n\n")
    assert read_hosts_file(tmp_path / "hosts") == {"algo-1": "127.0.1.1", "master": "127.0.1.1", "algo-2": "127.0.1.2"}


class Clock:
    """Time that passes only when somebody sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("slipway_driver.cluster.time", SimpleNamespace(monotonic=lambda: self.now, sleep=self.sleep))
        self.now = 0.0
        self.sleeps: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds


def test_names_that_resolve_late_are_waited_for_with_growing_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)

    def resolve(host: str) -> str:
        if host == "algo-2" and clock.now < 100:
            raise OSError("no such name")
        return "10.0.0.1"

    monkeypatch.setattr("socket.gethostbyname", resolve)
    found = wait_for_hosts(["algo-1", "algo-2"], {})
    assert found == {"algo-1": "10.0.0.1", "algo-2": "10.0.0.1"}
    assert clock.sleeps[:7] == [0.5, 1, 2, 4, 8, 16, 20]


def test_fails_with_75_when_a_name_does_not_resolve_for_15_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)

    def resolve(host: str) -> str:
        raise OSError("no such name")

    monkeypatch.setattr("socket.gethostbyname", resolve)
    with pytest.raises(DriverError, match="no address for algo-2") as raised:
        wait_for_hosts(["algo-1", "algo-2"], {"algo-1": "127.0.0.1"})
    assert raised.value.code == 75
    assert 860 <= clock.now <= 900


def test_a_resolver_that_takes_seconds_for_each_of_300_names_does_not_stretch_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)

    def resolve(host: str) -> str:
        clock.now += 10
        raise OSError("timed out")

    monkeypatch.setattr("socket.gethostbyname", resolve)
    with pytest.raises(DriverError, match="no address for algo-1"):
        wait_for_hosts([f"algo-{number}" for number in range(1, 301)], {})
    assert clock.now <= 910


def test_a_name_that_means_this_machine_to_itself_only_is_no_address_to_listen_on() -> None:
    assert own_address("algo-1", {"algo-1": "127.0.0.1"}, {}) == ""
    assert own_address("algo-1", {"algo-1": "127.1.1.1"}, {"algo-1": "127.1.1.1"}) == "127.1.1.1"
    assert own_address("algo-1", {"algo-1": "10.0.0.7"}, {}) == "10.0.0.7"


def test_paths_below_opt_ml_become_the_instance_s_own() -> None:
    paths = Paths(Path("/tmp/one"), processing=False)
    assert paths.localised("/opt/ml/checkpoints") == "/tmp/one/checkpoints"
    assert paths.localised("/opt/mlx") == "/opt/mlx"
    assert paths.localised("s3://b/opt/ml/x") == "s3://b/opt/ml/x"


def archive(path: Path, members: list[tarfile.TarInfo]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as opened:
        for member in members:
            opened.addfile(member, io.BytesIO(b"x" * member.size))
    return sha256_of(path)


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, 1 if kind == tarfile.REGTYPE else 0
    return info


def test_code_with_the_right_digest_is_unpacked(tmp_path: Path) -> None:
    members = [member("train.py"), member("pkg/a.py"), member("pkg/b.py", tarfile.SYMTYPE, "a.py")]
    digest = archive(tmp_path / "channel/x.tar.gz", members)
    prepare_code(tmp_path / "channel", digest, tmp_path / "code")
    assert (tmp_path / "code/pkg/b.py").read_bytes() == b"x"


@pytest.mark.parametrize(
    "bad",
    [
        member("../outside"),
        member("/etc/passwd"),
        member("pkg/../../outside"),
        member("link", tarfile.SYMTYPE, "/etc"),
        member("pkg/link", tarfile.SYMTYPE, "../../etc"),
        member("hard", tarfile.LNKTYPE, "../outside"),
        member("pipe", tarfile.FIFOTYPE),
        member("device", tarfile.CHRTYPE),
    ],
    ids=lambda info: info.name,
)
def test_fails_with_77_and_unpacks_nothing_when_an_archive_reaches_outside(tmp_path: Path, bad: tarfile.TarInfo) -> None:
    digest = archive(tmp_path / "channel/x.tar.gz", [member("train.py"), bad])
    with pytest.raises(DriverError, match="must stay inside its folder") as raised:
        prepare_code(tmp_path / "channel", digest, tmp_path / "code")
    assert raised.value.code == 77
    assert list((tmp_path / "code").iterdir()) == []


def test_fails_with_77_when_the_digest_is_another(tmp_path: Path) -> None:
    archive(tmp_path / "channel/x.tar.gz", [member("train.py")])
    with pytest.raises(DriverError, match="must have digest 00, got [0-9a-f]{64}"):
        prepare_code(tmp_path / "channel", "00", tmp_path / "code")
    assert not (tmp_path / "code").exists()


@pytest.mark.parametrize(("digest", "message"), [(None, "must be set for user code"), ("ab", "must contain the archive ab.tar.gz")])
def test_fails_with_77_without_a_digest_or_without_an_archive(tmp_path: Path, digest: str | None, message: str) -> None:
    (tmp_path / "channel").mkdir()
    with pytest.raises(DriverError, match=message):
        prepare_code(tmp_path / "channel", digest, tmp_path / "code")


def test_law_a_script_is_refused_where_bash_would_not_find_its_first_word(tmp_path: Path) -> None:
    # PIsberg/vibetags#437
    rng = random.Random(SEED)
    for _ in range(60):
        text = (
            rng.choice(["\ufeff", ""])
            + rng.choice(["", " ", "\n", "\t\n"])
            + rng.choice(["#!/bin/bash", "# text", "set -e", "export A=1", ""])
        )
        (tmp_path / "run.sh").write_text(text + "\n", encoding="utf-8")
        word = text[1:].split()[0] if text.startswith("\ufeff") and text[1:].strip() else "#"
        if word.startswith("#"):
            refuse_windows_text("run.sh", tmp_path)
            continue
        with pytest.raises(DriverError, match=f"must have no byte order mark, got one before {word} in run.sh; remove it"):
            refuse_windows_text("run.sh", tmp_path)
