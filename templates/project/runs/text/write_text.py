"""Writes 20,000 short texts as JSON lines, the format that the tokenise step reads."""

import json
import os
import random
from pathlib import Path

FOLDER = Path(os.environ["SM_OUTPUT_DATA_DIR"])
WORDS = "the a small large old new model network batch token step learns reads writes forgets and or while before after slowly well".split()

drawn = random.Random(1)
with (FOLDER / "text.jsonl").open("w", encoding="utf-8") as file:
    for _ in range(20_000):
        text = " ".join(drawn.choices(WORDS, k=drawn.randint(20, 60)))
        file.write(json.dumps({"text": text}) + "\n")
print("wrote 20,000 texts")
