# SPDX-License-Identifier: MIT
"""A program with types, for mypy alone (check_types.sh): what calls return."""
from typing import Any

import numpy as np
import torch
from typing_extensions import assert_type

import nvfp4gemm
from nvfp4gemm import checkpoints, layouts
from nvfp4gemm.nn import Experts, Linear, load_linear, replace_linear

Array = np.ndarray[Any, Any]


def of_numpy(x: Array, bias: Array) -> None:
    weight = nvfp4gemm.quantize(x, format="mxfp4")
    assert_type(weight, nvfp4gemm.Packed)
    assert_type(weight.slice_rows(0, 64), nvfp4gemm.Packed)
    assert_type(weight.shape, tuple[int, int])
    assert_type(nvfp4gemm.linear(x, weight, bias), Array)
    nvfp4gemm.mm(x, weight, alpha=2.0, out_dtype="float32", out=None)
    nvfp4gemm.stack([weight, weight])


def of_torch(x: torch.Tensor, model: torch.nn.Module) -> None:
    weight = nvfp4gemm.quantize(x, "rows")
    assert_type(nvfp4gemm.linear(x, weight, out_dtype=torch.bfloat16), torch.Tensor)
    layer = Linear(weight)
    assert_type(layer.forward(x), torch.Tensor)
    assert_type(layer.packed().input_scale, Any)
    assert_type(Linear.from_float(torch.nn.Linear(64, 64)), Linear)
    assert_type(replace_linear(model, skip=["lm_head"]), list[str])
    assert_type(load_linear(model, "model/", torch.device("cuda")), list[str])
    assert_type(Experts([weight], [weight], [weight]).num_experts, int)


def of_files() -> None:
    assert_type(nvfp4gemm.__version__, str)
    gate, up = layouts.split_gate_up(nvfp4gemm.quantize(np.zeros((64, 64), np.float32)))
    layers = checkpoints.load("model/", device="cuda")
    assert_type(checkpoints.fuse([layers["q"], layers["k"]]), checkpoints.Weight)
    assert_type(checkpoints.load("model/", strict=False)[1], list[checkpoints.Problem])
    nvfp4gemm.gated_linear(np.zeros((1, 64), np.float16), gate, up, limit=7)
