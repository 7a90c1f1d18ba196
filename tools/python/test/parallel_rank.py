# SPDX-License-Identifier: MIT
"""parallel_rank.py RANK RANKS FILE BACKEND [time]: one process of test_python_parallel.py.
Divides layers among the ranks and compares with the undivided ones; fails where they differ by more
than the bound. FILE is where the processes meet."""
import sys
import time

import package  # noqa: F401

import torch
import torch.distributed as dist
from torch.autograd import forward_ad

import nvfp4gemm
from nvfp4gemm import checkpoints, nn
from nvfp4gemm.parallel import ColumnLinear, RowLinear

UNIT = 2.0 ** -8  # of bfloat16, from one number to the next: relative, at most


def layer(seed, n, k, device, bias=True):
    torch.manual_seed(seed)
    float_ = torch.nn.Linear(k, n, bias, dtype=torch.bfloat16).to(device)
    return nn.Linear.from_float(float_)


def sums(x, layer_):
    """(exact sums, sums of magnitudes) in float64 of the dequantized weight."""
    w, x = layer_.packed().dequantize().double(), x.double()
    bias = 0 if layer_.bias is None else layer_.bias.double()
    return x @ w.T + bias, x.abs() @ w.abs().T + abs(bias)


def within(what, y, expected, bound):
    worst = float(((y.double() - expected).abs() / bound).max())
    if not worst <= 1:
        raise SystemExit(f"{what}: {worst:.3g} of the bound")
    return worst


def compare(device, group):
    """Bound of a row layer: each part is rounded once, their sum once for each rank but the first;
    each sum in fp32 is within 2^-13 of the magnitudes' sum (NUMERICS in nvfp4_gemm.h has less)."""
    ranks, rank = dist.get_world_size(group), dist.get_rank(group)
    worst = 0.0
    for m, n, k in ((1, 256, 512), (17, 384, 192), (33, 100 * ranks, 32 * ranks), (64, 512, 1024)):
        x = torch.randn(m, k, generator=torch.Generator().manual_seed(m)).bfloat16().to(device)
        whole = layer(n, n, k, device)
        exact, magnitudes = sums(x, whole)
        bound = UNIT * exact.abs() + 2.0 ** -13 * magnitudes + 1e-30
        columns = ColumnLinear(whole, group=group, gather=True)
        worst = max(worst, within(f"columns {m}x{n}x{k}", columns(x), exact, bound))
        begin, end = k // ranks * rank, k // ranks * (rank + 1)
        row = RowLinear(whole, group=group)
        within(f"rows {m}x{n}x{k}", row(x[:, begin:end].contiguous()), exact,
               UNIT * ranks * magnitudes + 1e-30)
        all_of_x = RowLinear(whole, group=group, split_input=True)
        if not torch.equal(all_of_x(x), row(x[:, begin:end].contiguous())):
            raise SystemExit(f"rows {m}x{n}x{k}: split_input differs")
        packed = layer(n, n, k, device).pack()
        if not (torch.equal(ColumnLinear(packed, group=group, gather=True)(x), columns(x)) and
                torch.equal(RowLinear(packed, group=group, split_input=True)(x), all_of_x(x))):
            raise SystemExit(f"{m}x{n}x{k}: a packed layer differs")
        row = RowLinear(whole, group=group, sum_type=torch.float32)
        y = row(x[:, begin:end].contiguous())
        worst = max(worst, within(f"fp32 rows {m}x{n}x{k}", y, exact, bound))
    return worst


def fused(rows, k, device, scales, **options):
    """A layer of several, as load_linear() makes it where the model has one: its parts' x is one.
    `scales`, of each part: different ones stay apart."""
    torch.manual_seed(sum(rows))
    parts = [nvfp4gemm.quantize(torch.randn(n, k, device=device).bfloat16(), scale)
             for n, scale in zip(rows, scales)]
    bias = torch.randn(sum(rows), device=device).bfloat16()
    return nn.Linear(checkpoints.fuse(parts), bias, **options), parts, bias


def compare_fused(device, group):
    """A rank has its rows of each part, which is what follows it expects: gate beside up."""
    ranks, rank = dist.get_world_size(group), dist.get_rank(group)
    for rows, scales in (((128 * ranks, 128 * ranks), (0.002, 0.001)),
                         ((256 * ranks, 64 * ranks, 64 * ranks), (0.002, 0.001, 0.004)),
                         ((24 * ranks, 40 * ranks), (0.002, 0.002))):
        whole, parts, bias = fused(rows, 64, device, scales)
        x = torch.randn(5, 64, generator=torch.Generator().manual_seed(3)).bfloat16().to(device)
        for layer_, given in ((whole, {}), (nn.Linear(whole.packed().replace(), bias),
                                            {"parts": rows})):
            layer_.parts = None if given else layer_.parts
            mine, expected = ColumnLinear(layer_, group=group, **given), []
            for part, bias_of in zip(parts, bias.split(rows)):
                n = part.rows // ranks
                cut = slice(rank * n, rank * n + n)
                expected.append(nvfp4gemm.linear(x, part.slice_rows(cut.start, cut.stop),
                                                 bias_of[cut]))
            if not torch.equal(mine(x), torch.cat(expected, -1)):
                raise SystemExit(f"fused {rows}: a rank has other rows than its own of each part")
            if mine.parts != tuple(n // ranks for n in rows):
                raise SystemExit(f"fused {rows}: {mine.parts} rows of each part")
            gathered = ColumnLinear(layer_, group=group, gather=True, **given)
            if not torch.equal(gathered(x), whole(x)):
                raise SystemExit(f"fused {rows}: gathered in another order")


def perceptron(device, group, hidden, inner):
    """A two-layer one, whole and divided, and beside it in bf16."""
    up, down = layer(1, inner, hidden, device, False), layer(2, hidden, inner, device, False)
    up.activation = "silu"
    divided = torch.nn.Sequential(ColumnLinear(up, group=group), RowLinear(down, group=group))
    w_up, w_down = (w.packed().dequantize(torch.bfloat16) for w in (up, down))
    ranks, rank = dist.get_world_size(group), dist.get_rank(group)
    mine = slice(inner // ranks * rank, inner // ranks * (rank + 1))
    part_up, part_down = w_up[mine].clone(), w_down[:, mine].clone()

    def plain(x):
        y = torch.nn.functional.silu(x @ part_up.T) @ part_down.T
        dist.all_reduce(y, group=group)
        return y

    return torch.nn.Sequential(up, down), divided, plain


def compare_perceptron(device, group, hidden, inner):
    """The divided one against the whole: sums of the second layer in bf16 parts, and inner values
    that may round to a neighbour."""
    whole, divided, _ = perceptron(device, group, hidden, inner)
    worst = 0.0
    for m in (1, 16, 200):
        x = torch.randn(m, hidden, generator=torch.Generator().manual_seed(m)).bfloat16().to(device)
        middle, expected = whole[0](x), whole(x).double()
        magnitudes = sums(middle, whole[1])[1]
        bound = UNIT * (dist.get_world_size(group) + 2) * magnitudes + 1e-30
        worst = max(worst, within(f"perceptron of {m}", divided(x), expected, bound))
    return worst


def with_gradients(call, x):
    with torch.enable_grad():
        return call(x)


def with_tangents(call, x):
    with forward_ad.dual_level():
        return call(forward_ad.make_dual(x, torch.ones_like(x)))


def refused(device, ranks):
    """What cannot be divided is said."""
    silu = layer(1, 64, 64 * ranks, device)
    silu.activation = "silu"
    x = torch.zeros(1, 64 * ranks, dtype=torch.bfloat16, device=device, requires_grad=True)
    row = RowLinear(layer(1, 64, 64 * ranks, device))
    column = ColumnLinear(layer(1, 64 * ranks, 64 * ranks, device))
    for call, kind, words in [
            (lambda: with_gradients(column, x), ValueError, "x requires a gradient"),
            (lambda: with_gradients(row, x[:, :64]), ValueError, "x requires a gradient"),
            (lambda: with_tangents(column, x.detach()), ValueError, "x has a tangent"),
            (lambda: with_tangents(row, x.detach()[:, :64]), ValueError, "x has a tangent"),
            (lambda: ColumnLinear(layer(1, 48 * ranks + 1, 64, device)), ValueError,
             f"no multiple of 1 for each of {ranks} ranks"),
            (lambda: RowLinear(layer(1, 64, 16 * ranks, device)), ValueError, "no multiple of 32"),
            (lambda: ColumnLinear(fused((32 * ranks, 32), 64, device, (1.0, 1.0))[0],
                                  parts=(32 * ranks - 1, 33)), ValueError,
             f"no multiple of 1 for each of {ranks} ranks"),
            (lambda: ColumnLinear(layer(1, 64, 64, device), parts=(32, 33)), ValueError,
             "parts have 65 rows, out_features is 64"),
            (lambda: RowLinear(silu), ValueError, "before the activation 'silu'"),
            (lambda: ColumnLinear(torch.nn.Linear(64, 64)), TypeError, "as from_float() makes it")]:
        try:
            call()
        except kind as error:
            if words not in str(error):
                raise
        else:
            raise SystemExit(f"not refused: {words}")


def best(call, device):
    """Seconds of a call: the middle of 20 rounds of 20."""
    rounds = []
    for _ in range(20):
        torch.cuda.synchronize(device)
        dist.barrier(device_ids=[device.index])
        start = time.perf_counter()
        for _ in range(20):
            call()
        torch.cuda.synchronize(device)
        rounds.append((time.perf_counter() - start) / 20)
    return sorted(rounds)[10]


def captured(call):
    """In a graph, so that the host's time does not count."""
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def times(device, group, hidden=8192, inner=28672):
    whole, divided, plain = perceptron(device, group, hidden, inner)
    for m in (1, 16, 64, 256, 1024, 4096):
        x = torch.randn(m, hidden, device=device).bfloat16()
        row = [best(captured(lambda: call(x)), device) * 1e6 for call in (whole, divided, plain)]
        if dist.get_rank(group) == 0:
            print(f"mlp {hidden}-{inner}-{hidden}, {m} tokens, us: NVFP4 on one GPU {row[0]:.1f}, "
                  f"on {dist.get_world_size(group)} {row[1]:.1f}; bf16 on them {row[2]:.1f}",
                  flush=True)


def main():
    rank, ranks, file, backend = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    device = torch.device("cuda", rank) if backend == "nccl" else torch.device("cpu")
    if backend == "nccl":
        torch.cuda.set_device(device)
    torch.set_num_threads(1)
    dist.init_process_group(backend, init_method="file://" + file, rank=rank, world_size=ranks,
                            **({"device_id": device} if backend == "nccl" else {}))
    try:
        with torch.no_grad():
            if sys.argv[5:] == ["time"]:
                times(device, dist.group.WORLD)
                return
            layers = compare(device, dist.group.WORLD)
            compare_fused(device, dist.group.WORLD)
            sizes = (2048, 4096) if backend == "nccl" else (128, 256)
            both = compare_perceptron(device, dist.group.WORLD, *sizes)
            if rank == 0:
                print(f"ok: layers {layers:.2f} of their bound, perceptron {both:.3f}")
            refused(device, ranks)
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
