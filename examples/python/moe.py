# SPDX-License-Identifier: MIT
"""moe.py: a mixture-of-experts layer whose experts are in NVFP4: route, gather, gate and up, down,
combine. On torch where a GPU is here or --torch is given, else on NumPy and the CPU.

Gate and up of all experts are one grouped gated product, down of all experts is a grouped one. The
same layer as a loop of single products over the experts is computed beside it (`gated_linear` and
`linear`), and the two are compared: on a GPU they may add in other orders.

    PYTHONPATH=tools/python NVFP4GEMM_LIBRARY=build/libnvfp4gemm.so python examples/python/moe.py
"""
import argparse

import numpy as np

import nvfp4gemm
from nvfp4gemm import layouts

try:
    import torch
except ImportError:
    torch = None


class OnNumpy:
    word, unit = "NumPy on the CPU", 2.0 ** -11  # float16: half of a unit of the last place

    @staticmethod
    def of(values):
        return values.astype(np.float16)

    @staticmethod
    def ends(experts, count):
        return np.bincount(experts, minlength=count).cumsum().astype(np.int32)

    @staticmethod
    def order(experts):
        return np.argsort(experts, kind="stable")

    @staticmethod
    def top(scores, k):
        found = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return found, np.take_along_axis(scores, found, axis=1)

    @staticmethod
    def softmax(x):
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    @staticmethod
    def add(to, rows, parts):
        np.add.at(to, rows, parts)

    zeros = staticmethod(lambda like: np.zeros(like.shape, np.float32))
    wide = staticmethod(lambda x: x.astype(np.float32))
    host = staticmethod(np.asarray)
    joined = staticmethod(np.concatenate)


class OnTorch:
    unit = 2.0 ** -8  # bfloat16

    def __init__(self, device):
        self.device, self.word = device, f"torch on {device}"

    def of(self, values):
        return torch.from_numpy(values).to(self.device).bfloat16()

    @staticmethod
    def ends(experts, count):  # on the device, and nothing waits
        return torch.zeros(count, dtype=torch.int32, device=experts.device).scatter_add_(
            0, experts, torch.ones_like(experts, dtype=torch.int32)).cumsum(0, dtype=torch.int32)

    @staticmethod
    def order(experts):
        return experts.argsort(stable=True)

    @staticmethod
    def top(scores, k):
        found = scores.topk(k, dim=1)
        return found.indices, found.values

    @staticmethod
    def softmax(x):
        return x.softmax(1)

    @staticmethod
    def add(to, rows, parts):
        to.index_add_(0, rows, parts)

    zeros = staticmethod(lambda like: torch.zeros_like(like, dtype=torch.float32))
    wide = staticmethod(lambda x: x.float())
    host = staticmethod(lambda x: x.cpu().numpy())
    joined = staticmethod(lambda parts: torch.cat(parts))


class Experts:
    """The weights of a layer: of each expert [2 * inner, hidden], gate before up, and [hidden,
    inner], each quantized by its own largest weight."""

    def __init__(self, kind, rng, experts, hidden, inner):
        first, second = (rng.standard_normal((experts, rows, k), np.float32) / np.sqrt(k)
                         for rows, k in ((2 * inner, hidden), (hidden, inner)))
        both, self.down = ([nvfp4gemm.quantize(kind.of(w)) for w in of_all]
                           for of_all in (first, second))
        self.halves = [layouts.split_gate_up(one) for one in both]
        self.gates, self.ups = (nvfp4gemm.stack(matrices) for matrices in zip(*self.halves))
        self.downs = nvfp4gemm.stack(self.down)


def routed(kind, x, router, count, each):
    """(which row of x each gathered row is, its weight, ends of the experts), sorted by expert."""
    chosen, weights = kind.top(kind.softmax(kind.wide(x) @ kind.wide(router).T), each)
    experts = chosen.reshape(-1)
    order = kind.order(experts)
    weights = weights / weights.sum(1).reshape(-1, 1)
    return order // each, weights.reshape(-1)[order], kind.ends(experts, count)


def grouped(_kind, layer, x, rows, ends):
    hidden = nvfp4gemm.grouped_gated_linear(x[rows], ends, layer.gates, layer.ups)
    return nvfp4gemm.grouped_linear(hidden, ends, layer.downs)


def loop(kind, layer, x, rows, ends):
    begin, parts = 0, []
    for end, (gate, up), down in zip(kind.host(ends).tolist(), layer.halves, layer.down):
        hidden = nvfp4gemm.gated_linear(x[rows[begin:end]], gate, up)
        parts.append(nvfp4gemm.linear(hidden, down, batch_invariant=True))
        begin = end
    return kind.joined(parts)


def combined(kind, x, rows, weights, y):
    out = kind.zeros(x)
    kind.add(out, rows, kind.wide(y) * weights.reshape(-1, 1))
    return out


def bound(kind, layer, x, rows, weights, ends):
    """How far the two may be apart: each rounds the middle, whose sums may differ in the last
    places of float32, and y."""
    begin, parts = 0, []
    for end, (gate, up), down in zip(kind.host(ends).tolist(), layer.halves, layer.down):
        a = np.float64(kind.host(kind.wide(x[rows[begin:end]])))
        g, u = (a @ np.float64(kind.host(w.dequantize())).T for w in (gate, up))
        middle = (3 * np.abs(g) * np.abs(u)) * kind.unit
        w = np.abs(np.float64(kind.host(down.dequantize())))
        parts.append(middle @ w.T + 2 * kind.unit * (np.abs(g * u) @ w.T))
        begin = end
    out = np.zeros(x.shape)
    np.add.at(out, kind.host(rows), np.concatenate(parts) * kind.host(weights).reshape(-1, 1))
    return out


def main():
    options = argparse.ArgumentParser()
    for name, value in (("experts", 8), ("top", 2), ("tokens", 32), ("hidden", 256),
                        ("inner", 128)):
        options.add_argument(f"--{name}", type=int, default=value)
    options.add_argument("--torch", action="store_true", help="torch on the CPU, without a GPU")
    given = options.parse_args()
    kind = OnNumpy
    if torch is not None and torch.cuda.is_available():
        kind = OnTorch("cuda")
    elif given.torch:
        if torch is None:
            raise SystemExit("this Python has no torch; nothing was done")
        kind = OnTorch("cpu")
    rng = np.random.default_rng(1)
    layer = Experts(kind, rng, given.experts, given.hidden, given.inner)
    x = kind.of(rng.standard_normal((given.tokens, given.hidden), np.float32))
    router = kind.of(rng.standard_normal((given.experts, given.hidden), np.float32))
    rows, weights, ends = routed(kind, x, router, given.experts, given.top)
    one, other = (kind.host(combined(kind, x, rows, weights, way(kind, layer, x, rows, ends)))
                  for way in (grouped, loop))
    share = (np.abs(one - other) / bound(kind, layer, x, rows, weights, ends)).max()
    print(f"{kind.word}: {given.tokens} tokens, {given.top} of {given.experts} experts each, a "
          f"grouped gated product and a grouped one; differs from a loop of single products by "
          f"{share:.3f} of the bound")
    if not share <= 1:
        raise SystemExit("the two differ by more than the bound")


if __name__ == "__main__":
    main()
