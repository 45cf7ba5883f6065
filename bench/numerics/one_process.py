"""Checks in one process: logits, gradients, import and export of weights."""

from collections.abc import Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from models import FAMILIES, TRAINED_SCALE, our_model, pair
from row import Figure, Row
from torch import Tensor

from slipway_trainer.sharding import fill_all, named_tensors
from slipway_trainer.weights import PublishedWeights

#: Sequence lengths of the logits: short, and beyond every length that rope scaling changes at.
LENGTHS = (32, 256, 2048)
LOGITS, LOSS, GRADIENTS = 1e-4, 1e-5, 1e-5
VOCABULARY = 257


def random_tokens(length: int) -> Tensor:
    return torch.randint(0, VOCABULARY, (1, length), generator=torch.Generator().manual_seed(3))


def forward(folder: Path) -> Iterator[Row]:
    """Logits of one sequence, by family and length."""
    for family, changes in FAMILIES.items():
        ours, theirs = pair(changes, folder / family, TRAINED_SCALE)
        for length in LENGTHS:
            tokens_BL = random_tokens(length)
            with torch.no_grad():
                off = (ours(tokens_BL) - theirs(tokens_BL).logits).abs().max().item()
            yield Row("Logits", f"{family}, {length} tokens", {"logits": Figure(off, LOGITS)})


def gradients(folder: Path) -> Iterator[Row]:
    """Loss and gradients of every parameter, by family. Gradients of parameters that transformers stacks are compared stacked."""
    for family, changes in FAMILIES.items():
        ours, theirs = pair(changes, folder / family)
        tokens_BL = random_tokens(257)
        losses = []
        for model, logits_BLV in ((ours, ours(tokens_BL[:, :-1])), (theirs, theirs(tokens_BL[:, :-1]).logits)):
            loss = F.cross_entropy(logits_BLV.flatten(0, 1), tokens_BL[:, 1:].flatten())
            model.zero_grad()
            loss.backward()
            losses.append(loss.item())
        off = gradient_difference(ours, theirs, folder / family)
        figures = {"loss": Figure(abs(losses[0] - losses[1]), LOSS), "gradients": Figure(off, GRADIENTS)}
        yield Row("Gradients", family, figures)


def gradient_difference(ours: torch.nn.Module, theirs: torch.nn.Module, folder: Path) -> float:
    """Largest difference between two gradients of one weight. Their gradients go through their own export, which names weights as ours."""
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.copy_(parameter.grad)
    theirs.save_pretrained(folder / "gradients")
    sizes = {name: tensor.shape for name, tensor in named_tensors(ours)}
    found = PublishedWeights(folder / "gradients", sizes, ours.shape, 64)
    return max((parameter.grad - found.whole(name)).abs().max().item() for name, parameter in ours.named_parameters())


def weights(folder: Path) -> Iterator[Row]:
    """Weights that transformers wrote, read by the trainer: what is kept in files of bfloat16 must arrive bit for bit."""
    for family, changes in FAMILIES.items():
        ours, theirs = pair(changes, folder / family)
        theirs.to(torch.bfloat16).save_pretrained(folder / family / "theirs", max_shard_size="20KB")
        again = our_model(changes)
        with torch.no_grad():
            for parameter in again.parameters():
                parameter.zero_()
        shapes = {name: tensor.shape for name, tensor in named_tensors(again)}
        published = PublishedWeights(folder / family / "theirs", shapes, again.shape, 64)
        fill_all(again, lambda name, _shape, published=published: published.whole(name))
        held = dict(ours.named_parameters())
        off = max((parameter - held[name].bfloat16().float()).abs().max().item() for name, parameter in again.named_parameters())
        yield Row("Import of bfloat16 shards written by transformers", family, {"weights": Figure(off, 0.0)})
