"""A problem with a line of post-training data."""

#: What to do about a template.
OTHER_TEMPLATE = "set another template in tokenizer.chatTemplate"


class BadLine(Exception):
    """A problem with a line, without its position. `fix`: what to do."""

    def __init__(self, problem: str, fix: str = "fix the line or remove it") -> None:
        super().__init__(problem)
        self.fix = fix
