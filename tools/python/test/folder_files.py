# SPDX-License-Identifier: MIT
"""Folders of which no single file says what is wrong: shards, indexes and configurations, layers
of no known dialect, and values that no layer has. A case writes a folder; it says which layers are
good and, by layer, what both readers (nvfp4gemm.checkpoints and `nvfp4 check`) must say of the
others.
Shares no code with them."""
import json
import os

import numpy as np

import dialect_files as files

INDEX, CONFIG = "model.safetensors.index.json", "config.json"
ROWS, WIDE = 128, 1024


def layer(name, seed=1, t=0.005, kind="modelopt", n=16, k=64, change=None):
    """The tensors of one layer, of ModelOpt's or compressed-tensors' names."""
    m = files.Matrix(seed, n, k)
    if change:
        change(m)
    if kind == "modelopt":
        names, scale = (".weight", ".weight_scale", ".weight_scale_2"), files.scalar(t)
    else:
        names, scale = (".weight_packed", ".weight_scale", ".weight_global_scale"), files.f32(1 / t)
    return dict(zip((name + suffix for suffix in names),
                    (("U8", files.packed(m.codes)), ("F8_E4M3", m.scales), scale)))


class Folder:
    """shards {file: tensors}, the maps of indexes, other files of JSON."""

    def __init__(self, **shards):
        self.shards, self.texts = {name + ".safetensors": tensors
                                   for name, tensors in shards.items()}, {}

    def index(self, name=INDEX, **changes):
        """Of all shards; changes are {tensor: file}, without one where it is None."""
        named = {tensor: file for file, tensors in self.shards.items() for tensor in tensors}
        named.update({tensor.replace("__", "."): file for tensor, file in changes.items()})
        return self.text(name, {"metadata": {"total_size": 1}, "weight_map": {
            tensor: file for tensor, file in named.items() if file is not None}})

    def text(self, name, said):
        self.texts[name] = said if isinstance(said, bytes) else json.dumps(said).encode()
        return self

    def without(self, shard):
        del self.shards[shard + ".safetensors"]
        return self

    def write(self, folder):
        for name, tensors in self.shards.items():
            files.safetensors(os.path.join(folder, name), tensors)
        for name, text in self.texts.items():
            with open(os.path.join(folder, name), "wb") as out:
                out.write(text)


def two():
    return Folder(a=layer("m.0"), b=layer("m.1", 2))


def only(tensors, *names):
    return {name: tensors[name] for name in names}


def split():
    """A layer in two shards."""
    one = layer("m.0")
    scale = one.pop("m.0.weight_scale")
    return Folder(a=one, b={"m.0.weight_scale": scale, **layer("m.1", 2)})


def bias_apart():
    return Folder(a={**layer("m.0"), **layer("m.1", 2)}, b={"m.0.bias": files.f32(*range(16))})


def overlay():
    """b has m.0 too, in another version, and the index says that b's counts."""
    folder = Folder(a={**layer("m.0"), **layer("m.1", 2)}, b=layer("m.0", 7))
    return folder.index()


def doubled():
    """m.1 is in no index, but its file is; two others, before and after it, are not."""
    folder = Folder(a={**layer("m.0"), **layer("m.1", 2)}).index(
        m__1__weight=None, m__1__weight_scale=None, m__1__weight_scale_2=None)
    for name in ("0.safetensors", "z.safetensors"):
        folder.shards[name] = layer("m.1", 9)
    return folder


def rotated(apply):
    """compressed-tensors' declaration, of a layer m.0 that keeps its matrix and an m.1 whose was
    left out since it is the same."""
    folder = Folder(a={**layer("m.0", kind="ct"), **layer("m.1", 2, kind="ct")})
    return folder.text(CONFIG, {"model_type": "llama", "quantization_config": {
        "quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized",
        "transform_config": {"config_groups": {"R4": {"type": "hadamard", "apply": apply}}}}})


def online(*targets, ignore=(), location="input"):
    return {"targets": list(targets), "location": location, "inverse": False,
            "ignore": list(ignore)}


TRANSFORM = r"is of a layer with a transform, by transform_config of .*config.json; expected"
FOLDED = online("re:.*", location="weight_input")


def beside(tensors):
    return Folder(a={**layer("m.0"), **tensors})


def unknown(codes, scales, names=("m.1.weight", "m.1.scale"), n=16, k=64, block=32):
    """Codes of that type in bytes of two elements, scales of that type."""
    size = {"U32": 4, "I32": 4}.get(codes, 1)
    array = np.zeros((n, k // 2 // size), {4: np.uint32, 1: np.uint8}[size])
    wide = {"BF16": np.uint16, "F32": np.float32}.get(scales, np.uint8)
    return beside({names[0]: (codes, array), names[1]: (scales, np.ones((n, k // block), wide))})


LOOKS = "4-bit elements of a dialect that is not known here; expected one of dialects.def"


def mxfp4(kind, seed=1):
    m = files.Mxfp4(seed, 16, 96)
    return dict(zip((kind + suffix for suffix in (
        (".weight_packed", ".weight_scale") if "ct" in kind else (".weight", ".weight_scale"))),
        (("U8", files.packed(m.codes)), ("U8", m.scales))))


def zeroed(part):
    def change(matrix):
        matrix.scales[:len(matrix.scales) // part] = 0
        matrix.codes[:, ::16] = 3
    return change


def real(seed=5, spread=0.3):
    """Like a model's: rows differ."""
    rng = np.random.default_rng(seed)
    m = files.Matrix(seed, ROWS, WIDE)
    rows = rng.standard_normal((ROWS, 1)) * spread
    m.scales = np.clip(80 + 8 * (rows + 0.1 * rng.standard_normal(m.scales.shape)), 1, 126).astype(
        np.uint8)
    return m


def named(name, tiles, spread=0.3, high_first=False):
    m = real(spread=spread)
    return dict(zip((name + suffix for suffix in (".weight", ".weight_scale", ".weight_scale_2")),
                    (("U8", files.packed(m.codes, high_first)),
                     ("F8_E4M3", files.tiled(m.scales) if tiles else m.scales),
                     files.scalar(1e-4))))


FLUX = "double_blocks.0.img_attn.qkv"
INVERTED = (r"weight_(global_)?scale(_2)? is .* as a multiplier, which makes weights of .*; "
            "expected weights of at most 65504; it may be the reciprocal")

# (what, the folder, its good layers, {layer or None for a file: what is said})
CASES = [
    ("an index", lambda: two().index(), ["m.0", "m.1"], {}),
    ("a kin of it", lambda: two().index("diffusion_pytorch_model.safetensors.index.json"),
     ["m.0", "m.1"], {}),
    ("a shard is missing", lambda: two().index().without("b"), ["m.0"],
     {None: r"b.safetensors is missing, and .*model.safetensors.index.json names it",
      "m.1": r"m.1.weight is in b.safetensors, which is missing; expected the file that .*index"}),
    ("of a kin", lambda: two().index("x.safetensors.index.json").without("b"), ["m.0"],
     {None: r"b.safetensors is missing, and .*x.safetensors.index.json names it",
      "m.1": "which is missing"}),
    ("half of a layer is missing", lambda: split().index().without("b"), [],
     {None: "b.safetensors is missing",
      "m.0": "m.0.weight_scale is in b.safetensors, which is missing",
      "m.1": "is in b.safetensors, which is missing"}),
    ("a bias is missing", lambda: bias_apart().index().without("b"), ["m.1"],
     {None: "b.safetensors is missing", "m.0": "m.0.bias is in b.safetensors, which is missing"}),
    ("a tensor is not where the index has it", lambda: two().index(m__0__bias="b.safetensors"),
     ["m.1"], {"m.0": r"m.0.bias is not in .*b.safetensors; expected a tensor of that file, as "}),
    ("the index has it in the other file", lambda: two().index(m__1__weight="a.safetensors"),
     ["m.0"], {"m.1": r"m.1.weight is not in .*a.safetensors; expected a tensor of that file"}),
    ("a file that the index does not name",
     lambda: two().index(m__1__weight=None, m__1__weight_scale=None, m__1__weight_scale_2=None),
     ["m.0"], {"m.1": r"m.1.weight is in .*b.safetensors, which .*index.json does not name;"}),
    ("a stray file has names that the index knows",
     lambda: Folder(a={**layer("m.0"), **layer("m.1", 2)}).index(), ["m.0", "m.1"], {}),
    ("stray files have names that only a named file has", doubled, ["m.0", "m.1"], {}),
    ("an index decides between two files", overlay, ["m.0", "m.1"], {}),
    ("two indexes differ", lambda: overlay().index(
        "other.safetensors.index.json", m__0__weight="a.safetensors"), ["m.1"],
     {"m.0": "m.0.weight is in .*b.safetensors and .*a.safetensors; expected one file"}),
    ("an index that leaves the folder", lambda: two().index(m__2__weight="../c.safetensors"),
     ["m.0", "m.1"], {None: r"index.json names '../c.safetensors' for m.2.weight; expected"}),
    ("an index that leaves it with a layer", lambda: Folder(a=layer("m.0")).index(
        m__1__weight_scale_2="/etc/c.safetensors"), ["m.0"],
     {None: "names '/etc/c.safetensors'", "m.1": "is in '/etc/c.safetensors'; expected a file of"}),
    ("an index that is no JSON", lambda: two().text(INDEX, b"{"), ["m.0", "m.1"],
     {None: "index.json is no JSON"}),
    ("a surrogate alone", lambda: two().text(
        INDEX, b'{"weight_map": {"m.0.weight": "a\\ud800.safetensors"}}'), ["m.0", "m.1"],
     {None: "index.json is no JSON"}),
    ("an index of a list", lambda: two().text(INDEX, {"weight_map": ["a"]}), ["m.0", "m.1"],
     {None: "index.json is no index: it has no weight_map of names"}),
    ("an index of numbers", lambda: two().text(INDEX, {"weight_map": {"m.0.weight": 3}}),
     ["m.0", "m.1"], {None: "is no index: it has no weight_map of names"}),
    ("one key twice", lambda: two().text(INDEX, b'{"weight_map": {"a": "a", "a": "b"}}'),
     ["m.0", "m.1"], {None: "is no JSON: the key 'a' twice"}),
    ("an index of other files", lambda: two().text(
        "pytorch_model.bin.index.json", {"weight_map": {"x": "pytorch_model.bin"}}),
     ["m.0", "m.1"], {}),

    ("a plain configuration", lambda: two().text(CONFIG, {
        "quantization_config": {"transform_config": {}, "hadamard_group_size": None,
                                "ignore": ["lm_head"]}, "time_step_limit": [0.0, 1.0]}),
     ["m.0", "m.1"], {}),
    ("infinity in it", lambda: two().text(
        CONFIG, b'{"limit": [0.0, Infinity, -Infinity, NaN], "said": "NaN \\" Infinity"}'),
     ["m.0", "m.1"], {}),
    ("a configuration that is no JSON", lambda: two().text(CONFIG, b'{"a"'), ["m.0", "m.1"],
     {None: "config.json is no JSON"}),
    ("a rotation of all", lambda: rotated([online("Linear"), FOLDED]), [],
     {"m.0": TRANSFORM, "m.1": TRANSFORM}),
    ("a rotation of one, by a pattern", lambda: rotated([online(r"re:.*\.1$"), FOLDED]), ["m.0"],
     {"m.1": TRANSFORM}),
    ("a rotation of one, by name", lambda: rotated([online("m.1")]), ["m.0"], {"m.1": TRANSFORM}),
    ("a rotation of one, whose name begins otherwise in the model",
     lambda: rotated([online("model.m.1")]), ["m.0"], {"m.1": TRANSFORM}),
    ("a pattern that begins otherwise in the model", lambda: rotated([online(r"re:model\.m\.1$")]),
     [], {"m.0": TRANSFORM, "m.1": TRANSFORM}),
    ("patterns with dots, stars and ends", lambda: rotated([
        online(r"re:.*\.1.$"), online("re:.*x.*"), online(r"re:.*m\.1$", ignore=["re:.*1.*"])]),
     ["m.0", "m.1"], {}),
    ("a dot for a letter of several bytes", lambda: Folder(a={
        **layer("m.\u00fc", kind="ct"), **layer("m.12", kind="ct")}).text(
            CONFIG, {"transform_config": {"g": {"u": {"apply": [
                online("Linear", ignore=[r"re:.*\..$"])]}}}}),
     ["m.\u00fc"], {"m.12": TRANSFORM}),
    ("a pattern of many stars", lambda: Folder(a=layer("m." + "a" * 300, kind="ct")).text(
        CONFIG, {"transform_config": {"g": {"u": {"apply": [online("re:" + ".*a" * 40 + "b$")]}}}}),
     ["m." + "a" * 300], {}),
    ("a rotation of all but one", lambda: rotated([online("Linear", ignore=["re:m.0"])]), ["m.0"],
     {"m.1": TRANSFORM}),
    ("a pattern that may be anything", lambda: rotated([online("re:(m|n)[.]1")]), [],
     {"m.0": TRANSFORM, "m.1": TRANSFORM}),
    ("an exception that may be anything", lambda: rotated([online("Linear", ignore=["re:[m]"])]),
     [], {"m.0": TRANSFORM, "m.1": TRANSFORM}),
    ("a rotation of y", lambda: rotated([online("m.0", location="output")]), ["m.1"],
     {"m.0": TRANSFORM}),
    ("what is in the weights already", lambda: rotated([
        FOLDED, online("Linear", location="weight_output"), online("x", location="k_cache")]),
     ["m.0", "m.1"], {}),
    ("in a part of the configuration", lambda: two().text(CONFIG, {"text_config": {"more": [{
        "quantization_config": {"transform_config": {"groups": {"u": {"apply": [
            {"location": "input", "ignore": "m.0"}]}}}}}]}}), ["m.0"], {"m.1": TRANSFORM}),
    ("of another form", lambda: two().text(CONFIG, {"transform_config": {"config_groups": 3}}), [],
     {"m.0": TRANSFORM, "m.1": TRANSFORM}),
    ("in ModelOpt's file", lambda: two().text("hf_quant_config.json", {"quantization": {
        "quant_algo": "NVFP4", "transform_config": {"g": {"R": {"apply": [online("m.1")]}}}}}),
     ["m.0"], {"m.1": "by transform_config of .*hf_quant_config.json"}),
    ("a rotation of 32", lambda: two().text(CONFIG, {"quantization_config": {
        "quant_method": "fp_quant", "hadamard_group_size": 32}}), [],
     {"m.0": "by hadamard_group_size of", "m.1": "by hadamard_group_size of"}),

    ("AutoRound's rotation of x", lambda: two().text(CONFIG, {"quantization_config": {
        "quant_method": "auto-round", "rotation_config": {
            "algorithm": "spinquant", "r1": True, "r4": False, "online_r1_rotation": True}}}), [],
     {"m.0": "by online_r1_rotation of", "m.1": "by online_r1_rotation of"}),
    ("Quark's of down_proj, and one that is folded", lambda: two().text(CONFIG, {
        "quantization_config": {"quant_method": "quark", "algo_config": [{
            "name": "rotation", "r1": True, "online_r1_rotation": False, "r4": True}]}}), [],
     {"m.0": "by r4 of", "m.1": "by r4 of"}),
    ("rotations that are folded", lambda: two().text(CONFIG, {"quantization_config": {
        "rotation_config": {"r1": True, "r2": True, "r4": False, "online_r1_rotation": False},
        "hadamard_config": None}}), ["m.0", "m.1"], {}),

    ("codes and scales of two programs", lambda: unknown(
        "I8", "F8_E8M0", ("m.1.weight", "m.1.scales")), ["m.0"], {"m.1": LOOKS}),
    ("words with scales of floats", lambda: unknown(
        "U32", "BF16", ("m.1.weight", "m.1.scales"), block=16), ["m.0"], {"m.1": LOOKS}),
    ("SVDQuant, its scales transposed", lambda: beside({
        "m.1.qweight": ("I8", np.zeros((16, 32), np.uint8)),
        "m.1.wscales": ("F8_E4M3", np.ones((4, 16), np.uint8))}), ["m.0"],
     {"m.1": r"m.1.qweight is I8 \[16, 32\] of SVDQuant, which is not read; expected one of"}),
    ("FP-Quant", lambda: unknown("U8", "U8", ("m.1.qweight", "m.1.scales")), ["m.0"],
     {"m.1": LOOKS}),
    ("in tiles", lambda: beside({
        "m.1.data": ("U8", np.zeros((3, 16, 48), np.uint8)),
        "m.1.scale": ("F8_E4M3", np.ones((3, 128, 8), np.uint8))}), ["m.0"], {"m.1": LOOKS}),
    ("without a dot", lambda: beside({
        "codes": ("U8", np.zeros((16, 32), np.uint8)),
        "scale": ("F8_E4M3", np.ones((16, 4), np.uint8))}), ["m.0"], {"codes": LOOKS}),
    ("torchao", lambda: unknown("U8", "F8_E4M3", ("m.1._weight_qdata", "m.1._weight_scale"),
                                block=16), ["m.0"], {"m.1": LOOKS}),
    ("bitsandbytes", lambda: beside({
        "m.1.weight": ("U8", np.zeros((512, 1), np.uint8)),
        "m.1.weight.quant_map": ("F32", np.zeros(16, np.float32)),
        "m.1.weight.quant_state.bitsandbytes__nf4": ("U8", np.zeros(64, np.uint8)),
        "m.1.weight.absmax": ("U8", np.zeros(16, np.uint8))}), ["m.0"],
     {"m.1": r"m.1.weight is U8 \[512, 1\] of bitsandbytes, which is not read; expected one of"}),
    ("bytes alone", lambda: beside({
        "m.1.weight": ("U8", np.zeros((512, 1), np.uint8)),
        "m.1.weight.more": ("U8", np.zeros(16, np.uint8))}), ["m.0"],
     {"m.1": r"m.1.weight is U8 \[512, 1\] without scales, of a dialect that is not known"}),
    ("8 bits in a byte", lambda: unknown("I8", "F32", block=128), ["m.0"], {}),
    ("a scale of a row", lambda: beside({
        "m.1.weight": ("I8", np.zeros((16, 64), np.uint8)),
        "m.1.weight_scale": ("BF16", np.ones((16, 1), np.uint16))}), ["m.0"], {}),
    ("integers of GPTQ", lambda: unknown("I32", "BF16", ("m.1.qweight", "m.1.scales")), ["m.0"], {}),
    ("MXFP4 of compressed-tensors and Quark",
     lambda: Folder(a={**mxfp4("ct.0"), **mxfp4("quark.0", 3)}), ["ct.0", "quark.0"], {}),
    ("MXFP4 with another number of scales", lambda: Folder(a={**layer("m.0"), **{
        name: (dtype, array[:, :2] if "scale" in name else array)
        for name, (dtype, array) in mxfp4("ct.0").items()}}), ["m.0"],
     {"ct.0": "ct.0.weight_global_scale is missing"}),

    ("t inverted", lambda: Folder(a={**layer("m.0"), **layer("m.1", 2, 18589)}), ["m.0"],
     {"m.1": INVERTED}),
    ("t inverted, of compressed-tensors",
     lambda: Folder(a={**layer("m.0"), **layer("m.1", 2, 18589, kind="ct")}), ["m.0"],
     {"m.1": INVERTED}),
    ("t = 0", lambda: Folder(a={**layer("m.0"), **layer("m.1", 2, 0)}), ["m.0"],
     {"m.1": "m.1.weight_scale_2 is 0, over codes that are not; expected a positive number"}),
    ("a quarter of scales are 0",
     lambda: Folder(a={**layer("m.0"), **layer("m.1", 2, change=zeroed(4))}), ["m.0"],
     {"m.1": "m.1.weight_scale is 0 over codes that are not in 16 of 64 blocks; expected fewer"}),
    ("a sixteenth of them", lambda: Folder(a=layer("m.0", change=zeroed(16))), ["m.0"], {}),
    ("tiles that nothing declares", lambda: Folder(a={**layer("m.0"), **named("m.1", True)}),
     ["m.0"], {"m.1": "is read as linear, but its rows and columns explain"}),
    ("FLUX.2's names and tiles", lambda: Folder(a=named(FLUX, True, high_first=True)), [FLUX], {}),
    ("FLUX.2's names over linear scales", lambda: Folder(a=named(FLUX, False)), [],
     {FLUX: "is read as 128x4 tiles, but its rows and columns explain"}),
    ("FLUX.2's names over scales that say nothing", lambda: Folder(a=named(FLUX, False, 0)), [],
     {FLUX: "is of a layer that is FLUX.2's by its names only, and no scales tell 128x4 tiles"}),
    ("FLUX.2's names, of which one layer speaks for all", lambda: Folder(a={
        **named(FLUX, True, 0), **named("single_blocks.0.linear1", True)}),
     [FLUX, "single_blocks.0.linear1"], {}),

    ("a name that clears a terminal", lambda: Folder(a={
        **layer("m.0"), **layer("m.\x1b[2J\x9b\u202e\x7f\n", 2, 0)}), ["m.0"],
     {"m.\x1b[2J\x9b\u202e\x7f\n": r"layer m.\\x1b\[2J\\x9b\\u202e\\x7f\\x0a: "}),
]
