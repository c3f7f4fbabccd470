"""Tells by its source whether a method calls another one more than once."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_OTHER_CODE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def calls_twice(method: Callable[..., Any], name: str) -> bool:
    """Tell whether some way through `method` calls `self.<name>` more than once; False where that cannot be known."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(method)))
    except (OSError, TypeError, SyntaxError):  # no source at hand
        return False
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return any(_along(function.body, name) > 1 for function in functions)


def _along(body: Sequence[ast.stmt], name: str) -> int:
    """Return the most calls on any way through statements."""
    total = 0
    for place, statement in enumerate(body):
        if isinstance(statement, ast.If):
            rest = body[place + 1 :]
            branches = (statement.body, statement.orelse)
            ways = (_along(each if _ends(each) else [*each, *rest], name) for each in branches)
            return total + _within(statement.test, name) + max(ways)
        total += _within(statement, name)
        if isinstance(statement, _ENDS):
            break
    return total


def _ends(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], _ENDS)


def _within(node: ast.AST, name: str) -> int:
    """Return the most calls in one node; a loop goes round at least twice."""
    if isinstance(node, _OTHER_CODE):
        return 0
    own = int(isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name)
    inner = own
    for _, value in ast.iter_fields(node):
        parts = value if isinstance(value, list) else [value]
        statements = [part for part in parts if isinstance(part, ast.stmt)]
        inner += _along(statements, name) if statements else 0
        inner += sum(_within(part, name) for part in parts if isinstance(part, ast.AST) and part not in statements)
    return 2 * inner if isinstance(node, _LOOPS) else inner
