"""The few names of `transformers` that the examples use: configurations take their own fields only, models are tiny and really train.

Source: huggingface.co/docs/transformers, model pages and Auto classes (retrieved 2026-11-20).
"""

from dataclasses import dataclass
from typing import Any

import torch
from stub_log import record
from torch import nn


def _config(name, *fields):
    def __init__(self, **given):
        unknown = set(given) - set(fields) - {"vocab_size", "use_cache", "tie_word_embeddings"}
        assert not unknown, f"{name} has no {sorted(unknown)}"
        self.__dict__.update(given)
        record(name, **given)

    return type(name, (), {"__init__": __init__})


_SIZES = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings")
_LLAMA = (*_SIZES, "num_key_value_heads", "rope_theta")
GPT2Config = _config("GPT2Config", "n_embd", "n_layer", "n_head", "n_positions")
GPTNeoXConfig = _config("GPTNeoXConfig", *_SIZES)
LlamaConfig = _config("LlamaConfig", *_LLAMA)
MistralConfig = _config("MistralConfig", *_LLAMA, "sliding_window")
MixtralConfig = _config("MixtralConfig", *_LLAMA, "num_local_experts", "num_experts_per_tok", "sliding_window")


@dataclass
class Output:
    """What a model returns: a dataclass, as the real ones, so that FSDP finds the tensors in it."""

    loss: Any
    logits: Any

    def __getitem__(self, name):
        return getattr(self, name)


class GPT2Block(nn.Module):
    """Stands in for a transformer block of any family."""

    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.tanh(self.linear(x))


class _Inner(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.h = nn.ModuleList([GPT2Block(width), GPT2Block(width)])


class TinyModel(nn.Module):
    """Embedding, two blocks, head; `transformer.h` is the list of blocks."""

    def __init__(self, vocabulary, width=16):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.transformer = _Inner(width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, input_ids, attention_mask=None, labels=None):
        x = self.embedding(input_ids)
        for block in self.transformer.h:
            x = block(x)
        logits = self.head(x)
        if labels is None:
            return Output(None, logits)
        return Output(nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1).float(), labels[:, 1:].flatten()), logits)


class AutoModelForCausalLM:
    @staticmethod
    def from_config(config, **more):
        record("AutoModelForCausalLM.from_config", config=type(config).__name__, **more)
        return TinyModel(config.vocab_size)

    @staticmethod
    def from_pretrained(name, **more):
        record("AutoModelForCausalLM.from_pretrained", name=name, **more)
        return TinyModel(300)


class _Tokenizer:
    eos_token, pad_token, eos_token_id = "<eos>", None, 299

    def __call__(self, texts, padding=None, truncation=None, max_length=None, return_tensors=None):
        assert self.pad_token is not None, "GPT-J has no padding token: the script names one"
        rows = [[ord(letter) % 256 for letter in text][:max_length] for text in texts]
        width = max_length if padding == "max_length" else max(map(len, rows))
        ids = torch.tensor([row + [self.eos_token_id] * (width - len(row)) for row in rows])
        return {"input_ids": ids, "attention_mask": (ids != self.eos_token_id).long()}


class AutoTokenizer:
    @staticmethod
    def from_pretrained(name):
        return _Tokenizer()
