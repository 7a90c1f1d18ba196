// SPDX-License-Identifier: MIT
// One row per special register, found by a walk: only mov reads them.
#include "tools/emulator/ptx/special.h"

namespace emu::ptx {
namespace {

#define EMU_XYZ(name)                                                                 \
  {"%" #name, "x", Special::name##_x, 32}, {"%" #name, "y", Special::name##_y, 32}, { \
    "%" #name, "z", Special::name##_z, 32                                             \
  }
#define EMU_ONE(name, bits) \
  { "%" #name, "", Special::name, bits }

constexpr SpecialRegister table[] = {
    EMU_XYZ(tid),
    EMU_XYZ(ntid),
    EMU_XYZ(ctaid),
    EMU_XYZ(nctaid),
    EMU_XYZ(clusterid),
    EMU_XYZ(nclusterid),
    EMU_XYZ(cluster_ctaid),
    EMU_XYZ(cluster_nctaid),
    EMU_ONE(cluster_ctarank, 32),
    EMU_ONE(cluster_nctarank, 32),
    EMU_ONE(laneid, 32),
    EMU_ONE(warpid, 32),
    EMU_ONE(nwarpid, 32),
    EMU_ONE(smid, 32),
    EMU_ONE(nsmid, 32),
    EMU_ONE(gridid, 64),
    EMU_ONE(lanemask_eq, 32),
    EMU_ONE(lanemask_le, 32),
    EMU_ONE(lanemask_lt, 32),
    EMU_ONE(lanemask_ge, 32),
    EMU_ONE(lanemask_gt, 32),
    EMU_ONE(clock, 32),
    EMU_ONE(clock64, 64),
    EMU_ONE(globaltimer, 64),
    EMU_ONE(globaltimer_lo, 32),
    EMU_ONE(globaltimer_hi, 32),
    EMU_ONE(dynamic_smem_size, 32),
    EMU_ONE(total_smem_size, 32),
    EMU_ONE(aggr_smem_size, 32),
};

}  // namespace

const SpecialRegister* find_special(std::string_view name, std::string_view field) {
  for (const SpecialRegister& s : table)
    if (s.name == name && s.field == field) return &s;
  return nullptr;
}

}  // namespace emu::ptx
