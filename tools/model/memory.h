// SPDX-License-Identifier: MIT
// Copies from global to shared memory: how long one takes, given all that are under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tools/model/machine.h"

namespace model {

// What one CTA asks for at once. `key` names the bytes: who asks for the same ones shares them.
struct Copy {
  uint64_t key;
  double bytes, copies;
  double row_bytes = 128;  // of a box in shared memory
};

class Memory {
 public:
  // `ports`: SMs that copy; `width`: SMs that each make every copy, of bytes of their own.
  Memory(const Machine& machine, size_t ports, double width)
      : machine_(machine), width_(width), port_(ports) {}

  // What is under way until `at`.
  struct Ticket {
    double at = 0, port_bytes = 0, copies = 0, bytes = 0, from_dram = 0;
  };
  // Copies that are asked for at `now` and count as one. Times never run backwards.
  Ticket ask(double now, size_t port, const std::vector<Copy>& copies);
  void arrived(size_t port, const Ticket& ticket);

  double dram_bytes() const { return dram_bytes_; }
  double bytes() const { return bytes_; }

 private:
  struct Port {
    double bytes = 0, copies = 0;
  };
  struct Line {
    double there;  // when its bytes reach the L2
    double read;   // bytes read from DRAM before it was used last
  };
  double nanoseconds(const Port& port, double box, double saved, bool dram) const;
  // The line of a key that is in the L2 or on its way there.
  Line* find(uint64_t key);

  const Machine& machine_;
  double width_;
  std::vector<Port> port_;
  std::unordered_map<uint64_t, Line> lines_;
  double under_way_ = 0, from_dram_ = 0;  // bytes
  double dram_bytes_ = 0, bytes_ = 0;     // of the whole run
};

}  // namespace model
