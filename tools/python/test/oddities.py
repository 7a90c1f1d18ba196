# SPDX-License-Identifier: MIT
"""Every way in which an array can be unlike a fresh dense one. Each function here makes one from
values, on memory that ends before a wall; the bytes around its elements are the caller's to
compare."""
import ctypes

import numpy as np

import pages
from pages import bytes_before_a_wall

FILL = 0x7B  # of bytes that belong to no element; large as a number, as codes and as scales


class Odd:
    """An array and all the bytes of which it is a view."""

    def __init__(self, array, memory):
        self.array, self.memory = array, memory

    def bytes(self):
        """A copy of them; None where the array is none of NumPy's."""
        return None if self.memory is None else self.memory.copy()

    def mine(self):
        """Which of them the array's elements are."""
        return pages.places_of(self.array, self.memory)


def _room(count):
    memory = bytes_before_a_wall(count)
    memory[:] = FILL
    return memory


def _view(memory, dtype, shape, strides, offset=0):
    """By bytes, without a look at what memory holds."""
    return np.ndarray(shape, dtype, buffer=memory, offset=offset, strides=strides)


def _dense(shape, itemsize):
    strides = [itemsize]
    for n in reversed(shape[1:]):
        strides.insert(0, strides[0] * n)
    return tuple(strides[:len(shape)])


def _filled(view, values, memory):
    view[...] = values
    return Odd(view, memory)


def dense(values):
    memory = _room(values.nbytes)
    return _filled(_view(memory, values.dtype, values.shape, _dense(values.shape, values.itemsize)),
                   values, memory)


def repeated(values, axis):
    """One row, or one column, seen as often as the shape says."""
    one = np.take(values, [0], axis)
    odd = dense(one)
    return Odd(np.broadcast_to(odd.array, values.shape), odd.memory)


def repeated_and_writable(values, axis):
    odd = repeated(values, axis)
    view = odd.array
    return Odd(np.lib.stride_tricks.as_strided(odd.memory.view(values.dtype), view.shape,
                                               view.strides), odd.memory)


def reversed_(values, axis):
    odd = dense(np.flip(values, axis))
    return Odd(np.flip(odd.array, axis), odd.memory)


def in_steps(values, axis):
    """Every second place of an array twice as long; none behind the last."""
    shape = list(values.shape)
    shape[axis] = 2 * shape[axis] - 1
    memory = _room(int(np.prod(shape)) * values.itemsize)
    whole = _view(memory, values.dtype, shape, _dense(shape, values.itemsize))
    picked = [slice(None)] * values.ndim
    picked[axis] = slice(None, None, 2)
    return _filled(whole[tuple(picked)], values, memory)


def by_columns(values):
    odd = dense(np.ascontiguousarray(values.T))
    return Odd(odd.array.T, odd.memory)


def inside(values, gap=8):
    """Of an array that is wider and higher, by elements that keep an alignment to 16 bytes."""
    shape = [n + 2 * gap for n in values.shape]
    memory = _room(int(np.prod(shape)) * values.itemsize)
    whole = _view(memory, values.dtype, shape, _dense(shape, values.itemsize))
    return _filled(whole[tuple(slice(gap, -gap) for _ in shape)], values, memory)


def apart(values):
    """Rows that begin one element more than their length after each other."""
    shape = (*values.shape[:-1], values.shape[-1] + 1)
    memory = _room((int(np.prod(shape)) - 1) * values.itemsize)
    view = _view(memory, values.dtype, values.shape, _dense(shape, values.itemsize))
    return _filled(view, values, memory)


def shifted(values, by):
    """From so many bytes on, in memory that begins where an element may."""
    memory = _room(values.nbytes + -(-by // values.itemsize) * values.itemsize)
    return _filled(_view(memory, values.dtype, values.shape, _dense(values.shape, values.itemsize),
                         by), values, memory)


def broken_steps(values):
    """Elements that lie one byte apart, so that no step is a whole number of them."""
    step = values.itemsize + 1
    memory = _room(values.size * step)
    strides = tuple(s // values.itemsize * step for s in _dense(values.shape, values.itemsize))
    return _filled(_view(memory, values.dtype, values.shape, strides), values, memory)


def overlapping(values):
    """Rows that begin one element after each other."""
    count = values.shape[0] + values.shape[-1] - 1
    odd = dense(np.resize(values.reshape(-1), count))
    return Odd(np.lib.stride_tricks.as_strided(odd.array, values.shape,
                                               (values.itemsize, values.itemsize)), odd.memory)


def swapped(values):
    """The leading dimensions of [a, b, n] stored as [b, a, n]: no one step leads through them."""
    odd = dense(np.ascontiguousarray(values.swapaxes(0, 1)))
    return Odd(odd.array.swapaxes(0, 1), odd.memory)


def foreign_order(values):
    return dense(values.astype(values.dtype.newbyteorder(">")))


def read_only(values):
    odd = dense(values)
    odd.array.flags.writeable = False
    return odd


def subclass(values, kind):
    odd = dense(values)
    return Odd(odd.array.view(kind), odd.memory)


def masked(values):
    odd = dense(values)
    mask = np.zeros(values.shape, bool)
    mask.reshape(-1)[:1] = True
    return Odd(np.ma.array(odd.array, mask=mask, copy=False), odd.memory)


def too_short(values):
    """The shape says more than the memory holds."""
    memory = _room(max(values.nbytes - values.itemsize, 0))
    return Odd(np.lib.stride_tricks.as_strided(memory[:0].view(values.dtype), values.shape,
                                               _dense(values.shape, values.itemsize)), memory)


def shrunk(values):
    """The owner gave most of its memory back while a view remained."""
    owner = np.zeros(values.size, values.dtype)
    view = owner[:].reshape(values.shape)
    owner.resize(1, refcheck=False)
    return Odd(view, np.zeros(0, np.uint8))


def of_ctypes(values):
    """On memory that ctypes holds, which says how much it is."""
    memory = np.frombuffer((ctypes.c_char * values.nbytes)(), np.uint8)
    return _filled(memory.view(values.dtype).reshape(values.shape), values, memory)


def as_type(values, dtype):
    return dense(values.astype(dtype))


def shaped(values, shape):
    """Too few or too many elements, or dimensions."""
    return dense(np.resize(values, shape))
