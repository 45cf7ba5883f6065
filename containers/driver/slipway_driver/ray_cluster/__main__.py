"""One host's part of a Ray start: `python -m slipway_driver.ray_cluster STATE_FOLDER LAYOUT SCRIPT WORDS...`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import List

from slipway_driver.exit_codes import TRY_AGAIN
from slipway_driver.log import log
from slipway_driver.peer_channel import PeerLost
from slipway_driver.rank import die_with_parent
from slipway_driver.ray_cluster.head import Head
from slipway_driver.ray_cluster.node import RaySettings
from slipway_driver.ray_cluster.worker import Worker


def main(arguments: List[str]) -> int:
    """Runs the head on the first host or a worker on another host. Returns the exit code."""
    die_with_parent()
    state, settings = Path(arguments[0]), RaySettings(os.environ, json.loads(arguments[1]))
    if settings.host == settings.hosts[0]:
        return Head(settings, state, arguments[2:], os.environ).run()
    try:
        return Worker(settings, state, os.environ).run()
    except PeerLost as error:
        log("ray: no connection to the first host: %s" % error)
        return TRY_AGAIN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
