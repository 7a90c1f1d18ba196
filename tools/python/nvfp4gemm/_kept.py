# SPDX-License-Identifier: MIT
"""A cache of objects made from a caller's tensors; needs torch. An entry is valid as long as the
tensors exist, have not moved and have not changed. It serves functions that get the parts of a
matrix in every call; a Packed holds its plans itself."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary

from nvfp4gemm._arrays import Torch


def _state(tensor: torch.Tensor) -> tuple[int, int | None]:
    """A value that changes when the tensor's memory or contents change."""
    return tensor.data_ptr(), None if tensor.is_inference() else tensor._version


def _used_where_it_is(tensor: torch.Tensor) -> bool:
    return tensor.is_contiguous() and (tensor.data_ptr() % 16 == 0 or tensor.numel() == 1)


class Kept:
    """{first tensor: (state of all tensors, the object made from them)}"""

    def __init__(self) -> None:
        self._kept: Any = WeakIdKeyDictionary()

    def of(self, tensors: Sequence[torch.Tensor], beside: Any, make: Callable[[], Any],
           copies: bool) -> Any:
        """Returns make(), or what make() returned before for these tensors and `beside`. The result
        must not refer to the tensors themselves, or the entry would never be freed. `copies` is
        True if make() always copies elements. If it copies only because a Packed cannot use a
        tensor as it is, of() finds that out itself."""
        first = tensors[0]
        if Torch.observed() or any(map(Torch.traced, tensors)):
            return make()
        inference = any(one.is_inference() for one in tensors)
        # Inference-mode tensors have no version counter, so that a cached copy could become stale.
        if inference and (copies or not all(map(_used_where_it_is, tensors))):
            return make()
        state = *map(_state, tensors), beside
        kept = self._kept.get(first)
        if kept is None or kept[0] != state:
            with torch.inference_mode(inference):
                kept = self._kept[first] = state, make()
        return kept[1]
