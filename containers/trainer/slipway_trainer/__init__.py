"""The built-in trainer: decoder-only transformers on PyTorch, with exact resume. Python 3.10 and later."""
