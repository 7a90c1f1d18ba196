// SPDX-License-Identifier: MIT
// One row per special register, found by a walk: only mov reads them.
#include "tools/emulator/ptx/special.h"

namespace emu::ptx {
namespace {

#define EMU_XYZ(name)                                                               \
  {"%" #name, "x", Special::name##_x, 32}, {"%" #name, "y", Special::name##_y, 32}, \
      {"%" #name, "z", Special::name##_z, 32}, {                                    \
    "%" #name, "w", Special::zero, 32                                               \
  }
#define EMU_ENV(n) \
  { "%envreg" #n, "", Special::envreg, 32 }
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
    EMU_ONE(envreg1, 32),
    EMU_ONE(envreg2, 32),
    EMU_ENV(0),
    EMU_ENV(3),
    EMU_ENV(4),
    EMU_ENV(5),
    EMU_ENV(6),
    EMU_ENV(7),
    EMU_ENV(8),
    EMU_ENV(9),
    EMU_ENV(10),
    EMU_ENV(11),
    EMU_ENV(12),
    EMU_ENV(13),
    EMU_ENV(14),
    EMU_ENV(15),
    EMU_ENV(16),
    EMU_ENV(17),
    EMU_ENV(18),
    EMU_ENV(19),
    EMU_ENV(20),
    EMU_ENV(21),
    EMU_ENV(22),
    EMU_ENV(23),
    EMU_ENV(24),
    EMU_ENV(25),
    EMU_ENV(26),
    EMU_ENV(27),
    EMU_ENV(28),
    EMU_ENV(29),
    EMU_ENV(30),
    EMU_ENV(31),
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
