# SPDX-License-Identifier: MIT
"""tinygrad_programs.py add|matmul|softmax|training: first programs of tinygrad by its CUDA backend,
compared with numpy."""
import os
import sys

os.environ["DEV"] = "CUDA"
import numpy as np  # noqa: E402
from tinygrad import Tensor, nn  # noqa: E402
from tinygrad.helpers import Context  # noqa: E402

random = np.random.default_rng(1)


def numbers(*shape):
    return random.standard_normal(shape, dtype=np.float32)


def near(got, wanted, within=1e-4):
    assert np.abs(got - wanted).max() <= within, np.abs(got - wanted).max()


def add():
    a, b = numbers(1000), numbers(1000)
    near((Tensor(a) + Tensor(b)).numpy(), a + b, 0)


def matmul():
    a, b = numbers(64, 96), numbers(96, 80)
    near((Tensor(a) @ Tensor(b)).numpy(), a @ b)
    half = (Tensor(a).half() @ Tensor(b).half()).numpy().astype(np.float32)
    near(half, a.astype(np.float16).astype(np.float32) @ b.astype(np.float16).astype(np.float32),
         0.1)


def softmax():
    a = numbers(32, 100)
    e = np.exp(a - a.max(1, keepdims=True))
    near(Tensor(a).softmax(1).numpy(), e / e.sum(1, keepdims=True), 1e-6)


def training():
    """Steps of gradient descent of two layers: the loss falls."""
    first, second = nn.Linear(16, 32), nn.Linear(32, 1)
    optimiser = nn.optim.SGD([first.weight, first.bias, second.weight, second.bias], lr=0.05)
    x, y = Tensor(numbers(64, 16)), Tensor(numbers(64, 1))
    losses = []
    for _ in range(3):
        optimiser.zero_grad()
        loss = (second(first(x).relu()) - y).square().mean().backward()
        with Context(TRAINING=1):
            optimiser.step()
        losses.append(loss.item())
    assert losses[0] > losses[1] > losses[2], losses


{"add": add, "matmul": matmul, "softmax": softmax, "training": training}[sys.argv[1]]()
