"""The device mesh of a layout."""

from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from slipway_trainer.layout import Layout


def build_mesh(layout: Layout, device_type: str) -> DeviceMesh:
    """A mesh of replicate x (shard x context) x tensor, tensor innermost: its ranks talk most and sit on one host.

    FSDP shards over shard and context together, so they are one dimension here; within it neighbours share a sequence.
    """
    sizes = (layout.replicate, layout.shard * layout.context, layout.tensor)
    return init_device_mesh(device_type, sizes, mesh_dim_names=("replicate", "shard", "tensor"))
