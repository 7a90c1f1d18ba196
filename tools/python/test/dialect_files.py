# SPDX-License-Identifier: MIT
"""One small checkpoint in each dialect of NVFP4, written from the dialect's own description
(docs/integration.md names the sources), element by element. Shares no code with the package, nor
with its table of dialects."""
import json
import struct

import numpy as np

E2M1 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6])
N, K, EXPERTS = 144, 208, 3
SMALL_N = 48  # of dialects whose matrices are written slowly


def ue4m3(bytes_):
    """UE4M3 in float64, by its definition: 4 bits of exponent with bias 7, 3 of mantissa."""
    exponent, mantissa = bytes_ >> 3, bytes_ & 7
    return np.where(exponent == 0, mantissa * 2.0 ** -9,
                    (1 + mantissa / 8) * 2.0 ** (exponent.astype(int) - 7))


class Matrix:
    """Codes [n, k], one to a byte, and scale bytes [n, k / 16]."""

    def __init__(self, seed, n=None, k=K):
        n = n or N
        rng = np.random.default_rng(seed)
        self.codes = rng.integers(0, 16, (n, k), np.uint8)
        self.scales = rng.integers(1, 0x7F, (n, k // 16), np.uint8)

    def values(self, factor):
        """What they stand for, as the library computes it: in float32, scales first."""
        scales = (np.repeat(ue4m3(self.scales), 16, axis=1)).astype(np.float32)
        return ((E2M1[self.codes] * scales).astype(np.float32) * np.float32(factor)).astype(
            np.float32)


def packed(codes, high_first=False):
    even, odd = codes[:, 0::2], codes[:, 1::2]
    return even << 4 | odd if high_first else odd << 4 | even


def padded_shape(scales):
    return -(-scales.shape[0] // 128) * 128, -(-scales.shape[1] // 4) * 4


def tiled(scales, fill=0):
    """cuBLASLt's 1D block scales: tiles of 128 rows x 4."""
    rows, across = padded_shape(scales)
    out = np.full(rows * across, fill, np.uint8)
    row, column = np.indices(scales.shape)
    tile = (row // 128) * (across // 4) + column // 4
    out[tile * 512 + (row % 32) * 16 + (row % 128) // 32 * 4 + column % 4] = scales
    return out.reshape(rows, across)


def padded(scales):
    out = np.zeros(padded_shape(scales), np.uint8)
    out[:scales.shape[0], :scales.shape[1]] = scales
    return out


def ggml_blocks(codes, scales):
    out = np.zeros((codes.shape[0], codes.shape[1] // 64, 36), np.uint8)
    row, column = np.indices(codes.shape)
    block, inside = divmod(column, 64)
    sixteen, place = divmod(inside, 16)
    half, byte = divmod(place, 8)
    out[row, block, sixteen] = scales[row, column // 16]
    np.bitwise_or.at(out, (row, block, 4 + 8 * sixteen + byte),
                     codes << (4 * half).astype(np.uint8))
    return out.reshape(codes.shape[0], -1)


def f32(*values):
    return "F32", np.array(values, np.float32)


def scalar(value):
    return "F32", np.array(value, np.float32)


class File:
    """What is written: {name: (type, array)} and metadata. roles names the tensors of layer "bad"
    by what they are, so that a test can spoil one; layer "good" stays. expected has both layers'
    values."""

    def __init__(self, kind="safetensors"):
        self.kind, self.tensors, self.metadata = kind, {}, {}
        self.roles, self.expected = {}, {}
        self.matrix = None

    def add(self, layer, suffixes, arrays):
        for role, suffix, array in zip(("codes", "scales", "tensor_scale"), suffixes, arrays):
            self.tensors[layer + suffix] = array
            if layer.endswith("bad"):
                self.roles[role] = layer + suffix

    def write(self, path):
        (gguf if self.kind == "gguf" else safetensors)(path, self.tensors, self.metadata)


def modelopt(change=None):
    return _two(("bad", "good"), (".weight", ".weight_scale", ".weight_scale_2"), change,
                lambda m: (("U8", packed(m.codes)), ("F8_E4M3", m.scales), scalar(0.005)), 0.005)


def compressed_tensors(change=None):
    return _two(("m.bad", "m.good"), (".weight_packed", ".weight_scale", ".weight_global_scale"),
                change, lambda m: (("U8", packed(m.codes)), ("F8_E4M3", m.scales), f32(200)),
                1 / 200)


def _swizzled(m):
    return ("U8", packed(m.codes, True)), ("F8_E4M3", tiled(m.scales, 0x7F)), scalar(0.25)


def comfyui(change=None):
    file = _two(("m.bad", "m.good"), (".weight", ".weight_scale", ".weight_scale_2"), change,
                _swizzled, 0.25)
    for layer in file.expected:
        text = json.dumps({"format": "nvfp4"}).encode()
        file.tensors[layer + ".comfy_quant"] = "U8", np.frombuffer(text, np.uint8)
    return file


def comfyui_metadata(change=None):
    file = _two(("m.bad", "m.good"), (".weight", ".weight_scale", ".weight_scale_2"), change,
                _swizzled, 0.25)
    file.metadata["_quantization_metadata"] = json.dumps(
        {"format_version": "1.0", "layers": {**{layer: {"format": "nvfp4"}
                                                for layer in file.expected},
                                             "m.other": {"format": "float8_e4m3fn"}}})
    return file


def flux2(change=None):
    return _two(("single_blocks.0.bad", "double_blocks.0.img_attn.qkv"),
                (".weight", ".weight_scale", ".weight_scale_2"), change, _swizzled, 0.25)


def transformer_engine(change=None):
    suffixes = [".weight." + field
                for field in ("_rowwise_data", "_rowwise_scale_inv", "_amax_rowwise")]
    file = _two(("m.bad", "m.good"), suffixes, change, lambda m: (
        ("U8", packed(m.codes)), ("U8", padded(m.scales)), f32(26.88)),
        np.float32(26.88) / np.float64(2688))
    # The second layer by the 4over6 recipe, with 256 in place of 448, and its scales swizzled.
    file.tensors["m.good.weight._nvfp4_e4m3_max"] = "I64", np.array(256)
    file.tensors["m.good.weight._with_gemm_swizzled_scales"] = "BOOL", np.array(True)
    good = Matrix(2)
    file.tensors["m.good.weight._rowwise_scale_inv"] = "U8", tiled(good.scales)
    file.expected["m.good"] = good.values(np.float32(26.88) / np.float64(6 * 256))
    return file


def stacked(change=None):
    file = File()
    for layer, seed in (("m.bad", 1), ("m.good", 20)):
        matrices = [Matrix(seed + i, SMALL_N, 96) for i in range(EXPERTS)]
        if change and seed == 1:
            change(matrices[1])
        scales = [0.5, 0.25, 0.125]
        file.add(layer, ("", "_weight_scale", "_weight_scale_2"), (
            ("U8", np.stack([packed(m.codes) for m in matrices])),
            ("F8_E4M3", np.stack([m.scales for m in matrices])), f32(*scales)))
        for i, m in enumerate(matrices):
            file.expected[f"{layer}[{i}]"] = m.values(scales[i])
    return file


def ggml(change=None):
    file = File("gguf")
    for layer, seed in (("blk.0.bad", 1), ("blk.0.good", 2)):
        m = Matrix(seed, SMALL_N, 192)
        if change and seed == 1:
            change(m)
        file.add(layer, (".weight", ".weight", ".scale"),
                 (("NVFP4", ggml_blocks(m.codes, m.scales)),) * 2 + (f32(0.5),))
        file.expected[layer] = m.values(0.5)
    return file


class Mxfp4:
    """Codes [n, k], one to a byte, and UE8M0 bytes [n, k / 32]: 2^(byte - 127)."""

    block = 32

    def __init__(self, seed, n, k):
        rng = np.random.default_rng(seed)
        self.codes = rng.integers(0, 16, (n, k), np.uint8)
        self.scales = rng.integers(100, 140, (n, k // self.block), np.uint8)

    def values(self):
        scales = np.repeat(np.exp2(self.scales.astype(np.float64) - 127), self.block, axis=1)
        return (E2M1[self.codes] * scales).astype(np.float32)


class Ue8m0(Mxfp4):
    """The same with a scale for 16 elements."""

    block = 16


def mxfp4(change=None):
    """gpt-oss: blocks [experts, n, k / 32, 16], scales [experts, n, k / 32], bias [experts, n];
    here also a layer without experts."""
    file = File()
    for layer, seed in (("m.bad", 1), ("m.good", 20)):
        matrices = [Mxfp4(seed + i, 48, 96) for i in range(EXPERTS)]
        if change and seed == 1:
            change(matrices[1])
        blocks = np.stack([packed(m.codes).reshape(48, 3, 16) for m in matrices])
        scales = np.stack([m.scales for m in matrices])
        if layer == "m.good":
            file.add("m.one", ("_blocks", "_scales"), (("U8", blocks[0]), ("U8", scales[0])))
            file.expected["m.one"] = matrices[0].values()
        file.add(layer, ("_blocks", "_scales"), (("U8", blocks), ("U8", scales)))
        for i, m in enumerate(matrices):
            file.expected[f"{layer}[{i}]"] = m.values()
    return file


def ggml_mxfp4(change=None):
    """A block: the scale, then 16 bytes, byte j with element j low and element j + 16 high."""
    file = File("gguf")
    for layer, seed in (("blk.0.bad", 1), ("blk.0.good", 2)):
        m = Mxfp4(seed, 48, 192)
        if change and seed == 1:
            change(m)
        blocks = np.zeros((48, 6, 17), np.uint8)
        blocks[:, :, 0] = m.scales
        for element in range(192):
            block, inside = divmod(element, 32)
            half, byte = divmod(inside, 16)
            blocks[:, block, 1 + byte] |= m.codes[:, element] << np.uint8(4 * half)
        file.add(layer, (".weight",), (("MXFP4", blocks.reshape(48, -1)),))
        file.expected[layer] = m.values()
    return file


def nvfp4gemm(change=None):
    """nn.Linear: codes, 128x4 tiles in one dimension, a multiplier."""
    return _two(("m.bad", "m.good"), (".codes", ".scales", ".tensor_scale"), change,
                lambda m: (("U8", packed(m.codes)), ("U8", tiled(m.scales).reshape(-1)),
                           scalar(0.005)), 0.005)


def nvfp4gemm_mxfp4(change=None, kind=Mxfp4, key=".mxfp4"):
    """The same with a key that says that the tensor scale is none."""
    file = _two(("m.bad", "m.good"), (".codes", ".scales"), change,
                lambda m: (("U8", packed(m.codes)), ("U8", tiled(m.scales).reshape(-1))), None,
                kind)
    for layer in ("m.bad", "m.good"):
        file.tensors[layer + key] = "U8", np.array(1, np.uint8)
        file.tensors[layer + ".tensor_scale"] = scalar(1)
    return file


def nvfp4gemm_ue8m0(change=None):
    return nvfp4gemm_mxfp4(change, Ue8m0, ".e2m1_ue8m0")


def transformers(change=None):
    """Its NVFP4Config: scales row by row, and in tiles as words, which are not read."""
    file = _two(("m.bad", "m.good"),
                (".weight", ".weight_sf_rowmajor", ".weight_global_scale"), change,
                lambda m: (("U8", packed(m.codes)), ("U8", m.scales), f32(0.005)), 0.005)
    for layer in ("m.bad", "m.good"):
        scales = tiled(file.tensors[layer + ".weight_sf_rowmajor"][1])
        file.tensors[layer + ".weight_sf"] = "I32", scales.view("<i4")
    return file


def _words(codes):
    """Eight elements in a word of 32 bits, the first in its low bits."""
    return np.ascontiguousarray(packed(codes)).view("<u4")


def mlx(change=None):
    return _two(("m.bad", "m.good"), (".weight", ".scales"), change,
                lambda m: (("U32", _words(m.codes)), ("U8", m.scales)), 1)


def mlx_mxfp4(change=None):
    return _two(("m.bad", "m.good"), (".weight", ".scales"), change,
                lambda m: (("U32", _words(m.codes)), ("U8", m.scales)), None, Mxfp4)


def deepseek(change=None):
    """Experts of DeepSeek-V4, one by one, beside a layer in FP8, which is none of ours."""
    file = _two([f"layers.0.ffn.experts.0.{name}" for name in ("bad", "good")],
                (".weight", ".scale"), change,
                lambda m: (("I8", packed(m.codes)), ("F8_E8M0", m.scales)), None, Mxfp4)
    # One for 128 x 128 elements.
    file.tensors["layers.0.attn.wq_a.weight"] = "F8_E4M3", np.ones((128, 256), np.uint8)
    file.tensors["layers.0.attn.wq_a.scale"] = "F8_E8M0", np.full((1, 2), 120, np.uint8)
    return file


def _two(names, suffixes, change, arrays, factor, kind=None):
    """Layers of two matrices; `change` spoils or alters the first."""
    file = File()
    for layer, seed in zip(names, (1, 2)):
        m = Matrix(seed) if kind is None else kind(seed, N, K // 32 * 32)
        if change and seed == 1:
            change(m)
        file.add(layer, suffixes, arrays(m))
        file.expected[layer] = m.values() if factor is None else m.values(factor)
    return file


DIALECTS = {f.__name__: f for f in (modelopt, compressed_tensors, comfyui, comfyui_metadata, flux2,
                                    transformer_engine, stacked, ggml, mxfp4, ggml_mxfp4, nvfp4gemm,
                                    nvfp4gemm_mxfp4, nvfp4gemm_ue8m0, transformers, mlx, mlx_mxfp4,
                                    deepseek)}
MXFP4 = ("mxfp4", "ggml_mxfp4", "nvfp4gemm_mxfp4", "nvfp4gemm_ue8m0", "mlx_mxfp4", "deepseek")
# Their codes and scales speak together: what is spoilt is no layer, or another program's.
TOGETHER = ("transformers", "mlx", "mlx_mxfp4", "deepseek")


def safetensors(path, tensors, metadata=None):
    """A length, a header of JSON, the bytes."""
    head, data = {"__metadata__": metadata} if metadata else {}, []
    place = 0
    for name, (dtype, array) in tensors.items():
        head[name] = {"dtype": dtype, "shape": list(array.shape),
                      "data_offsets": [place, place + array.nbytes]}
        place += array.nbytes
        data.append(np.ascontiguousarray(array).tobytes())
    raw_safetensors(path, json.dumps(head).encode(), b"".join(data))


def raw_safetensors(path, text, data=b"", size=None):
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text) if size is None else size) + text + data)


def _text(text):
    return struct.pack("<Q", len(text)) + text.encode()


GGUF_TYPES = {"F32": 0, "F16": 1, "BF16": 30, "MXFP4": 39, "NVFP4": 40}


def gguf(path, tensors, _metadata=None, settings=None):
    """Version 3: magic, counts, settings, where each tensor is, then their bytes at multiples of
    32. The fastest dimension comes first."""
    settings = settings if settings is not None else {"general.architecture": "llama",
                                                      "tokens": ["a", "bc"], "numbers": [1, 2, 3]}
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(settings))
    for key, value in settings.items():
        head += _text(key) + _setting(value)
    data = b""
    for name, (dtype, array) in tensors.items():
        shape = list(array.shape)
        if dtype in ("NVFP4", "MXFP4"):
            shape[-1] = shape[-1] // 36 * 64 if dtype == "NVFP4" else shape[-1] // 17 * 32
        data += b"\0" * (-len(data) % 32)
        head += _text(name) + struct.pack("<I", len(shape))
        head += struct.pack(f"<{len(shape)}Q", *reversed(shape))
        head += struct.pack("<IQ", GGUF_TYPES[dtype], len(data))
        data += np.ascontiguousarray(array).tobytes()
    with open(path, "wb") as out:
        out.write(head + b"\0" * (-len(head) % 32) + data)


def _setting(value):
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value[0], str):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(_text, value))
    return struct.pack("<IIQ", 9, 4, len(value)) + struct.pack(f"<{len(value)}I", *value)
