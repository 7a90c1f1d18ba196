# SPDX-License-Identifier: MIT
"""simulate: a kernel on NumPy arrays."""
import ctypes
import os
import threading
from dataclasses import dataclass, field

from . import _kernels
from ._arguments import Arguments
from ._driver import device as find_device
from ._errors import Error, KernelError
from ._findings import Collector

DEFAULTS = {"EMU_ORDER": "random", "EMU_SEED": "1", "EMU_HAZARDS": "stop", "EMU_FORMAL": "report"}
lock = threading.RLock()


@dataclass
class Run:
    """What a simulation was. findings: every nvfp4emu.Finding, in order. status: "CUDA_SUCCESS" or
    the error's name. counters: what the launch did, by the names of the emulator's README; empty
    if it did not end. device: the name of the emulated device. ptx: the text that ran."""
    status: str
    findings: list
    counters: dict
    device: str
    ptx: str = field(repr=False)

    @property
    def errors(self):
        return [found for found in self.findings if found.kind == "error"]

    @property
    def formal(self):
        return [found for found in self.findings if found.kind == "formal"]


def dimensions(given, what):
    values = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if not 1 <= len(values) <= 3 or not all(isinstance(n, int) and n > 0 for n in values):
        raise ValueError(f"{what} is {given!r}; it is one to three positive integers")
    return values + (1,) * (3 - len(values))


@dataclass
class Shape:
    """Of a launch: what the caller says, and after `of` what the kernel adds."""
    grid: tuple
    block: tuple
    shared: int
    cluster: tuple
    cooperative: bool

    def __post_init__(self):
        self.grid = dimensions(self.grid, "grid")
        if self.block is not None:
            self.block = dimensions(self.block, "block")
        if self.cluster is not None:
            self.cluster = dimensions(self.cluster, "cluster")
        if self.shared is not None and (not isinstance(self.shared, int) or self.shared < 0):
            raise ValueError(f"shared is {self.shared!r}; it is a number of bytes")

    def of(self, kernel):
        stated = kernel.block or kernel.entry.threads
        if self.block is None and not stated:
            raise ValueError("block= is missing: the kernel does not say how many threads it has")
        if self.block and stated and self.block != stated:
            raise ValueError(f"block is {self.block}, and the kernel is for {stated}")
        grid, cluster = self.grid, self.cluster
        if kernel.ctas > 1:
            grid = (grid[0] * kernel.ctas, *grid[1:])
            cluster = cluster or (kernel.ctas, 1, 1)
        return Shape(grid, self.block or stated,
                     (kernel.shared or 0) if self.shared is None else self.shared,
                     None if kernel.entry.cluster else cluster,
                     kernel.cooperative if self.cooperative is None else self.cooperative)

    def __str__(self):
        return (f"grid {self.grid}, block {self.block}, {self.shared} bytes of dynamic shared "
                "memory" + (f", clusters of {self.cluster}" if self.cluster else ""))


def pack(kernel, arguments):
    """The bytes of every parameter."""
    parameters = kernel.entry.parameters
    given = len(kernel.arguments) + len(kernel.scratch)
    if given != len(parameters):
        raise TypeError(f"{given} arguments are given, and the kernel {kernel.entry.name} has "
                        f"{len(parameters)} parameters")
    return [arguments.pack(value, parameter, f"argument {i}")
            for i, (value, parameter) in enumerate(zip(kernel.arguments, parameters))]


def pointers_to(packed):
    buffers = [(ctypes.c_char * max(len(data), 1)).from_buffer_copy(data or b"\0")
               for data in packed]
    return (ctypes.c_void_p * max(len(buffers), 1))(*map(ctypes.addressof, buffers)), buffers


def apply(device, settings):
    for name, value in settings.items():
        default = os.environ.get(name, DEFAULTS[name])
        device.set(name, default if value is None else value)


def run_on(device, kernel, shape):
    module, arguments = device.load(kernel.text), Arguments(device)
    packed = pack(kernel, arguments)
    blocks = shape.grid[0] * shape.grid[1] * shape.grid[2]
    packed += [arguments.zeros(each * blocks).to_bytes(8, "little") for each in kernel.scratch]
    pointers, _held = pointers_to(packed)
    status = device.launch(module, kernel.entry.name, shape, pointers)
    counters = {} if status else device.counters()
    status = status or arguments.back()
    run = Run(device.error_name(status), list(device.reports), counters, device.name, kernel.text)
    if not status:
        arguments.free()
        device.call("cuModuleUnload", module)
    elif not run.errors + run.formal:
        notes = "".join("; " + found.text for found in run.findings)
        raise Error(f"the launch of {kernel.entry.name} is refused, {run.status}: {shape}{notes}")
    return run


def finish(device, run, check):
    Collector.add(run.findings)
    if run.status != "CUDA_SUCCESS":
        device.renew()
    if check and (run.errors or run.status != "CUDA_SUCCESS"):
        raise KernelError(run)
    return run


def simulate(kernel, grid, *arrays, block=None, device=None, name=None, shared=None, cluster=None,
             cooperative=None, order=None, seed=None, hazards=None, formal=None, check=True,
             **constants):
    """Runs a kernel once on an emulated GPU and returns an nvfp4emu.Run.

    kernel: PTX text; a function of triton.jit, or of numba.cuda.jit; what CuTe DSL compiled with
    keep-ptx. grid: blocks, an int or up to three. arrays: the kernel's arguments in order. NumPy
    arrays are C-contiguous; each is copied to the device and back, so the kernel's results are in
    them afterwards (not in read-only ones; nor in any, if an error stopped the launch). Numbers are
    int, float or numpy scalars. For PTX and CuTe DSL, bytes are a parameter as it is, and a tuple
    of arrays, numpy scalars and bytes is a struct.

    block: threads, where the kernel does not say. device: "H200", "B200", "RTX5090" and others
    (EMU_DEVICE); if left out, EMU_DEVICE or what the PTX is for, or "B200". name: which kernel of a
    PTX text with several. shared: bytes of dynamic shared memory. cluster: blocks of a cluster.
    cooperative: a cooperative launch. order, seed, hazards, formal: the settings EMU_ORDER,
    EMU_SEED, EMU_HAZARDS and EMU_FORMAL for this run. constants: tl.constexpr arguments of a Triton
    kernel and options of its compiler (num_warps=8), by name. A name in this list that the kernel has,
    such as block, is the kernel's.

    Raises KernelError if a check finds an error, or formal="stop" ended the launch, unless
    check=False; PtxError if the PTX is refused; TypeError and ValueError for arguments that do not
    fit; Error for the rest."""
    own = {"block": block, "device": device, "name": name, "shared": shared, "cluster": cluster,
           "cooperative": cooperative, "order": order, "seed": seed, "hazards": hazards,
           "formal": formal}
    for key in _kernels.argument_names(kernel) & own.keys():
        if own[key] is not None:
            constants[key], own[key] = own[key], None
    settings = {"EMU_" + key.upper(): own[key] for key in ("order", "seed", "hazards", "formal")}
    wanted = own["device"] or os.environ.get("EMU_DEVICE") or _kernels.device_of(kernel) or "B200"
    shape = Shape(grid, *(own[key] for key in ("block", "shared", "cluster", "cooperative")))
    with lock:
        on = find_device(wanted)
        on.reports.clear()
        try:
            apply(on, settings)
            made = _kernels.compiled(kernel, arrays, on, own["name"], constants)
            return finish(on, run_on(on, made, shape.of(made)), check)
        except BaseException:
            on.renew()  # whatever was allocated goes
            raise
