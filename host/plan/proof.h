// SPDX-License-Identifier: MIT
// The evidence that a mechanism works on a GPU, and whether the planner may use the mechanism. A
// mechanism is one way in which the CTAs of a family's kernels share a tile. proofs.def has a row
// for each mechanism.
#pragma once

#include <cstdint>

#include "host/plan/arch.h"

namespace nvfp4 {

enum class Proof : uint32_t { assembled, emulator, published, hardware };

struct ProofRow {
  // `family` has the kernel. A row of arch.def describes the GPU that runs it, and `on` is the
  // first family of that row.
  const Family *family, *on;
  uint32_t tile_ctas;
  uint32_t partitions;  // K partitions
  Proof proof;
};

constexpr ProofRow kProofs[] = {
#define PROOF(family, on, tile_ctas, partitions, proof, evidence) \
  {&kFamily_##family, &kFamily_##on, tile_ctas, partitions, Proof::proof},
#include "host/plan/proofs.def"
#undef PROOF
};

// A mechanism without a row has run in the emulator only.
template <uint32_t kRows>
constexpr Proof proof_of(const ProofRow (&rows)[kRows], const Family* family, const Family* on,
                         uint32_t tile_ctas, uint32_t partitions) {
  for (const ProofRow& row : rows) {
    if (row.family == family && row.on == on && row.tile_ctas == tile_ctas &&
        row.partitions == partitions) {
      return row.proof;
    }
  }
  return Proof::emulator;
}

// Whether the planner may choose a variant with this mechanism. If not, it runs only if
// desc.variant names it.
template <uint32_t kRows>
constexpr bool is_taken_unasked(const ProofRow (&rows)[kRows], const Family* family,
                                const Family* on, uint32_t tile_ctas, uint32_t partitions) {
  return proof_of(rows, family, on, tile_ctas, partitions) != Proof::emulator;
}

// Whether the kernels of `family` are only assembled for this architecture, and no GPU of it has
// run them. This is so if `family` is the architecture's first family and its row of arch.def says
// `assembled`. The rows of proofs.def do not apply then, because they are about the GPUs that the
// family was written for.
inline bool is_assembled(const Architecture& arch, const Family* family) {
  return arch.proof == ArchProof::assembled && family == arch.family;
}

inline Proof proof_on(const Architecture& arch, const Family* family, uint32_t tile_ctas,
                      uint32_t partitions) {
  if (is_assembled(arch, family)) return Proof::assembled;
  return proof_of(kProofs, family, arch.family, tile_ctas, partitions);
}

}  // namespace nvfp4
