// SPDX-License-Identifier: MIT
// Basic blocks, then post-dominators after Cooper, Harvey, Kennedy, "A Simple, Fast Dominance
// Algorithm" (2001), on the reversed graph.
#include "tools/emulator/ptx/cfg.h"

#include <algorithm>
#include <utility>

namespace emu::ptx {
namespace {

constexpr uint32_t none = ~0u;

bool is(const Instr& in, std::string_view opcode) { return in.opcode == opcode; }
bool is_branch(const Instr& in) { return is(in, "bra"); }
// brx.idx has become compare-and-branch instructions. What is left of it is reached only by an
// index outside the table, which traps.
bool is_trap(const Instr& in) { return is(in, "trap") || is(in, "brx.idx"); }
bool is_end(const Instr& in) { return is(in, "ret") || is(in, "exit") || is_trap(in); }
bool is_guarded(const Instr& in) { return in.guard != no_register; }

struct Block {
  uint32_t first = 0, last = 0;  // instructions, inclusive
  std::vector<uint32_t> next, previous;
  uint32_t order = none;      // number in post-order from the exit, against the edges
  uint32_t dominator = none;  // immediate post-dominator
};

class Graph {
 public:
  explicit Graph(Function& function) : code_(function.code) {
    cut();
    connect();
    sort();
    if (reconnect()) sort();
    dominate();
  }

  void mark_branches() {
    for (uint32_t b = 0; b < exit_; ++b) {
      Instr& last = code_[blocks_[b].last];
      if (!is_branch(last)) continue;
      const uint32_t d = blocks_[b].dominator;
      last.reconverge = d == none || d == exit_ ? no_target : blocks_[d].first;
    }
  }

 private:
  void cut() {
    const std::vector<bool> starts = block_starts(code_);
    block_of_.resize(code_.size());
    for (uint32_t i = 0; i < code_.size(); ++i) {
      if (starts[i]) blocks_.push_back({i, i, {}, {}});
      blocks_.back().last = i;
      block_of_[i] = uint32_t(blocks_.size() - 1);
    }
    exit_ = uint32_t(blocks_.size());
    blocks_.emplace_back();
  }

  bool only_ends(uint32_t block) const {
    const Block& b = blocks_[block];
    return b.first == b.last && is_end(code_[b.first]) && !is_guarded(code_[b.first]);
  }

  void edge(uint32_t from, uint32_t to) {
    blocks_[from].next.push_back(to);
    blocks_[to].previous.push_back(from);
  }

  void connect() {
    for (uint32_t b = 0; b < exit_; ++b) {
      const Instr& last = code_[blocks_[b].last];
      const bool stays = is_guarded(last) || !(is_branch(last) || is_end(last));
      const bool falls = stays && b + 1 < exit_;
      if (is_branch(last)) {
        const uint32_t to = block_of_[last.target];
        if (falls && only_ends(to))
          early_ends_.push_back({b, to});
        else
          edge(b, to);
      }
      if (falls && is_end(last) && !is_trap(last)) early_ends_.push_back({b, exit_});
      if (falls)
        edge(b, b + 1);
      else if (!is_branch(last) && !is_trap(last))  // a trap leads nowhere
        edge(b, exit_);
    }
  }

  // Lanes that exit early are not waited for, so branches to an early exit are no edges. If they
  // are the only way from a block to the exit, as in a loop that ends in no other way, they become
  // edges after all: without them the block would have no post-dominator.
  bool reconnect() {
    bool any = false;
    for (const auto& [from, to] : early_ends_) {
      if (blocks_[from].order != none) continue;
      edge(from, to);
      any = true;
    }
    return any;
  }

  // Post-order of the reversed graph, with a stack of our own: functions can have many blocks.
  void sort() {
    struct Visit {
      uint32_t block;
      size_t child;
    };
    ordered_.clear();
    std::vector<Visit> stack{{exit_, 0}};
    std::vector<bool> seen(blocks_.size(), false);
    seen[exit_] = true;
    while (!stack.empty()) {
      Visit& v = stack.back();
      const std::vector<uint32_t>& children = blocks_[v.block].previous;
      if (v.child == children.size()) {
        blocks_[v.block].order = uint32_t(ordered_.size());
        ordered_.push_back(v.block);
        stack.pop_back();
      } else if (const uint32_t c = children[v.child++]; !seen[c]) {
        seen[c] = true;
        stack.push_back({c, 0});
      }
    }
  }

  uint32_t common(uint32_t a, uint32_t b) const {
    while (a != b) {
      while (blocks_[a].order < blocks_[b].order) a = blocks_[a].dominator;
      while (blocks_[b].order < blocks_[a].order) b = blocks_[b].dominator;
    }
    return a;
  }

  // Blocks from which no end can be reached keep no dominator: their branches reconverge nowhere.
  void dominate() {
    blocks_[exit_].dominator = exit_;
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = ordered_.size() - 1; i-- > 0;) {
        Block& b = blocks_[ordered_[i]];
        uint32_t d = none;
        for (const uint32_t n : b.next) {
          if (blocks_[n].dominator == none) continue;
          d = d == none ? n : common(d, n);
        }
        changed |= d != b.dominator;
        b.dominator = d;
      }
    }
  }

  std::vector<Instr>& code_;
  std::vector<Block> blocks_;  // the last one is the exit
  std::vector<uint32_t> block_of_, ordered_;
  std::vector<std::pair<uint32_t, uint32_t>> early_ends_;  // from, to
  uint32_t exit_ = 0;
};

}  // namespace

std::vector<bool> block_starts(const std::vector<Instr>& code) {
  std::vector<bool> starts(code.size() + 1, false);
  starts[0] = true;
  for (size_t i = 0; i < code.size(); ++i) {
    if (is_branch(code[i])) starts[code[i].target] = true;
    if (is_branch(code[i]) || is_end(code[i])) starts[i + 1] = true;
  }
  return starts;
}

void set_reconvergence(Function& function) {
  if (!function.code.empty()) Graph(function).mark_branches();
}

}  // namespace emu::ptx
