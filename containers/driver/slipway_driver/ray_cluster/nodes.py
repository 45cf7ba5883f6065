"""Prints which hosts have joined the Ray cluster: `python -m slipway_driver.ray_cluster.nodes HOST...`.

Prints one line of JSON, {host: address}, at every change, and exits once all hosts have joined.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from typing import Any, Dict, List, Sequence

from slipway_driver.rank import die_with_parent
from slipway_driver.ray_cluster.launch import HOST_RESOURCE

POLL_SECONDS = 0.5


def joined(nodes: Sequence[Dict[str, Any]]) -> Dict[str, str]:
    """Addresses of the live nodes in `ray.nodes()`, by the host name in their custom resource."""
    return {
        resource[len(HOST_RESOURCE) :]: str(node["NodeManagerAddress"])
        for node in nodes
        if node.get("Alive")
        for resource in node.get("Resources", {})
        if resource.startswith(HOST_RESOURCE)
    }


def main(hosts: List[str]) -> int:
    """Prints the joined hosts as a line of JSON at each change, until all of `hosts` have joined. Returns the exit code."""
    die_with_parent()
    import ray

    printed: Dict[str, str] = {}
    while not ray.is_initialized():
        with contextlib.suppress(ConnectionError, RuntimeError, ValueError):
            ray.init(log_to_driver=False, logging_level="ERROR")
            break
        time.sleep(POLL_SECONDS)
    while not set(hosts) <= set(printed):
        found = joined(ray.nodes())
        if found != printed:
            printed = found
            print(json.dumps(printed), flush=True)
        time.sleep(POLL_SECONDS)
    ray.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
