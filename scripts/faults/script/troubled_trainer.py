"""The built-in trainer in which one thing goes wrong once, on the host TROUBLED at step 11, as TROUBLE says.

`gpu`: the words of CUDA for a broken GPU. `network`: the step stands still, and every rank's other threads go on. `frozen`: all threads of
the rank stand still.
"""

import os
import signal
import sys
import time
from typing import Any

from slipway_trainer import __main__ as main
from slipway_trainer.trainer import Trainer

real_gradients = Trainer._accumulate
HERE = os.environ["SM_CURRENT_HOST"] == os.environ["TROUBLED"] and "SLIPWAY_RESTART" not in os.environ


def troubled_gradients(self: Trainer) -> Any:
    if HERE and self.step == 10:
        if os.environ["TROUBLE"] == "gpu":
            raise RuntimeError("CUDA error: uncorrectable ECC error encountered")
        if os.environ["TROUBLE"] == "frozen":
            time.sleep(1)  # The copy in memory of step 10 becomes complete.
            os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(3600)
    return real_gradients(self)


Trainer._accumulate = troubled_gradients
main.leave(main.run(sys.argv[1:]))
