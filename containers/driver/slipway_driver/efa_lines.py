"""Patterns of the network lines that NCCL and aws-ofi-nccl print, by version.

Sources: aws-ofi-nccl tags v1.4 to v1.21.1 and NCCL 2.12 to 2.30 (net.cc, plugin/net.cc, graph/paths.cc); retrieved 2026-11-20. The comment
above each pattern names the versions that print the line in that form. Names are matched completely because a line may be truncated
anywhere.
"""

from __future__ import annotations

import re

#: ANSI color codes, which a script or terminal wrapper may add to NCCL's output.
COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
#: Prefix of each NCCL line: host:process:thread [device]. Lines of two processes may be interleaved.
PROCESS = re.compile(r":(\d+):\d+ \[-?\d+\] (?:\d+ )?NCCL (?:INFO|WARN)")
#: The rank label that the driver adds.
RANK = re.compile(r"^\[rank (\d+)\]")

#: "Using" up to 1.6, "Initializing" since 1.7.
PLUGIN = re.compile(r"NET/OFI (?:Initializing|Using) (aws-ofi-nccl (?:\d+(?:\.\d+)+(?:-?aws)?|[\w.-]+))")
#: Since 1.8.
LIBFABRIC = re.compile(r"NET/OFI Using Libfabric version (\d+\.\d+(?:\.\d+)?)")
#: "Provider" up to 1.13, "provider ..., fabric is ..." since 1.14; the number of NICs since 1.6.
PROVIDER = re.compile(r"NET/OFI Selected [Pp]rovider is ([a-z]+)\b(?:;\w+)?(?:, fabric is [\w-]+)?(?:\s*\(found (\d+) nics\))?")
#: "AWS " up to plugin 1.12; "Assigned" since NCCL 2.27, in addition to the other line.
NETWORK = re.compile(r"(?:Using network|Assigned NET plugin) (?:AWS )?(Libfabric|Socket)\b")
#: "AWS " up to 1.12; "(PCI)" and "/Shared" in newer NCCL.
CHANNEL = re.compile(r"via NET/(?:AWS )?(Libfabric|Socket)/\d+(?:\(\d+\))?(/GDRDMA)?")
FALLBACK = re.compile(
    r"NET/Socket ?: Using|NET/Plugin ?: ?(?:No plugin found|Could not find: ?\S*libnccl-net)|Using internal net(?:work)? plugin"
    r"|aws-ofi-nccl initialization failed|Failed to initialize NET plugin (?:AWS )?Libfabric"
)
#: Excludes "Disabled for GPU 0 / HCA 3 (distance ...)", which NCCL prints for every distant pair, also on a healthy host.
GDR_MISSING = re.compile(r"GDR disabled on GDR-supported instance type|GPU Direct RDMA Disabled for (?!GPU)")
SECURITY_GROUP = re.compile(r"This error indicates that the security group")
NCCL_VERSION = re.compile(r"NCCL version (\d+\.\d+\.\d+)")

#: Cheap filter that runs on every line before the patterns above.
INTERESTING = re.compile(r"NCCL|NET/|Libfabric|Using network|security group")
