# SPDX-License-Identifier: MIT
"""How the package's modules import each other: downward only, at the top of a file."""
import ast
import os
import subprocess
import sys
import unittest

import package

FOLDER = os.path.join(package.HERE, "../nvfp4gemm")
IMPORTS = (ast.Import, ast.ImportFrom)


def trees():
    """{module: its syntax tree} of the package."""
    found = {}
    for file in sorted(os.listdir(FOLDER)):
        if file.endswith(".py"):
            with open(os.path.join(FOLDER, file), encoding="utf-8") as text:
                found[file.removesuffix(".py")] = ast.parse(text.read())
    return found


def named_by(tree, modules):
    """Modules of the package that a file imports, and those that its strings name, which
    nvfp4gemm._optional imports late."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "nvfp4gemm":
            yield from (name.name for name in node.names if name.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module.startswith("nvfp4gemm."):
            yield node.module.removeprefix("nvfp4gemm.")
        elif isinstance(node, ast.Constant) and str(node.value).startswith("nvfp4gemm._"):
            yield str(node.value).removeprefix("nvfp4gemm.")


def uses_of(tree):
    """Names of nvfp4gemm._optional that a file reads: _optional.NAME."""
    return {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and
            isinstance(node.value, ast.Name) and node.value.id == "_optional"}


# A torch of which nothing but the version is read.
OLD = """
import sys, types
sys.modules["torch"] = torch = types.ModuleType("torch")
torch.__version__ = sys.argv[1]
import importlib
for module in ("nn", "parallel", "_ops", "_device", "_linear"):
    try:
        importlib.import_module("nvfp4gemm." + module)
    except ImportError as error:
        print(error)
"""


class OldestTorch(unittest.TestCase):
    def said_of(self, version):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.run([sys.executable, "-c", OLD, version], env=environment, text=True,
                              capture_output=True)

    def test_an_older_one_is_refused_in_words(self):
        for version in ("1.13.1", "2.10.0+cu128"):
            done = self.said_of(version)
            self.assertEqual(done.stdout.splitlines(), 5 * [
                f"torch is {version}; nvfp4gemm needs 2.11 or newer for torch tensors and layers"],
                done.stderr)

    def test_newer_ones_are_not(self):
        for version in ("2.11.0", "2.15.0+cu132", "2.16.0a0+git1234", "3.0.0"):
            self.assertNotIn("nvfp4gemm needs", self.said_of(version).stdout)

    @unittest.skipIf(os.environ.get("NVFP4_INSTALLED"), "the checkout's file is not installed")
    def test_the_wheel_says_the_same(self):
        with open(os.path.join(FOLDER, "../pyproject.toml"), encoding="utf-8") as file:
            self.assertIn('torch = ["torch>=2.11"]', file.read().splitlines())


class Modules(unittest.TestCase):
    def test_no_function_imports(self):
        late = {(name, node.lineno) for name, tree in trees().items()
                for function in ast.walk(tree)
                if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
                for node in ast.walk(function) if isinstance(node, IMPORTS)}
        self.assertEqual(late, set())

    def test_no_module_imports_one_that_imports_it(self):
        modules = trees()
        optional = {"compiled": "_compiled", "device": "_device", "known": "_known", "ops": "_ops"}
        below = {name: set(named_by(tree, modules)) for name, tree in modules.items()}
        self.assertEqual(below.pop("_optional"), set(optional.values()))
        for name, tree in modules.items():
            if name in below:
                below[name].discard("_optional")
                below[name].update(optional[use] for use in uses_of(tree) if use in optional)
        while below:
            lowest = {name for name, needs in below.items() if not needs & set(below)}
            self.assertTrue(lowest, f"these import each other: {sorted(below)}")
            below = {name: needs for name, needs in below.items() if name not in lowest}

    def test_nn_comes_with_the_package(self):
        """At its first use; without one, neither torch nor NumPy is imported."""
        code = ("import sys, nvfp4gemm\n"
                "assert not {'torch', 'numpy'} & set(sys.modules)\n"
                "assert 'nn' in dir(nvfp4gemm) and not hasattr(nvfp4gemm, 'mn')\n"
                "try:\n    import torch\nexcept ImportError:\n    sys.exit()\n"
                "nvfp4gemm.nn.Linear, nvfp4gemm.parallel.ColumnLinear\n")
        subprocess.run([sys.executable, "-c", code], check=True, env={
            **os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)})


if __name__ == "__main__":
    unittest.main()
