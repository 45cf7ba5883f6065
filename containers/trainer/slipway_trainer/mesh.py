"""The device mesh of a layout."""

from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from slipway_trainer.layout import Layout


def build_mesh(layout: Layout, device_type: str) -> DeviceMesh:
    """A mesh of replicate x (shard x context) x tensor. The tensor dimension is innermost: its ranks communicate most and are on one host.

    FSDP shards over shard and context together, so these are one dimension; neighboring ranks in it share a sequence.
    """
    sizes = (layout.replicate, layout.shard * layout.context, layout.tensor)
    return init_device_mesh(device_type, sizes, mesh_dim_names=("replicate", "shard", "tensor"))
