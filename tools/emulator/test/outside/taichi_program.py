# SPDX-License-Identifier: MIT
"""A first program of Taichi: a Julia set of few points, by its CUDA backend. Taichi seeds random
numbers for every thread of the device when it starts, so this one has an SM."""
import os

os.environ["EMU_SMS"] = "1"
import numpy as np  # noqa: E402
import taichi as ti  # noqa: E402

ti.init(arch=ti.cuda)
assert ti.lang.impl.current_cfg().arch == ti.cuda  # it falls back to the CPU otherwise
N, STEPS = 32, 20
counts = ti.field(ti.i32, shape=(2 * N, N))


@ti.kernel
def paint():
    for i, j in counts:
        x, y, n = i / N - 1.0, j / N - 0.5, 0
        while x * x + y * y < 4.0 and n < STEPS:
            x, y = x * x - y * y - 0.8, 2.0 * x * y + 0.156
            n += 1
        counts[i, j] = n


paint()
painted = counts.to_numpy()
i, j = np.meshgrid(np.arange(2 * N), np.arange(N), indexing="ij")
x, y = (i / N - 1).astype(np.float32), (j / N - 0.5).astype(np.float32)
wanted = np.zeros_like(painted)
for _ in range(STEPS):
    inside = x * x + y * y < 4
    wanted += inside
    x, y = (np.where(inside, x * x - y * y - np.float32(0.8), x),
            np.where(inside, 2 * x * y + np.float32(0.156), y))
# A point on the border may leave a step earlier or later: the GPU fuses products and sums.
assert (painted == wanted).mean() > 0.99, (painted == wanted).mean()
