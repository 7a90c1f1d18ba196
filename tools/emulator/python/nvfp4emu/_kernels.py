# SPDX-License-Identifier: MIT
"""What can be simulated, as PTX and the parameters of its launch."""
from dataclasses import dataclass, field

from . import _ptx
from ._arguments import what


@dataclass
class Kernel:
    """text: PTX. entry: which kernel of it. arguments: one for each parameter. scratch: bytes of
    further pointers, after the arguments. The rest is None where the caller or the PTX says it."""
    text: str
    entry: _ptx.Entry
    arguments: list
    scratch: list = field(default_factory=list)
    block: tuple = None
    shared: int = None
    ctas: int = 1  # of a cluster; the grid counts clusters
    cooperative: bool = False


def find_entry(text, name):
    found = _ptx.entries(text)
    if not found:
        raise ValueError("the PTX has no .entry, which is what a kernel is called there")
    names = ", ".join(each.name for each in found)
    if name is None and len(found) > 1:
        raise ValueError(f"the PTX has several kernels; name= takes one of {names}")
    for each in found:
        if name in (None, each.name):
            return each
    raise ValueError(f"the PTX has no kernel {name!r}; it has {names}")


def no_constants(constants, of):
    if constants:
        raise TypeError(f"{of} has no constants: unknown argument {next(iter(constants))!r}")


def of_ptx(text, arguments, name, constants):
    no_constants(constants, "PTX")
    return Kernel(text, find_entry(text, name), list(arguments))


def is_of(kernel, module, cls):
    return any(base.__name__ == cls and base.__module__.startswith(module)
               for base in type(kernel).__mro__)


def argument_names(kernel):
    """Those of a Triton kernel, which simulate takes by name."""
    if not is_of(kernel, "triton.", "JITFunction"):
        return set()
    return {parameter.name for parameter in kernel.params}


def device_of(kernel):
    """The device that PTX says it is for; None for what is compiled for whichever is asked."""
    text = kernel if isinstance(kernel, str) else getattr(kernel, "__ptx__", None)
    return _ptx.device(text) if isinstance(text, str) else None


def compiled(kernel, arguments, device, name, constants):
    if isinstance(kernel, (bytes, bytearray)):
        kernel = bytes(kernel).rstrip(b"\0").decode()
    if isinstance(kernel, str):
        return of_ptx(kernel, arguments, name, constants)
    if is_of(kernel, "triton.", "JITFunction"):
        from ._triton import compiled as by_triton
        return by_triton(kernel, arguments, device, name, constants)
    if is_of(kernel, "triton.", "KernelInterface"):
        raise TypeError(f"the kernel is of type {what(kernel)}, which chooses constants at its "
                        "launch; pass its .fn and the constants")
    if is_of(kernel, "numba", "CUDADispatcher"):
        from ._numba import compiled as by_numba
        return by_numba(kernel, arguments, device, name, constants)
    if isinstance(getattr(kernel, "__ptx__", None), str):
        return of_ptx(kernel.__ptx__, arguments, name, constants)
    raise TypeError(f"the kernel is of type {what(kernel)}; it may be PTX text, a kernel of Triton "
                    "or numba.cuda, or what CuTe DSL compiled with keep-ptx (__ptx__)")
