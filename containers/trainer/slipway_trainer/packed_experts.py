"""Published tensors that contain a matrix or bias of all experts, as in GPT-OSS: (experts, inputs, outputs), with gate and up projection in
one tensor.

A row is the part of such a tensor for one expert.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import torch
from torch import Tensor

from slipway_trainer.published_names import Place

#: Name and content of a full tensor; with a third item, the index of the row that the content is.
Piece = tuple[str, Tensor] | tuple[str, Tensor, int]


def packed_shape(place: Place, shape: Sequence[int], experts: int) -> tuple[int, ...]:
    """The shape of the published tensor that contains a parameter of this shape."""
    if place.expert is None:
        return tuple(shape)
    *inputs, outputs = reversed(shape)
    return (experts, *inputs, outputs * (1 if place.half is None else 2))


def unpacked(row: Tensor, place: Place) -> Tensor:
    """Extracts the parameter from the row of its expert."""
    if place.half is not None:
        row = row[..., place.half :: 2] if place.alternates else row.chunk(2, dim=-1)[place.half]
    return row.t()


def _row(halves: Mapping[int | None, Tensor], alternates: bool) -> Tensor:
    if None in halves:
        return halves[None].t()
    gate, up = halves[0].t(), halves[1].t()
    return torch.stack((gate, up), dim=-1).flatten(-2) if alternates else torch.cat((gate, up), dim=-1)


def packed(parts: Iterable[tuple[Place, Tensor]]) -> Iterator[Piece]:
    """Yields full tensors immediately, and rows of experts when both halves are available."""
    held: dict[tuple[str, int], dict[int | None, Tensor]] = {}
    for place, tensor in parts:
        if place.expert is None:
            yield place.tensor, tensor
            continue
        halves = held.setdefault((place.tensor, place.expert), {})
        halves[place.half] = tensor
        if place.half is None or len(halves) == 2:
            yield place.tensor, _row(held.pop((place.tensor, place.expert)), place.alternates), place.expert
