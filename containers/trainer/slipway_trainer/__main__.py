"""`python -m slipway_trainer`: trains the run of SLIPWAY_JOB_FILE on this rank."""

import os
import sys
from pathlib import Path

import torch

from slipway_trainer.backend_choice import backend_name
from slipway_trainer.backends import build_backend
from slipway_trainer.batches import channel_folder
from slipway_trainer.checkpoint.process import SaverProcess
from slipway_trainer.exits import TrainerError, complain
from slipway_trainer.layout import resolve_layout
from slipway_trainer.numa import bind_near, pci_address_of
from slipway_trainer.settings import RunSettings, read_settings
from slipway_trainer.trainer import Trainer
from slipway_trainer.world import World


def run(words: list[str]) -> int:
    """The whole life of a rank; returns its exit code. Raises TrainerError for reasons that have a code of their own."""
    settings = read_settings(words)
    arguments = settings.arguments
    # Before anything of CUDA, of a network or of threads.
    saver = SaverProcess.start() if writes_beside(settings) else None
    bind_to_gpu()
    world = World(settings.collectives, arguments.collective_timeout_seconds, arguments.steady_timeout_seconds, saver)
    layout = resolve_layout(settings.parallel, world.ranks, settings.architecture, settings.training)
    weights = channel_folder(settings.weights, dict(os.environ)) if settings.weights else None
    trainer = Trainer(settings, world, build_backend(settings, layout, world.device, weights), os.environ)
    try:
        trainer.resume()
        code = trainer.train()
        if code == 0 and (arguments.export_weights or arguments.export_adapter):
            trainer.export(Path(os.environ["SM_MODEL_DIR"]), weights)
    except BaseException as error:
        # An error of the script is 1, as Python itself ends with it.
        trainer.fail(error.code if isinstance(error, TrainerError) else 1)
        raise
    trainer.close(code)
    world.close()
    return code


def writes_beside(settings: RunSettings) -> bool:
    """Whether this run's checkpoints are written by a process of their own: those of a state that stays where it is."""
    return bool(settings.checkpoints.uri) and backend_name(settings, torch.__version__) == "fsdp2"


def bind_to_gpu() -> None:
    """Before the first thread of a library: those that exist already stay where they are."""
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    if torch.cuda.is_available() and local_rank < torch.cuda.device_count():
        bind_near(pci_address_of(torch.cuda.get_device_properties(local_rank)), os.environ)


def leave(code: int) -> None:
    """Ends the process at once: after an error, threads of collectives would keep an ordinary exit waiting for ranks that are gone."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    try:
        leave(run(sys.argv[1:]))
    except TrainerError as error:
        leave(complain(error))
