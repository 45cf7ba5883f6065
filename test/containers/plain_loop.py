"""The reference that every layout and backend is held to: one process, one model, torch's own parts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rank_world import trainer_job


def plain_losses(shards: Path, steps: int, **model_changes: Any) -> list[float]:
    """The reference: the trainer's own model and first values, with no sharding and no backend."""
    job = trainer_job(model=model_changes, training={"steps": steps})
    model = first_model(job)
    return plain_steps(model, model, shards, job)


def plain_steps(model: Any, logits_of: Callable[[Any], Any], shards: Path, job: dict[str, Any]) -> list[float]:
    """Losses of a job's steps. `logits_of`: of tokens."""
    return [loss for loss, _norm in plain_history(model, logits_of, shards, job)]


def plain_history(model: Any, logits_of: Callable[[Any], Any], shards: Path, job: dict[str, Any]) -> list[tuple[float, float]]:
    """Loss and gradient norm of a job's steps with torch's own AdamW, clipping and cross entropy over whole batches."""
    import torch.nn.functional as F

    return history_of(model, lambda tokens, targets: F.cross_entropy(logits_of(tokens).flatten(0, 1), targets.flatten()), shards, job)


def history_of(model: Any, loss_of: Callable[[Any, Any], Any], shards: Path, job: dict[str, Any]) -> list[tuple[float, float]]:
    """The same with a loss of tokens and targets, both (B, L)."""
    import torch

    from slipway_trainer.batches import Batches
    from slipway_trainer.optimizer import learning_rate
    from slipway_trainer.settings import resolve_settings

    settings = resolve_settings(job, job["arguments"], {})
    steps = settings.training.steps
    # Biases of all experts may stand in one tensor.
    is_matrix = {name: parameter.dim() > 1 and not name.endswith("_bias") for name, parameter in model.named_parameters()}
    matrices = [parameter for name, parameter in model.named_parameters() if is_matrix[name]]
    others = [parameter for name, parameter in model.named_parameters() if not is_matrix[name]]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.95), eps=1e-8)
    batches = Batches(shards, settings.training, settings.architecture.vocabulary_size, 0, 1)
    found = []
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, steps, settings.arguments.learning_rate, 1, "cosine", 0.1, 0.2)
        rows = [batches.micro_batch(step, micro, torch.device("cpu")) for micro in range(batches.micro_steps)]
        tokens, targets = (torch.cat(parts) for parts in zip(*(row[:2] for row in rows), strict=True))
        loss = loss_of(tokens, targets)
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        found.append((float(loss.detach()), float(norm)))
    return found


def first_model(job: dict[str, Any]) -> Any:
    """The model that a job without weights starts from."""
    import torch

    from slipway_trainer.initialise import values_of
    from slipway_trainer.model import Transformer
    from slipway_trainer.settings import resolve_settings
    from slipway_trainer.sharding import fill_all

    settings = resolve_settings(job, job["arguments"], {})
    model = Transformer(settings.architecture)
    fill_all(model, values_of(settings.architecture.layers, settings.training.seed, torch.device("cpu")))
    return model


def publish(model: Any, folder: Path) -> None:
    """A model as safetensors with its config.json, in float32."""
    from slipway_trainer.published_config import write_config
    from slipway_trainer.settings import resolve_settings
    from slipway_trainer.sharding import named_tensors
    from slipway_trainer.weights import export_weights

    training = resolve_settings(trainer_job(), [], {}).training
    shapes = {name: value.shape for name, value in named_tensors(model)}
    export_weights(named_tensors(model), shapes, folder, training, rank=0, architecture=model.shape)
    write_config(folder, model.shape, 64)


def publish_first_values(folder: Path, job: dict[str, Any]) -> None:
    """What a job without weights starts from, as weights."""
    publish(first_model(job), folder)
