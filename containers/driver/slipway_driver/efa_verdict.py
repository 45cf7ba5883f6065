"""Did EFA carry the traffic? Reads NCCL's own lines and answers efa+gdr, efa, sockets, single-host or unknown."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from slipway_driver import efa_lines as lines
from slipway_driver.efa_instances import EFA_INSTANCES

EVIDENCE_LIMIT = 20


class EfaVerdict:
    """Fed with every line of a host's ranks. Lines may be cut off or come in any order: each is judged by itself."""

    def __init__(self, hosts: int, instance_type: str, devices: int) -> None:
        self._hosts = hosts
        self._known = EFA_INSTANCES.get(instance_type)
        self._devices = devices
        self._evidence: List[str] = []
        self.plugin: Optional[str] = None
        self.libfabric: Optional[str] = None
        self.provider: Optional[str] = None
        self.nccl: Optional[str] = None
        self.network: Optional[str] = None
        self.nics: Optional[int] = None
        self._gdr = False
        self._gdr_missing = False
        self._socket = False
        self._libfabric_channel = False

    def feed(self, line: str) -> None:
        if not lines.INTERESTING.search(line):
            return
        if self._read(line) and len(self._evidence) < EVIDENCE_LIMIT:
            self._evidence.append(line.strip()[:300])

    def _read(self, line: str) -> bool:
        """Takes what the line says; True when it says something that was not known."""
        before = self._facts()
        for name, pattern in (("plugin", lines.PLUGIN), ("libfabric", lines.LIBFABRIC), ("nccl", lines.NCCL_VERSION)):
            found = pattern.search(line)
            if found and getattr(self, name) is None:
                setattr(self, name, found.group(1))
        provider = lines.PROVIDER.search(line)
        if provider:
            self.provider = provider.group(1)
            self.nics = int(provider.group(2)) if provider.group(2) else self.nics
        network = lines.NETWORK.search(line)
        if network:
            self.network = network.group(1)
        self._gdr = self._gdr or bool(lines.GDR_CHANNEL.search(line))
        self._gdr_missing = self._gdr_missing or bool(lines.GDR_MISSING.search(line))
        self._libfabric_channel = self._libfabric_channel or bool(lines.LIBFABRIC_CHANNEL.search(line))
        self._socket = self._socket or bool(lines.SOCKET.search(line))
        return self._facts() != before or bool(lines.SECURITY_GROUP.search(line))

    def _facts(self) -> "tuple[Any, ...]":
        return (
            self.plugin, self.libfabric, self.provider, self.nccl, self.network, self.nics,
            self._gdr, self._gdr_missing, self._socket, self._libfabric_channel,
        )  # fmt: skip

    @property
    def verdict(self) -> str:
        """As the contract names it. What NCCL says that it uses counts more than what it tried on the way."""
        if self._hosts == 1:
            return "single-host"
        network = (self.network or "").lower()
        if network == "socket" or (not network and self._socket and not self._libfabric_channel):
            return "sockets"
        if self.provider in ("tcp", "sockets", "udp", "tcp;ofi_rxm"):
            return "sockets"
        if self._libfabric_channel or "libfabric" in network:
            if self.provider is not None and not self.provider.startswith("efa"):
                return "unknown"
            return "efa+gdr" if self._gdr and not self._gdr_missing else "efa"
        return "unknown"

    @property
    def settled(self) -> bool:
        """Whether NCCL has said which network it uses."""
        return self._hosts == 1 or self.network is not None

    def report(self) -> Dict[str, Any]:
        """The object of efa.json and of the `efa` event."""
        return {
            "verdict": self.verdict,
            "devices": self._devices,
            "provider": self.provider,
            "plugin": self.plugin,
            "libfabric": self.libfabric,
            "nccl": self.nccl,
            "interfaces": self.nics,
            "expectedInterfaces": self._known.interfaces if self._known else None,
            "evidence": list(self._evidence),
            "busBandwidthGBps": None,
            "expectedGBps": None,
        }


def refusal(policy: str, verdict: str) -> Optional[str]:
    """Why the job must end under `efa: required`; None when it may go on."""
    if policy == "required" and verdict == "sockets":
        return "efa: required, and NCCL uses TCP sockets; see the evidence in efa.json, or set network.efa: preferred"
    return None
