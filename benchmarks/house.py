"""What the package weighs: ``make house`` prints each count with the pattern that it counts.

Lines, the depth of inheritance, public names of the two pages that users see most, long files and
functions, branches of the longest ones, and patterns that say that an ability is written again for
each kind: tests of classes, comparisons of kinds, states that are saved by hand.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Files and functions that are longer than these are counted.
LONG_FILE, LONG_FUNCTION, BRANCHES = 400, 60, 25

#: What is counted in the package by a regular expression: name, pattern, folders left out.
PATTERNS = (
    ("comparisons of a task's kind", r"(task|answers)\.kind (==|!=|in|not in) ", ()),
    ("tests of own classes", r"isinstance\([^()]*(\([^()]*\))?[^()]*, \(?[A-Z]", ()),
    ("states saved by hand", r"def to_saved", ()),
    ("states read by hand", r"def (from_saved|resume)\(", ()),
    ("growth by hand", r"def _?grown\(", ()),
    ("copies by hand", r"def copy\(", ()),
    ("kernel slots outside kernels and engines", r"\bat\.[A-Z][A-Z_]+\b", ("kernels", "engines")),
    ("imports inside functions", r"^ +(from driftline|import driftline)", ()),
)
BRANCHING = (
    ast.If,
    ast.For,
    ast.While,
    ast.IfExp,
    ast.ExceptHandler,
    ast.comprehension,
    ast.BoolOp,
)


def files(folder: str) -> list[Path]:
    """Return the Python files of a folder."""
    return sorted((ROOT / folder).rglob("*.py"))


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """Yield all functions of a module."""
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def code_lines(function: ast.FunctionDef) -> int:
    """Return how many lines a function has, without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    if not body:
        return 0
    return 1 + (body[-1].end_lineno or 0) - body[0].lineno


def complexity(function: ast.FunctionDef) -> int:
    """Return how many ways there are through a function, plus 1 (McCabe, 1976)."""
    nodes = [node for node in ast.walk(function) if isinstance(node, BRANCHING)]
    return 1 + sum(len(n.values) - 1 if isinstance(n, ast.BoolOp) else 1 for n in nodes)


#: Classes that say what others have to declare, and play no rounds, are not counted as levels:
#: the page of learners, what its kinds must say, and the names of what learning changes.
DECLARING = {"Learner", "Hooks", "Stateful"}


def own_depth(kind: type) -> int:
    """Return how many classes of the package are on the longest way down to a class.

    All but those that are ``DECLARING``.
    """
    bases = [own_depth(base) for base in kind.__bases__ if base.__module__.startswith("driftline")]
    return (kind.__name__ not in DECLARING) + max(bases, default=0)


def counts() -> dict[str, str]:
    """Return all counts by name, as texts."""
    import driftline as dl
    from driftline import bandit, keyed, members  # noqa: F401

    package, made = files("driftline"), {}
    texts = {path: path.read_text() for path in package}
    lines = {path: text.count("\n") for path, text in texts.items()}
    app = sum(n for path, n in lines.items() if "app" in path.relative_to(ROOT).parts)
    made["lines of the package"] = f"{sum(lines.values()):,}"
    made["without app"] = f"{sum(lines.values()) - app:,}"
    made["lines of tests"] = f"{sum(p.read_text().count(chr(10)) for p in files('tests')):,}"
    made[f"files over {LONG_FILE} lines"] = str(sum(n > LONG_FILE for n in lines.values()))
    every = [one for text in texts.values() for one in functions(ast.parse(text))]
    long = sum(code_lines(one) > LONG_FUNCTION for one in every)
    made[f"functions over {LONG_FUNCTION} lines"] = str(long)
    hard = max(every, key=complexity)
    made["largest complexity"] = f"{complexity(hard)} ({hard.name})"
    made[f"functions of complexity over {BRANCHES}"] = str(
        sum(complexity(one) > BRANCHES for one in every)
    )
    learners = [dl.OGD, dl.Committee, dl.Keyed, *subclasses(dl.Learner)]
    deepest = max(learners, key=own_depth)
    made["deepest learner"] = f"{own_depth(deepest)} ({deepest.__name__})"
    for kind in (dl.OGD, dl.tasks.Task):
        names = [name for name in dir(kind) if not name.startswith("_")]
        made[f"public names of {kind.__name__}"] = str(len(names))
    for name, pattern, but in PATTERNS:
        own = [
            text for path, text in texts.items() if not set(but) & set(path.relative_to(ROOT).parts)
        ]
        found = sum(len(re.findall(pattern, text, re.M)) for text in own)
        made[name] = f"{found}   {pattern}"
    return made


def subclasses(kind: type) -> list[type]:
    """Return all classes below a class."""
    return [kind, *(own for sub in kind.__subclasses__() for own in subclasses(sub))]


def main() -> None:
    """Print the table."""
    made = counts()
    width = max(map(len, made))
    for name, value in made.items():
        print(f"{name:<{width}}  {value}")


if __name__ == "__main__":
    main()
