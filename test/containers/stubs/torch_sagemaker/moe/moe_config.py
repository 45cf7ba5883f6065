"""Configuration of the mixture of experts; defaults of the reference page."""

from dataclasses import dataclass


@dataclass
class MoEConfig:
    smp_moe: bool = True
    random_seed: int = 12345
    moe_load_balancing: str = "sinkhorn"
    global_token_shuffle: bool = False
    moe_all_to_all_dispatcher: bool = True
    moe_aux_loss_coeff: float = 0.001
    moe_z_loss_coeff: float = 0.001
