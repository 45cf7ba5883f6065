"""What NCCL and aws-ofi-nccl print about the network, by version.

Sources: aws-ofi-nccl tags v1.4 to v1.21.1 and NCCL 2.12 to 2.30 (net.cc, plugin/net.cc); retrieved 2026-11-20. The version range
beside each pattern is the range of plugin versions that print it so.
"""

from __future__ import annotations

import re

#: "Using" up to 1.6, "Initializing" since 1.7.
PLUGIN = re.compile(r"NET/OFI (?:Initializing|Using) (aws-ofi-nccl \S+)")
#: Since 1.8.
LIBFABRIC = re.compile(r"NET/OFI Using Libfabric version (\d+\.\d+(?:\.\d+)?)")
#: "Provider" up to 1.13, "provider ..., fabric is ..." since 1.14; the count since 1.6.
PROVIDER = re.compile(r"NET/OFI Selected [Pp]rovider is ([\w;-]+)(?:, fabric is [\w-]+)?(?: \(found (\d+) nics\))?")
NETWORK = re.compile(r"Using network (.+?)\s*$")
#: "AWS " up to 1.12; "(PCI)" and "/Shared" on newer NCCL.
GDR_CHANNEL = re.compile(r"via NET/(?:AWS )?Libfabric/\d+(?:\(\d+\))?/GDRDMA")
NET_CHANNEL = re.compile(r"\[(?:send|receive)\] via NET/")
LIBFABRIC_CHANNEL = re.compile(r"via NET/(?:AWS )?Libfabric/")
SOCKET = re.compile(
    r"NET/Socket : Using|via NET/Socket/|NET/Plugin: (?:No plugin found|Could not find: ?.*libnccl-net)"
    r"|Using internal net(?:work)? plugin|aws-ofi-nccl initialization failed"
)
GDR_MISSING = re.compile(r"GDR disabled on GDR-supported instance type|GPU Direct RDMA Disabled for")
SECURITY_GROUP = re.compile(r"This error indicates that the security group")
NCCL_VERSION = re.compile(r"NCCL version (\d+\.\d+\.\d+)")

#: Cheap test before the expressions above run on every line of a rank.
INTERESTING = re.compile(r"NCCL|NET/|Libfabric|security group")
