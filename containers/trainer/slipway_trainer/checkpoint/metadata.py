"""Reads DCP's `.metadata`, which is a pickle, with a restriction to the classes that DCP writes.

Otherwise anyone with write access to the checkpoint prefix could execute code on every trainer.
"""

import io
import pickle
from typing import Any

from torch.distributed.checkpoint.metadata import Metadata

from slipway_trainer.exits import CheckpointFailed

#: Module -> names. Dtypes and layouts are created with small functions of torch.
ALLOWED = {
    "torch.distributed.checkpoint.metadata": {
        "Metadata",
        "MetadataIndex",
        "TensorStorageMetadata",
        "TensorProperties",
        "ChunkStorageMetadata",
        "StorageMeta",
        "_MEM_FORMAT_ENCODING",
    },
    "torch.distributed.checkpoint.filesystem": {"_StorageInfo"},
    "torch": {
        "Size", "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
        "int64", "int32", "int16", "int8", "uint8", "bool", "strided", "device",
    },
    "torch.serialization": {"_get_layout"},
    "collections": {"OrderedDict"},
    # DCP's own writer stores the folder in which the checkpoint was written.
    "pathlib": {"PosixPath"},
}  # fmt: skip


class _AllowListed(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if name in ALLOWED.get(module, ()):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is not allowed in checkpoint metadata")


def read_metadata(data: bytes) -> Metadata:
    """The metadata of a checkpoint. Raises CheckpointFailed for corrupt data and for classes other than DCP's."""
    try:
        found = _AllowListed(io.BytesIO(data)).load()
    except Exception as error:  # A malicious or corrupt pickle may raise any exception.
        raise CheckpointFailed(f".metadata: could not be read ({error}); resume from another checkpoint") from error
    if not isinstance(found, Metadata):
        raise CheckpointFailed(f".metadata: must contain DCP's Metadata, got {type(found).__name__}; resume from another checkpoint")
    return found
