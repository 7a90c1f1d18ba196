# SPDX-License-Identifier: MIT
"""What is made of a caller's tensors, kept while they live, lie where they did and hold what they
held; needs torch. For functions that get a matrix in parts at each call: plans are kept by the
Packed."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary

from nvfp4gemm._arrays import Torch


def _state(tensor: torch.Tensor) -> tuple[int, int | None]:
    """What changes where a tensor's memory or values do."""
    return tensor.data_ptr(), None if tensor.is_inference() else tensor._version


def _used_where_it_is(tensor: torch.Tensor) -> bool:
    return tensor.is_contiguous() and (tensor.data_ptr() % 16 == 0 or tensor.numel() == 1)


class Kept:
    """{first tensor: (what it and the others were, what was made of them)}"""

    def __init__(self) -> None:
        self._kept: Any = WeakIdKeyDictionary()

    def of(self, tensors: Sequence[torch.Tensor], beside: Any, make: Callable[[], Any],
           copies: bool) -> Any:
        """make(), or what it returned before for these tensors and `beside`. It holds none of the
        tensors themselves. `copies`: it has elements of them in other memory, as it has of tensors
        that a Packed cannot use where they are."""
        first = tensors[0]
        if Torch.observed() or any(map(Torch.traced, tensors)):
            return make()
        inference = any(one.is_inference() for one in tensors)
        # Tensors of inference mode count no changes, which copies would not follow.
        if inference and (copies or not all(map(_used_where_it_is, tensors))):
            return make()
        state = *map(_state, tensors), beside
        kept = self._kept.get(first)
        if kept is None or kept[0] != state:
            with torch.inference_mode(inference):
                kept = self._kept[first] = state, make()
        return kept[1]
