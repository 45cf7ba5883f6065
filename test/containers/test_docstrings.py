"""What is public below containers/ has a docstring: functions, classes, and methods that implement nothing documented elsewhere."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Set, Tuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("containers/driver", "containers/trainer")
#: Bases that say nothing of the methods of their children.
PLAIN_BASES = {"object", "Protocol", "NamedTuple", "Exception", "RuntimeError", "ValueError", "ABC", "Enum", "str"}

Classes = Dict[str, List[ast.ClassDef]]


def trees() -> Dict[Path, ast.Module]:
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    return {path.relative_to(ROOT): ast.parse(path.read_text("utf-8")) for path in files}


def classes_of(modules: Dict[Path, ast.Module]) -> Classes:
    found: Classes = {}
    for module in modules.values():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(node)
    return found


def bases_of(node: ast.ClassDef) -> Set[str]:
    return {ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases}


def methods_of(node: ast.ClassDef) -> Set[str]:
    return {item.name for item in node.body if isinstance(item, ast.FunctionDef)}


def overrides(node: ast.ClassDef, method: str, known: Classes) -> bool:
    """Whether a base has the method: one of ours, or one of PyTorch or Python, whose documentation says what it does."""
    for base in bases_of(node) - PLAIN_BASES:
        if base not in known or any(method in methods_of(one) or overrides(one, method, known) for one in known[base]):
            return True
    return False


def implements(node: ast.ClassDef, method: str, known: Classes) -> bool:
    """Whether the class has every method of a protocol of ours, and this is one of them."""
    protocols = [one for ones in known.values() for one in ones if "Protocol" in bases_of(one) and one is not node]
    return any(method in methods_of(one) and methods_of(one) <= methods_of(node) for one in protocols)


def public(module: ast.Module) -> Iterator[Tuple[Optional[ast.ClassDef], ast.AST]]:
    for node in module.body:
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)) or node.name.startswith("_"):
            continue
        yield None, node
        if isinstance(node, ast.ClassDef):
            yield from ((node, item) for item in node.body if isinstance(item, ast.FunctionDef) and not item.name.startswith("_"))


def undocumented(modules: Dict[Path, ast.Module]) -> List[str]:
    known, found = classes_of(modules), []
    for path, module in modules.items():
        for owner, node in public(module):
            if ast.get_docstring(node):
                continue
            if owner is not None and (overrides(owner, node.name, known) or implements(owner, node.name, known)):
                continue
            found.append("%s: %s%s" % (path, owner.name + "." if owner else "", node.name))
    return found


def test_what_is_public_has_a_docstring() -> None:
    assert undocumented(trees()) == []


BARE = """
class Store(Protocol):
    def read(self): ...

class Folder:
    def read(self): return 1
    def sweep(self): return 2

class Module(nn.Module):
    def forward(self): return 3

class Child(Folder):
    def sweep(self): return 4

def _own(): return 5
"""


@pytest.mark.parametrize("name", ["Store", "Store.read", "Folder", "Folder.sweep", "Module", "Child"])
def test_what_is_bare_is_found(name: str) -> None:
    assert "file.py: " + name in undocumented({Path("file.py"): ast.parse(BARE)})


@pytest.mark.parametrize("name", ["Folder.read", "Module.forward", "Child.sweep", "_own"])
def test_what_another_place_documents_is_not(name: str) -> None:
    assert "file.py: " + name not in undocumented({Path("file.py"): ast.parse(BARE)})
