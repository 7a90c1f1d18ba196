# SPDX-License-Identifier: MIT
"""Memory that shows who touches more than he was given: a page without rights behind it, and bytes
around it that are compared afterwards."""
import ctypes
import mmap

import numpy as np

PROT_NONE = 0
_libc = ctypes.CDLL(None, use_errno=True)
_mapped = []  # mappings stay: an array may outlive a test


def bytes_before_a_wall(count):
    """So many bytes, behind which a page without rights lies: who reads on ends the process."""
    page = mmap.PAGESIZE
    room = -(-max(count, 1) // page) * page
    mapping = mmap.mmap(-1, room + page)
    _mapped.append(mapping)
    address = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
    if _libc.mprotect(ctypes.c_void_p(address + room), page, PROT_NONE):
        raise OSError(ctypes.get_errno(), "mprotect")
    # An array of its own: its size is what a reader may know of this memory.
    memory = (ctypes.c_char * count).from_address(address + room - count)
    return np.frombuffer(memory, np.uint8)


def places_of(view, memory):
    """True for each byte of memory, uint8, that belongs to an element of view."""
    offsets = np.zeros(1, np.int64) + view.ctypes.data - memory.ctypes.data
    for n, stride in zip(view.shape, view.strides):
        offsets = np.add.outer(offsets, np.arange(n) * stride)
    mine = np.zeros(memory.size, bool)
    mine[np.add.outer(offsets.reshape(-1), np.arange(view.itemsize)).reshape(-1)] = True
    return mine
