"""Starts ranks quickly: imports PyTorch and the trainer once and forks for each rank. Reads one JSON order per line, answers with one.

The ranks are ordinary processes that run the trainer's own entry point; only the seconds of importing are saved.
"""

import json
import os
import sys
import traceback


def child(order: dict, rank: int) -> None:
    """Becomes one rank; never returns."""
    for descriptor, name in ((1, "out"), (2, "err")):
        opened = os.open(f"{order['root']}/{rank}.{name}", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(opened, descriptor)
    os.environ.update(order["environ"] | {"RANK": str(rank), "LOCAL_RANK": str(rank)})
    from slipway_trainer.__main__ import leave, run
    from slipway_trainer.exits import TrainerError, complain

    try:
        leave(run(order["arguments"]))
    except TrainerError as error:
        leave(complain(error))
    except BaseException:
        traceback.print_exc()
        leave(1)


def main() -> None:
    import torch
    import torch.distributed.checkpoint
    import torch.distributed.fsdp

    import slipway_trainer.__main__  # noqa: F401

    # Threads that exist before a fork are lost in the child: nothing may compute here.
    torch.set_num_threads(1)
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        pids = []
        for rank in range(order["ranks"]):
            pid = os.fork()
            if pid == 0:
                child(order, rank)
            pids.append(pid)
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
        print(json.dumps(codes), flush=True)


if __name__ == "__main__":
    main()
