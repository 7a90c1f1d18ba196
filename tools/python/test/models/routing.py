# SPDX-License-Identifier: MIT
"""The routing of one run, repeated in another: all routers of transformers choose by torch.topk.
A choice that is nearly a tie falls otherwise in float64 than in bfloat16, and then everything after
it is another product."""
import contextlib

import torch

_topk = torch.topk


@contextlib.contextmanager
def recorded():
    """A list that fills with the indices that torch.topk gives inside."""
    made = []

    def record(x, k, *arguments, **options):
        found = _topk(x, k, *arguments, **options)
        made.append(found.indices)
        return found

    torch.topk = record
    try:
        yield made
    finally:
        torch.topk = _topk


@contextlib.contextmanager
def repeated(indices):
    """torch.topk gives those indices, one call after the other, with the values that are there. A
    list that fills with how far the least of them is below the k-th largest, in units of the
    spread of the values."""
    waiting, lacks = list(indices), []

    def repeat(x, k, *_, **__):
        index = waiting.pop(0)
        values = x.gather(-1, index)
        least = _topk(x, k).values[..., -1]
        finite = torch.where(torch.isfinite(x), x, x.nan_to_num(0))
        lacks.append(((least - values.amin(-1)) / finite.std(-1)).max().item())
        return torch.return_types.topk((values, index))

    torch.topk = repeat
    try:
        yield lacks
    finally:
        torch.topk = _topk
    assert not waiting, f"{len(waiting)} choices were not repeated"


def joined(indices, each, sequences):
    """Those of one run over whole sequences, of the choices of generate(): `each` for every forward
    pass, of the prompt first, then of one token more at a time."""
    passes = [indices[i:i + each] for i in range(0, len(indices), each)]
    return [torch.cat([one[i].reshape(sequences, -1, one[i].shape[-1]) for one in passes], 1)
            .flatten(0, 1) for i in range(each)]
