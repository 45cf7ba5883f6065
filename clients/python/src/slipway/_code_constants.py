"""What is packed of a code folder. Generated from lib/shared/archive/code-files.ts by `npm run python:types`."""

LEFT_OUT = (".git", "__pycache__", "node_modules", ".venv", ".slipway", ".pytest_cache", ".ruff_cache", ".mypy_cache")
ENVIRONMENT_MARKERS = ("pyvenv.cfg", "conda-meta")
MAX_ENTRIES = 50000
MAX_MIB = 512
LOOP = ("must contain no link to itself or to a folder around it", "remove it")
NOWHERE = ("must contain no link that leads nowhere", "remove it")
UNREADABLE = ("must contain only what you may read", "change its mode, or move it")
NOT_UTF8 = ("must contain only names in UTF-8", "rename it")
