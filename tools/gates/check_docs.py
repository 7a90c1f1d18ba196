# SPDX-License-Identifier: MIT
"""check_docs.py BUILD: recomputes what docs/*.md states.

A table or picture is preceded by `<!-- check: NAME -->`; NAME is a function below that gets its
rows. A table without such a line, an unknown name and a C block that does not compile are failures.
Values come from the library; where numpy's ml_dtypes knows the format, from there as well.
"""

import csv
import glob
import math
import os
import re
import statistics
import subprocess
import sys

import ml_dtypes
import numpy as np

import support

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LINEAR, TILED = 2, 1


# ---- numbers -------------------------------------------------------------------------------------

def same(got, text):
    """Equal as fp32, the sign of zero and NaN included."""
    got, want = np.float32(got), np.float32(text)
    return bool(np.isnan(got) and np.isnan(want)) or got.tobytes() == want.tobytes()


def decode(byte, scale=0x38):
    """Both elements of a byte, by the library."""
    codes = np.zeros((1, 16), np.uint8)
    codes[0, 0] = byte
    scales = np.array([scale, 0], np.uint8)
    return lib.Packed(codes, scales, 1, 32, 1.0, "linear").dequantize()[0, :2]


def quantized(elements, t, scale_rule=None):
    x = np.zeros((1, 16), np.float32)
    x[0, :len(elements)] = elements
    q = lib.quantize(x, t, scale_layout="linear", scale_rule=scale_rule)
    nibbles = np.stack([q.codes[0] & 15, q.codes[0] >> 4], 1).ravel()
    return int(q.scales[0]), [int(code) for code in nibbles[:len(elements)]]


def product(a, sa, b, sb, alpha):
    """Bits of D, one product."""
    def matrix(code, scale):
        codes = np.zeros((1, 16), np.uint8)
        codes[0, 0] = code
        return lib.Packed(codes, np.array([scale], np.uint8), 1, 16, 1.0, "linear")
    return int(lib.mm(matrix(a, sa), matrix(b, sb), alpha=alpha).view(np.uint16)[0, 0])


def tiled_offset(row, ks, rows, k):
    """Where nvfp4_scale_convert_host puts a scale."""
    linear = np.zeros(rows * k // 16, np.uint8)
    linear[row * (k // 16) + ks] = 1
    codes = np.zeros((rows, k // 2), np.uint8)
    packed = lib.Packed(codes, linear, rows, k, 1.0, "linear")
    return int(np.flatnonzero(packed.with_scales("128x4").scales)[0])


# ---- docs/numerics.md ----------------------------------------------------------------------------

def check_e2m1(rows):
    pairs = [(row[i], row[i + 1]) for row in rows for i in (0, 2)]
    codes = [int(code, 16) for code, _ in pairs]
    by_numpy = np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    return sorted(codes) == list(range(16)) and all(
        same(decode(code)[0], value) and same(by_numpy[code], value)
        for code, (_, value) in zip(codes, pairs))


def check_ue4m3(rows):
    def good(byte, value):
        by_numpy = np.array([byte], np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float32)[0]
        return same(decode(0x02, byte)[0], value) and same(by_numpy, value)
    return all(good(int(row[0], 16), row[1]) for row in rows)


def check_product(rows):
    return all(product(*[int(cell, 16) for cell in row[:4]], float(row[4])) == int(row[5], 16)
               for row in rows)


@np.errstate(over="ignore")
def check_round_f16(rows):
    return all(product(0x2, 0x38, 0x2, 0x38, float(alpha)) == int(d, 16) and
               int(np.float16(np.float32(alpha)).view(np.uint16)) == int(d, 16)
               for alpha, d, _ in rows)


def activated(activation, x):
    """Bits of act(x): K = 0, so that x is what a bias adds to -0."""
    x = np.array([x], np.float32)
    d = np.empty(1, np.float32)
    g = lib.abi.GemmDesc(m=1, n=1, k=0, l=1, d=d.ctypes.data, d_ld=1, d_type=3, bias=x.ctypes.data,
                 bias_type=3, alpha=-0.0, activation=activation, a_scale_layout=LINEAR,
                 b_scale_layout=LINEAR)
    lib.abi.check(lib.abi.lib.nvfp4_gemm_reference(g))
    return d.view(np.uint32)[0]


with open(f"{ROOT}/include/nvfp4_gemm.h", encoding="utf-8") as header:
    ACTIVATIONS = {name: int(number) for name, number in
                   re.findall(r"NVFP4_ACTIVATION_(\w+) = (\d+)", header.read()) if name != "NONE"}


def check_activation(rows):
    """A column for each activation of the header, in its order."""
    return all(len(cells) == len(ACTIVATIONS) for _, *cells in rows) and all(
        activated(activation, float(x)) == int(bits, 16)
        for x, *cells in rows for activation, bits in zip(ACTIVATIONS.values(), cells))


def check_activation_error(rows):
    def exact(name, x):
        if name == "SILU":
            return x / (1 + math.exp(-x))
        if name == "GELU_TANH":
            return x / (1 + math.exp(-2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
        if name == "GELU_ERF":
            return 0.5 * x * math.erfc(-x * math.sqrt(0.5))
        raise ValueError(f"no exact {name}")

    def error(name, text):
        x = np.float32(text)
        want = exact(name, float(x))
        unit = 2.0 ** (math.frexp(want)[1] - 24)
        got = activated(ACTIVATIONS[name], x).view(np.float32)
        return abs(float(got) - want) / unit
    return all(abs(error(name, x) - float(stated)) <= 0.006 for name, x, stated in rows)


def check_rules(rows):
    tests = "".join(open(name, encoding="utf-8").read()
                    for name in glob.glob(f"{ROOT}/test/**/*.cc", recursive=True))
    names = set(re.findall(r'TEST_CASE\(\s*"([^"]*)"', tests))
    return all(row[1] in names for row in rows)


def check_models(rows):
    """The words that "words that a B200 gave, and words that tell the models apart" compares
    with."""
    path = f"{ROOT}/tools/emulator/test/golden/block_scaled_words.csv"
    with open(path, encoding="utf-8") as file:
        names = ("groups", "zero_raises", "zero_rests")
        words = {row["case"]: [int(row[name], 16) for name in names]
                 for row in csv.DictReader(file)}
    return all(words[row[0]] == [int(word, 16) for word in row[1:]] for row in rows)


def check_exact_k(rows):
    """Every partial sum below 2^24 units of the smallest product."""
    def largest(scales):
        unit = 0.25 * min(scales) ** 2
        return int(2 ** 24 // (36 * max(scales) ** 2 / unit))
    def number(text):
        numerator, _, denominator = text.partition("/")
        return float(numerator) / float(denominator or 1)
    return all(largest([number(s) for s in row[0].split(",")]) == int(row[1]) for row in rows)


def check_round_e2m1(rows):
    def good(x, code):
        scale, codes = quantized([6.0, float(x)], 1.0)
        by_numpy = np.array([x], np.float32).astype(ml_dtypes.float4_e2m1fn).view(np.uint8)[0] & 15
        return scale == 0x38 and codes[1] == int(code, 16) == by_numpy
    return all(good(row[0], row[1]) for row in rows)


def check_quantize(rows):
    def good(elements, t, scale, codes):
        return quantized([float(x) for x in elements.split(",")], float(t)) == (
            int(scale, 16), [int(code, 16) for code in codes.split(",")])
    return all(good(*row[:4]) for row in rows)


def check_quantize_4over6(rows):
    def good(elements, *wanted):
        found = []
        for rule in (None, "4over6"):
            scale, codes = quantized([float(x) for x in elements.split(",")], 1.0, rule)
            found += [scale, codes]
        return found == [int(wanted[0], 16), [int(code, 16) for code in wanted[1].split(",")],
                         int(wanted[2], 16), [int(code, 16) for code in wanted[3].split(",")]]
    return all(good(*row[:5]) for row in rows)


# ---- docs/integration.md -------------------------------------------------------------------------

def check_nibbles(rows):
    return all(same(decode(int(byte, 16))[0], even) and same(decode(int(byte, 16))[1], odd)
               for byte, even, odd in rows)


def check_offsets(rows):
    return all(tiled_offset(int(row), int(ks), 300, 192) == int(byte) for row, ks, byte in rows)


def check_sizes(rows):
    size = lib.abi.lib.nvfp4_scale_bytes
    return all([size(int(n), int(k), layout) for layout in (LINEAR, TILED)] ==
               [int(linear), int(tiled)]
               for n, k, linear, tiled in rows)


def check_tile(lines):
    """Lines of the picture against the converted numbers of the scales; one stands for the
    others."""
    place = {tiled_offset(row, ks, 128, 64): (row, ks) for row in range(128) for ks in range(4)}
    def line(first):
        cells = [f"{row:3d} {ks}" for row, ks in (place[first + i] for i in range(16))]
        return f"{first:3d}:  " + " | ".join(" ".join(cells[i:i + 4]) for i in range(0, 16, 4))
    return lines == [line(0), line(16), line(32), "        ...", line(496)]


def check_conventions(rows):
    def t(stored, formula):
        name, number = stored.split(" = ")
        one, slash, other = formula.partition(" / ")
        value = {name: float(number)}
        top = value.get(one, None) if one in value else float(one)
        return top / (value[other] if other in value else float(other)) if slash else top
    return all(math.isclose(t(row[1], row[2]), 13.44 / (6 * 448), rel_tol=1e-6) for row in rows)


def check_ggml(rows):
    """A block with one nibble and one scale set has one element that is not zero."""
    def element(byte, nibble, scale):
        block = np.zeros(36, np.uint8)
        block[int(scale)], block[int(byte)] = 0x38, 2 << (4 if nibble == "high" else 0)
        return np.flatnonzero(lib.layouts.from_ggml(block, 1, 64).dequantize()).tolist()
    return all(element(*row[1:]) == [int(row[0])] for row in rows)


def check_small_tiles(rows):
    """The scale at a byte of 8x4 is the one that is not zero; every code is 1."""
    def place(byte):
        scales = np.zeros(38 * 3 * 32, np.uint8)
        scales[int(byte)] = 0x38
        packed = lib.layouts.from_flashinfer(np.full((300, 96), 0x22, np.uint8), scales, 1.0,
                                             layout="8x4")
        return [(row, k // 16) for row, k in np.argwhere(packed.dequantize()).tolist()[::16]]
    return all(place(byte) == [(int(row), int(ks))] for row, ks, byte in rows)


def check_deepgemm(rows):
    """The scale at one byte of the words' memory is 2; every other scale is 1, and every code."""
    def place(byte):
        memory = np.full(4 * 24 * 4, 0x7F, np.uint8)
        memory[int(byte)] = 0x80
        packed = lib.layouts.from_deepgemm(np.full((21, 208), 0x22, np.uint8),
                                           memory.view(np.int32).reshape(4, 24).T[:21])
        return [(row, k // 32) for row, k in np.argwhere(packed.dequantize() == 2).tolist()[::32]]
    return all(place(byte) == [(int(row), int(ks))] for row, ks, byte in rows)


# ---- docs/using.md -----------------------------------------------------------------------------

def check_support(rows):
    """Types and variants that a row claims, by what the library answers."""
    given = {row[0]: row[1:] for row in rows}
    rows_of_d = "M, N and L (products in a batch)"
    claims = {"A": [""] * 4, "variants": ["0"] * 4, rows_of_d: [""] * 4} | given
    sms = dict(support.architectures())
    types = {"F16": 1, "BF16": 2, "F32": 3}

    def answer(capability, **fields):
        g = lib.abi.GemmDesc(**{"m": 32, "n": 128, "k": 64, "l": 1, "a_ld": 64, "b_ld": 64,
                                "d_ld": 128, "alpha": 1, "a_scale_layout": TILED,
                                "b_scale_layout": TILED, "d_type": 1, **fields})
        return lib.abi.lib.nvfp4_gemm_supported(g, capability) == 0

    def good(column, capabilities, a_type):
        taken = {name for name, number in types.items() for c in capabilities
                 if answer(c, a_type=number)}
        stored = all(answer(c, a_type=a_type, d_type=d, c_type=d, beta=1, c_ld=128, cd_order=order)
                     for c in capabilities for d in types.values() for order in (0, 1))
        tail = all(answer(c, a_type=a_type, k=80, a_ld=96, b_ld=96)
                   and not answer(c, a_type=a_type, k=72) for c in capabilities)
        narrow = {c: lib.abi.describe(support.desc(lib.abi, 512, "BF16"), c, sms[c])
                  .variant.startswith(b"sm80_") for c in capabilities}
        slow = "fast only if M is at most 16" in claims[rows_of_d][column]
        count = len(lib.abi.variant_names(capabilities[0]))
        return {"A": {name for name in types if name in claims["A"][column].split(", ")} == taken,
                "D and C": stored, "K": tail, rows_of_d: set(narrow.values()) == {slow},
                "variants": count == int(re.match(r"\d+", claims["variants"][column])[0])}

    served = ([90], 0), ([100, 103], 0), ([120, 121], 0), ([80, 86, 89, 107, 110], 2)
    return all(right for column, (of, a_type) in enumerate(served)
               for name, right in good(column, of, a_type).items() if name in given)


def check_support_matrix(rows):
    """As support.py writes it; one row is looked for alone."""
    table = support.rows(lib.abi)
    return rows == table if len(rows) > 1 else rows[0] in table


def header_names_the_gpus():
    """The lists of capabilities under KERNELS in the header are the library's."""
    with open(f"{ROOT}/include/nvfp4_gemm.h", encoding="utf-8") as file:
        words = " ".join(file.read().replace(" *", " ").split())
    kernels = words[words.index("KERNELS NVFP4"):words.index("SPEED A product")]
    listed = r"([\d.]+(?:(?:, | and )[\d.]+\d)*)"
    stated = re.search(f"kernels for {listed}, which have run on .* for {listed}, which have run "
                       f"in an emulator only. Kernels for {listed} have been assembled.* fp16 or "
                       f"bf16: kernels for all of these and for {listed}[.] ", kernels).groups()
    known = [(f"{one // 10}.{one % 10}", *support.cells(lib.abi, one, sms)[:3:2])
             for one, sms in support.architectures()]
    nvfp4 = [sorted(one for one, proof, _ in known if proof in proofs)
             for proofs in (["hardware"], ["published", "emulator"], ["assembled"])]
    also = sorted(one for one, proof, f16 in known if f16 != "-" and proof == "-")
    return [sorted(re.findall(r"\d+\.\d", each)) for each in stated] == [*nvfp4, also]


def check_statuses(rows):
    """Every status of the reviewed interface, and no other."""
    with open(f"{ROOT}/test/golden/abi.txt", encoding="utf-8") as golden:
        known = set(re.findall(r"constant (NVFP4_STATUS_\w+)", golden.read()))
    return {row[0] for row in rows} == known


# ---- docs/real-weights.md ------------------------------------------------------------------------

class Skipped(Exception):
    """What a table says cannot be computed here."""


def check_minilm(rows):
    """The weights' column; the example itself, whose output the table is, does the others."""
    import minilm
    try:
        weights, _ = minilm.load()
    except (ImportError, SystemExit) as missing:
        raise Skipped(f"no model here: {missing}") from missing
    if len(rows) > 1 and [row[0] for row in rows] != minilm.linear_layers(weights):
        return False
    errors = [minilm.weight_error(weights[row[0] + ".weight"])[1] for row in rows]
    return all(f"{error:.4f}" == row[2] for error, row in zip(errors, rows))


def check_measured(rows):
    """What a machine was asked once and nothing here can ask again: no cell is missing or empty."""
    return all(len(row) == len(rows[0]) and all(row) for row in rows)


def check_transformer(rows):
    """Tokens per second of NVFP4 over bf16's, by the table of docs/notebook.md."""
    with open(f"{ROOT}/docs/notebook.md", encoding="utf-8") as file:
        tables = [content for name, _, content in blocks(file.read()) if name == "measured"]
    measured = {row[0]: row[1:3] for table in tables for row in table}

    def ratio(row):
        bf16, nvfp4 = (float(cell) for cell in measured[row])
        return f"{nvfp4 / bf16:.2f}"
    return all(cells == [ratio(f"a step in a graph, batch {count}"),
                         ratio(f"generation, batch {count}")] for count, *cells in rows)


def check_bench(rows):
    """M, then for each (N, K) our time, or "time (ratio)", and perhaps the time of cuBLASLt's best
    and the ratio: the newest table of an H200, rounded."""
    import plot
    newest = sorted(glob.glob(f"{ROOT}/bench/results/gpu-h200-*.csv"))[-1]
    fastest = {}
    for row in plot.read(newest)[1]:
        key = tuple(int(row[name]) for name in "mnk")
        if key not in fastest or float(row["us"]) < float(fastest[key]["us"]):
            fastest[key] = row
    columns = {2: ("us", "x_fp16_best"), 3: ("us", "fp16_best_us", "x_fp16_best")}

    def rounded(text, value):
        digits = len(text.partition(".")[2])
        return abs(float(text) - float(value)) <= 0.5001 * 10 ** -digits

    def good(row):
        m, *figures = re.findall(r"\d[\d.]*", " ".join(row))
        each = len(figures) // 3
        return all(rounded(text, fastest[(int(m), *pair)][name])
                   for i, pair in enumerate([(7168, 16384), (4096, 7168), (7168, 2048)])
                   for text, name in zip(figures[each * i:each * (i + 1)], columns[each]))
    return all(good(row) for row in rows)


def check_drawn(rows):
    """Others' times over ours, geometric mean and worst, of the layers that the library drew."""
    import plot
    drawn = plot.read(f"{ROOT}/bench/results/drawn-h200-2026-11-26.csv")[1]
    beside = plot.read(f"{ROOT}/bench/results/humming-h200-2026-11-26.csv")[1]
    humming = [row for row in beside if row["layer"] != "check"]
    columns = [(drawn, "w4a16_bf16_us", "peer_us"), (humming, "w4a16_bf16_us", "humming_us"),
               (drawn, "w4a16_bf16_us", "bf16_best_us"), (drawn, "us", "fp16_best_us"),
               (drawn, "us", "fp8_best_us")]

    def cell(tokens, table, ours, theirs):
        least, *most = map(int, tokens.split(" to "))
        ratios = [float(row[theirs]) / float(row[ours]) for row in table
                  if least <= int(row["m"]) <= (most or [least])[0]]
        return f"{statistics.geometric_mean(ratios):.2f}, {min(ratios):.2f}"
    return all(cells == [cell(tokens, *column) for column in columns] for tokens, *cells in rows)


def of_peers(tokens, least_mb):
    """The rows of the newest table beside other programs' kernels, of so many tokens and of weights
    above so many MB."""
    import plot
    least, *most = (int(number.replace(",", "")) for number in tokens.split(" to "))
    newest = sorted(glob.glob(f"{ROOT}/bench/results/peers-h200-*.csv"))[-1]
    return [row for row in plot.read(newest)[1]
            if least <= int(row["m"]) <= (most or [least])[0]
            and int(row["n"]) * int(row["k"]) * 9 / 16e6 > least_mb]


def us_of_peers(row, ours, suffix="_us"):
    """Ours in a row: w4a4_packed is w4a4 where tokens are not packed."""
    time = row[f"{ours}{suffix}"]
    return float(time or row[f"w4a4{suffix}"])


def check_peers(rows):
    """Behind each goal the least time of others over ours, and each other's: geometric mean of all
    layers, and the worst of weights above 16 MB."""
    others = [("w4a16", ("peer1", "peer2", "bf16_best")), ("w4a16", ("peer1",)),
              ("w4a16", ("peer2",)), ("w4a16", ("bf16_best",)), ("w4a4", ("fp16_best",)),
              ("w4a4_packed", ("fp16_best",))]

    def ratios(tokens, least_mb, ours, theirs):
        for row in of_peers(tokens, least_mb):
            times = [float(row[f"{other}_us"]) for other in theirs if row.get(f"{other}_us")]
            if times:
                yield min(times) / us_of_peers(row, ours)

    def cell(tokens, ours, theirs):
        mean = statistics.geometric_mean(ratios(tokens, 0, ours, theirs))
        return f"{mean:.2f}, {min(ratios(tokens, 16, ours, theirs)):.2f}"
    return all([*cells[1:5], *cells[6:]] == [cell(tokens, *other) for other in others]
               for tokens, *cells in rows)


def check_peers_share(rows):
    """Behind each goal the roofline's time in percent of ours, of weights above 48 MB."""
    def cell(tokens, ours):
        return "{:.0f} %".format(100 * statistics.geometric_mean(
            float(row[f"{ours.removesuffix('_packed')}_roofline_us"]) / us_of_peers(row, ours)
            for row in of_peers(tokens, 48)))
    return all(cells == [cell(tokens, ours) for ours in ("w4a16", "w4a4", "w4a4_packed")]
               for tokens, _, *cells in rows)


def check_peers_static(rows):
    """Times with programmatic launches over those without: geometric mean, best and worst."""
    def cell(tokens, ours):
        ratios = [us_of_peers(row, ours, "_pdl_us") / us_of_peers(row, ours)
                  for row in of_peers(tokens, 0)]
        return f"{statistics.geometric_mean(ratios):.2f}, {min(ratios):.2f}, {max(ratios):.2f}"
    return all(cells == [cell(tokens, ours) for ours in ("w4a16", "w4a4", "w4a4_packed")]
               for tokens, *cells in rows)


def check_few_rows(rows):
    """Times of packed tiles of 16 and of 32 tokens over those before, by three ways to clear."""
    import plot
    table = plot.read(f"{ROOT}/bench/results/few-rows-h200-2026-11-29.csv")[1]

    def cell(tokens, tile, way):
        return "{:.2f}".format(statistics.geometric_mean(
            float(row[way]) / float(row["before_us"]) for row in table
            if row["m"] == tokens and tile in row["plan"]))
    return all(cells == [cell(tokens, tile, way) for tile in ("64x16x", "64x32x")
                         for way in ("after_us", "none_us", "whole_us")]
               for tokens, *cells in rows)


def of_layers():
    """The layers of public models, (M, MB of weights with their scales, row)."""
    import plot
    return [(int(row["m"]), int(row["n"]) * int(row["k"]) * 9 / 16e6, row)
            for row in plot.read(f"{ROOT}/bench/results/layers-h200-2026-11-24.csv")[1]]


def speedups(rows, ours, theirs):
    """(geometric mean, worst, "(N, K)" of the worst) of theirs / ours."""
    ratios = [(float(row[theirs]) / float(row[ours]), f"({row['n']}, {row['k']})") for row in rows]
    return (f"{statistics.geometric_mean(ratio for ratio, _ in ratios):.2f}",
            f"{min(ratios)[0]:.2f}", min(ratios)[1])


def check_layers(rows):
    def cells(tokens):
        of_m = [row for m, _, row in of_layers() if m == int(tokens)]
        fp16, fp8, bf16 = (speedups(of_m, ours, theirs + "_best_us") for ours, theirs in
                           (("us", "fp16"), ("us", "fp8"), ("w4a16_bf16_us", "bf16")))
        return [str(len(of_m)), "{}, {} {}".format(*fp16), fp8[0], "{}, {} {}".format(*bf16)]
    return all(found == cells(tokens) for tokens, *found in rows)


def check_goals(rows):
    """Behind each goal what W4A16 and NVFP4 tokens reached over cuBLASLt in fp16."""
    def reached(weights, least, most):
        numbers = [float(number) for number in re.findall(r"\d+", weights)]
        low, high = {"below": (0, numbers[0]), "above": (numbers[0], math.inf)}.get(
            weights.split()[0], (numbers[0], numbers[-1]))
        chosen = [row for m, mb, row in of_layers() if least <= m <= most and low <= mb < high]
        return ", ".join(speedups(chosen, ours, "fp16_best_us")[0]
                         for ours in ("w4a16_fp16_us", "us"))
    tokens = (1, 16), (17, 64), (65, 128), (129, 512)
    return all([cell.split(": ")[1] for cell in cells] == [reached(weights, *of) for of in tokens]
               for weights, *cells in rows)


def check_llama(rows):
    """Of each work the step with bf16 weights in ms, and of each other kind times as fast, the
    step and its products alone; then GB with bf16 and with 4-bit weights."""
    import plot
    table = plot.read(sorted(glob.glob(f"{ROOT}/bench/results/llama-h200-*.csv"))[-1])[1]
    kinds = [kind for kind in plot.MODEL_KINDS if plot.of_model(table, kind, "us")]
    slow, gb = (plot.of_model(table, "bf16", column) for column in ("us", "gb"))
    faster = [plot.faster_model(table, kind, column) for kind in kinds
              for column in ("us", "products_us")]
    expected = [[f"{ms / 1e3:.1f}", *(f"{ratio:.2f}" for ratio in ratios),
                 f"{bf16:.1f}", f"{ours:.1f}"] for ms, ratios, bf16, ours in zip(
                     slow.values(), zip(*faster), gb.values(),
                     plot.of_model(table, "w4a16", "gb").values())]
    return [cells for _, *cells in rows] == expected


def check_best(rows):
    """Ours, cuBLASLt's best in fp16 and in fp8 of the newest table, the fastest of a cell bold."""
    import plot
    newest = sorted(glob.glob(f"{ROOT}/bench/results/gpu-h200-*.csv"))[-1]
    of_shape = {}
    for row in plot.read(newest)[1]:
        key = tuple(int(row[name]) for name in "mnk")
        if key not in of_shape or float(row["us"]) < float(of_shape[key]["us"]):
            of_shape[key] = row

    def cell(m, pair):
        row = of_shape[(int(m), *pair)]
        times = [float(row[name]) for name in ("us", "fp16_best_us", "fp8_best_us")]
        texts = [f"{us:.1f}" if us < 100 else f"{us:.0f}" for us in times]
        return " / ".join(f"**{text}**" if us == min(times) else text
                          for us, text in zip(times, texts))
    pairs = [(7168, 16384), (4096, 7168), (7168, 2048)]
    return all(cells == [cell(m, pair) for pair in pairs] for m, *cells in rows)


def check_gates(rows):
    """Every make target that a claim names is there."""
    listed = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True,
                            check=True).stdout
    known = {line.split()[0] for line in listed.splitlines() if line.strip()}
    named = [word for row in rows for command in re.findall(r"`make ([^`]*)`", row[1])
             for word in command.split() if "=" not in word]
    return known.issuperset(named)


# ---- docs/model.md -------------------------------------------------------------------------------

def check_forecast(rows):
    """The newest committed forecast of the timing model."""
    newest = sorted(glob.glob(f"{ROOT}/bench/results/model-b200-*.csv"))[-1]
    with open(newest, encoding="utf-8") as text:
        known = {f"{r['m']} x {r['n']} x {r['k']}": r
                 for r in csv.DictReader(line for line in text if not line.startswith("#"))}
    fields = ["kernel", "us", "", "bf16_us", "formula_us", "programmatic_us", "light_us", "binds"]
    return all(cell == (known[shape][field] if field else
                        f"{known[shape]['low_us']} to {known[shape]['high_us']}")
               for shape, *cells in rows for cell, field in zip(cells, fields))


def check_forecast_12(rows):
    """What the planner of 12.x counts, at the clock of the row of arch.def."""
    def planned(gpu, shape):
        m, n, k = map(int, shape.split(" x "))
        g = lib.abi.GemmDesc(m=m, n=n, k=k, l=1, a_ld=k, b_ld=k, d_ld=n, alpha=1,
                             a_scale_layout=TILED, b_scale_layout=TILED, d_type=1)
        text = lib.abi.explain(g, *{"RTX 5090": (120, 170), "GB10": (121, 48)}[gpu])
        variant, split, clocks = re.search(r"\* sm120_(\w+): split (\d), (\d+) clocks",
                                           text).groups()
        ghz = float(re.search(r"at ([\d.]+) GHz", text)[1])
        return [variant + (f"/{split}" if split != "1" else ""), f"{int(clocks) / ghz / 1000:.1f}"]
    return all(planned(gpu, shape) == cells[:2] for gpu, shape, *cells in rows)


def check_shares(rows):
    """For how many shapes of the newest forecast each tile is the best, whole and cut along K."""
    newest = sorted(glob.glob(f"{ROOT}/bench/results/model-b200-*.csv"))[-1]
    with open(newest, encoding="utf-8") as text:
        best = [r["kernel"] for r in csv.DictReader(l for l in text if not l.startswith("#"))]
    for tile, *cells in rows:
        counts = [best.count(tile + cut) for cut in ("", "/2", "/4")]
        said = [int(cell) if cell != "-" else 0 for cell in cells]
        if said != [*counts, sum(counts)]:
            return False
    return sum(int(row[-1]) for row in rows) == len(best)


def check_steps(rows):
    """What build/model steps said of kernels that do not exist yet."""
    newest = sorted(glob.glob(f"{ROOT}/bench/results/model-steps-b200-*.txt"))[-1]
    with open(newest, encoding="utf-8") as text:
        known = [re.split(r"  +", line.strip()) for line in list(text)[2:]]
    return all([name, stages, *(cell for pair in pairs for cell in pair.split(", "))] in known
               for name, stages, *pairs in rows)


def of_groups():
    """{"groups, rows x N x K" of the newest forecast of grouped products: its row}, the largest
    rows; {layer: {rows of each group: its row}}."""
    newest = sorted(glob.glob(f"{ROOT}/bench/results/model-grouped-b200-*.csv"))[-1]
    with open(newest, encoding="utf-8") as text:
        head, *lines = [line.strip() for line in text][2:]
    published, layers = {}, {}
    for line in lines:
        row = dict(zip(head.split(","), line.split(",")))
        if line.startswith("#"):
            layer = layers.setdefault(line[2:], {})
        elif layers:
            layer[row["most_rows"]] = row
        else:
            published["{groups}, {most_rows} x {n} x {k}".format(**row)] = row
    return published, layers


def check_grouped(rows):
    known = of_groups()[0]

    def good(groups, tile, us, _, linear, published, weights):
        row = known[re.sub(r"\d+ to ", "", groups)]
        return (float(published) == float(row["published_us"]) and
                [f"sm100_{tile}_grouped", us, linear, weights] ==
                [row["entry"], row["us"], "+" + row["linear_us"], row["reading_us"]])
    return all(good(*row) for row in rows)


def check_experts(rows):
    known = of_groups()[1]

    def cells(layer):
        of = known[layer]
        sizes = "{groups} x {n} x {k}".format(**of["4"])
        return [sizes, *(of[m]["us"] for m in ("4", "32", "128")), of["4"]["reading_us"]]
    return all([*found, weights] == cells(layer) for layer, *found, _, weights in rows)


def forecast_is_repeated():
    """docs/performance.md repeats a time of that forecast, and the published one."""
    with open(f"{ROOT}/docs/performance.md", encoding="utf-8") as file:
        words = " ".join(file.read().split())
    us, groups, sizes, published = re.search(
        r"predicts ([\d.]+) us for a grouped product of (\d+) groups with (\d+ x \d+ x \d+) each. "
        r"The published time of another kernel is ([\d.]+) us", words).groups()
    row = of_groups()[0][f"{groups}, {sizes}"]
    return us == row["us"] and float(published) == float(row["published_us"])


def check_cuts(rows):
    """What build/model cuts said of tiles whose K is cut into parts."""
    newest = sorted(glob.glob(f"{ROOT}/bench/results/model-cuts-b200-*.csv"))[-1]
    with open(newest, encoding="utf-8") as text:
        known = [line.strip().split(",") for line in list(text)[2:]]
    return all([*shape.split(" x "), *times] in [row[:9] for row in known]
               for shape, *times in rows)


# ---- documents -----------------------------------------------------------------------------------

def blocks(text):
    """(name or None, rows or lines) of each table and each marked picture; (None, C text) of
    code."""
    lines, name, at = text.split("\n"), None, 0
    while at < len(lines):
        marker = re.fullmatch(r"<!-- check: ([\w-]+) -->", lines[at])
        if marker:
            name = marker.group(1)
        elif lines[at].startswith("```"):
            end = lines.index("```", at + 1)
            yield name, lines[at], lines[at + 1:end]
            name, at = None, end
        elif lines[at].startswith("|"):
            end = at
            while end < len(lines) and lines[end].startswith("|"):
                end += 1
            yield name, "|", [[cell.strip() for cell in row.strip("|").split("|")]
                              for row in lines[at + 2:end]]
            name, at = None, end - 1
        at += 1


def compiles(code):
    prelude = "#include <nvfp4_gemm.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wno-unused-function", "-Werror", "-fsyntax-only"]
    compiler = os.environ.get("CC", "gcc").split()
    return subprocess.run([*compiler, "-x", "c", *flags, f"-I{ROOT}/include", "-"],
                          input=prelude + "\n".join(code), text=True, check=False).returncode == 0


def wrong_row(check, content):
    """The first row that fails alone; the whole if each is right by itself."""
    return next((row for row in content if check and not check([row])), "the whole")


def verdicts(path, only=None):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for name, kind, content in blocks(text):
        if only not in (None, name):
            continue
        if kind == "```c":
            yield "a C block", compiles(content)
        elif name is None:
            yield f"a table or block without a check: {content[:1]}", False
        else:
            check = globals().get("check_" + name.replace("-", "_"))
            try:
                good = check is not None and len(content) > 0 and check(content)
                yield name if good else f"{name}: {wrong_row(check, content)}", good
            except Skipped as reason:
                yield f"{name}: {reason}", None
            except Exception as error:  # a malformed row is a wrong row
                yield f"{name}: {error!r}", False


def main():
    results = [(os.path.basename(path), name, good)
               for path in sorted(glob.glob(f"{ROOT}/docs/*.md")) for name, good in verdicts(path)]
    # The tables of these pages that a measured one can answer.
    for page, check in (("README.md", "best"), ("README.md", "support-matrix"),
                        ("tools/python/README.md", "transformer"),
                        ("tools/python/README.md", "support-matrix")):
        results += [(page, name, good) for name, good in verdicts(f"{ROOT}/{page}", check)]
    results += [("nvfp4_gemm.h", "KERNELS", header_names_the_gpus()),
                ("performance.md", "a grouped product of the forecast", forecast_is_repeated())]
    words = {True: "ok   ", False: "FAIL ", None: "skip "}
    for document, name, good in results:
        print(f"{words[good]} {document}: {name}")
    count = [good for _, _, good in results].count
    failed = count(False)
    line = f"{count(True)} passed, {failed} failed, {count(None)} skipped"
    if "NVFP4_TALLY" in os.environ:
        with open(os.environ["NVFP4_TALLY"], "a", encoding="utf-8") as tally:
            print(line, file=tally)
    print(line)
    return failed > 0 or not results


if __name__ == "__main__":
    os.environ["NVFP4GEMM_LIBRARY"] = os.path.join(os.path.abspath(sys.argv[1]), "libnvfp4gemm.so")
    sys.path[:0] = [f"{ROOT}/examples/python", f"{ROOT}/tools/python", f"{ROOT}/bench"]
    import nvfp4gemm as lib
    sys.exit(main())
