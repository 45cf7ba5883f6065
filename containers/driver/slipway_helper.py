"""What a training script may tell Slipway, and ask it: one file without dependencies, which every run can import.

    import slipway_helper as slipway
    model.load(slipway.resume_from())           # None in the first attempt
    slipway.step(1200, loss=2.31)               # progress, loss and hang detection
    slipway.checkpoint(1200, folder)
    if slipway.should_stop(): save(); sys.exit(slipway.HAND_OVER)
    copies = slipway.keep_in_memory(model, optimizer)
    start = copies.load()                       # None unless the ranks start again in place
    copies.step(1200)

    Trainer(..., callbacks=[slipway.transformers_callback()])
    lightning.Trainer(..., callbacks=[slipway.lightning_callback()])

Outside Slipway, everything works and the lines do no harm. The lines are described in docs/reference/runtime.md.
"""

from __future__ import annotations

import json
import math
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Optional

#: Exit code with which the next attempt goes on: a checkpoint was saved, and the work is not done.
HAND_OVER = 76
#: The callbacks ask every so many steps whether the ranks should stop, because all ranks must stop at the same step.
STOP_EVERY = 10
_terminated = threading.Event()


def step(number: int, loss: Any = None, **values: Any) -> None:
    """Reports a step, from the first rank only. `values`: further numbers, such as tokensPerSecondPerGpu."""
    _emit("step", step=int(number), **{name: _number(value) for name, value in dict(values, loss=loss).items()})


def checkpoint(number: int, uri: str = "", seconds: Optional[float] = None) -> None:
    """Reports a checkpoint that has been written completely."""
    _emit("checkpoint", step=int(number), uri=uri or None, seconds=_number(seconds))


def resume_from(files: str = "") -> Optional[str]:
    """The newest complete checkpoint, None if there is none. `files`: pattern of checkpoints that are files in that folder, as `*.ckpt`."""
    folder = os.environ.get("SLIPWAY_RESUME_FROM") or None
    if folder is None or not files:
        return folder
    found = sorted(Path(folder).glob(files), key=_last_number)
    return str(found[-1]) if found else None


def should_stop() -> bool:
    """Whether to save and exit with HAND_OVER: SIGTERM has come, the time is over, or the run goes on elsewhere.

    Ranks may answer differently for a moment: let them agree, for example with an all-reduce, before they stop.
    """
    deadline, file = os.environ.get("SLIPWAY_DEADLINE"), os.environ.get("SLIPWAY_HAND_OVER_FILE")
    _listen()
    return _terminated.is_set() or bool(deadline and time.time() >= float(deadline)) or bool(file and os.path.exists(file))


def keep_in_memory(model: Any, optimizer: Any, replicas: int = 1, **more: Any) -> Any:
    """Keeps copies of the state in memory, on this and on another host, from which a restart in place continues (`checkpoints.memory`).

    All ranks call it once, when model and optimizer are as they are trained (FSDP2, DDP or neither), and call the methods of the result:
    `load(newer_than=0)` returns the step whose state was loaded, None without a copy; `step(number)` follows each update; `wait()` waits
    for the last copy, and so does `close()`, which precedes the end of the process group, for a limited time. `more`: further objects with
    `state_dict` and `load_state_dict`, such as a schedule or a loader. `replicas`: how many ranks have the same state, such as all of them
    under DDP: their copies are then not sent to another host.
    """
    if not os.environ.get("SLIPWAY_MEMORY"):
        return SimpleNamespace(**dict.fromkeys(("load", "step", "wait", "close"), lambda *_, **_named: None))
    from slipway_trainer.own_copies import OwnCopies

    return OwnCopies(model, optimizer, replicas, more)


def transformers_callback() -> Any:
    """A `TrainerCallback`: reports steps, losses and checkpoints, and saves and exits when the run must stop."""
    from transformers import TrainerCallback

    class SlipwayCallback(TrainerCallback):  # type: ignore[misc]
        stopping = False

        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            _listen()

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
            step(state.global_step)
            if state.global_step % STOP_EVERY == 0 and _any_rank(should_stop(), args.device):
                self.stopping = control.should_save = control.should_training_stop = True
            return control

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if logs and "loss" in logs:
                step(state.global_step, loss=logs["loss"])

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            checkpoint(state.global_step, os.path.join(args.output_dir, "checkpoint-%d" % state.global_step))

        def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if self.stopping and state.global_step < state.max_steps:
                sys.exit(HAND_OVER)

    return SlipwayCallback()


def lightning_callback() -> Any:
    """A Lightning callback: reports steps and the loss that `training_step` returns, and saves and exits when the run must stop."""
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback  # type: ignore[import-not-found, no-redef, unused-ignore]

    class SlipwayCallback(Callback):  # type: ignore[misc]
        last = 0

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            _listen()
            self.last = trainer.global_step

        def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
            number = trainer.global_step
            if number == self.last:  # gradients are still accumulated
                return
            self.last = number
            step(number, loss=outputs.get("loss") if isinstance(outputs, dict) else outputs)
            if number % STOP_EVERY == 0 and trainer.strategy.reduce_boolean_decision(should_stop(), all=False):
                self._leave(trainer, number)

        def _leave(self, trainer: Any, number: int) -> None:
            keeper = trainer.checkpoint_callback
            if keeper is None or not keeper.dirpath:
                return
            path = os.path.join(keeper.dirpath, "epoch=%d-step=%d.ckpt" % (trainer.current_epoch, number))
            trainer.save_checkpoint(path)
            checkpoint(number, path)
            sys.exit(HAND_OVER)

    return SlipwayCallback()


def _last_number(path: Path) -> int:
    """The step in a name such as `epoch=3-step=70`; Lightning adds `-v1` where a file of that name exists."""
    return int((re.findall("[0-9]+", re.sub("-v[0-9]+$", "", path.stem)) or ["-1"])[-1])


def _emit(event: str, **fields: Any) -> None:
    if os.environ.get("RANK", "0") != "0":
        return
    text = json.dumps(dict({"event": event}, **{name: value for name, value in fields.items() if value is not None}), separators=(",", ":"))
    # One write, so that other threads do not come between. The return ends the line that a progress bar may have left open.
    sys.stdout.write("\rslipway %s\n" % text)
    sys.stdout.flush()


def _number(value: Any) -> Optional[float]:
    """JSON has no NaN and no infinity. Tensors become numbers."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _listen() -> None:
    """Remembers SIGTERM from now on. A handler that is there already is called as well."""
    before = signal.getsignal(signal.SIGTERM)
    if before is _on_sigterm or getattr(before, "slipway", False) or threading.current_thread() is not threading.main_thread():
        return

    def handler(number: int, frame: Any) -> None:
        _on_sigterm(number, frame)
        if callable(before):
            before(number, frame)

    handler.slipway = True  # type: ignore[attr-defined]
    signal.signal(signal.SIGTERM, handler if callable(before) else _on_sigterm)


def _on_sigterm(_number: int, _frame: Any) -> None:
    _terminated.set()


def _any_rank(stop: bool, device: Any) -> bool:
    """Whether any rank should stop. Every rank must ask at the same step."""
    import torch

    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return stop
    flag = torch.tensor([float(stop)], device=device)
    torch.distributed.all_reduce(flag, op=torch.distributed.ReduceOp.MAX)
    return bool(flag.item())
