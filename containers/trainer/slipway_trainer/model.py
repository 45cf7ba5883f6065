"""A decoder-only transformer: rotary positions, grouped-query attention, gated or plain feed-forward, RMS norms.

Shape suffixes of tensors: B sequences of a micro-batch, L positions, D hidden size, H query heads, K key/value heads,
E size of one head, F inner size of the feed-forward block, V vocabulary.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn

from slipway_trainer.architecture import Architecture
from slipway_trainer.attention import Attention
from slipway_trainer.context_parallel import ContextParallel
from slipway_trainer.expert_parallel import ExpertParallel
from slipway_trainer.feed_forward import ExpertMixture, FeedForward
from slipway_trainer.further_tokens import Further, PredictionModule
from slipway_trainer.latent_attention import LatentAttention
from slipway_trainer.masks import Masks, Places
from slipway_trainer.norms import norm_of
from slipway_trainer.offload import AroundLayers
from slipway_trainer.recompute import layers_recomputed
from slipway_trainer.rope import rope_tables, temperatures


class Block(nn.Module):
    """One layer: attention and feed-forward, each with norms before it, after it or both, and around a residual."""

    def __init__(self, shape: Architecture, layer: int, context: ContextParallel | None, experts: ExpertParallel | None) -> None:
        super().__init__()
        before, after = shape.norm_placement != "post", shape.norm_placement != "pre"
        self.attention_norm = norm_of(shape, shape.hidden_size) if before else nn.Identity()
        self.attention = Attention(shape, context, layer) if shape.latent is None else LatentAttention(shape, context)
        self.attention_post_norm = norm_of(shape, shape.hidden_size) if after else nn.Identity()
        self.mlp_norm = norm_of(shape, shape.hidden_size) if before else nn.Identity()
        self.mlp = _feed_forward(shape, layer, experts)
        self.mlp_post_norm = norm_of(shape, shape.hidden_size) if after else nn.Identity()
        self.is_local, self.is_rotated = shape.has_window(layer), layer not in shape.unrotated_layers

    def forward(self, x_BLD: Tensor, *tables: Tensor | None) -> Tensor:
        x_BLD = x_BLD + self.attention_post_norm(self._attention(self.attention_norm(x_BLD), *tables))
        return x_BLD + self.mlp_post_norm(self.mlp(self.mlp_norm(x_BLD)))

    def _attention(self, x_BLD: Tensor, *tables: Tensor | None) -> Tensor:
        cos_LE, sin_LE, mask_LL = tables[3:6] if self.is_local else tables[:3]
        if self.is_rotated:
            return self.attention(x_BLD, cos_LE, sin_LE, mask_LL=mask_LL)
        heat = {} if tables[6] is None else {"temperature_L1": tables[6]}
        return self.attention(x_BLD, None, None, mask_LL=mask_LL, **heat)


class Transformer(nn.Module):
    """Token ids in; logits out, or with targets the loss, so that the head's logits never need to exist all at once."""

    def __init__(self, shape: Architecture, context: ContextParallel | None = None, experts: ExpertParallel | None = None) -> None:
        super().__init__()
        self.shape, self.context, self._masks = shape, context, Masks(shape)
        #: More than 1: layers are recomputed in groups of so many in the backward pass.
        self.recompute_layers = 1
        #: Where what autograd keeps of a layer waits for the backward pass; None = on the device.
        self.around: AroundLayers | None = None
        self.embed = nn.Embedding(shape.vocabulary_size, shape.hidden_size)
        self.blocks = nn.ModuleDict({str(index): Block(shape, index, context, experts) for index in range(shape.layers)})
        self.norm = norm_of(shape, shape.hidden_size)
        made = [PredictionModule(shape, Block(shape, shape.layers - 1, context, experts)) for _ in range(shape.mtp_layers)]
        self.mtp = nn.ModuleDict({str(index): module for index, module in enumerate(made)})
        self.head = _head(shape)
        if shape.tied_embeddings:
            self.head.weight = self.embed.weight

    def all_blocks(self) -> list[Block]:
        """The blocks of the model, and those of the modules that predict further tokens."""
        return [*self.blocks.values(), *(module.block for module in self.mtp.values())]

    def blocks_recomputed_alone(self) -> list[Block]:
        """Those that no group of recomputed layers holds."""
        return self.all_blocks() if self.recompute_layers == 1 else [module.block for module in self.mtp.values()]

    def forward(
        self,
        tokens_BL: Tensor,
        loss: Callable[[nn.Module, Tensor], Tensor] | None = None,
        documents_BL: Tensor | None = None,
        further: Sequence[Further] = (),
    ) -> Tensor:
        """Logits (B, L, V), or what `loss(head, hidden states)` makes of the last hidden states.

        With context parallelism the tokens are this rank's part of the sequence, and documents those of the whole. `documents_BL`: the
        number of the document that a token belongs to, rising along the sequence; documents do not see each other, and positions restart
        in each. None = one document. `further`: for each module that predicts a further token what it is given; its loss is added.
        """
        x_BLD = self._embedded(tokens_BL)
        tables = self._tables(tokens_BL, documents_BL, x_BLD.dtype)
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
        # Rounded to the precision of the states, as Gemma's models do; filled on the device, so that the host does not wait for a copy.
        return x_BLD * x_BLD.new_full((), self.shape.embedding_scale)

    def _further_loss(self, further: Sequence[Further], x_BLD: Tensor, *tables: Tensor | None) -> Tensor:
        """The sum of the losses of the modules that predict further tokens."""
        total = x_BLD.new_zeros((), dtype=torch.float32)
        for module, (tokens_BL, loss) in zip(self.mtp.values(), further, strict=True):
            embedded_BLD = self._embedded(tokens_BL)
            with self._around(module):
                x_BLD = module(x_BLD, embedded_BLD, *tables)
            total = total + loss(self.head, x_BLD)
        return total

    def _tables(self, tokens_BS: Tensor, documents_BL: Tensor | None, dtype: torch.dtype) -> tuple[Tensor | None, ...]:
        """Cosine, sine and mask of all layers, those of layers with a window, and the temperature of layers without positions. S are the
        positions of this rank, L those of the sequence."""
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
    """(B, 1, L): positions that begin at 0 in each document."""
    here_L = torch.arange(documents_BL.size(1), device=documents_BL.device)
    begins_BL = documents_BL.diff(dim=1, prepend=documents_BL[:, :1] - 1) != 0
    first_BL = torch.where(begins_BL, here_L, 0).cummax(dim=1).values
    return (here_L - first_BL)[:, None]


def _feed_forward(shape: Architecture, layer: int, experts: ExpertParallel | None) -> nn.Module:
    if shape.has_experts(layer):
        return ExpertMixture(shape, experts)
    return FeedForward(shape.hidden_size, shape.ffn_hidden_size, shape.gated_mlp, shape.family.activation)


class CappedHead(nn.Linear):
    """A head whose logits pass through cap * tanh(logit / cap)."""

    def __init__(self, hidden_size: int, vocabulary_size: int, cap: float) -> None:
        super().__init__(hidden_size, vocabulary_size, bias=False)
        self.cap = cap

    def forward(self, x_BLD: Tensor) -> Tensor:
        return torch.tanh(super().forward(x_BLD) / self.cap) * self.cap


def _head(shape: Architecture) -> nn.Linear:
    if shape.final_softcap is not None:
        return CappedHead(shape.hidden_size, shape.vocabulary_size, shape.final_softcap)
    return nn.Linear(shape.hidden_size, shape.vocabulary_size, bias=False)
