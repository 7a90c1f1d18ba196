# SPDX-License-Identifier: MIT
"""Kernels of Triton, compiled for the emulated device without a launch."""
import os
from contextlib import contextmanager

import numpy as np

from ._arguments import what
from ._driver import tool_path
from ._kernels import Kernel, find_entry

TYPES = {"bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8",
         "uint16": "u16", "uint32": "u32", "uint64": "u64", "float16": "fp16", "bfloat16": "bf16",
         "float32": "fp32", "float64": "fp64", "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5"}


def type_of(value, where):
    """Triton's name for the type of an argument, as a launch finds it."""
    if isinstance(value, (bool, np.bool_)):
        return "i1"
    if isinstance(value, int) and not isinstance(value, np.generic):
        return "i32" if -1 << 31 <= value < 1 << 31 else "i64" if value < 1 << 63 else "u64"
    if isinstance(value, float) and not isinstance(value, np.generic):
        return "fp32"
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.name in TYPES:
        return "*" * isinstance(value, np.ndarray) + TYPES[value.dtype.name]
    kind = f" of {value.dtype}" if hasattr(value, "dtype") else ""
    raise TypeError(f"{where} is of type {what(value)}{kind}; Triton's kernels take numpy arrays "
                    "and scalars of its types, int and float")


@contextmanager
def without_an_assembler():
    """Triton makes a cubin of its PTX, which nobody needs here."""
    tool = tool_path()
    names = ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH")
    kept = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, tool))
    try:
        yield
    finally:
        for name, value in kept.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def bound(kernel, arguments, constants):
    """Signature, constants and the arguments that remain; and the options of the compiler."""
    named = {parameter.name: parameter for parameter in kernel.params}
    options = {key: value for key, value in constants.items() if key not in named}
    given = {key: value for key, value in constants.items() if key in named}
    runtime = [name for name in named if name not in given]
    for name in runtime[len(arguments):]:
        if not named[name].has_default:
            raise TypeError(f"the kernel's argument {name!r} is missing")
        given[name] = named[name].default
    runtime = runtime[:len(arguments)]
    if len(runtime) < len(arguments):
        raise TypeError(f"{len(arguments)} arguments are given, and the kernel has {len(runtime)} "
                        "that are not given by name")
    given.update(zip(runtime, arguments))
    fixed = {name: value for name, value in given.items()
             if named[name].is_constexpr or value is None}
    signature = {name: "constexpr" if name in fixed else type_of(given[name], f"argument {name!r}")
                 for name in named}
    return signature, fixed, [given[name] for name in named if name not in fixed], options


def compiled(kernel, arguments, device, name, constants):
    import triton
    from triton.backends.compiler import GPUTarget
    if name is not None:
        raise TypeError("name= is for PTX with several kernels; a Triton kernel is one")
    signature, fixed, remaining, options = bound(kernel, arguments, constants)
    source = triton.compiler.ASTSource(fn=kernel, signature=signature, constexprs=fixed)
    major, minor = device.capability
    target = GPUTarget("cuda", 10 * major + minor, 32)
    with without_an_assembler():
        known = vars(triton.compiler.make_backend(target).parse_options({}))
        for option in options.keys() - known.keys():
            raise TypeError(f"the kernel has no argument {option!r}, and Triton's compiler no "
                            "such option")
        made = triton.compile(source, target=target, options=options)
    found, text = made.metadata, made.asm["ptx"]
    entry = find_entry(text, found.name)
    scratch = [getattr(found, "global_scratch_size", 0), getattr(found, "profile_scratch_size", 0)]
    extra = len(entry.parameters) - len(remaining)
    return Kernel(text, entry, remaining, scratch[:extra], entry.threads or
                  (32 * found.num_warps, 1, 1), found.shared, getattr(found, "num_ctas", 1),
                  getattr(found, "launch_cooperative_grid", False))
