"""How a rule changes MiniStack: it replaces functions in their module and in the tables that dispatch to them."""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any


def wrap(module: ModuleType, name: str, rule: Callable) -> None:
    """Replaces a function of a module by `rule(original, *arguments)`, also in dictionaries of the module that contain it.

    Raises AttributeError when the module has no such function.
    """
    original = getattr(module, name)
    replaced = functools.wraps(original)(functools.partial(rule, original))
    setattr(module, name, replaced)
    for table in vars(module).values():
        if isinstance(table, dict):
            _replace_in(table, original, replaced)


def _replace_in(table: dict[Any, Any], original: Callable, replaced: Callable) -> None:
    for key, value in table.items():
        if value is original:
            table[key] = replaced
        elif isinstance(value, dict) and type(value) is dict:
            _replace_in(value, original, replaced)


def failed(resource_type: str, reason: str, code: str) -> ValueError:
    """The error of a resource handler, in CloudFormation's wording."""
    return ValueError(f'Resource handler returned message: "{reason}" (Type: {resource_type}, HandlerErrorCode: {code})')
