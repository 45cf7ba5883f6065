"""Settings of one host for a Ray start, from its environment and job file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Tuple

from slipway_driver.job import read_job
from slipway_driver.log import log
from slipway_driver.ray_cluster import node
from slipway_driver.ray_cluster.launch import CONTROL_PORT_OFFSET, HEAD_OPTIONS, RAY_PORT_OFFSET, option_name

#: Time for the hosts of a job to join: they do not start at the same time. SageMaker's own toolkit waits equally long for DNS names.
JOIN_SECONDS = 900.0


@dataclass(frozen=True)
class RaySettings:
    """`hosts`: the training hosts in rank order; the first one runs Ray's head node."""

    host: str
    hosts: Tuple[str, ...]
    master: str
    port: int
    #: Address of this host; "" if it is unknown, so that Ray determines it.
    address: str
    bind_to: str
    secret: str
    join_seconds: float
    parameters: Mapping[str, Any]
    cpus: int
    gpus: int

    @property
    def control_port(self) -> int:
        """The port on which the first host communicates with the others, in addition to Ray's ports."""
        return self.port + CONTROL_PORT_OFFSET

    def words(self, head: bool) -> List[str]:
        """The `ray start` command of this host."""
        ray_port = self.port + RAY_PORT_OFFSET
        where = ["--head", "--port=%d" % ray_port] if head else ["--address=%s:%d" % (self.master, ray_port)]
        given = {name: value for name, value in self.parameters.items() if head or option_name(name) not in HEAD_OPTIONS}
        return node.start_words(where, self.host, self._resources(head), given)

    def _resources(self, head: bool) -> Dict[str, Any]:
        nodes_here = len(self.hosts) if self.bind_to else 1
        store = node.object_store_bytes(node.memory_bytes(), node.free_shared_memory(), nodes_here)
        if store is None:
            log("ray: /dev/shm is too small for an object store; Ray uses the disk, which is slower")
        return {
            "node-ip-address": self.address or None,
            "num-cpus": self.cpus,
            "num-gpus": self.gpus,
            "object-store-memory": store,
            "include-dashboard": False if head else None,
            # The hosts of the sandbox share the ports of one machine.
            "dashboard-agent-listen-port": 0 if self.bind_to else None,
        }


def settings_of(environ: Mapping[str, str], layout: Mapping[str, Any]) -> RaySettings:
    """The settings of this host. `layout`: the hosts, and the number of CPUs and GPUs that Ray may use on each host."""
    job = read_job(Path(environ["SLIPWAY_JOB_FILE"]))
    return RaySettings(
        host=environ["SM_CURRENT_HOST"],
        hosts=tuple(layout["hosts"]),
        master=environ["MASTER_ADDR"],
        port=int(environ["MASTER_PORT"]),
        address=environ.get("SLIPWAY_HOST_ADDRESS", ""),
        bind_to=environ.get("SLIPWAY_BIND_ADDRESS", ""),
        secret=job.restart_secret,
        join_seconds=float(environ.get("SLIPWAY_RAY_JOIN_SECONDS") or JOIN_SECONDS),
        parameters=job.parameters,
        cpus=int(layout["cpus"]),
        gpus=int(layout["gpus"]),
    )
