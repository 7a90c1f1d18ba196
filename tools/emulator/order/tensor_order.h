// SPDX-License-Identifier: MIT
// The order of tcgen05 work between threads (PTX ISA 9.7.16.6): its fences and waits.
#pragma once

#include "tools/emulator/order/parties.h"

namespace emu::order {

class TensorOrder {
 public:
  TensorOrder(const Now& now, Parties& parties) : now_(now), parties_(parties) {}

  void fence_before();   // tcgen05.fence::before_thread_sync
  void fence_after();    // ::after_thread_sync
  void wait(Work work);  // tcgen05.wait::ld, ::st
  void use_load();       // all registers of the oldest tcgen05.ld not waited for were used

 private:
  const Now& now_;
  Parties& parties_;
};

}  // namespace emu::order
