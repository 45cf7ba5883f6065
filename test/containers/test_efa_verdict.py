"""The EFA verdict over a corpus of NCCL and plugin lines.

No log of a real EFA host is at hand; one of two ranks over NCCL's sockets on an H200 is (fixtures). Each other line is built from a
documented line format; the tag beside it names the format and the versions that print it (aws-ofi-nccl tags v1.4 to v1.21.1, NCCL 2.12 to
2.30 `src/transport/net.cc`; read 2026-11-20).
"""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from slipway_driver.efa_verdict import EfaVerdict, refusal
from slipway_driver.tables import EFA_INSTANCES

PRE = "algo-1:218:412 [0] NCCL INFO "

PLUGIN_OLD = PRE + "NET/OFI Using aws-ofi-nccl 1.5.0aws"  # "plugin loaded": Using, up to 1.6
PLUGIN_NEW = PRE + "NET/OFI Initializing aws-ofi-nccl 1.17.3"  # "plugin loaded": Initializing, since 1.7
LIBFABRIC = PRE + "NET/OFI Using Libfabric version 2.1"  # "libfabric", since 1.8
PLATFORM = PRE + "NET/OFI Plugin selected platform: AWS"  # "platform", since 1.18
PROVIDER_OLD = PRE + "NET/OFI Selected Provider is efa (found 4 nics)"  # "provider": capital P, up to 1.13; count since 1.6
PROVIDER_BARE = PRE + "NET/OFI Selected Provider is efa"  # "provider" before 1.6: no count
PROVIDER_NEW = PRE + "NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics)"  # "provider", since 1.14
PROVIDER_TCP = PRE + "NET/OFI Selected Provider is tcp (found 1 nics)"  # "wrong provider" (aws-ofi-nccl issue 803)
TRANSPORT = PRE + "NET/OFI Using transport protocol RDMA (platform set)"  # "transport", since 1.7
NETWORK_OLD = PRE + "Using network AWS Libfabric"  # "network chosen", up to 1.12
NETWORK_NEW = PRE + "Using network Libfabric"  # "network chosen", since 1.13
NETWORK_SOCKET = PRE + "Using network Socket"  # "fallback"
SOCKET_FOUND = PRE + "NET/Socket : Using [0]eth0:10.0.0.1<0>"  # "fallback"
NO_PLUGIN = PRE + "NET/Plugin: No plugin found (libnccl-net.so), using internal implementation"  # "fallback"
NOT_FOUND = PRE + "NET/Plugin: Could not find: libnccl-net.so. Using internal net plugin."  # "fallback"
INIT_FAILED = PRE + "NET/OFI aws-ofi-nccl initialization failed"  # "fallback"
GDR = PRE + "Channel 00/0 : 7[7] -> 8[0] [receive] via NET/Libfabric/0/GDRDMA"  # "GDR in use"
GDR_PCI = PRE + "Channel 03/0 : 8[0] -> 7[7] [send] via NET/AWS Libfabric/2(5)/GDRDMA(PCI)/Shared"  # "GDR in use": newer NCCL, shared
NO_GDR = PRE + "Channel 00/0 : 7[7] -> 8[0] [receive] via NET/Libfabric/0"  # "GDR in use", without it
VIA_SOCKET = PRE + "Channel 00/0 : 7[7] -> 8[0] [receive] via NET/Socket/0"  # "fallback"
GDR_DISABLED = PRE + "NET/OFI GDR disabled on GDR-supported instance type p5.48xlarge"  # "GDR missing"
NCCL = "NCCL version 2.27.5+cuda12.9"  # NCCL's own banner
SIMPLE = PRE + "NET/OFI Need to force simple protocol: byte delivery ordering not supported"  # "forced proto", since 1.16
USER_PROTO = PRE + "NCCL_PROTO set by environment to simple"  # "user proto"
NOISE = "[rank 3] step=7 loss=2.1 via NET of friends"
PLUGIN_SUFFIX = PRE + "NET/OFI Initializing aws-ofi-nccl 1.7.4-aws"  # "plugin loaded": releases up to 1.13 end in -aws
PROVIDER_SOCKETS = PRE + "NET/OFI Selected provider is sockets, fabric is 10.0.0.0/16"  # "wrong provider", since 1.14
PROVIDER_RXM = PRE + "NET/OFI Selected Provider is tcp;ofi_rxm (found 2 nics)"  # "wrong provider": libfabric's layered name
NO_PLUGIN_OLD = PRE + "NET/Plugin : No plugin found (libnccl-net.so), using internal implementation"  # "fallback": NCCL up to 2.18
ASSIGNED = PRE + "Assigned NET plugin Libfabric to comm"  # "network chosen": NCCL since 2.27, plugin/net.cc
ASSIGNED_SOCKET = PRE + "Assigned NET plugin Socket to comm"  # "fallback": NCCL since 2.27, plugin/net.cc
NOT_INITIALISED = PRE + "Failed to initialize NET plugin Libfabric"  # "fallback": NCCL since 2.27, plugin/net.cc
INIT_FAILED_WARN = "algo-1:218:412 [0] nccl_net_ofi_init:112 NCCL WARN NET/OFI aws-ofi-nccl initialization failed"  # "fallback", at WARN
FAR_PAIR = PRE + "GPU Direct RDMA Disabled for GPU 0 / HCA 3 (distance 8 > 4)"  # graph/paths.cc: said of every pair far apart
HCA_WITHOUT = PRE + "NET/Libfabric : GPU Direct RDMA Disabled for HCA 0 'rdmap16s27'"  # "GDR missing"
SECURITY_GROUP = PRE + "NET/OFI This error indicates that the security group does not allow all traffic"  # "security group", since 1.21


def of_rank(rank: int, line: str) -> str:
    """The line as another process of the host prints it."""
    return line.replace("algo-1:218:412 [0]", f"algo-1:{218 + rank}:{412 + rank} [{rank}]")


def verdict(lines: Sequence[str], hosts: int = 2, instance_type: str = "ml.p5.48xlarge") -> EfaVerdict:
    found = EfaVerdict(hosts, instance_type, devices=32)
    for line in lines:
        found.feed(line)
    return found


@pytest.mark.parametrize(
    ("name", "lines", "expected"),
    [
        ("p5, plugin 1.17", [NCCL, PLUGIN_NEW, LIBFABRIC, PROVIDER_NEW, TRANSPORT, NETWORK_NEW, GDR], "efa+gdr"),
        ("p4d, plugin 1.5", [PLUGIN_OLD, PROVIDER_BARE, NETWORK_OLD, GDR_PCI], "efa+gdr"),
        ("p4d, plugin 1.12", [PLUGIN_NEW, PROVIDER_OLD, NETWORK_OLD, GDR_PCI], "efa+gdr"),
        ("g5: no GPUDirect", [PLUGIN_NEW, PROVIDER_OLD, NETWORK_NEW, NO_GDR], "efa"),
        ("before the channels are up", [PLUGIN_NEW, PROVIDER_NEW, NETWORK_NEW], "efa"),
        ("GPUDirect lost", [PLUGIN_NEW, PROVIDER_NEW, GDR_DISABLED, NETWORK_NEW, GDR], "efa"),
        ("no plugin file", [NCCL, NO_PLUGIN, SOCKET_FOUND, NETWORK_SOCKET, VIA_SOCKET], "sockets"),
        ("no plugin file, newer NCCL", [NOT_FOUND, NETWORK_SOCKET], "sockets"),
        ("plugin could not start", [PLUGIN_NEW, INIT_FAILED, SOCKET_FOUND], "sockets"),
        (
            "awslabs/awsome-distributed-ai#386: the same under Ray",
            [
                "(RayTrainWorker pid=954, ip=10.0.0.2) %s [repeated 15x across cluster]" % line
                for line in (INIT_FAILED_WARN, SOCKET_FOUND, NETWORK_SOCKET)
            ],
            "sockets",
        ),
        (
            "aws/aws-ofi-nccl#803: a container without the device",
            [PLUGIN_SUFFIX, PROVIDER_TCP, PRE.replace("INFO", "WARN") + "NET/OFI Disabling shared memory failed: Protocol not available"],
            "sockets",
        ),
        ("libfabric over tcp", [PLUGIN_NEW, PROVIDER_TCP, NETWORK_NEW], "sockets"),
        ("only the channel lines", [GDR], "efa+gdr"),
        ("only a socket channel line", [VIA_SOCKET], "sockets"),
        ("simple forced by the plugin", [PROVIDER_NEW, SIMPLE, USER_PROTO, NETWORK_NEW, GDR], "efa+gdr"),
        ("nothing", [NOISE, PLATFORM], "unknown"),
        ("gloo on CPUs", ["[rank 0] gloo: connected full mesh"], "unknown"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_corpus(name: str, lines: list[str], expected: str) -> None:
    assert verdict(lines).verdict == expected, name


def test_socket_lines_that_nccl_tries_first_do_not_outweigh_the_network_that_it_uses() -> None:
    assert verdict([SOCKET_FOUND, PLUGIN_NEW, PROVIDER_NEW, NETWORK_NEW, GDR]).verdict == "efa+gdr"


def test_lines_that_nccl_printed_between_two_ranks_on_an_h200_mean_sockets() -> None:
    """NCCL 2.28.9 with a host id of its own for each rank (npm run test:gpu)."""
    verdict = EfaVerdict(2, "ml.p5.48xlarge", 0)
    for line in (Path(__file__).parent / "fixtures/nccl-two-hosts-over-sockets.log").read_text().splitlines():
        verdict.feed(line)
    report = verdict.report()
    assert report["verdict"] == "sockets"
    assert report["nccl"] == "2.28.9"
    assert any("Assigned NET plugin Socket to comm" in line for line in report["evidence"])


def test_one_host_has_no_network_to_judge() -> None:
    assert verdict([NETWORK_SOCKET], hosts=1).verdict == "single-host"


def test_the_order_of_lines_and_the_ranks_between_them_do_not_matter() -> None:
    lines = [NCCL, PLUGIN_NEW, LIBFABRIC, PROVIDER_NEW, TRANSPORT, NETWORK_NEW, GDR, GDR_PCI, SIMPLE]
    for seed in range(20):
        shuffled = [line for line in lines for _ in range(8)] + [NOISE] * 20
        random.Random(seed).shuffle(shuffled)
        assert verdict([f"[rank {seed % 8}] {line}" for line in shuffled]).verdict == "efa+gdr"


def test_lines_that_are_cut_off_anywhere_never_make_a_worse_verdict() -> None:
    lines = [PLUGIN_NEW, LIBFABRIC, PROVIDER_NEW, NETWORK_NEW, GDR]
    for whole in lines:
        for length in range(len(whole)):
            found = verdict([whole[:length], *lines])
            assert found.verdict == "efa+gdr", whole[:length]


def test_the_report_names_versions_counts_and_each_piece_of_evidence_once() -> None:
    report = verdict([NCCL, PLUGIN_NEW, LIBFABRIC, PROVIDER_NEW, NETWORK_NEW, GDR] * 3).report()
    assert (report["plugin"], report["libfabric"], report["nccl"], report["provider"]) == ("aws-ofi-nccl 1.17.3", "2.1", "2.27.5", "efa")
    assert (report["interfaces"], report["expectedInterfaces"], report["devices"]) == (32, 32, 32)
    assert report["evidence"] == [NCCL, PLUGIN_NEW, LIBFABRIC, PROVIDER_NEW, NETWORK_NEW, GDR]


def test_the_verdict_is_settled_by_the_line_that_names_the_network() -> None:
    assert not verdict([PLUGIN_NEW, PROVIDER_NEW]).settled
    assert verdict([NETWORK_SOCKET]).settled


@pytest.mark.parametrize(
    ("name", "lines", "expected"),
    [
        ("plugin 1.7 to 1.13", [PLUGIN_SUFFIX, PROVIDER_OLD, NETWORK_OLD, GDR_PCI], "efa+gdr"),
        ("NCCL 2.27 says it twice", [PLUGIN_NEW, PROVIDER_NEW, ASSIGNED, NETWORK_NEW, GDR], "efa+gdr"),
        ("NCCL 2.27 falls back", [NOT_INITIALISED, ASSIGNED_SOCKET], "sockets"),
        ("the plugin was loaded, then sockets", [NCCL, PLUGIN_NEW, LIBFABRIC, PROVIDER_NEW, INIT_FAILED, NETWORK_SOCKET], "sockets"),
        ("older wording of no plugin", [NO_PLUGIN_OLD], "sockets"),
        ("EFA is there, the provider is sockets", [PLUGIN_NEW, PROVIDER_SOCKETS, NETWORK_NEW, NO_GDR], "sockets"),
        ("a layered provider", [PLUGIN_NEW, PROVIDER_RXM, NETWORK_NEW, NO_GDR], "sockets"),
        ("NCCL_DEBUG=WARN and all is well", [NCCL], "unknown"),
        ("NCCL_DEBUG=WARN and the plugin failed", [NCCL, INIT_FAILED_WARN], "sockets"),
        ("libfabric without a word on its provider", [PLUGIN_NEW, NETWORK_NEW], "unknown"),
        ("pairs that lie far apart on a healthy host", [PROVIDER_NEW, FAR_PAIR, NETWORK_NEW, GDR], "efa+gdr"),
        ("no card does GPUDirect", [PROVIDER_NEW, NETWORK_NEW, HCA_WITHOUT, NO_GDR], "efa"),
        ("a channel over sockets beside libfabric", [PROVIDER_NEW, NETWORK_NEW, GDR, VIA_SOCKET], "sockets"),
        ("a script that speaks of networks", [PROVIDER_NEW, NETWORK_NEW, GDR, "INFO: Using network storage at /fsx"], "efa+gdr"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_corpus_of_versions_and_fallbacks(name: str, lines: list[str], expected: str) -> None:
    assert verdict(lines).verdict == expected, name
    assert verdict(lines[::-1]).verdict == expected, "in any order"


@pytest.mark.parametrize(
    ("name", "weaker", "expected"),
    [("over sockets", [NETWORK_SOCKET, VIA_SOCKET], "sockets"), ("over tcp", [PROVIDER_TCP, NETWORK_NEW, NO_GDR], "sockets"),
     ("without GPUDirect", [PROVIDER_NEW, NETWORK_NEW, NO_GDR], "efa")],
)  # fmt: skip
def test_the_weakest_of_a_host_s_ranks_decides(name: str, weaker: list[str], expected: str) -> None:
    healthy = [PLUGIN_NEW, PROVIDER_NEW, NETWORK_NEW, GDR]
    odd = [of_rank(5, line) for line in weaker]
    for lines in (healthy + odd, odd + healthy):
        assert verdict(lines).verdict == verdict([f"[rank 0] {line}" for line in healthy] + [f"[rank 5] {line}" for line in odd]).verdict
        assert verdict(lines).verdict == expected, name


@pytest.mark.parametrize("change", [
    lambda line: f"\x1b[32m{line}\x1b[0m",
    lambda line: line.replace("NCCL INFO ", "\x1b[1;34mNCCL INFO\x1b[0m ").replace("is efa", "is \x1b[33mefa\x1b[39m"),
    lambda line: line + "\r",
    lambda line: " 42%|####  | 3/7\r" + line,
    lambda line: "x" * 100_000 + " " + line,
    lambda line: line + " " + "y" * 1_000_000,
    lambda line: "2026-11-21T10:00:00.000Z " + line,
    lambda line: line.replace(PRE, ""),
], ids=["coloured", "coloured inside", "CRLF", "progress bar", "behind much else", "very long", "with a time", "no prefix"])  # fmt: skip
def test_what_is_around_nccl_s_words_does_not_matter(change: Callable[[str], str]) -> None:
    lines = [PLUGIN_NEW, LIBFABRIC, PROVIDER_NEW, NETWORK_NEW, GDR]
    report = verdict([change(line) for line in lines]).report()
    assert (report["verdict"], report["plugin"], report["libfabric"]) == ("efa+gdr", "aws-ofi-nccl 1.17.3", "2.1")
    assert all(len(line) <= 300 for line in report["evidence"])
    assert any("Selected provider is efa" in line for line in report["evidence"])
    assert verdict([change(line) for line in [NETWORK_SOCKET, VIA_SOCKET]]).verdict == "sockets"


def test_two_ranks_that_write_into_each_other_s_lines_are_told_apart() -> None:
    lines = [PLUGIN_NEW, LIBFABRIC, PROVIDER_NEW, NETWORK_NEW, GDR]
    for whole in lines:
        for other in lines:
            for cut in range(1, len(whole)):
                run_together = whole[:cut] + of_rank(1, other) + whole[cut:]
                assert verdict([*lines, run_together]).verdict == "efa+gdr", run_together
                assert verdict([run_together, *lines]).verdict == "efa+gdr", run_together
    report = verdict([PLUGIN_NEW[:-2] + of_rank(1, NETWORK_SOCKET), PLUGIN_NEW]).report()
    assert (report["verdict"], report["plugin"]) == ("sockets", "aws-ofi-nccl 1.17.3")


def test_lines_that_are_cut_off_at_the_end_of_a_log_do_not_change_the_verdict() -> None:
    for lines, expected in (
        ([PLUGIN_NEW, PROVIDER_NEW, NETWORK_NEW, GDR], "efa+gdr"),
        ([PLUGIN_NEW, PROVIDER_OLD, NETWORK_OLD, NO_GDR], "efa"),
        ([PLUGIN_NEW, PROVIDER_RXM, NETWORK_NEW], "sockets"),
        ([NO_PLUGIN, NETWORK_SOCKET, VIA_SOCKET], "sockets"),
    ):
        for whole in lines:
            for length in range(len(whole)):
                assert verdict([*lines, whole[:length]]).verdict == expected, whole[:length]
                assert verdict([*lines, whole[length:]]).verdict == expected, whole[length:]


def test_a_channel_line_alone_settles_the_verdict_and_the_security_group_is_evidence() -> None:
    assert verdict([VIA_SOCKET]).settled
    assert verdict([SECURITY_GROUP]).report()["evidence"] == [SECURITY_GROUP]


@pytest.mark.parametrize(
    ("policy", "found", "refused"),
    [("required", "sockets", True), ("preferred", "sockets", False), ("off", "sockets", False), ("required", "unknown", False),
     ("required", "efa", False), ("required", "single-host", False)],
)  # fmt: skip
def test_only_a_required_efa_that_fell_back_to_sockets_ends_the_job(policy: str, found: str, refused: bool) -> None:
    assert (refusal(policy, {"verdict": found}) is not None) is refused


def test_a_required_efa_that_uses_fewer_than_half_of_the_interfaces_ends_the_job() -> None:
    for instance_type, known in EFA_INSTANCES.items():
        for used in range(1, known.interfaces + 1):
            lines = [PRE + f"NET/OFI Selected Provider is efa (found {used} nics)", GDR]
            found = EfaVerdict(2, instance_type, known.interfaces)
            for line in lines:
                found.feed(line)
            assert found.verdict == "efa+gdr"
            reason = refusal("required", found.report())
            assert (reason is not None) is (2 * used < known.interfaces), (instance_type, used)
            assert reason is None or f"uses {used} of {known.interfaces} EFA interfaces, fewer than half" in reason
            assert refusal("preferred", found.report()) is None


def test_the_rank_with_the_fewest_interfaces_counts_and_a_type_without_a_table_has_its_devices() -> None:
    found = EfaVerdict(2, "ml.new.48xlarge", 16)
    for nics in (16, 4, 16):
        found.feed(PRE + f"NET/OFI Selected Provider is efa (found {nics} nics)")
    found.feed(GDR)
    assert found.report()["interfaces"] == 4
    assert "4 of 16 EFA interfaces" in (refusal("required", found.report()) or "")
