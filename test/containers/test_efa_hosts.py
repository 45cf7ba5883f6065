"""One verdict of many hosts."""

import random

from slipway_driver.efa_report import NAMED_HOSTS, ORDER, merged


def report(verdict: str) -> dict:
    return {"verdict": verdict, "evidence": [verdict]}


def test_the_slowest_host_counts_whichever_it_is() -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    dice = random.Random(seed)
    for _ in range(500):
        hosts = {f"algo-{number}": dice.choice(ORDER) for number in range(1, dice.randint(2, 12))}
        found = merged({host: report(verdict) for host, verdict in hosts.items()})
        slowest = min(hosts.values(), key=ORDER.index)
        assert found["verdict"] == slowest == hosts[found["host"]] and found["evidence"] == [slowest]
        assert sum(found["hosts"].values()) == len(hosts)
        assert all(ORDER.index(hosts[host]) < max(map(ORDER.index, hosts.values())) for host in found["slowerHosts"])


def test_the_first_host_speaks_where_others_are_as_slow() -> None:
    assert merged({"algo-1": report("efa"), "algo-0": report("efa"), "algo-2": report("efa+gdr")})["host"] == "algo-1"


def test_many_slow_hosts_are_counted_and_some_are_named() -> None:
    others = {f"algo-{number}": report("efa") for number in range(2, 300)}
    found = merged({"algo-1": report("efa+gdr"), **others})
    assert found["hosts"] == {"efa": 298, "efa+gdr": 1}
    assert len(found["slowerHosts"]) == NAMED_HOSTS


def test_a_verdict_of_another_version_proves_nothing() -> None:
    found = merged({"algo-1": report("efa+gdr"), "algo-2": {"verdict": "carrier-pigeon"}, "algo-3": {}})
    assert (found["host"], found["hosts"]) == ("algo-2", {"unknown": 2, "efa+gdr": 1})


def test_of_hosts_with_one_verdict_the_one_with_the_fewest_interfaces_speaks() -> None:
    others = {"algo-2": {**report("efa+gdr"), "interfaces": 1}, "algo-3": {**report("efa+gdr"), "interfaces": None}}
    assert merged({"algo-1": {**report("efa+gdr"), "interfaces": 32}, **others})["host"] == "algo-2"
