"""The EFA verdict over a corpus of NCCL and plugin lines.

No log of a real EFA host is at hand. Each line is built from a documented line format; the tag beside it names the format and the
versions that print it (aws-ofi-nccl tags v1.4 to v1.21.1, NCCL 2.12 to 2.30 `src/transport/net.cc`; read 2026-11-20).
"""

import random
from collections.abc import Sequence

import pytest

from slipway_driver.efa_verdict import EfaVerdict, refusal

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
    ("policy", "found", "refused"),
    [("required", "sockets", True), ("preferred", "sockets", False), ("off", "sockets", False), ("required", "unknown", False),
     ("required", "efa", False), ("required", "single-host", False)],
)  # fmt: skip
def test_only_a_required_efa_that_fell_back_to_sockets_ends_the_job(policy: str, found: str, refused: bool) -> None:
    assert (refusal(policy, found) is not None) is refused
