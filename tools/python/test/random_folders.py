# SPDX-License-Identifier: MIT
"""Random folders: two layers of a dialect, spoiled in one to four ways, in one to three files, with
or without an index and a configuration. Nobody says what is right; two readers must say the
same."""
import numpy as np

import dialect_files as files
import folder_files

TYPES = {"U8": 1, "I8": 1, "U32": 4, "F8_E4M3": 1, "F8_E8M0": 1, "F32": 4, "BF16": 2, "I32": 4,
         "F16": 2}
SUFFIXES = (".bias", ".input_scale", ".weight_scale", ".weight_scale_2", ".weight_packed", ".scale",
            "_scales", "_blocks", ".weight_global_scale", ".zero", ".comfy_quant", "_weight_scale",
            ".k_scale", ".weight._amax_rowwise", "_bias")
KINDS = [name for name, make in files.DIALECTS.items() if make().kind == "safetensors"]


def _resized(rng, array):
    axis = int(rng.integers(array.ndim)) if array.ndim else None
    if axis is None:
        return np.repeat(array.reshape(1), rng.integers(0, 4))
    how = rng.integers(4)
    if how == 0:
        return np.repeat(array, 2, axis)
    if how == 1:
        return array.reshape(-1)
    return array[None] if how == 2 else np.take(array, range(array.shape[axis] // 2), axis)


def _spoil(rng, tensors):
    name = str(rng.choice(sorted(tensors)))
    dtype, array = tensors[name]
    how = rng.integers(7)
    if how == 0:
        del tensors[name]
    elif how == 1:
        dtype = str(rng.choice(list(TYPES)))
        width = array.nbytes // max(1, array.size)
        if TYPES[dtype] == width:
            tensors[name] = dtype, array
    elif how == 2:
        tensors[name] = dtype, np.ascontiguousarray(_resized(rng, array))
    elif how == 3:
        tensors[name] = dtype, rng.permuted(array.reshape(-1)).reshape(array.shape)
    elif how == 4:
        value = rng.choice([0, 1, 0x7F, 0x80, 0xFF, 1e6, -1, np.nan]) if dtype == "F32" else (
            rng.integers(256))
        flat = array.reshape(-1).copy()
        flat[:max(1, int(array.size * rng.choice([0, 0.3, 1])))] = np.asarray(value).astype(
            array.dtype)
        tensors[name] = dtype, flat.reshape(array.shape)
    else:
        layer = name.partition(".weight")[0]
        tensors[layer + str(rng.choice(SUFFIXES))] = tensors.pop(name) if how == 5 else (
            dtype, array)


def _shards(rng, tensors):
    """The tensors in one to three files; some perhaps in two."""
    shards = {name: {} for name in "abc"[:rng.integers(1, 4)]}
    for name, tensor in tensors.items():
        for shard in rng.choice(list(shards), 1 + (rng.random() < 0.05)):
            shards[shard][name] = tensor
    return {name: shard for name, shard in shards.items() if shard} or {"a": tensors}


def folder(seed):
    rng = np.random.default_rng(seed)
    tensors = dict(files.DIALECTS[str(rng.choice(KINDS))]().tensors)
    for _ in range(rng.integers(1, 5)):
        if tensors:
            _spoil(rng, tensors)
    made = folder_files.Folder(**_shards(rng, tensors))
    if rng.random() < 0.5:
        names = sorted(tensors)
        changes = {} if rng.random() < 0.4 or not names else {str(rng.choice(names)): rng.choice(
            ["a.safetensors", "b.safetensors", "d.safetensors", "../a.safetensors", None])}
        made.index(**{name: file and str(file) for name, file in changes.items()})
        if rng.random() < 0.3 and len(made.shards) > 1:
            made.shards.pop(sorted(made.shards)[-1])
    if rng.random() < 0.2:
        target = str(rng.choice(["Linear", "re:.*bad$", "m.good", r"re:.*\d", "re:.*o+d",
                                 "re:m.*"]))
        made.text(folder_files.CONFIG, {"transform_config": {"g": {"u": {"apply": [
            folder_files.online(target, location=str(rng.choice(["input", "weight_input"])))]}}}})
    return made
