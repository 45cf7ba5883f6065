"""A decoder-only transformer with rotary positions, grouped-query attention, gated or plain MLPs, and RMS norms.

Shape suffixes of tensors: B sequences of a micro-batch, L positions, D hidden size, H query heads, K key/value heads, E size of one head, F
inner size of the MLP, V vocabulary.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn

from slipway_trainer.architecture import Architecture
from slipway_trainer.attention import Attention, LatentAttention
from slipway_trainer.context_parallel import ContextParallel
from slipway_trainer.expert_parallel import ExpertParallel
from slipway_trainer.feed_forward import ExpertMixture, FeedForward
from slipway_trainer.further_tokens import Further, PredictionModule
from slipway_trainer.masks import Masks, Places
from slipway_trainer.norms import norm_of
from slipway_trainer.recompute import AroundLayers, layers_recomputed
from slipway_trainer.rope import rope_tables, temperatures


class Block(nn.Module):
    """One layer: attention and MLP with residual connections, and norms before them, after them or both."""

    def __init__(self, shape: Architecture, layer: int, context: ContextParallel | None, experts: ExpertParallel | None) -> None:
        super().__init__()
        before, after = shape.norm_placement != "post", shape.norm_placement != "pre"
        self.attention_norm = norm_of(shape, shape.hidden_size) if before else nn.Identity()
        self.attention = Attention(shape, context, layer) if shape.latent is None else LatentAttention(shape, context)
        self.attention_post_norm = norm_of(shape, shape.hidden_size) if after else nn.Identity()
        self.mlp_norm = norm_of(shape, shape.hidden_size) if before else nn.Identity()
        dense = shape.hidden_size, shape.ffn_hidden_size, shape.gated_mlp, shape.family.activation
        self.mlp = ExpertMixture(shape, experts) if shape.has_experts(layer) else FeedForward(*dense)
        self.mlp_post_norm = norm_of(shape, shape.hidden_size) if after else nn.Identity()
        self.is_local, self.is_rotated = shape.has_window(layer), layer not in shape.unrotated_layers

    def forward(self, x_BLD: Tensor, *tables: Tensor | None) -> Tensor:
        cos_LE, sin_LE, mask_LL = tables[3:6] if self.is_local else tables[:3]
        heat = {}
        if not self.is_rotated:
            cos_LE = sin_LE = None
            heat = {} if tables[6] is None else {"temperature_L1": tables[6]}
        mixed_BLD = self.attention(self.attention_norm(x_BLD), cos_LE, sin_LE, mask_LL=mask_LL, **heat)
        x_BLD = x_BLD + self.attention_post_norm(mixed_BLD)
        counted = tables[7:] if isinstance(self.mlp, ExpertMixture) else ()
        return x_BLD + self.mlp_post_norm(self.mlp(self.mlp_norm(x_BLD), *counted))


class Transformer(nn.Module):
    """Maps token ids to logits, or with `loss` to a loss, so that the logits need not be materialized at once."""

    def __init__(self, shape: Architecture, context: ContextParallel | None = None, experts: ExpertParallel | None = None) -> None:
        super().__init__()
        self.shape, self.context, self._masks = shape, context, Masks(shape)
        #: Number of layers that are recomputed together in the backward pass; 1 = each layer separately.
        self.recompute_layers = 1
        #: Context manager for the saved activations of a layer; None = they stay on the device.
        self.around: AroundLayers | None = None
        self.embed = nn.Embedding(shape.vocabulary_size, shape.hidden_size)
        self.blocks = nn.ModuleDict({str(index): Block(shape, index, context, experts) for index in range(shape.layers)})
        self.norm = norm_of(shape, shape.hidden_size)
        made = [PredictionModule(shape, Block(shape, shape.layers - 1, context, experts)) for _ in range(shape.mtp_layers)]
        self.mtp = nn.ModuleDict({str(index): module for index, module in enumerate(made)})
        ends, cap = (shape.hidden_size, shape.vocabulary_size), shape.final_softcap
        self.head = nn.Linear(*ends, bias=False) if cap is None else CappedHead(*ends, cap)
        self.tie()

    def tie(self) -> None:
        """Lets the head share the matrix of the embedding where the model does. `to_empty` replaces both."""
        if self.shape.tied_embeddings:
            self.head.weight = self.embed.weight

    def all_blocks(self) -> list[Block]:
        """The blocks of the model and of the multi-token prediction modules."""
        return [*self.blocks.values(), *(module.block for module in self.mtp.values())]

    def blocks_recomputed_alone(self) -> list[Block]:
        """The blocks that are not in a group of recomputed layers."""
        return self.all_blocks() if self.recompute_layers == 1 else [module.block for module in self.mtp.values()]

    def forward(
        self,
        tokens_BL: Tensor,
        loss: Callable[[nn.Module, Tensor], Tensor] | None = None,
        documents_BL: Tensor | None = None,
        further: Sequence[Further] = (),
        padding_BL: Tensor | None = None,
    ) -> Tensor:
        """Returns logits (B, L, V), or the result of `loss(head, hidden states)`.

        With context parallelism, tokens are this rank's part of the sequence and documents those of the whole sequence. `documents_BL`:
        document index of each token, increasing along the sequence. Attention does not cross documents, and positions restart in each; None
        = one document. `further`: the input of each multi-token prediction module, whose loss is added. `padding_BL`: positions that the
        balance of experts does not count.
        """
        x_BLD = self._embedded(tokens_BL)
        tables = (*self._tables(tokens_BL, documents_BL, x_BLD.dtype), padding_BL)
        x_BLD = self.norm(self._through_layers(x_BLD, tables))
        if loss is None:
            return self.head(x_BLD)
        main = loss(self.head, x_BLD)
        return main + self._further_loss(further, x_BLD, *tables) if further else main

    def _through_layers(self, x_BLD: Tensor, tables: tuple[Tensor | None, ...]) -> Tensor:
        blocks = list(self.blocks.values())
        if self.recompute_layers > 1:
            for first in range(0, len(blocks), self.recompute_layers):
                group = blocks[first : first + self.recompute_layers]
                with self._around(self.blocks):
                    x_BLD = layers_recomputed(group, x_BLD, *tables)
            return x_BLD
        for block in blocks:
            with self._around(block):
                x_BLD = block(x_BLD, *tables)
        return x_BLD

    def _around(self, layers: nn.Module) -> AbstractContextManager[object]:
        return self.around(layers) if self.around else nullcontext()

    def _embedded(self, tokens_BL: Tensor) -> Tensor:
        x_BLD = self.embed(tokens_BL)
        if self.shape.embedding_scale == 1.0:
            return x_BLD
        # Rounded to the dtype of the hidden states, as in Gemma's models; filled on the device to avoid a synchronizing copy.
        return x_BLD * x_BLD.new_full((), self.shape.embedding_scale)

    def _further_loss(self, further: Sequence[Further], x_BLD: Tensor, *tables: Tensor | None) -> Tensor:
        """The sum of the losses of the multi-token prediction modules."""
        total = x_BLD.new_zeros((), dtype=torch.float32)
        for module, (tokens_BL, loss, outside_BL) in zip(self.mtp.values(), further, strict=True):
            embedded_BLD = self._embedded(tokens_BL)
            with self._around(module):
                x_BLD = module(x_BLD, embedded_BLD, *tables[:-1], outside_BL)
            total = total + loss(self.head, x_BLD)
        return total

    def _tables(self, tokens_BS: Tensor, documents_BL: Tensor | None, dtype: torch.dtype) -> tuple[Tensor | None, ...]:
        """Cosine, sine and mask of layers without a window, the same of layers with one, and the temperature of layers without positions.
        S: positions of this rank, L: positions of the sequence."""
        shape, device = self.shape, tokens_BS.device
        length = tokens_BS.size(1) * (1 if self.context is None else self.context.ranks)
        queries_S = None if self.context is None else self.context.positions(length, device)
        positions_L = torch.arange(length, device=device) if documents_BL is None else _positions_within(documents_BL)
        positions_S = positions_L if queries_S is None else positions_L[..., queries_S]
        rotary = rope_tables(positions_S, shape.rotary_size, shape.rope_theta, shape.rope_scaling)
        everywhere, in_window = self._masks.of(dtype, Places(length, device, positions_L, queries_S, documents_BL))
        heat = shape.family.temperature
        heat_S1 = None if heat is None else temperatures(positions_S, heat).unsqueeze(-1)
        theta = shape.family.local_rope_theta
        local = rotary if shape.window is None or theta is None else rope_tables(positions_S, shape.rotary_size, theta)
        return *rotary, everywhere, *local, in_window, heat_S1


def _positions_within(documents_BL: Tensor) -> Tensor:
    """(B, 1, L): positions that start at 0 in each document."""
    here_L = torch.arange(documents_BL.size(1), device=documents_BL.device)
    begins_BL = documents_BL.diff(dim=1, prepend=documents_BL[:, :1] - 1) != 0
    first_BL = torch.where(begins_BL, here_L, 0).cummax(dim=1).values
    return (here_L - first_BL)[:, None]


class CappedHead(nn.Linear):
    """A head with soft-capped logits, cap * tanh(logit / cap)."""

    def __init__(self, hidden_size: int, vocabulary_size: int, cap: float) -> None:
        super().__init__(hidden_size, vocabulary_size, bias=False)
        self.cap = cap

    def forward(self, x_BLD: Tensor) -> Tensor:
        return torch.tanh(super().forward(x_BLD) / self.cap) * self.cap
