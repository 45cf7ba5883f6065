"""Public reports about chat data (test/public/chat.md), each with its source: what is trained of a row, or why it is refused."""

import json
import re
from pathlib import Path
from typing import Any

import chat_data as data
import pytest

trl = pytest.importorskip("trl")
pytestmark = pytest.mark.torch

from slipway_trainer.exits import DataFailed  # noqa: E402
from slipway_trainer.tokenize.chat_template import ChatTemplate  # noqa: E402
from slipway_trainer.tokenize.examples import KINDS, ExampleReader  # noqa: E402
from slipway_trainer.tokenize.formats import shape_of  # noqa: E402
from slipway_trainer.tokenize.tokenizers import load_tokenizer  # noqa: E402

ASKED, AGAIN, SYSTEM = data.user("Sky?"), data.user("Sure?"), {"role": "system", "content": "Be brief."}
BLUE, YES = data.assistant("Blue."), data.assistant("Yes.")
CALL = {"type": "function", "function": {"name": "look_up", "arguments": {"word": "sky"}}}
CALLS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
FOUND = {"role": "tool", "name": "look_up", "content": "blue"}
SCHEMA = {"name": "look_up", "parameters": {"type": "object", "properties": {"word": {"type": "string", "default": None}}}}
RENDERED = '<tool_call>\n{"name": "look_up", "arguments": {"word": "sky"}}\n</tool_call><|im_end|>\n'
END = "<|im_end|>\n"
#: Of https://github.com/axolotl-ai-cloud/axolotl/issues/2089, shortened.
MISTRAL = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]"
    "{% elif m.role == 'assistant' %}{{ m.content }}</s>{% else %}{{ raise_exception('only user and assistant') }}{% endif %}{% endfor %}"
)
Trained = list[list[str]]


def trained(folder: Path, template: str, line: dict[str, Any]) -> Trained:
    """The stretches of trained text of each example."""
    source = template if "{" in template else (Path(trl.__file__).parent / f"chat_templates/{template}.jinja").read_text(encoding="utf-8")
    tokenizer = load_tokenizer(str(data.write_tokenizer(folder, source.replace("strftime_now(", "("), words=400)), None)
    templates = ChatTemplate(source.replace("strftime_now(", "("), tokenizer.special_tokens), None
    reader = ExampleReader(KINDS[shape_of(line) or "messages"], tokenizer, templates, trains_all=False)
    found: Trained = []
    for example in reader.read(line, "a.jsonl:1"):
        stretches: list[list[int]] = [[]]
        for token, target in zip(example.tokens, example.targets, strict=True):
            stretches[-1:] = [stretches[-1] + [token]] if target else [stretches[-1], []]
        found.append([tokenizer.decode(ids) for ids in stretches if ids])
    return found


def turns(*texts: str) -> Trained:
    return [list(texts)]


def sharegpt(*pairs: tuple[str, str], **more: Any) -> dict[str, Any]:
    return {"conversations": [{"from": speaker, "value": value} for speaker, value in pairs], **more}


#: Source, template, row, and what is trained.
RIGHT: list[tuple[str, str, dict[str, Any], Trained]] = [
    ("huggingface/trl#5988", "glm4moe", {"messages": [ASKED, BLUE, AGAIN, YES]},
     turns("\n<think></think>\nBlue.<|user|>", "\n<think></think>\nYes.<|user|>")),
    ("modelscope/ms-swift#4939", "qwen3", {"messages": [ASKED, BLUE, AGAIN, YES]},
     turns("<think>\n\n</think>\n\nBlue." + END, "<think>\n\n</think>\n\nYes." + END)),
    ("THUDM/slime#330", "qwen3", {"messages": [ASKED, BLUE | {"reasoning_content": "Day."}, AGAIN, YES]},
     turns("<think>\nDay.\n</think>\n\nBlue." + END, "<think>\n\n</think>\n\nYes." + END)),
    ("oumi-ai/oumi#2599", "qwen2_5", {"messages": [ASKED, {**CALLS, "tool_calls": [
        {"type": "function", "function": {"name": "look_up", "arguments": '{"word": "sky"}'}}]}]}, turns(RENDERED)),
    ("axolotl-ai-cloud/axolotl#1702", "qwen2_5", {"messages": [ASKED, BLUE | {"weight": 0}, AGAIN, YES]}, turns("Yes." + END)),
    ("verl-project/verl#5472", "qwen2_5", {"messages": [ASKED, BLUE | {"trainable": False}, AGAIN, YES]}, turns("Yes." + END)),
    ("argilla-io/distilabel#343", "qwen2_5", {"prompt": "Sky?", "chosen": [ASKED, BLUE], "rejected": [ASKED, YES]},
     [["Blue." + END], ["Yes." + END]]),
    ("THUDM/slime#2281", "qwen3", {"messages": [ASKED, {**CALLS, "tool_calls": [CALL, CALL]}, FOUND, FOUND, BLUE]},
     turns("<think>\n\n</think>\n\n" + RENDERED.replace(END, "\n") + RENDERED, "<think>\n\n</think>\n\nBlue." + END)),
    ("NovaSky-AI/SkyRL#1674", "qwen2_5", sharegpt(("human", "Sky?"), ("function_call", json.dumps(CALL["function"])),
        ("observation", "blue"), ("gpt", "Blue."), tools=json.dumps([SCHEMA]), system="Be brief."), turns(RENDERED, "Blue." + END)),
    ("modelscope/ms-swift#4600", "qwen2_5", {"messages": [ASKED, {**CALLS, "tool_calls": [
        {"type": "function", "function": {"name": "now", "arguments": None}}]}]},
     turns('<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>' + END)),
    ("huggingface/trl#6363", "qwen3_5_think", {"messages": [ASKED, data.assistant("Day.\n</think>\n\nBlue.")]},
     turns("Day.\n</think>\n\nBlue." + END)),
    ("NVIDIA-NeMo/Automodel#3738", "nemotron_3_nano", {"messages": [ASKED, BLUE], "chat_template_kwargs": {"enable_thinking": False}},
     turns("Blue." + END)),
    ("axolotl-ai-cloud/axolotl#2089", MISTRAL, {"messages": [ASKED, BLUE, AGAIN, YES]}, turns("Blue.</s>", "Yes.</s>")),
    ("Flossiee/HonestyLLM#7", "qwen2_5", sharegpt(("human", "Sky?"), chosen={"from": "gpt", "value": "Blue."},
        rejected={"from": "gpt", "value": "Yes."}), [["Blue." + END], ["Yes." + END]]),
    ("microsoft-foundry/fine-tuning#23", "qwen2_5", {"messages": [ASKED, CALLS, BLUE]}, turns(RENDERED, "Blue." + END)),
    ("meta-pytorch/torchtune#2405", "qwen2_5", {"messages": [SYSTEM, ASKED, CALLS, FOUND, BLUE, AGAIN]}, turns(RENDERED, "Blue." + END)),
    ("foundation-model-stack/fms-hf-tuning#415", "qwen2_5", {"messages": [ASKED, BLUE], "group": "a", "metadata": "{}"},
     turns("Blue." + END)),
    ("hiyouga/LlamaFactory#2962", "qwen2_5", sharegpt(("human", "Sky?"), ("human", "Well?"), ("gpt", "Blue."), ("gpt", "Yes.")),
     turns("Blue." + END, "Yes." + END)),
    ("PrimeIntellect-ai/prime-rl#1334", "qwen3", {"messages": [ASKED, BLUE, AGAIN]}, turns("<think>\n\n</think>\n\nBlue." + END)),
    ("lm-sys/FastChat#3017", "qwen2_5", {"messages": [ASKED | {"content": [{"type": "text", "text": "Sky?"}]}, BLUE]},
     turns("Blue." + END)),
    ("AI-Hypercomputer/maxtext#3559", "qwen2_5", {"messages": json.dumps([ASKED, CALLS]), "tools": json.dumps([SCHEMA])}, turns(RENDERED)),
    ("huggingface/trl#1541", "qwen2_5", {"chosen": [ASKED, BLUE, AGAIN, YES], "rejected": [ASKED, BLUE, AGAIN, BLUE]},
     [["Yes." + END], ["Blue." + END]]),
    ("data-prep-kit/data-prep-kit#1432", "qwen2_5", {"messages": [ASKED | {"content": ["Sky?", "Now?"]}, BLUE]}, turns("Blue." + END)),
    ("huggingface/transformers#37547", "qwen2_5", {"messages": [ASKED, CALLS], "tools": [json.dumps(SCHEMA)]}, turns(RENDERED)),
    ("ibm-granite/granite-3.1-language-models#2", "qwen2_5", {"prompt": "Sky?", "completion": "Blue."}, turns("Blue.<|endoftext|>")),
    ("OpenPipe/ART#743", "qwen3", {"prompt": [ASKED, BLUE, AGAIN], "completion": [YES]}, turns("<think>\n\n</think>\n\nYes." + END)),
]  # fmt: skip
#: Source, template, row, and the reason of the refusal.
REFUSED: list[tuple[str, str, dict[str, Any], str]] = [
    ("deepseek-ai/DeepSeek-R1#633", "deepseek_r1_distill", {"messages": [ASKED, data.assistant("<think>\nDay.\n</think>\nBlue.")]},
     "messages[1].content: must be rendered by the chat template, which leaves it out; set another template"),
    ("jingyaogong/minimind#737", "llama3", {"messages": [ASKED, BLUE | {"reasoning_content": "Day."}]},
     "messages[1].reasoning_content: must be rendered by the chat template, which leaves it out"),
    ("raullenchai/Rapid-MLX#1765", "gptoss", {"messages": [ASKED, BLUE, SYSTEM, AGAIN, YES]},
     "messages[2].content: must be rendered by the chat template, which leaves it out"),
    ("kakao/diatool-dpo#2", "qwen2_5", {"chosen": json.dumps({"messages": [ASKED, BLUE]}), "rejected": "Yes."},
     "chosen: must be text or messages, got the JSON of an object with messages; write its messages under the key"),
    ("hiyouga/LlamaFactory#9630", "qwen2_5", sharegpt(("human", "Sky?"), ("gpt", "Blue."), loss_mask=[0, 1]), "loss_mask: must be absent"),
    ("huggingface/trl#2385", "qwen2_5", {"prompt": [ASKED], "chosen": [BLUE], "rejected": [AGAIN]},
     "rejected: must have a message of the assistant, got user"),
    ("huggingface/transformers#28366", MISTRAL, {"messages": [SYSTEM, ASKED, BLUE]}, "rejected it (only user and assistant)"),
    ("mattmireles/gemma-tuner-multimodal#20", "gemma3", {"c_id": 0, "role": "user", "message": "Sky?"}, "got c_id, role, message"),
    ("gepromptet/promptolution#71", "qwen2_5", {"messages": [{"role": "user", "prompt": "Sky?"}, BLUE]},
     "messages[0]: must have content or tool_calls, got role, prompt"),
    ("om-ai-lab/VLM-R1#110", "qwen2_5", {"messages": [ASKED | {"content": [{"type": "image"}]}, BLUE]},
     'messages[0].content[0]: must be a part of type text, got {"type": "image"}'),
    ("opendatahub-io/pipelines-components#238", "qwen2_5", {"messages": [ASKED, {**CALLS, "tool_calls": [{}]}]},
     "messages[1].tool_calls[0]: must be a call of a function with its name, got {}"),
    ("huggingface/transformers#43459", "qwen2_5", {"messages": [data.user("Sky \ud83d"), BLUE]}, "must have text of whole characters"),
]  # fmt: skip


@pytest.mark.parametrize(("template", "line", "expected"), [row[1:] for row in RIGHT], ids=[row[0] for row in RIGHT])
def test_a_row_is_trained_as_it_was_meant(tmp_path: Path, template: str, line: dict[str, Any], expected: Trained) -> None:
    assert trained(tmp_path, template, line) == expected


@pytest.mark.parametrize(("template", "line", "reason"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_row_is_refused_by_name(tmp_path: Path, template: str, line: dict[str, Any], reason: str) -> None:
    with pytest.raises(DataFailed, match="a.jsonl:1: .*" + re.escape(reason)):
        trained(tmp_path, template, line)


def test_the_page_names_each_report() -> None:
    page = (Path(__file__).parents[1] / "public/chat.md").read_text(encoding="utf-8")
    assert [row[0] for row in [*RIGHT, *REFUSED] if row[0] not in page] == []
