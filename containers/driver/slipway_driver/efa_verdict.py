"""Determines from NCCL's output whether EFA carried the traffic: efa+gdr, efa, sockets, single-host or unknown.

Sources of the patterns: aws-ofi-nccl tags v1.4 to v1.21.1 and NCCL 2.12 to 2.30 (net.cc, plugin/net.cc, graph/paths.cc); retrieved
2026-11-20. The comment above each pattern names the versions that print the line in that form. Names are matched completely because a line
may be truncated anywhere.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Optional, Set

from slipway_driver.tables import EFA_INSTANCES

#: ANSI color codes, which a script or terminal wrapper may add to NCCL's output.
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
#: Prefix of each NCCL line: host:process:thread [device]. Lines of two processes may be interleaved.
_PROCESS = re.compile(r":(\d+):\d+ \[-?\d+\] (?:\d+ )?NCCL (?:INFO|WARN)")
#: The rank label that the driver adds.
_RANK = re.compile(r"^\[rank (\d+)\]")

#: "Using" up to 1.6, "Initializing" since 1.7.
_PLUGIN = re.compile(r"NET/OFI (?:Initializing|Using) (aws-ofi-nccl (?:\d+(?:\.\d+)+(?:-?aws)?|[\w.-]+))")
#: Since 1.8.
_LIBFABRIC = re.compile(r"NET/OFI Using Libfabric version (\d+\.\d+(?:\.\d+)?)")
#: "Provider" up to 1.13, "provider ..., fabric is ..." since 1.14; the number of NICs since 1.6.
_PROVIDER = re.compile(r"NET/OFI Selected [Pp]rovider is ([a-z]+)\b(?:;\w+)?(?:, fabric is [\w-]+)?(?:\s*\(found (\d+) nics\))?")
#: "AWS " up to plugin 1.12; "Assigned" since NCCL 2.27, in addition to the other line.
_NETWORK = re.compile(r"(?:Using network|Assigned NET plugin) (?:AWS )?(Libfabric|Socket)\b")
#: "AWS " up to 1.12; "(PCI)" and "/Shared" in newer NCCL.
_CHANNEL = re.compile(r"via NET/(?:AWS )?(Libfabric|Socket)/\d+(?:\(\d+\))?(/GDRDMA)?")
_FALLBACK = re.compile(
    r"NET/Socket ?: Using|NET/Plugin ?: ?(?:No plugin found|Could not find: ?\S*libnccl-net)|Using internal net(?:work)? plugin"
    r"|aws-ofi-nccl initialization failed|Failed to initialize NET plugin (?:AWS )?Libfabric"
)
#: Excludes "Disabled for GPU 0 / HCA 3 (distance ...)", which NCCL prints for every distant pair, also on a healthy host.
_GDR_MISSING = re.compile(r"GDR disabled on GDR-supported instance type|GPU Direct RDMA Disabled for (?!GPU)")
_SECURITY_GROUP = re.compile(r"This error indicates that the security group")
_NCCL_VERSION = re.compile(r"NCCL version (\d+\.\d+\.\d+)")

#: Cheap filter that runs on every line before the patterns above.
_INTERESTING = re.compile(r"NCCL|NET/|Libfabric|Using network|security group")

EVIDENCE_LIMIT = 20
EVIDENCE_LENGTH = 300
#: Share of a host's EFA interfaces that NCCL must use. Fewer than all of them may be one that is broken, of which the report tells.
MIN_SHARE = 0.5
#: TCP or UDP providers of libfabric. A name that is neither listed here nor "efa" is ignored: it may have been truncated.
SOCKET_PROVIDERS = ("tcp", "sockets", "udp", "net")
_DECISIVE = (_PLUGIN, _LIBFABRIC, _PROVIDER, _NETWORK, _CHANNEL, _FALLBACK, _GDR_MISSING)


def is_about_network(line: str) -> bool:
    """Whether a line may affect the verdict."""
    return bool(_INTERESTING.search(line)) and any(pattern.search(line) for pattern in _DECISIVE)


def _process_of(line: str, at: int) -> str:
    """The process that wrote the text at position `at`: the driver's rank label, otherwise the last NCCL prefix before that position."""
    rank = _RANK.match(line)
    if rank:
        return rank.group(1)
    written_by = _PROCESS.findall(line, 0, at)
    return written_by[-1] if written_by else ""


class EfaVerdict:
    """Reads every line of a host's ranks; lines may be truncated, interleaved or in any order. The slowest network used by any rank
    determines the verdict, because every collective waits for it."""

    def __init__(self, hosts: int, instance_type: str, devices: int) -> None:
        self._hosts = hosts
        self._known = EFA_INSTANCES.get(instance_type)
        self._devices = devices
        self._evidence: List[str] = []
        self._versions: Dict[str, str] = {}
        self._providers: Set[str] = set()
        self._networks: Set[str] = set()
        #: By process with channels over Libfabric: whether one of its channels uses GPUDirect RDMA. A line without that suffix may have
        #: been truncated.
        self._channels: Dict[str, bool] = {}
        self._nics: Optional[int] = None
        self._gdr_missing = self._fell_back = False

    def feed(self, line: str) -> None:
        """Reads one line of a rank's output; lines without network information are ignored."""
        if not _INTERESTING.search(line):
            return
        plain = _COLOUR.sub("", line).strip()
        if self._read(plain) and len(self._evidence) < EVIDENCE_LIMIT:
            found = next((match for match in (pattern.search(plain) for pattern in _DECISIVE) if match), None)
            begin = max(0, found.end() - EVIDENCE_LENGTH) if found else 0
            self._evidence.append(plain[begin : begin + EVIDENCE_LENGTH])

    def _read(self, line: str) -> bool:
        """Extracts the facts from a line; True if it contains a new fact."""
        before = self._facts()
        for name, pattern in (("plugin", _PLUGIN), ("libfabric", _LIBFABRIC), ("nccl", _NCCL_VERSION)):
            for version in pattern.findall(line):
                if len(version) > len(self._versions.get(name, "")):
                    self._versions[name] = version  # The shorter version was truncated.
        for name, nics in _PROVIDER.findall(line):
            if name == "efa" or name in SOCKET_PROVIDERS:
                self._providers.add(name)
            if nics and name == "efa":
                self._nics = min(int(nics), self._nics or int(nics))
        self._networks.update(_NETWORK.findall(line))
        for found in _CHANNEL.finditer(line):
            network, gdr = found.groups()
            if network == "Socket":
                self._networks.add(network)
            else:
                process = _process_of(line, found.start())
                self._channels[process] = self._channels.get(process, False) or bool(gdr)
        self._gdr_missing = self._gdr_missing or bool(_GDR_MISSING.search(line))
        self._fell_back = self._fell_back or bool(_FALLBACK.search(line))
        return self._facts() != before or bool(_SECURITY_GROUP.search(line))

    def _facts(self) -> "tuple[Any, ...]":
        """All known facts, regardless of how often they occurred."""
        channels = frozenset(self._channels.values())
        sets = frozenset(self._providers), frozenset(self._networks), channels
        return (*sets, tuple(self._versions.items()), self._nics, self._gdr_missing, self._fell_back)

    @property
    def verdict(self) -> str:
        """The verdict as the contract names it. The network that NCCL uses takes precedence over networks that it only tried."""
        if self._hosts == 1:
            return "single-host"
        if "Socket" in self._networks or self._providers - {"efa"}:
            return "sockets"
        if not self._channels and "Libfabric" not in self._networks:
            return "sockets" if self._fell_back else "unknown"
        if self._channels and all(self._channels.values()) and not self._gdr_missing:
            return "efa+gdr"  # Also if the provider line was lost: libfabric's TCP provider does not support GPUDirect RDMA.
        return "efa" if self._providers else "unknown"

    @property
    def settled(self) -> bool:
        """Whether NCCL has printed which network it uses."""
        return self._hosts == 1 or bool(self._networks or self._channels)

    def report(self) -> Dict[str, Any]:
        """The content of efa.json and of the `efa` event."""
        return {
            "verdict": self.verdict,
            "devices": self._devices,
            # One other than efa if the ranks differ.
            "provider": next(iter(sorted(self._providers - {"efa"})), "efa" if self._providers else None),
            **{name: self._versions.get(name) for name in ("plugin", "libfabric", "nccl")},
            "interfaces": self._nics,
            "expectedInterfaces": self._known.interfaces if self._known else None,
            "evidence": list(self._evidence),
            "busBandwidthGBps": None,
            "expectedGBps": None,
        }


def refusal(policy: str, report: Mapping[str, Any]) -> Optional[str]:
    """The reason why the job must end under `efa: required`; None if it may continue. A host must use half of its EFA interfaces."""
    used, present = report.get("interfaces"), report.get("expectedInterfaces") or report.get("devices")
    if policy == "required" and report["verdict"] == "sockets":
        why = "TCP sockets"
    elif policy == "required" and report["verdict"].startswith("efa") and used and present and used < MIN_SHARE * present:
        why = "%d of %d EFA interfaces, fewer than half" % (used, present)
    else:
        return None
    return "efa: required, and NCCL uses %s; see the evidence in efa.json, or set network.efa: preferred" % why
