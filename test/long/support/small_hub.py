"""Writes a small model and a data set of conversations for `loopback_hub.py`: python small_hub.py FOLDER."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "containers"))

import chat_data
from tokenizers import Tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

root = Path(sys.argv[1])
model, rows, pairs = root / "small/llama", root / "datasets/small/chats", root / "datasets/small/pairs"
tokenizer = chat_data.write_tokenizer(model, chat_data.UNMARKED)
shape = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 512}
config = LlamaConfig(vocab_size=Tokenizer.from_file(str(tokenizer)).get_vocab_size(), dtype="float32", **shape)
LlamaForCausalLM(config).save_pretrained(model, max_shard_size="200KB")
(model / "pytorch_model.bin").write_bytes(b"pickle" * 1000)
for split in ("train", "test"):
    chat_data.write_lines(rows / f"data/{split}-00000-of-00001.jsonl", chat_data.CONVERSATIONS * 40)
chat_data.write_lines(pairs / "data/train.ndjson", chat_data.PREFERRED_TURNS[:2] * 32)
for folder in (model, rows, pairs):
    (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\n")
print(json.dumps(sorted(path.name for path in model.iterdir())))
