"""Reads and writes the safetensors format: a JSON header and raw bytes, which can be read without executing code.

Source: https://github.com/huggingface/safetensors, "Format" (2026-11-20).
"""

import json
import mmap
import struct
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import Tensor

from slipway_trainer.exits import DataFailed

DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
}  # fmt: skip
NAMES = {dtype: name for name, dtype in DTYPES.items()}
LONGEST_HEADER = 100 << 20


class SafetensorsFile:
    """A memory-mapped file: tensors use memory only while they are read. Raises DataFailed for an invalid file."""

    def __init__(self, path: Path) -> None:
        try:
            with path.open("rb") as handle:
                self._map = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
            (length,) = struct.unpack("<Q", self._map[:8])
            if length > min(LONGEST_HEADER, len(self._map) - 8):
                raise ValueError("its header is longer than the file")
            self._header = json.loads(self._map[8 : 8 + length])
        except (OSError, ValueError, struct.error) as error:
            raise DataFailed(f"{path}: must be a safetensors file ({error}); copy it again") from error
        self._header.pop("__metadata__", None)
        self._start = 8 + length

    @property
    def names(self) -> list[str]:
        """Names of the tensors, in the order of the header."""
        return list(self._header)

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a tensor. Raises KeyError for an unknown name."""
        return tuple(self._header[name]["shape"])

    def tensor(self, name: str, row: int | None = None) -> Tensor:
        """A copy of a tensor, or of one row of its first dimension."""
        entry = self._header[name]
        (first, last), shape = entry["data_offsets"], entry["shape"]
        if row is not None:
            size, shape = (last - first) // shape[0], shape[1:]
            first, last = first + row * size, first + (row + 1) * size
        data = bytearray(self._map[self._start + first : self._start + last])
        dtype = DTYPES[entry["dtype"]]
        return (torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)).reshape(shape)


def open_folder(folder: Path) -> dict[str, SafetensorsFile]:
    """Tensor name -> file, for all `*.safetensors` of a folder. Raises DataFailed if there are none."""
    files = [SafetensorsFile(path) for path in sorted(folder.glob("*.safetensors"))]
    if not files:
        raise DataFailed(f"{folder}: must contain *.safetensors files, got none; name the folder with the weights")
    return {name: file for file in files for name in file.names}


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
