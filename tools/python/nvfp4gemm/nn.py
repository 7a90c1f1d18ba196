# SPDX-License-Identifier: MIT
"""torch.nn.Linear with an NVFP4 weight, which stays as it is; needs torch.

    from nvfp4gemm.nn import Linear, load_linear, replace_linear
    replace_linear(model, skip=["lm_head"])                  # every torch.nn.Linear but lm_head
    load_linear(model, "model/", "cuda")                     # what an NVFP4 checkpoint has
"""
from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nvfp4gemm import _oldest_torch  # noqa: F401, before names that old ones lack
import torch

from nvfp4gemm import _experts, _layers, checkpoints
from nvfp4gemm._experts import Experts, Refused
from nvfp4gemm._files import Checkpoint
from nvfp4gemm._linear import Linear
from nvfp4gemm._safetensors import shown
from nvfp4gemm._types import Device, Path
from nvfp4gemm._weights import Weight

__all__ = ["Experts", "Linear", "Refused", "in_4_bits", "load_linear", "put", "replace_linear"]


def put(model: torch.nn.Module, name: str, layer: torch.nn.Module) -> None:
    """Puts the layer into the model, in place of what it has at that name."""
    parent, _, last = name.rpartition(".")
    setattr(model.get_submodule(parent), last, layer)


def _skipped(name: str, skip: Iterable[str]) -> bool:
    return any(name == part or name.endswith("." + part) for part in skip)


def replace_linear(model: torch.nn.Module, skip: Iterable[str] = (), **options: Any) -> list[str]:
    """Replaces each torch.nn.Linear inside model by a Linear of this module, in place; returns
    their names.

    skip     names of layers that stay, whole ("model.layers.0.mlp.up_proj") or their ends
             ("lm_head"). A name that no layer has raises
    options  of Linear
    """
    layers = {name: layer for name, layer in model.named_modules()
              if type(layer) is torch.nn.Linear}
    for part in skip:
        if not any(_skipped(name, [part]) for name in layers):
            raise ValueError(f"skip names {part!r}, which is no torch.nn.Linear of the model")
    layers = {name: layer for name, layer in layers.items() if not _skipped(name, skip)}
    owners: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        owners.setdefault(id(parameter), []).append(name.rpartition(".")[0])
    for name, layer in layers.items():
        others = [other for other in owners[id(layer.weight)] if other != name]
        if others:
            raise ValueError(f"{name} shares its weight with {others[0]}; skip can name it")
    for name, layer in layers.items():
        if layer.in_features % 16:
            raise ValueError(f"{name} has {layer.in_features} input features, no multiple of 16; "
                             "skip can name it")
    for name, layer in layers.items():
        put(model, name, Linear.from_float(layer, **options))
    return list(layers)


def _chosen(layers: Mapping[str, torch.nn.Module], names: Iterable[str] | None,
            skip: Iterable[str]) -> list[str]:
    """Those of the model's layers and blocks of experts that load_linear is to load."""
    for part in skip:
        if not any(_skipped(name, [part]) for name in layers):
            raise ValueError(f"skip names {part!r}, which is no torch.nn.Linear of the model, nor "
                             "its experts")
    for name in names or ():
        if name not in layers:
            raise ValueError(f"names has {name!r}, which is no torch.nn.Linear of the model, nor "
                             "its experts")
    return [name for name in (layers if names is None else names) if not _skipped(name, skip)]


def _in_4_bits(model: torch.nn.Module, checkpoint: Checkpoint, prefix: str,
               fused: Mapping[str, Sequence[str]],
               whole: bool) -> tuple[set[str], dict[str, list[str]]]:
    """(Names of the model's layers and blocks of experts that the checkpoint has in 4 bits; of each
    block, the names of its matrices.) Raises, for a whole model, where it has no place for one of
    the checkpoint's."""
    layers = _layers.Finder(checkpoint).layers()
    modules = dict(model.named_modules())
    wholes = {name: parts for name, parts in _layers.wholes_of(layers, fused).items()
              if name.removeprefix(prefix) in modules}
    parts = {part for parts in wholes.values() for part in parts}
    ours = {name.removeprefix(prefix) for name in (*layers, *wholes) if name.startswith(prefix)}
    blocks = _experts.blocks_of(model)
    ours, experts = _experts.gathered(ours, blocks)
    for name in sorted(ours) if whole else ():
        if prefix + name in parts and name not in modules:
            continue
        if not isinstance(modules.get(name), (torch.nn.Linear, Linear)) and name not in blocks:
            raise ValueError(shown(f"the checkpoint has {prefix}{name}, and {name} is no "
                                   "torch.nn.Linear of the model"))
    return ours, experts


def in_4_bits(model: torch.nn.Module, path: Path, *, prefix: str = "",
              fused: Mapping[str, Sequence[str]] = checkpoints.FUSED) -> list[str]:
    """Names of the model's torch.nn.Linear and blocks of experts that load_linear would load from a
    checkpoint. Raises where the model has no place for one of the checkpoint's."""
    ours, _ = _in_4_bits(model, Checkpoint(path), prefix, fused, True)
    return [name for name, _ in model.named_modules() if name in ours]


def _available(path: Path, prefix: str, chosen: Sequence[str], model: torch.nn.Module, whole: bool,
               fused: Mapping[str, Sequence[str]]) -> tuple[list[str], dict[str, list[str]]]:
    """Of the chosen layers, what _in_4_bits() returns. Raises where the checkpoint has nothing for
    one; warns of 16-bit ones."""
    checkpoint, blocks = Checkpoint(path), _experts.blocks_of(model)
    ours, experts = _in_4_bits(model, checkpoint, prefix, fused, whole)
    others = [name for name in chosen if name not in ours]
    begin = [prefix + name + ("." if name in blocks else ".weight") for name in others]
    lost = [name for name, first in zip(others, begin) if not any(
        tensor.startswith(first) if name in blocks else tensor == first
        for tensor in checkpoint.tensors)]
    if lost and not checkpoint.broken:
        raise ValueError(f"{path} has nothing for {', '.join(lost[:5])}"
                         f"{' and others' if len(lost) > 5 else ''}, which would keep the weights "
                         "that they have now; skip can name them, or prefix what the checkpoint's "
                         "names begin with")
    if others:
        warnings.warn(f"{len(others)} layers are not NVFP4 in {path} and keep the weights that "
                      f"they have now: {', '.join(others[:5])}{' ..' if len(others) > 5 else ''}",
                      stacklevel=3)
    return [name for name in chosen if name in ours], experts


def _fitting(name: str, weight: Weight, old: torch.nn.Linear) -> Weight:
    """The weight for that layer: a ComfyUI file has rows up to the next multiple of 16."""
    expected = (old.out_features, old.in_features)
    padded = (-(-old.out_features // 16) * 16, old.in_features)
    if weight.dialect in ("comfyui", "flux2") and weight.shape == padded != expected:
        weight = weight.slice_rows(0, old.out_features)
    if weight.shape != expected:
        raise ValueError(f"{name} is {weight.shape} in the checkpoint, {expected} in the model")
    return weight


def _linear(name: str, weight: Weight, old: torch.nn.Linear, options: dict[str, Any],
            pack: bool) -> Linear:
    weight = _fitting(name, weight, old)
    made = Linear(weight, weight.bias, **options)
    return made.pack() if pack else made


def _of_block(block: torch.nn.Module, name: str, loaded: Mapping[str, Weight],
              options: dict[str, Any], pack: bool) -> Experts:
    made = _experts.of_block(block, name, loaded, **options)
    return made.pack() if pack else made


def load_linear(model: torch.nn.Module, path: Path, device: Device, *,
                names: Iterable[str] | None = None, skip: Iterable[str] = (), prefix: str = "",
                fused: Mapping[str, Sequence[str]] = checkpoints.FUSED,
                pack: bool = False, **options: Any) -> list[str]:
    """Replaces those torch.nn.Linear of model that a checkpoint has in NVFP4, in place, and its
    blocks of experts, as transformers 5 has them, by Experts; returns their names. Biases are the
    checkpoint's. model may lie on the meta device. All layers are read before the first is
    replaced. A layer for which the checkpoint has nothing raises, and one that it has in 16 bits,
    which is left to you, is warned of.

    names    the layers and blocks of experts to load, by the model's names; None: all
    skip     names of layers that stay, whole or their ends, as replace_linear's
    prefix   what the checkpoint's names have before the model's: "model.diffusion_model."
    fused    {"qkv_proj": ["q_proj", "k_proj", "v_proj"], ..}: what the model has as one layer where
             the checkpoint has its parts, as checkpoints.load() fuses them
    pack     True: pack() of each layer and of Experts, one after the other, each of which gives
             its own memory back
    options  of Linear; of Experts quantize_input
    """
    blocks = _experts.blocks_of(model)
    layers = {name: layer for name, layer in model.named_modules()
              if type(layer) is torch.nn.Linear}
    found, experts = _available(path, prefix, _chosen({**layers, **blocks}, names, skip), model,
                                names is None, fused)
    wanted = [prefix + part for name in found for part in experts.get(name, [name])]
    loaded = {name.removeprefix(prefix): weight for name, weight in checkpoints.load(
        path, device, names=wanted, fused=fused).items()}
    made = {name: _of_block(blocks[name], name, loaded, options, pack) if name in experts else
            _linear(name, loaded.pop(name), layers[name], options, pack) for name in found}
    for name, layer in made.items():
        put(model, name, layer)
    return found
