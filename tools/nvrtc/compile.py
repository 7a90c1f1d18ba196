#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""compile.py LIBNVRTC ARCH SOURCE OUT [OPTION...]: one .cu to PTX by NVRTC, where a version of CUDA
has no nvcc to install. tools/nvrtc/include stands for the two standard headers that the kernels
include, which NVRTC does not bring."""
import collections
import ctypes
import os
import re
import sys


def without_unused(ptx):
    """NVRTC makes every static constexpr member a variable of the module, hundreds of them, for
    which the emulator finds memory as a driver might. Those that the text names nowhere else go."""
    names = collections.Counter(re.findall(r"[\w$]+", ptx))

    def keep(line):
        variable = re.match(r"\.global (?:\.align \d+ )?\.\w+ ([\w$]+)(?:\[\d*\])?(?: = .*)?;$",
                            line)
        return not variable or names[variable[1]] > 1
    return "".join(line + "\n" for line in ptx.splitlines() if keep(line))


def main(library, arch, source, out, *options):
    nvrtc = ctypes.CDLL(library)
    nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p

    def check(result, call):
        if result:
            sys.exit(f"{call}: {nvrtc.nvrtcGetErrorString(result).decode()}")

    with open(source, "rb") as text:
        program = ctypes.c_void_p()
        check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.read(), source.encode(), 0, None,
                                       None),
              "nvrtcCreateProgram")
    here = os.path.join(os.path.dirname(os.path.relpath(__file__)), "include")
    flags = [f"--gpu-architecture={arch}", f"-I{here}", "-I.", "--std=c++17",
             "--device-as-default-execution-space", *options]
    array = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
    result = nvrtc.nvrtcCompileProgram(program, len(flags), array)
    size = ctypes.c_size_t()
    if result:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        sys.exit(f"{source}: {nvrtc.nvrtcGetErrorString(result).decode()}\n{log.value.decode()}")
    check(nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size)), "nvrtcGetPTXSize")
    ptx = ctypes.create_string_buffer(size.value)
    check(nvrtc.nvrtcGetPTX(program, ptx), "nvrtcGetPTX")
    with open(out, "w", encoding="ascii") as file:
        file.write(without_unused(ptx.value.decode("ascii")))


if __name__ == "__main__":
    main(*sys.argv[1:])
