// SPDX-License-Identifier: MIT
// What a tcgen05 instruction works on: the memories of one CTA, or of a pair.
#pragma once

#include <vector>

#include "tools/emulator/base/fault.h"
#include "tools/emulator/hardware/tensor_memory.h"
#include "tools/emulator/memory/shared_memory.h"

namespace emu {

struct CtaMemory {
  SharedMemory& shared;
  TensorMemory& tensor;
};
using Memories = std::vector<CtaMemory>;  // .cta_group::2: two, the even rank first

// Calls f(i) for every CTA; a Fault in it says in which CTA of the pair.
template <class F>
void each_cta(const Memories& ctas, F f) {
  for (uint32_t i = 0; i < ctas.size(); ++i) try {
      f(i);
    } catch (const Fault& fault) {
      if (ctas.size() == 1) throw;
      throw Fault(fault.kind,
                  fault.text + format("\n  in the %s CTA of the pair", i ? "odd" : "even"));
    }
}

}  // namespace emu
