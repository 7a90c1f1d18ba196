# SPDX-License-Identifier: MIT
"""A first program of numba.cuda: a sum by blocks in shared memory, launched as on a GPU."""
import numpy as np
from numba import cuda, float32

THREADS = 128


@cuda.jit
def sums(x, out):
    shared = cuda.shared.array(THREADS, float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    shared[t] = x[i] if i < x.size else 0
    step = THREADS // 2
    while step:
        cuda.syncthreads()
        if t < step:
            shared[t] += shared[t + step]
        step //= 2
    if t == 0:
        cuda.atomic.add(out, 0, shared[0])


values = np.arange(1000, dtype=np.float32)
out = cuda.to_device(np.zeros(1, np.float32))
sums[8, THREADS](cuda.to_device(values), out)
assert out.copy_to_host()[0] == values.sum()
