#!/bin/sh
# SPDX-License-Identifier: MIT
# check_ptxas.sh FAMILY PTX CUBIN...: what ptxas reported for each cubin (CUBIN.report) and what the
# PTX holds. Fails on a spill, a stack frame, more registers than below, or an instruction that is
# not there.
set -eu
family=$1
ptx=$2
shift 2

case $family in
  # 65,536 / 320 threads leave 204; ours use 96 to 168, and more wants a look
  sm100) max_registers=168 ;;
  # two CTAs of 160 threads leave 200, one of 288 leaves 224; ours use 126 at most
  sm120) max_registers=128 ;;
  # 65,536 less a CTA of nvfp4_tokens_sm90, / 384 threads (kernel/sm90/tile.h); consumers ask for
  # more
  sm90) max_registers=160 ;;
  # twelve warps of an SM leave 168 (kernel/sm80/tile.h)
  mma | mma90) max_registers=168 ;;
  # 64 and less leave room for 8 CTAs of 128 threads an SM; RMSNorm of fp32 holds two blocks and has
  # 256 threads
  quantize | quantize100) max_registers=80 ;;
  *) echo "check-ptxas: no family $family" >&2; exit 1 ;;
esac

fail() { echo "check-ptxas: $*" >&2; exit 1; }

for cubin; do
  report=$cubin.report
  [ -s "$cubin" ] || fail "$cubin is missing"
  entries=$(grep -c 'Compiling entry function' "$report") || fail "$report names no entry"
  frames=$(grep -c 'bytes stack frame' "$report") || true  # of entries, and of what they call
  # ptxas says so where it waits for every wgmma before the next.
  ! grep 'C75' "$report" || fail "wgmmas are serialised in $cubin"
  spilled=$(awk '/Function properties for/ { name = $NF }
    /bytes stack frame/ && !/ 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads/ {
      sub(/^ */, ""); print name ": " $0 }' "$report")
  [ "$frames" -ge "$entries" ] && [ -z "$spilled" ] ||
    fail "a stack frame or a spill in $cubin: $spilled"
  registers=$(sed -n 's/.*Used \([0-9]*\) registers.*/\1/p' "$report" | sort -n | tail -n 1)
  [ "$registers" -le $max_registers ] ||
    fail "$registers registers in $cubin, at most $max_registers"
  for kernel in nvfp4_tokens_sm90 nvfp4_group_tokens_sm90; do
    tokens=$(sed -n "/properties for $kernel/,/Used/s/.*Used \([0-9]*\) registers.*/\1/p" \
      "$report")
    [ "${tokens:-32}" -le 32 ] || fail "$tokens registers for $kernel: no room beside the GEMM"
  done
  printf '%-45s %d entries, %3d registers, %s\n' "$cubin" "$entries" "$registers" \
    "${spilled:-0 stack, 0 spills}"
done

# An entry calls one function at most. ptxas 13.0.88 compiled two, called in the arms of a branch
# where lanes part, so that one overwrote uniform registers of the other (docs/notebook.md).
callers=$(awk '
  /\.entry / { entry = $0; sub(/.*\.entry /, "", entry); sub(/\(.*/, "", entry) }
  /^\.(weak )?func/ { entry = "" }
  /^[[:space:]]*(@!?%p[0-9]+ +)?call/ { called = 1 }
  called && match($0, /_Z[A-Za-z0-9_]+/) {
    name = substr($0, RSTART, RLENGTH)
    called = 0
    if (entry != "" && !((entry, name) in seen)) {
      seen[entry, name] = 1
      if (++count[entry] == 2) print entry
    }
  }' "$ptx")
[ -z "$callers" ] || fail "$ptx: more than one function is called by" $callers

while read -r of instruction; do
  case $of:$family in
    "$family":* | both:sm* | mmas:mma* | quantizers:quantize*) ;;
    *) continue ;;
  esac
  count=$(grep -cF "$instruction" "$ptx") || fail "$ptx has no $instruction"
  printf '%4d x %s\n' "$count" "$instruction"
done <<'LIST'
both cp.async.bulk.tensor.3d.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint
both cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint
both prefetch.tensormap
sm100 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32
sm100 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned
sm100 tcgen05.dealloc.cta_group::1.sync.aligned.b32
sm100 tcgen05.cp.cta_group::1.32x128b.warpx4
sm100 tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16
sm100 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64
sm100 .shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2.L2::cache_hint
sm100 tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32
sm100 tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned
sm100 tcgen05.dealloc.cta_group::2.sync.aligned.b32
sm100 tcgen05.cp.cta_group::2.32x128b.warpx4
sm100 tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.block16
sm100 tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64
sm100 mapa.shared::cluster.u32
sm100 mbarrier.arrive.release.cluster.shared::cluster.b64
sm100 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes
sm100 barrier.cluster.arrive.relaxed
sm100 tcgen05.fence::before_thread_sync
sm100 tcgen05.fence::after_thread_sync
sm100 tcgen05.ld.sync.aligned.32x32b.x32.b32
sm100 tcgen05.wait::ld.sync.aligned
both mbarrier.try_wait.parity.acquire.cta.shared::cta.b64
both fence.mbarrier_init.release.cluster
both griddepcontrol.wait
both griddepcontrol.launch_dependents
sm100 cvt.rn.f16x2.f32
sm100 cvt.rn.bf16x2.f32
sm100 tcgen05.ld.sync.aligned.32x32b.x16.b32
sm100 tcgen05.ld.sync.aligned.32x32b.x8.b32
sm100 fence.release.sync_restrict::shared::cta.cluster
sm100 mbarrier.arrive.relaxed.cluster.shared::cluster.b64
sm90 cvt.rn.f16x2.f32
sm100 st.global.v4
sm90 wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16
sm90 wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16
sm90 wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16
sm90 wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16
sm90 wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16
sm90 wgmma.mma_async.sync.aligned.m64n8k32.f32.e5m2.e5m2
sm90 wgmma.mma_async.sync.aligned.m64n16k32.f32.e5m2.e5m2
sm90 st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32
sm90 stmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16
sm90 stmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16
sm90 wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16
sm90 setmaxnreg.inc.sync.aligned.u32
sm90 setmaxnreg.dec.sync.aligned.u32
sm120 mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X
sm120 ldmatrix.sync.aligned.m8n8.x4.shared::cta.b16
sm120 ldmatrix.sync.aligned.m8n8.x2.shared::cta.b16
sm120 cp.async.mbarrier.arrive.noinc.shared.b64
mmas mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
mmas mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
mmas cp.async.cg.shared.global
mmas cp.async.wait_group
mma90 griddepcontrol.wait
mma90 griddepcontrol.launch_dependents
mma90 barrier.cluster.arrive
sm90 wgmma.fence.sync.aligned
sm90 wgmma.commit_group.sync.aligned
sm90 wgmma.wait_group.sync.aligned
sm90 mapa.shared::cluster.u32
sm90 ld.shared::cluster.v4.f32
sm90 barrier.cluster.arrive
sm90 cvt.rn.f16x2.e4m3x2
sm90 mul.rn.f16x2
sm90 fence.proxy.async.shared::cta
sm90 st.global.v2
quantizers ld.global.v4.u32
quantizers st.global.v2.u32
quantizers max.NaN.f32
quantizers max.u16x2
quantizers prefetch.global.L1
quantizers sqrt.rn.f32
quantizers cvt.rn.satfinite.e4m3x2.f32
quantizers griddepcontrol.wait
quantizers griddepcontrol.launch_dependents
quantize mul.rp.f32
quantize100 cvt.rn.satfinite.e2m1x2.f32
LIST
