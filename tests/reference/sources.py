"""What the source of a Struct says of its fields, where the running class has forgotten it."""

from __future__ import annotations

import ast
import inspect

import msgspec


def annotations(kind: type[msgspec.Struct]) -> dict[str, str]:
    """Field -> its type as the source has it."""
    [tree] = ast.parse(inspect.getsource(kind)).body
    assert isinstance(tree, ast.ClassDef)
    return {
        one.target.id: ast.unparse(one.annotation)
        for one in tree.body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    }
