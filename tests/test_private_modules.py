"""A module whose name begins with an underscore belongs to its package: nothing in `src` imports it from elsewhere."""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"


def test_private_modules_are_imported_by_their_own_package_only() -> None:
    strangers = [
        f"{importer} imports {imported}"
        for importer, imported in imports()
        if (package := _package_of_private_module(imported)) and not f"{importer}.".startswith(f"{package}.")
    ]
    assert strangers == []


def test_there_are_private_modules_to_check() -> None:
    private = {imported for _, imported in imports() if _package_of_private_module(imported)}
    assert "podium.engine._evaluation" in private


def imports() -> Iterator[tuple[str, str]]:
    """Every import of something of podium, as the importing module and what it imports."""
    for path in SOURCE.rglob("*.py"):
        importer = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        for statement in ast.walk(ast.parse(path.read_text())):
            match statement:
                case ast.ImportFrom(module=str(module), names=names) if module.startswith("podium"):
                    yield from ((importer, f"{module}.{name.name}") for name in names)
                    yield importer, module
                case ast.Import(names=names):
                    yield from ((importer, name.name) for name in names if name.name.startswith("podium"))


def _package_of_private_module(imported: str) -> str | None:
    """`podium.engine` of `podium.engine._evaluation.Evaluation`; None if no part of the name is private."""
    parts = imported.split(".")
    private = next((at for at, part in enumerate(parts) if part.startswith("_") and not part.startswith("__")), None)
    return None if private is None else ".".join(parts[:private])
