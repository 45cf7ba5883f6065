"""The keys of published formats of chat data, and the effect of each. `slipway_trainer.tokenize.keys` prints them as the table in
docs/reference/chat-data.md, and formats.py refuses those without a use.

Formats: OpenAI fine-tuning (https://platform.openai.com/docs/guides/fine-tuning), Mistral (https://github.com/mistralai/mistral-finetune),
Hugging Face messages and TRL (https://huggingface.co/docs/trl/dataset_formats), ShareGPT and Alpaca as LLaMA-Factory documents them
(https://github.com/hiyouga/LLaMA-Factory/blob/main/data/README.md), and flags of Axolotl, ms-swift, verl and torchtune. 2026-11-27.
"""

from typing import NamedTuple

#: Effects of a key: on the text, on the loss, none, or the line is refused.
TEXT, LOSS, NONE, REFUSED = "text", "loss", "none", "refused"


class Key(NamedTuple):
    """Names of keys with one effect. `what`: what they do, or why a line with them is refused; `harmless`: values that are not refused."""

    names: tuple[str, ...]
    formats: str
    effect: str
    what: str
    harmless: tuple[bool | int, ...] = ()


LINE = (
    Key(("messages",), "OpenAI, Mistral, Hugging Face", TEXT, "The conversation; every turn of the assistant is trained."),
    Key(("conversations",), "ShareGPT", TEXT, "Like `messages`; beside `chosen` and `rejected`, the prompt of a preference."),
    Key(("prompt", "completion"), "TRL", TEXT, "Text, or lists of messages; the completion is trained. Text ends in the end-of-text "
        "token."),
    Key(("chosen", "rejected"), "TRL", TEXT, "Text, or lists of messages, with or without `prompt`; both answers are trained against "
        "each other. A `prompt` that is text beside turns is checked against the question of the turns. Without `prompt`, both answers "
        "begin with it."),
    Key(("input", "preferred_output", "non_preferred_output"), "OpenAI (preferences)", TEXT,
        "The messages, `tools` and the two answers of a preference."),
    Key(("instruction", "input", "output"), "Alpaca", TEXT, "A conversation of a question (instruction and input, each on lines of its "
        "own) and an answer; beside `chosen` and `rejected`, the prompt of a preference."),
    Key(("question", "query"), "", NONE, "No effect; refused in a preference without `prompt`."),
    Key(("history",), "Alpaca", TEXT, "Earlier questions and answers; the answers are trained."),
    Key(("system",), "ShareGPT, Alpaca", TEXT, "A system message before the conversation; refused beside another one."),
    Key(("tools",), "OpenAI, Hugging Face", TEXT, "A list, or JSON of one; passed to the template."),
    Key(("functions", "tool_defs"), "OpenAI (older), prime-rl", TEXT, "Like `tools`, if it is absent."),
    Key(("chat_template_kwargs",), "TRL", TEXT, "Further values for the template."),
    Key(("parallel_tool_calls",), "OpenAI", NONE, "No effect on tokens."),
    Key(("images", "image", "videos", "video", "audios", "audio"), "LLaMA-Factory, TRL", REFUSED, "only text is trained"),
    Key(("label", "kto_tag"), "TRL, LLaMA-Factory", REFUSED, "preferences without pairs (KTO) are not trained"),
    Key(("weight", "train", "loss", "loss_mask", "mask"), "", REFUSED, "weights of lines are not supported, only those of messages", (1,)),
)  # fmt: skip
MESSAGE = (
    Key(("role",), "OpenAI, Mistral, Hugging Face", TEXT, "Passed to the template; the role `assistant` is trained."),
    Key(("content",), "OpenAI, Mistral, Hugging Face", TEXT, "Text, or a list of parts."),
    Key(("from", "value"), "ShareGPT", TEXT, "Role and content: `human`, `gpt`, `system`, `tool`, `observation` and `function_call` (JSON "
        "of a name and arguments) as the roles and calls of OpenAI."),
    Key(("tool_calls",), "OpenAI, Mistral, Hugging Face", TEXT, "Calls that the assistant makes; trained."),
    Key(("reasoning_content", "reasoning", "thinking"), "DeepSeek, vLLM, GPT-OSS", TEXT, "Reasoning before the content; trained. Refused "
        "where the template leaves it out."),
    Key(("name", "tool_call_id"), "OpenAI, Mistral", TEXT, "Passed to the template, which may leave them out."),
    Key(("weight", "train", "training", "trainable", "loss", "loss_mask"), "OpenAI, Mistral, Axolotl, ms-swift, verl", LOSS,
        "0 or false: the message has no loss; 1 or true: as without the key. Only for the assistant, in `messages`."),
    Key(("masked",), "torchtune", LOSS, "true: the message has no loss."),
    Key(("annotations", "id", "timestamp"), "OpenAI", NONE, "No effect on tokens."),
    Key(("refusal",), "OpenAI", REFUSED, "refusals are trained as content"),
    Key(("audio",), "OpenAI", REFUSED, "only text is trained"),
    Key(("function_call",), "OpenAI (older)", REFUSED, "calls are trained as tool_calls"),
    Key(("prefix",), "Mistral", REFUSED, "an answer that is to be continued is not trained", (False,)),
    Key(("train_detail",), "Axolotl", REFUSED, "parts of a message have no loss of their own"),
    Key(("loss_scale",), "ms-swift", REFUSED, "a message has a loss or none; use weight"),
)  # fmt: skip
CALL = (
    Key(("function", "name", "arguments"), "OpenAI, Mistral, Hugging Face", TEXT, "Arguments are an object or the JSON text of one. The "
        "template gets an object, or JSON where it expects that."),
    Key(("id",), "OpenAI, Mistral", TEXT, "Passed to the template, which may leave it out."),
    Key(("type",), "OpenAI", TEXT, "Must be `function`."),
    Key(("index",), "OpenAI", NONE, "No effect on tokens."),
)  # fmt: skip
PART = (
    Key(("type",), "OpenAI, Hugging Face", TEXT, "Must be `text`."),
    Key(("text",), "OpenAI, Hugging Face", TEXT, "The content. Parts are joined with a new line for templates that read text."),
    Key(("cache_control", "annotations"), "", NONE, "No effect on tokens."),
)  # fmt: skip
TABLES = {"line": LINE, "message": MESSAGE, "call in `tool_calls`": CALL, "part of `content`": PART}
#: What happens to other keys.
OTHERS = {
    "line": "no effect; the log lists them",
    "message": "passed to the template if it mentions them, otherwise refused",
    "call in `tool_calls`": "refused",
    "part of `content`": "refused",
}


def key_of(table: tuple[Key, ...], name: str) -> Key | None:
    """The entry of a key; None if no published format has it."""
    return next((key for key in table if name in key.names), None)


def markdown() -> str:
    """The table of docs/reference/chat-data.md."""
    rows = ["| in a | key | from | effect |", "|---|---|---|---|"]
    for place, table in TABLES.items():
        for key in table:
            what = f"refused: {key.what}" if key.effect == REFUSED else key.what
            rows.append(f"| {place} | {', '.join(f'`{name}`' for name in key.names)} | {key.formats or 'others'} | {what} |")
        rows.append(f"| {place} | other keys | | {OTHERS[place]} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(markdown(), end="")
