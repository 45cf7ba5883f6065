"""Post-training data for tests: a tokenizer with a chat template, and lines in each of TRL's shapes."""

import json
import re
from pathlib import Path
from typing import Any

#: As ChatML, with the assistant's turns marked.
MARKED = (
    "{{ bos_token }}{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.role == 'assistant' %}{% generation %}{{ message.content }}<|im_end|>{% endgeneration %}{{ '\n' }}"
    "{% else %}{{ message.content }}<|im_end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
#: The same text without marks.
UNMARKED = MARKED.replace("{% generation %}", "").replace("{% endgeneration %}", "")
#: Special tokens as published templates write them. Markers such as <think> and <tool_call> are ordinary tokens of most tokenizers.
WRITTEN = re.compile(
    r"<\|[^|<>\s]+\|>|<｜[^｜<>\s]+｜>|<\|(?:turn|tool_response)>|<turn\|>|<(?:start|end)_of_turn>|<end_of_utterance>|</s>"
)
SPECIAL = ["<|endoftext|>", "<|bos|>", "<|im_start|>", "<|im_end|>"]


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


CONVERSATIONS = [
    {"messages": [{"role": "system", "content": "Be brief."}, user("What is the sky?"), assistant("It is blue.")]},
    {"messages": [user("Add two and two."), assistant("Four."), user("And three?"), assistant("Seven, of course.")]},
    {"messages": [user("Say naïve café."), assistant("naïve café ☕")]},
    {"messages": [user("Name a colour."), assistant("Red is a colour that I like a lot, and so is green.")]},
    {"messages": [user("x"), assistant("y")]},
]
COMPLETIONS = [
    {"prompt": "The sky is", "completion": " blue."},
    {"prompt": "Two and two", "completion": " make four, and three more make seven."},
    {"prompt": "Colours: ", "completion": "red, green<|endoftext|>"},
    {"prompt": "", "completion": "nothing asked"},
]
ASKED = [{"prompt": [user("What is the sky?")], "completion": [assistant("It is blue.")]},
         {"prompt": [user("Two and two?"), assistant("Four."), user("Sure?")], "completion": [assistant("Yes, sure.")]}]  # fmt: skip
PREFERENCES = [
    {"prompt": "The sky is", "chosen": " blue.", "rejected": " green and full of cats."},
    {"prompt": "Two and two", "chosen": " make four.", "rejected": " five"},
]
PREFERENCES_WITHOUT_PROMPT = [
    {"chosen": "The sky is blue.", "rejected": "The sky is a green thing."},
    {"chosen": "Two and two make four.", "rejected": "Two and two? No."},
]
PREFERRED_TURNS = [
    {"chosen": [user("What is the sky?"), assistant("It is blue.")], "rejected": [user("What is the sky?"), assistant("No idea, sorry.")]},
    {"chosen": [user("2 + 2"), assistant("4")], "rejected": [user("2 + 2"), assistant("5, or so.")]},
    {"prompt": [user("Colour?")], "chosen": [assistant("Red.")], "rejected": [assistant("Loud.")]},
]


def write_tokenizer(folder: Path, template: str | None = MARKED, words: int = 320) -> Path:
    """A byte-level tokenizer with its configuration, as Hugging Face has them, that begins a text with <|bos|> and has the special tokens
    of the template; the tokenizer.json."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = list(dict.fromkeys([*SPECIAL, *WRITTEN.findall(template or "")]))
    trainer = trainers.BpeTrainer(vocab_size=words, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([json.dumps(CONVERSATIONS + COMPLETIONS, ensure_ascii=False)], trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<|bos|> $A", special_tokens=[("<|bos|>", 1)])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {"bos_token": "<|bos|>", "eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>"}
    config = {"tokenizer_class": "PreTrainedTokenizerFast"} | names
    (folder / "tokenizer_config.json").write_text(json.dumps(config | ({"chat_template": template} if template else {})))
    return folder / "tokenizer.json"


def write_lines(file: Path, lines: list[dict[str, Any]]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return file


def tokenise(root: Path, lines: list[dict[str, Any]], tokenizer: Path, *words: str) -> Path:
    """Runs the tokenise step as a processing job would see it; the folder of the shards."""
    from slipway_trainer.tokenize.__main__ import run

    base = root / "opt"
    write_lines(base / "processing/input/raw/lines.jsonl", lines)
    (base / "config").mkdir(parents=True, exist_ok=True)
    (base / "config/processingjobconfig.json").write_text(json.dumps({"ProcessingInputs": []}))
    assert run(["--tokenizer", str(tokenizer), *words], base) == 0
    return base / "processing/output"
