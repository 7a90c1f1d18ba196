// SPDX-License-Identifier: MIT
#include "tools/model/memory.h"

#include <algorithm>
#include <cmath>

namespace model {

// Four things can hold up a copy: its own way (latency, what is before it on its SM), the SM's
// port, the DRAM and the fabric between L2 and SMs, each behind all bytes under way. The largest
// counts, and a little of the others: a p-norm. It gives latency alone for one copy and the full
// rate for many.
double Memory::nanoseconds(const Port& port, double box, double saved, bool dram) const {
  const Machine& m = machine_;
  const double way = m.copy_latency - saved + std::min(port.copies, 4.0) * m.copy_each +
                     std::min(box, m.box_bytes) / m.box_rate + port.bytes / m.port_rate;
  const double p = m.congestion;
  return std::pow(std::pow(way, p) + (dram ? std::pow(from_dram_ / m.dram_rate, p) : 0) +
                      std::pow(port.bytes / m.port_limit, p) +
                      std::pow(under_way_ / m.fabric_rate, p),
                  1 / p);
}

// Least recently used, counted in bytes that DRAM has read since.
Memory::Line* Memory::find(uint64_t key) {
  const auto found = lines_.find(key);
  if (found == lines_.end() || dram_bytes_ - found->second.read > machine_.l2_bytes) return nullptr;
  found->second.read = dram_bytes_;
  return &found->second;
}

Memory::Ticket Memory::ask(double now, size_t at, const std::vector<Copy>& copies) {
  const Machine& m = machine_;
  Port& port = port_[at];
  Ticket ticket;
  ticket.at = now;
  for (const Copy& copy : copies) {
    // Boxes of narrow rows pass at a row a clock.
    const double slow = copy.row_bytes < 128 ? m.port_rate / (m.narrow_row * m.clock) : 1;
    const double bytes = copy.bytes * width_;
    Line* line = find(copy.key);
    ticket.port_bytes += copy.bytes * slow;
    ticket.copies += copy.copies;
    ticket.bytes += bytes;
    port.bytes += copy.bytes * slow;
    port.copies += copy.copies;
    under_way_ += bytes;
    bytes_ += bytes;
    const double box = copy.bytes / copy.copies;
    if (line == nullptr) {
      from_dram_ += bytes;
      dram_bytes_ += bytes;
      ticket.from_dram += bytes;
      const double time = now + nanoseconds(port, box, 0, true);
      lines_[copy.key] = {time, dram_bytes_};
      ticket.at = std::max(ticket.at, time);
    } else {
      const double saved = line->there > now ? m.late_saves : m.hit_saves;
      const double way = now + nanoseconds(port, box, saved, false);
      ticket.at = std::max({ticket.at, line->there, way});
    }
  }
  return ticket;
}

void Memory::arrived(size_t at, const Ticket& ticket) {
  port_[at].bytes -= ticket.port_bytes;
  port_[at].copies -= ticket.copies;
  under_way_ -= ticket.bytes;
  from_dram_ -= ticket.from_dram;
}

}  // namespace model
