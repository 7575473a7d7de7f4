"""The package as a whole: what it exports, which way imports go, what the core needs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import emoglot
from emoglot.errors import MissingExtraError, needs_extra

SOURCE = Path(emoglot.__file__).parent

# Imports go up this list only: a module may import from its own line or from a line above it.
LAYERS = [
    {"_version", "errors", "schema", "labels", "emotions", "config", "files", "concurrency"},
    {"text"},
    {"data"},
    {"encoders"},
    {"inference"},
    {"model"},
    {"evaluation"},
    {"training"},
    {"classifier"},
    {"batch"},
    {"integrations"},
    {"report"},
    {"serving"},
    {"research"},
    {"doctor"},
    {"cli"},
    {"__init__", "__main__"},
]
# Everything that only training, exporting or a special file format needs.
OPTIONAL = ("torch", "transformers", "sklearn", "scipy", "onnx", "onnxscript", "optuna", "pyarrow", "sentencepiece")
BLOCKED = "; ".join(
    f"sys.modules[{name!r}] = None" for name in (*OPTIONAL, "httpx2", "fastapi", "pandas", "polars", "ray")
)


def top_name(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def _parse(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SystemError:  # Python 3.11 confuses itself when another thread, such as one of Ray's, compiles as well
        return ast.parse(source)


def imported_modules(path: Path) -> set[str]:
    """Name the emoglot modules a file imports, at the top or inside a function, but not for types only."""
    names = set()
    for node in ast.walk(_without_type_checking(_parse(path.read_text(encoding="utf-8")))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= (
                {f"{node.module}.{alias.name}" for alias in node.names} if node.module == "emoglot" else {node.module}
            )
    return {name.split(".")[1] for name in names if name.startswith("emoglot.")}


def _without_type_checking(tree: ast.Module) -> ast.Module:
    class Remover(ast.NodeTransformer):
        def visit_If(self, node: ast.If) -> ast.AST | None:
            return None if ast.unparse(node.test) == "TYPE_CHECKING" else self.generic_visit(node)

    return Remover().visit(tree)


def test_every_module_has_a_layer():
    assert {top_name(path) for path in SOURCE.rglob("*.py")} == set().union(*LAYERS)


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_one_way(path):
    layer_of = {name: depth for depth, layer in enumerate(LAYERS) for name in layer}
    own = layer_of[top_name(path)]
    upwards = {name for name in imported_modules(path) if name in layer_of and layer_of[name] > own}
    # `python -m emoglot` and the root package stand above all; the version is a fact of the lowest layer.
    assert not upwards - {"__version__"}


def test_every_module_opens_with_a_sentence():
    for path in SOURCE.rglob("*.py"):
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path


def test_exported_names_exist_and_are_complete():
    assert emoglot.__all__ == sorted(emoglot.__all__, key=lambda name: (name != "__version__", name))
    for name in emoglot.__all__:
        assert getattr(emoglot, name) is not None
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    for_types = {alias.name for statement in block.body for alias in statement.names}
    assert for_types | {"__version__"} == set(emoglot.__all__)
    assert dir(emoglot) == sorted(emoglot.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'joy'"):
        emoglot.joy  # noqa: B018


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_it_imports_next_to_nothing():
    loaded = run("import sys, emoglot; print(*sys.modules)").split()
    assert not {"numpy", "onnxruntime", "typer", "rich", "torch", "huggingface_hub"} & set(loaded)


def test_a_saved_model_predicts_without_any_optional_dependency(model_folder, trained):
    code = (
        f"import sys; {BLOCKED}; import emoglot; "
        f"print(emoglot.load({str(model_folder)!r}).predict_proba(['so happy']).tolist())"
    )
    assert run(code).strip() == str(trained.predict_proba(["so happy"]).tolist())


def test_every_name_can_be_imported_without_any_optional_dependency():
    code = (
        f"import sys; {BLOCKED}\n"
        "from emoglot import *\n"
        "import emoglot\n"
        "print(set(emoglot.__all__) <= set(globals()))\n"
        "for make in (lambda: EmotionClassifier('tiny'), lambda: Client('http://localhost')):\n"
        "    try:\n        make()\n"
        "    except MissingExtraError as error:\n        print(error)"
    )
    complete, classifier, client = run(code).splitlines()
    assert complete == "True"
    assert "pip install 'emoglot[train]'" in classifier
    assert "pip install 'emoglot[client]'" in client


def test_training_without_its_extra_names_the_extra():
    code = (
        "import sys, importlib.abc\n"
        "class NoTorch(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'torch': raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n"
        "sys.meta_path.insert(0, NoTorch())\n"
        "import emoglot\n"
        "try:\n    emoglot.EmotionClassifier('tiny').fit(['a', 'b'], [{'joy'}, {'fear'}])\n"
        "except emoglot.MissingExtraError as error:\n    print(error)"
    )
    assert "pip install 'emoglot[train]'" in run(code)


def test_shrinking_an_encoder_without_its_extra_names_the_extra():
    code = (
        f"import sys; {BLOCKED}; import emoglot\n"
        "try:\n    import emoglot.encoders.shrink\n"
        "except emoglot.MissingExtraError as error:\n    print(error)"
    )
    assert "pip install 'emoglot[e5]'" in run(code)


def test_a_missing_module_is_named_by_its_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with (
        pytest.raises(MissingExtraError, match=r"plots needs 'scikit-learn', .*pip install 'emoglot\[tune\]'"),
        needs_extra("tune", "plots"),
    ):
        import sklearn.base  # noqa: F401


def test_no_pickle_anywhere():
    for path in SOURCE.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        assert "import pickle" not in source
        assert "torch.load" not in source
        assert "allow_pickle=True" not in source
