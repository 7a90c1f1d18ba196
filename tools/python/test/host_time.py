# SPDX-License-Identifier: MIT
"""Host time of calls, in units of a call that never changes, so that a slow host has the same
figures as a fast one."""
import statistics
import time


class _Thing:
    def __init__(self, tensor, name):
        self._tensor, self._name, self.kept = tensor, name, {name: tensor}

    tensor = property(lambda self: self._tensor)

    def place(self):
        return self._tensor.data_ptr(), self._name, None


def _key(thing, *more, names=("a", "b"), given=None):
    if not isinstance(thing, _Thing) or given is not None:
        raise TypeError(f"{names[0]} is {type(thing).__name__}")
    tensor = thing.tensor
    return (thing.place(), tensor.get_device(), tensor.dtype, tensor.stride(), *more)


def unit_of(tensor):
    """A call that does what a call of this package does on its way, a few times over: it asks
    tensors, makes tuples, passes arguments and looks into tables."""
    thing, table = _Thing(tensor, "a"), {}

    def unit():
        for turn in range(6):
            key = _key(thing, turn, None, 1.0, names=("x", "y"))
            if table.get(key) is None:
                table[key] = thing.kept.get("a")
    return unit


def in_units(calls, unit, rounds=41, times=50):
    """Processor time of this thread in each of `calls`, over that of `unit`: medians of rounds that
    take them in turns. `unit` in microseconds comes second."""
    def seconds(call):
        start = time.thread_time()
        for _ in range(times):
            call()
        return time.thread_time() - start

    for call in (unit, *calls.values()):
        seconds(call)
    ratios, units = {name: [] for name in calls}, []
    for _ in range(rounds):
        for name, call in calls.items():
            before, taken = seconds(unit), seconds(call)
            ratios[name].append(2 * taken / (before + seconds(unit)))
            units.append(before / times * 1e6)
    return ({name: statistics.median(of_call) for name, of_call in ratios.items()},
            statistics.median(units))
