"""Which hosts have joined, as Ray itself says: `python -m slipway_driver.ray_cluster.nodes HOST...`.

Prints one line of JSON, {host: address}, whenever it changes, and ends once all hosts are there.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any, Dict, List, Sequence

from slipway_driver.rank import die_with_parent
from slipway_driver.ray_cluster.launch import HOST_RESOURCE

POLL_SECONDS = 0.5


def joined(nodes: Sequence[Dict[str, Any]]) -> Dict[str, str]:
    """Addresses of the live nodes of `ray.nodes()`, by the host that each names among its resources."""
    return {
        resource[len(HOST_RESOURCE) :]: str(node["NodeManagerAddress"])
        for node in nodes
        if node.get("Alive")
        for resource in node.get("Resources", {})
        if resource.startswith(HOST_RESOURCE)
    }


def _connect() -> Any:
    """The module ray, connected as soon as the head answers."""
    import ray

    while True:
        try:
            ray.init(log_to_driver=False, logging_level="ERROR")
            return ray
        except (ConnectionError, RuntimeError, ValueError):
            time.sleep(POLL_SECONDS)


def main(hosts: List[str]) -> int:
    """Prints the hosts that have joined, a line of JSON at each change, until all of `hosts` have; returns the exit code."""
    die_with_parent()
    ray, told = _connect(), {}
    while not set(hosts) <= set(told):
        found = joined(ray.nodes())
        if found != told:
            told = found
            print(json.dumps(told), flush=True)
        time.sleep(POLL_SECONDS)
    ray.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
