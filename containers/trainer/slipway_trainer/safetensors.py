"""Reads and writes the safetensors format: a JSON header and raw bytes, which can be read without executing code.

Source: https://github.com/huggingface/safetensors, "Format" (2026-11-20).
"""

import json
import math
import mmap
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from slipway_trainer.exits import DataFailed

DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
}  # fmt: skip
NAMES = {dtype: name for name, dtype in DTYPES.items()}
LONGEST_HEADER = 100 << 20
#: The one file of a folder, and the list of files of a larger one, as transformers writes them.
WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"


class SafetensorsFile:
    """A memory-mapped file: of a tensor, only the parts that are used are read. Raises DataFailed for an invalid file."""

    def __init__(self, path: Path) -> None:
        try:
            with path.open("rb") as handle:
                self._map = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_COPY)
            (length,) = struct.unpack("<Q", self._map[:8])
            if length > min(LONGEST_HEADER, len(self._map) - 8):
                raise ValueError("its header is longer than the file")
            self._header = json.loads(self._map[8 : 8 + length])
            self._header.pop("__metadata__", None)
            self._start = 8 + length
            for name, entry in self._header.items():
                self._check(path, name, entry)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, struct.error) as error:
            raise DataFailed(f"{path}: must be a safetensors file ({error!r}); copy it again") from error

    def _check(self, path: Path, name: str, entry: dict[str, Any]) -> None:
        """Raises DataFailed for a tensor that this trainer cannot read, or that is not completely in the file."""
        dtype = DTYPES.get(entry["dtype"])
        if dtype is None:
            must = f"must have tensors of {', '.join(DTYPES)}, got {entry['dtype']} for {name}"
            raise DataFailed(f"{path}: {must}; use weights that are not quantised")
        (first, last), size = entry["data_offsets"], math.prod(entry["shape"]) * dtype.itemsize
        if last - first != size or not 0 <= first <= last <= len(self._map) - self._start:
            got = f"{len(self._map)} bytes, without all of {name}"
            raise DataFailed(f"{path}: must be as long as its header says, got {got}; copy it again")

    @property
    def names(self) -> list[str]:
        """Names of the tensors, in the order of the header."""
        return list(self._header)

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a tensor. Raises KeyError for an unknown name."""
        return tuple(self._header[name]["shape"])

    def tensor(self, name: str, row: int | None = None) -> Tensor:
        """A tensor, or one row of its first dimension, in the memory of the file: a change of its values does not reach the file."""
        entry = self._header[name]
        (first, last), shape = entry["data_offsets"], entry["shape"]
        if row is not None:
            size, shape = (last - first) // shape[0], shape[1:]
            first, last = first + row * size, first + (row + 1) * size
        dtype, place = DTYPES[entry["dtype"]], self._start + first
        count = (last - first) // dtype.itemsize
        if count == 0:
            return torch.empty(shape, dtype=dtype)
        # Headers of other writers may end anywhere.
        aligned = place % dtype.itemsize == 0
        data, offset = (self._map, place) if aligned else (bytearray(self._map[place : place + last - first]), 0)
        return torch.frombuffer(data, dtype=dtype, count=count, offset=offset).reshape(shape)


def open_folder(folder: Path) -> dict[str, SafetensorsFile]:
    """Tensor name -> file, for the weights of a folder. Raises DataFailed if there are none, or if it is not certain which files they are.

    An index says in which file each tensor is: other files beside them are of another format, or of an earlier save. Without an index,
    model.safetensors is the whole, as for transformers.
    """
    whole = folder / WHOLE
    if (folder / INDEX).is_file():
        return _indexed(folder, folder / INDEX)
    paths = [whole] if whole.is_file() else sorted(folder.glob("*.safetensors"))
    if not paths:
        raise DataFailed(f"{folder}: must contain *.safetensors files, got none; name the folder with the weights")
    found: dict[str, SafetensorsFile] = {}
    for path in paths:
        file = SafetensorsFile(path)
        twice = next((name for name in file.names if name in found), None)
        if twice is not None:
            raise DataFailed(f"{folder}: must contain each tensor once, got {twice} in {path.name} and before; remove the older files")
        found |= dict.fromkeys(file.names, file)
    return found


def _indexed(folder: Path, index: Path) -> dict[str, SafetensorsFile]:
    try:
        places = json.loads(index.read_text(encoding="utf-8-sig"))["weight_map"]
        names = sorted(set(places.values()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataFailed(f"{index}: must be JSON with a weight_map ({error!r}); copy it again") from error
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        got = f"no {', '.join(missing[:3])}" + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
        raise DataFailed(f"{folder}: must contain the files that {INDEX} names, got {got}; copy them again, or correct the index")
    if WHOLE not in names and (folder / WHOLE).is_file():
        must = f"must contain {WHOLE} or the files that {INDEX} names, got both"
        raise DataFailed(f"{folder}: {must}; remove what is not of this model")
    files = {name: SafetensorsFile(folder / name) for name in names}
    held = {name: set(file.names) for name, file in files.items()}
    absent = next((tensor for tensor, name in places.items() if tensor not in held[name]), None)
    if absent is not None:
        raise DataFailed(f"{folder}: must have {absent} in {places[absent]} as {INDEX} says, got none; copy the files again")
    return {tensor: files[name] for tensor, name in places.items()}


def write_file(
    path: Path,
    tensors: Iterable[tuple[str, Tensor] | tuple[str, Tensor, int]],
    sizes: dict[str, tuple[torch.dtype, tuple[int, ...]]],
) -> None:
    """Writes tensors in any order. `sizes`: dtype and shape of all tensors, because the header is written first. An item (name, tensor,
    index) is one row of a tensor's first dimension."""
    header, offset = {}, 0
    for name, (dtype, shape) in sizes.items():
        count = torch.Size(shape).numel() * torch.empty(0, dtype=dtype).element_size()
        header[name] = {"dtype": NAMES[dtype], "shape": list(shape), "data_offsets": [offset, offset + count]}
        offset += count
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as handle:
        handle.write(struct.pack("<Q", len(head)) + head)
        handle.truncate(8 + len(head) + offset)
        for name, tensor, *row in tensors:
            dtype, _shape = sizes[name]
            data = tensor.to(dtype).contiguous().cpu().reshape(-1).view(torch.uint8).numpy().tobytes()
            handle.seek(8 + len(head) + header[name]["data_offsets"][0] + sum(row) * len(data))
            handle.write(data)
    temporary.rename(path)
