#!/bin/sh
# SPDX-License-Identifier: MIT
# check_ptxas.sh PTX CUBIN...: what ptxas reported for each cubin (CUBIN.report) and what the PTX holds.
# Fails on a spill, a stack frame, more registers than below, or an instruction that is not there.
set -eu
ptx=$1
shift

max_registers=96   # 65,536 / 192 threads leave 341; ours use 64, and more wants a look

fail() { echo "check-ptxas: $*" >&2; exit 1; }

for cubin; do
  report=$cubin.report
  [ -s "$cubin" ] || fail "$cubin is missing"
  entries=$(grep -c 'Compiling entry function' "$report") || fail "$report names no entry"
  clean=$(grep -c '^ *0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads$' "$report") ||
    true
  [ "$clean" -eq "$entries" ] || fail "a stack frame or a spill in $cubin: $(grep stack "$report")"
  registers=$(sed -n 's/.*Used \([0-9]*\) registers.*/\1/p' "$report" | sort -n | tail -n 1)
  [ "$registers" -le $max_registers ] || fail "$registers registers in $cubin, at most $max_registers"
  printf '%-45s %d entries, %3d registers, 0 stack, 0 spills\n' "$cubin" "$entries" "$registers"
done

while read -r instruction; do
  [ -n "$instruction" ] || continue
  count=$(grep -cF "$instruction" "$ptx") || fail "$ptx has no $instruction"
  printf '%4d x %s\n' "$count" "$instruction"
done <<'LIST'
cp.async.bulk.tensor.3d.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint
prefetch.tensormap
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned
tcgen05.dealloc.cta_group::1.sync.aligned.b32
tcgen05.cp.cta_group::1.32x128b.warpx4
tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64
tcgen05.fence::before_thread_sync
tcgen05.fence::after_thread_sync
tcgen05.ld.sync.aligned.32x32b.x32.b32
tcgen05.wait::ld.sync.aligned
mbarrier.try_wait.parity.acquire.cta.shared::cta.b64
fence.mbarrier_init.release.cluster
griddepcontrol.wait
griddepcontrol.launch_dependents
cvt.rn.f16.f32
st.global.v4
LIST
