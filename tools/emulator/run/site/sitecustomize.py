# SPDX-License-Identifier: MIT
"""Python starts with this under `nvfp4emu run`. NVIDIA's Python packages (numba-cuda, cuda.core)
link kernels to cubins with nvJitLink wherever they find it, and with the driver where they do not;
the emulator's driver hands PTX on. So cuda.pathfinder is told to find every library except that
one. The sitecustomize that would have been imported otherwise is, too."""
import importlib
import importlib.util
import os
import sys
import warnings

HIDDEN = "nvJitLink"


def hide(pathfinder):
    load = pathfinder.load_nvidia_dynamic_lib

    def load_nvidia_dynamic_lib(libname, *arguments, **named):
        if libname == HIDDEN:
            raise pathfinder.DynamicLibNotFoundError(
                f"nvfp4emu run hides {HIDDEN}: its cubins do not run on an emulated device")
        return load(libname, *arguments, **named)

    pathfinder.load_nvidia_dynamic_lib = load_nvidia_dynamic_lib


class Finder:
    """Hides the library as soon as cuda.pathfinder is imported, by whomever."""

    def find_spec(self, name, path=None, target=None):
        if name != "cuda.pathfinder":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            hide(module)

        spec.loader.exec_module = exec_module
        return spec


def import_the_other_one():
    here = os.path.dirname(os.path.abspath(__file__))
    ours = sys.modules.pop("sitecustomize", None)
    path = list(sys.path)
    sys.path[:] = [entry for entry in path if os.path.abspath(entry or ".") != here]
    try:
        importlib.import_module("sitecustomize")
    except ModuleNotFoundError as missing:
        if missing.name != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = ours
    finally:
        sys.path[:] = path


sys.meta_path.insert(0, Finder())
warnings.filterwarnings("ignore", message="cuda.bindings.nvjitlink is not available")
import_the_other_one()
