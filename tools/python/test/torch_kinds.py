# SPDX-License-Identifier: MIT
"""The table of door_table.py on torch's tensors, or the stub's, of one device: the columns that
tensors can have, and those that only they have."""
import numpy as np

import door_table
import oddities
import pages
from door_table import Column

# What no tensor can be: negative steps, foreign bytes, steps of no whole element, read-only,
# classes and sizes of NumPy. What from_numpy() is told of memory that ended it must believe.
OF_NUMPY = {"one row repeated", "one column repeated", "rows backwards", "columns backwards",
            "from the second byte on", "steps of no whole element", "foreign order of bytes",
            "read-only", "np.memmap's class", "np.matrix", "masked", "memory too short",
            "memory given back", "a scalar of NumPy"}
# On a GPU an address is a multiple of 16 bytes: of what is written it must be.
UNALIGNED = {"from the second element on"}


class TorchOdd:
    """A tensor, and the bytes of its memory with what NumPy's view of them covers."""

    def __init__(self, array, memory=None, numpy_odd=None):
        self.array, self.memory, self.numpy_odd = array, memory, numpy_odd

    def bytes(self):
        if self.memory is None:
            return None
        return np.array(self.memory if isinstance(self.memory, np.ndarray) else self.memory.cpu())

    def mine(self):
        return pages.places_of(self.numpy_odd.array, self.numpy_odd.memory)


# Columns of tensors alone: whether one is read, whether one is written.
VERDICTS = {
    "requires a gradient": ("equal", "raises"),
    "a parameter": ("equal", "equal"),
    "made in inference mode": ("equal", "equal"),
    "a negation is pending": ("equal", "raises"),
    "no memory left": ("raises", "raises"),
    "half of its memory left": ("raises", "raises"),
    "sparse": ("raises", "raises"),
    "nested": ("raises", "raises"),
    "on the meta device": ("raises", "raises"),
    "a class with a dispatch of its own": ("raises", "raises"),
    "a class with a function of its own": ("equal", "equal"),
    "an array of NumPy": ("raises", "raises"),
}


class OnTorch:
    """`place(odd)` is a TorchOdd of NumPy's; `makers` has a function of values for each column of
    VERDICTS. Where a tensor cannot be so it returns None."""

    def __init__(self, device, place, makers):
        self.place, self.device = place, device
        self.columns = {name: self._column(name, column)
                        for name, column in door_table.columns().items() if name not in OF_NUMPY}
        for name, (read, written) in VERDICTS.items():
            self.columns[name] = Column(self._own(makers[name]), read, written)

    def _own(self, maker):
        def make(values):
            array = maker(values)
            return None if array is None else TorchOdd(array)
        return make

    def _column(self, name, column):
        def make(values):
            odd = column.make(values)
            if odd is None or isinstance(odd.array, (list, float)):
                return odd and TorchOdd(odd.array)
            return self.place(odd)
        written = column.verdict[door_table.WRITTEN]
        if self.device != "cpu" and name in UNALIGNED:
            written = "raises"
        return Column(make, column.verdict[door_table.READ], written)

    def of(self, values):
        return self.place(oddities.dense(values)).array

    @staticmethod
    def values(x):
        if isinstance(x, (float, np.ndarray)):
            return x
        return x.detach().resolve_neg().cpu().numpy()
