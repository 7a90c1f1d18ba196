# SPDX-License-Identifier: MIT
"""Experts: the experts of a layer with 4-bit weights, with one launch for each product of all
experts; needs torch."""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import torch

from nvfp4gemm import _calls, _packings, abi, layouts
from nvfp4gemm._packed import Packed
from nvfp4gemm._stack import Stack, stack
from nvfp4gemm._weights import Weight

# Names of an expert's matrices in a checkpoint that has a matrix for each expert.
_SINGLE = (("gate_proj", "up_proj", "down_proj"), ("w1", "w3", "w2"))
# Names in a checkpoint that has all experts in one tensor, and gate and up in one matrix.
_TOGETHER = ("gate_up_proj", "down_proj")
_PARTS = ("gate", "up", "down")
# Attributes by which a class of experts of transformers 5 is recognised: those that the decorator
# use_experts_implementation sets, and the parameters [experts, .., ..]. Transformers 5.17 does not
# set has_post_expert_norm, and has no such norm.
_MARKS = ("num_experts", "gate_up_proj", "down_proj", "is_concatenated", "is_transposed",
          "has_bias", "_apply_gate")
_UE8M0 = ("mxfp4", "e2m1_ue8m0")


class Refused(ValueError):
    """Raised if the experts have something that grouped products do not support, or if they do not
    match the model. argument says what it is: "tensor_scale", "bias", "pre_quant_scale", "experts"
    (their number) or "shape"."""

    def __init__(self, argument: str, text: str) -> None:
        super().__init__(text)
        self.argument = argument


class Experts(torch.nn.Module):
    """For each token, the sum over its chosen experts of weight * down(act(gate(x)) * up(x)). This
    takes two launches, whatever the routing is. The host reads nothing of the routing, so CUDA
    graphs can capture the call.

    gate, up, down  lists with one Packed for each expert. Shapes: gate and up [n, k], down [k, n]
    gate_bias, up_bias, down_bias
                    [experts, n], [experts, n] and [experts, k], or None; gate_bias and up_bias both
                    or neither
    activation, limit, alpha, beta
                    as in gated_linear()
    quantize_input  False: tokens are not quantized (compute capability 8.0 and later, and the CPU).
                    True: tokens are quantized (9.0, 10.0, 10.3 and the CPU). If all matrices of a
                    product have the same input_scale, it is used; otherwise each row is quantized
                    by its own largest value. In both cases the result of a row does not depend on
                    other rows

    state_dict() has codes, scales (128x4) and tensor_scale [experts] for gate, up and down. A
    format other than NVFP4 has a key with the format's name in place of tensor_scale. The biases
    are there, too, and input_scale if tokens are quantized.

    Raises Refused if a matrix has several tensor scales or a pre_quant_scale. There are no
    gradients.
    """

    _layout = "128x4"  # the layout of the scales, or the packing

    gate_codes: Any
    gate_bias: Any
    up_bias: Any
    down_bias: Any

    def __init__(self, gate: Iterable[Packed], up: Iterable[Packed], down: Iterable[Packed],
                 gate_bias: torch.Tensor | None = None, up_bias: torch.Tensor | None = None,
                 down_bias: torch.Tensor | None = None, *, activation: str | None = "silu",
                 limit: float | None = None, alpha: float = 1.0, beta: float = 0.0,
                 quantize_input: bool = False) -> None:
        super().__init__()
        self.quantize_input = quantize_input
        self.activation, self.limit, self.alpha, self.beta = activation, limit, alpha, beta
        self._stacks: dict[str, tuple[list[Any], Stack]] = {}
        self._formats: dict[str, tuple[str, int, int, int]] = {}
        parts = [list(matrices) for matrices in (gate, up, down)]
        first, second, last = map(_input_scale, parts)
        shared = first if first == second else None  # gate and up multiply the same tokens
        for name, matrices, scale in zip(_PARTS, parts, (shared, shared, last)):
            self._hold(name, matrices)
            self.register_buffer(f"{name}_input_scale", torch.tensor(
                scale, device=self.gate_codes.device) if quantize_input and scale else None)
        for name, bias in zip(_PARTS, (gate_bias, up_bias, down_bias)):
            self.register_buffer(f"{name}_bias", None if bias is None else bias.detach().clone())

    def _hold(self, name: str, matrices: Sequence[Packed]) -> None:
        stacked = _stacked(name, matrices)
        self._formats[name] = stacked.format, stacked.groups, stacked.rows_of_a_group, stacked.k
        if stacked.format in _UE8M0:  # the key tells of_state() the format
            self.register_buffer(f"{name}_{stacked.format}", torch.ones(
                (), dtype=torch.uint8, device=stacked.codes.device))
        codes = _by_groups(stacked)
        self.register_buffer(f"{name}_codes", codes)
        self.register_buffer(f"{name}_scales", stacked.scales)
        if stacked.format == "nvfp4":
            scale = torch.as_tensor(stacked.tensor_scale, dtype=torch.float32, device=codes.device)
            self.register_buffer(f"{name}_tensor_scale", scale.expand(stacked.groups).clone())

    @property
    def num_experts(self) -> int:
        return self._formats["gate"][1]

    def stack_of(self, name: str) -> Stack:
        """Returns the Stack of "gate", "up" or "down" on the module's memory. It is the same object
        as long as the module's arrays are the same, because plans are cached under it."""
        parts: list[Any] = [getattr(self, f"{name}_{what}", None) for what in
                            ("codes", "scales", "tensor_scale")]
        kept = self._stacks.get(name)
        if kept is not None and all(one is other for one, other in zip(kept[0], parts)):
            return kept[1]
        format_, groups, rows, k = self._formats[name]
        made = Stack(parts[0], parts[1], groups, rows, k, 1.0 if parts[2] is None else parts[2],
                     self._layout, format_)
        if not torch.compiler.is_compiling():
            self._stacks[name] = parts, made
        return made

    def pack(self, packing: str | None = None) -> Experts:
        """Packs the codes and scales of all experts, as Linear.pack() does; returns the module."""
        packing = _packings.for_layer(self.gate_codes, packing, self.quantize_input,
                                      "the experts have")
        self._put({name: self.stack_of(name).pack(packing) for name in _PARTS})
        return self

    def unpack(self) -> Experts:
        """Reverses pack(); returns the module."""
        self._put({name: self.stack_of(name).unpack() for name in _PARTS})
        return self

    @property
    def is_packed(self) -> bool:
        return self._layout in abi.PACKINGS

    def _put(self, stacks: Mapping[str, Stack]) -> None:
        self._stacks = {}
        for name, stacked in stacks.items():
            self._layout = stacked.scale_layout
            setattr(self, f"{name}_codes", _by_groups(stacked))
            setattr(self, f"{name}_scales", stacked.scales)

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str,
                            keep_vars: bool) -> None:
        """Saves unpacked codes and scales."""
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name in _PARTS if self.is_packed else ():
            plain = self.stack_of(name).unpack()
            destination[f"{prefix}{name}_codes"] = _by_groups(plain)
            destination[f"{prefix}{name}_scales"] = plain.scales

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any,
                              *arguments: Any) -> None:
        """Packed experts are unpacked for loading and packed again."""
        packing = self._layout
        if self.is_packed:
            self.unpack()
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *arguments)
        if packing in abi.PACKINGS:
            self.pack(packing)

    def _tokens(self, x: torch.Tensor, name: str) -> Any:
        """Returns x for the product with the weights `name`. If quantize_input is True, it is
        quantized."""
        if not self.quantize_input:
            return x
        scale, format_ = getattr(self, f"{name}_input_scale"), self._formats[name][0]
        if scale is None and format_ == "nvfp4":
            scale = "rows"
        return _calls.quantize(x, scale, scale_layout="linear", format=format_)

    def forward(self, hidden_states: torch.Tensor, top_k_index: torch.Tensor,
                top_k_weights: torch.Tensor) -> torch.Tensor:
        """Returns [tokens, k], in the type of hidden_states.

        hidden_states  [tokens, k] of float16 or bfloat16
        top_k_index    [tokens, chosen], the experts of each token. An index outside 0 ..
                       num_experts - 1 names no expert and adds nothing
        top_k_weights  [tokens, chosen], the weights of these experts
        """
        tokens, chosen = top_k_index.shape
        experts = self.num_experts
        index = top_k_index.reshape(-1)
        here = (index >= 0) & (index < experts)
        index = torch.where(here, index, experts)  # sorts them behind all groups
        order = torch.argsort(index, stable=True)
        ends = torch.searchsorted(index[order], torch.arange(experts, device=index.device),
                                  right=True).int()
        x, dtype = hidden_states[order // chosen], hidden_states.dtype
        h = _calls.grouped_gated_linear(
            self._tokens(x, "gate"), ends, self.stack_of("gate"), self.stack_of("up"),
            self.gate_bias, self.up_bias, activation=self.activation, limit=self.limit,
            alpha=self.alpha, beta=self.beta, out_dtype=dtype)
        y = _calls.grouped_linear(self._tokens(h, "down"), ends, self.stack_of("down"),
                                  self.down_bias, out_dtype=dtype)
        back = torch.empty_like(order)
        back[order] = torch.arange(len(order), device=order.device)
        y = y[back].reshape(tokens, chosen, -1).float() * top_k_weights.float()[..., None]
        # Rows without an expert are undefined; they may be NaN.
        return torch.where(here.reshape(tokens, chosen, 1), y, 0).sum(1).to(dtype)

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Experts:
        """Implements .to() and similar calls. Tensor scales move to the new device and stay
        float32."""
        before = {name: scale for name, scale in self._buffers.items()
                  if name.endswith(("tensor_scale", "input_scale")) and scale is not None}
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, scale in before.items():
            if getattr(self, name).dtype != torch.float32:
                setattr(self, name, scale.to(self.gate_codes.device))
        if self.is_packed and not _packings.reads(self.gate_codes, self._layout):
            self.unpack()
        return self

    def extra_repr(self) -> str:
        format_, experts, n, k = self._formats["gate"]
        return (f"experts={experts}, in_features={k}, between={n}, format={format_}, "
                f"activation={self.activation}, quantize_input={self.quantize_input}")


def _by_groups(stacked: Stack) -> Any:
    codes = stacked.codes
    return codes.reshape(stacked.groups, stacked.rows_of_a_group, codes.shape[1])


def _stacked(name: str, matrices: Sequence[Packed]) -> Stack:
    if any(getattr(one, "pre_quant_scale", None) is not None for one in matrices):
        raise Refused("pre_quant_scale", f"{name} has a pre_quant_scale, which linear() alone "
                      "applies")
    if any(one.scale_rows for one in matrices):
        raise Refused("tensor_scale", f"{name} has a matrix with several tensor scales; a group "
                      "has one")
    return stack([one.with_scales("128x4") for one in matrices])


def _input_scale(matrices: Sequence[Packed]) -> float | None:
    """The input_scale that all experts have; None if they do not have the same one, or if the
    format has no tensor scale."""
    scales = {getattr(one, "input_scale", None) for one in matrices}
    return scales.pop() if len(scales) == 1 and matrices[0].format == "nvfp4" else None


# ---- blocks of a model ----

def blocks_of(model: torch.nn.Module) -> dict[str, Any]:
    """{name: module} of the model's expert blocks, as in transformers 5."""
    return {name: module for name, module in model.named_modules()
            if all(hasattr(module, mark) for mark in _MARKS)}


def _names_of(block: str, experts: int, layers: Collection[str]) -> list[str]:
    """Returns the names of the checkpoint's layers for this block: gate, up and down of each
    expert; or one layer gate_up and one layer down, each with all experts. Returns [] if it has
    none of them, and raises ValueError if it has only some."""
    choices = [[f"{block}.{part}" for part in _TOGETHER]]
    choices += [[f"{block}.{e}.{part}" for part in parts for e in range(experts)]
                for parts in _SINGLE]
    for names in choices:
        lacking = [name for name in names if name not in layers]
        if not lacking:
            others = {name for name in layers if name.startswith(f"{block}.")} - set(names)
            if others:
                raise ValueError(f"the checkpoint has {min(others)}, and {block} has {experts} "
                                 f"experts and no such layer")
            return names
        if len(lacking) < len(names):
            raise ValueError(f"the checkpoint has {len(names) - len(lacking)} of the "
                             f"{len(names)} matrices of {block}, not {lacking[0]}")
    return []


def gathered(layers: Collection[str],
             blocks: Mapping[str, Any]) -> tuple[set[str], dict[str, list[str]]]:
    """Returns (`layers`, in which the name of a block replaces the names of its matrices; {block:
    names of its matrices}). Only blocks that the checkpoint has are replaced."""
    found = {}
    for block, module in blocks.items():
        names = _names_of(block, module.num_experts, layers)
        if names:
            found[block] = names
    inside = {name for names in found.values() for name in names}
    return (set(layers) - inside) | set(found), found


def of_block(module: Any, name: str, loaded: Mapping[str, Weight], *, quantize_input: bool = False,
             **_: Any) -> Experts:
    """Makes the Experts that replace the block `name` of a transformers model. `loaded` is {name in
    the model: weight}."""
    experts = module.num_experts
    options = _gate_of(module, name)
    if getattr(module, "has_post_expert_norm", False):
        raise ValueError(f"{name} has a norm after each expert, which Experts does not apply")
    if f"{name}.down_proj[0]" in loaded:
        stored = sum(one.startswith(f"{name}.down_proj[") for one in loaded)
        _check_number(module, name, stored)
        down = [loaded[f"{name}.down_proj[{e}]"] for e in range(experts)]
        order = "halves" if module.is_concatenated else "alternating"
        gate, up = map(list, zip(*(layouts.split_gate_up(loaded[f"{name}.gate_up_proj[{e}]"], order)
                                   for e in range(experts))))
    else:
        parts = next(parts for parts in _SINGLE if f"{name}.0.{parts[0]}" in loaded)
        gate, up, down = ([loaded[f"{name}.{e}.{part}"] for e in range(experts)] for part in parts)
    _check_shapes(module, name, (gate, up, down))
    biases = [_biases(name, part) for part in (gate, up, down)]
    _check_biases(module, name, biases)
    return Experts(gate, up, down, *biases, quantize_input=quantize_input, **options)


def of_state(module: Any, name: str, state: Mapping[str, torch.Tensor], *,
             quantize_input: bool = False) -> Experts:
    """Makes the Experts that replace the block `name` of a transformers model, from the
    state_dict() of other Experts."""
    between, k = (state[f"{part}_codes"].shape[1] for part in ("gate", "down"))
    for part in _PARTS:
        _check_number(module, name, len(state[f"{part}_codes"]))
    parts = [_matrices(part, state, between if part == "down" else k) for part in _PARTS]
    _check_shapes(module, name, parts)
    biases = [state.get(f"{part}_bias") for part in _PARTS]
    _check_biases(module, name, biases)
    gate, up, down = parts
    return Experts(gate, up, down, *biases, quantize_input=quantize_input,
                   **_gate_of(module, name))


def _check_number(module: Any, name: str, stored: int) -> None:
    if stored != module.num_experts:
        raise Refused("experts", f"{name} has {stored} experts in the checkpoint, "
                      f"{module.num_experts} in the model")


def _check_shapes(module: Any, name: str, parts: Iterable[Iterable[Packed]]) -> None:
    """`parts` has the matrices of gate, of up and of down."""
    wide, k = module.gate_up_proj.shape[1:]
    if module.is_transposed:
        wide, k = k, wide
    for part, matrices in zip(_PARTS, parts):
        expected = (k, wide // 2) if part == "down" else (wide // 2, k)
        for one in matrices:
            if one.shape != expected:
                raise Refused("shape", f"{part} of {name} is {one.shape} in the checkpoint, "
                              f"{expected} in the model")


def _check_biases(module: Any, name: str, biases: Sequence[torch.Tensor | None]) -> None:
    for part, bias in zip(_PARTS, biases):
        if module.has_bias != (bias is not None):
            which = "a" if module.has_bias else "no"
            raise Refused("bias", f"{part} of {name} has {which} bias in the model, "
                          "otherwise than in the checkpoint")


def _matrices(part: str, state: Mapping[str, torch.Tensor], k: int) -> list[Weight]:
    """A Weight [n, k] for each expert."""
    codes, scales = state[f"{part}_codes"], state[f"{part}_scales"]
    scale, input_ = (state.get(f"{part}_{what}_scale") for what in ("tensor", "input"))
    # One copy to the host, not one for each expert.
    scale, input_ = (None if one is None else one.cpu() for one in (scale, input_))
    experts, n = codes.shape[:2]
    format_ = next((one for one in _UE8M0 if f"{part}_{one}" in state), "nvfp4")
    if (scale is None) == (format_ == "nvfp4"):
        raise Refused("tensor_scale", f"{part} is saved in {format_} with"
                      f"{'out' if scale is None else ''} tensor_scale")
    factors = [1.0] * experts if scale is None else scale.expand(experts).tolist()
    scales = scales.reshape(experts, -1)
    return [Weight(codes[e], scales[e], n, k, factors[e], format=format_)
            .beside(input_scale=None if input_ is None else float(input_))
            for e in range(experts)]


def _biases(name: str, matrices: Sequence[Weight]) -> torch.Tensor | None:
    """[experts, n], or None if no expert has a bias."""
    biases: list[Any] = [getattr(one, "bias", None) for one in matrices]
    having = sum(bias is not None for bias in biases)
    if 0 < having < len(biases):
        raise Refused("bias", f"{having} of the {len(biases)} experts of {name} have a bias")
    return torch.stack(biases) if having else None


def _limits_of(module: Any) -> set[float]:
    """The module's attributes whose names suggest that they are clamp limits."""
    values = [value for name, value in vars(module).items() if "limit" in name or "clamp" in name]
    return {float(value) for value in values
            if isinstance(value, (int, float)) and 0 < value < float("inf")}


def _steps(limits: Iterable[float]) -> torch.Tensor:
    """The points at which our gate is compared with the module's: closely spaced around 0, on both
    sides of each limit, and up to 2^15. The wide range finds a clamp whose limit has an unexpected
    name."""
    far = [2.0 ** power * part for power in range(3, 16) for part in (1.0, 1.75)]
    far += [limit * part for limit in limits for part in (0.5, 1.0, 1.5, 3.0)]
    return torch.cat((torch.arange(-12, 12.5, 0.5), torch.tensor(far), -torch.tensor(far)))


def _gate_of(module: Any, name: str) -> dict[str, Any]:
    """Returns {activation, limit, alpha, beta} with which our gate equals the module's. Raises
    ValueError if there are none."""
    limits = _limits_of(module)
    steps = _steps(limits)
    gate, up = (steps.repeat_interleave(len(steps)), steps.repeat(len(steps)))
    both = (torch.cat((gate, up)) if module.is_concatenated else
            torch.stack((gate, up), 1).reshape(-1))
    with torch.no_grad():
        expected = module._apply_gate(both[None])[0]
    alpha = getattr(module, "alpha", 1.0)
    tries: list[dict[str, Any]] = [
        {"activation": activation} for activation in ("silu", "gelu", "gelu_tanh", "relu")]
    tries += [{"activation": "silu", "limit": cut, "alpha": alpha, "beta": beta}
              for cut in (None, *limits) for beta in (0.0, 1.0)]
    for options in tries:
        if torch.allclose(_gated(gate, up, **options), expected, rtol=1e-5, atol=1e-5):
            return options
    raise ValueError(f"{name} has a gate of its own, which gated_linear() does not compute")


def _gated(gate: torch.Tensor, up: torch.Tensor, activation: str, limit: float | None = None,
           alpha: float = 1.0, beta: float = 0.0) -> torch.Tensor:
    """The gate of gated_linear(), computed by torch."""
    if limit is not None:
        gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    gates: dict[str, Callable[..., Any]] = {
        "silu": lambda g: g * torch.sigmoid(alpha * g), "gelu": torch.nn.functional.gelu,
        "gelu_tanh": lambda g: torch.nn.functional.gelu(g, approximate="tanh"), "relu": torch.relu}
    made: torch.Tensor = gates[activation](gate) * (up + beta)
    return made
