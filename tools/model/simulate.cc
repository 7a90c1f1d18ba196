// SPDX-License-Identifier: MIT
#include "tools/model/simulate.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <queue>
#include <stdexcept>

#include "tools/model/memory.h"

namespace model {
namespace {

// Shorter ones end before the clock follows.
constexpr double kLongUs = 20;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// A part of a tile along K, of one launch.
struct Work {
  int64_t launch, tile, first_stage, stages;
};

// A group's first tile and first token tile, counted over all groups.
struct Group {
  int64_t first, token_tile, rows;
};

// What the copies and the products of a tile depend on.
struct Tile {
  int64_t weights, tokens;  // number of the tile of each operand
  double n;                 // rows of weights from the tile's first one on
  int64_t rows;             // of tokens
};

enum class Event { kStart, kAsk, kArrive, kReady, kFree, kProduct, kRelease, kEnd };

struct Entry {
  double at;
  uint64_t number;  // of the entry, so that equal times keep their order
  size_t unit;
  Event event;
  int64_t index;  // of a stage or of a work, counted by the unit
  bool operator>(const Entry& other) const {
    return at != other.at ? at > other.at : number > other.number;
  }
};

struct Stage {
  Memory::Ticket ticket;
  size_t work = 0;
  bool ready = false;
};

struct Launched {
  int64_t left;                                  // works that have not ended
  double end = -1;                               // nanoseconds; -1: not yet
  std::vector<size_t> waiting;                   // units that start after its end
  std::vector<std::pair<size_t, int64_t>> held;  // their stages, whose tokens it may write
  std::vector<size_t> asking;                    // units that ask for more after its end
};

struct Unit {
  std::vector<Work> work;  // taken so far
  std::vector<int64_t>
      begin;                 // of each, its first stage, counted by the unit; and one past the last
  std::deque<Stage> stages;  // those that are asked for and not free; the first is `freed`
  int64_t asked = 0, arrived = 0, multiplied = 0, freed = 0;  // stages
  int64_t ended = 0, released = 0;                            // works
  size_t asking = 0, multiplying = 0;                         // the work of the next such stage
  double started = 0, loader_free = 0, thread_free = 0, matrix_free = 0, epilogue_free = 0;
  double matrix_busy = 0;
};

class Simulation {
 public:
  // `waves`: of units, after which no more is taken; 0: all.
  Simulation(const Machine& machine, const Kernel& kernel, const Shape& shape, const Launches& many,
             int64_t waves = 0)
      : m_(machine),
        k_(kernel),
        many_(many),
        rows_(shape.m),
        n_(shape.n),
        token_tiles_(ceil_div(shape.m, kernel.tile_tokens)),
        weight_tiles_(ceil_div(shape.n, kernel.tile_weights)),
        works_(limited(kernel.tiles(shape) * kernel.split, waves)),
        k_stages_(ceil_div(shape.k, kernel.stage_k)),
        memory_(machine, size_t(most_units()), kernel.width),
        units_(size_t(units_at_once())),
        parts_(size_t(kernel.tiles(shape) * many.count)),
        launched_(size_t(many.count), Launched{works_, -1, {}, {}, {}}) {
    int64_t token_tiles = 0;
    for (const int64_t rows : shape.groups) {
      groups_.push_back({token_tiles * weight_tiles_, token_tiles, rows});
      token_tiles += k_.token_tiles(rows);
    }
  }

  Result run() {
    for (size_t u = 0; u < units_.size(); ++u) push(0, u, Event::kStart, 0);
    while (!queue_.empty()) {
      const Entry entry = queue_.top();
      queue_.pop();
      handle(entry);
    }
    double busy = 0;
    for (const Unit& unit : units_) busy += unit.matrix_busy;
    result_.us = (end_ + m_.skew) / 1e3;
    if (many_.count > 1)
      result_.interval_us = (end_ - launched_[0].end) / 1e3 / double(many_.count - 1);
    result_.dram_bytes = memory_.dram_bytes();
    result_.bytes = memory_.bytes();
    result_.matrix_share = busy / end_ / (m_.sms / k_.width);
    return result_;
  }

 private:
  double ns(double clocks) const { return clocks / m_.clock; }

  int64_t most_units() const { return k_.units > 0 ? k_.units : int64_t(m_.sms) / k_.width; }
  int64_t limited(int64_t works, int64_t waves) const {
    return waves > 0 ? std::min(works, waves * most_units()) : works;
  }
  int64_t units_at_once() const {
    return std::min(most_units() * many_.grids, works_ * (many_.programmatic ? many_.count : 1));
  }
  // Units of the same SM share its port.
  size_t port(size_t unit) const { return unit % size_t(most_units()); }

  void push(double at, size_t unit, Event event, int64_t index) {
    queue_.push({at, number_++, unit, event, index});
  }

  void handle(const Entry& entry) {
    Unit& unit = units_[entry.unit];
    switch (entry.event) {
      case Event::kStart: start(entry.at, entry.unit); break;
      case Event::kAsk: ask(entry.at, entry.unit); break;
      case Event::kArrive: arrive(entry.at, entry.unit, entry.index); break;
      case Event::kReady: ready(entry.at, entry.unit, entry.index); break;
      case Event::kFree:
        unit.stages.pop_front();
        ++unit.freed;
        ask(entry.at, entry.unit);
        break;
      case Event::kProduct: product(entry.at, entry.unit, entry.index); break;
      case Event::kRelease: release(entry.at, entry.unit); break;
      case Event::kEnd: end(entry.at, entry.unit); break;
    }
  }

  void take(Unit& unit, int64_t all) {
    const int64_t number = all % works_, part = number % k_.split, base = k_stages_ / k_.split,
                  more = k_stages_ % k_.split;
    const int64_t first = part * base + std::min(part, more);
    if (unit.begin.empty()) unit.begin.push_back(0);
    unit.work.push_back({all / works_, number / k_.split, first, base + (part < more)});
    unit.begin.push_back(unit.begin.back() + unit.work.back().stages);
  }

  void start(double now, size_t u) {
    Unit& unit = units_[u];
    if (k_.persistent) {
      for (int64_t w = int64_t(u); w < works_; w += int64_t(units_.size())) take(unit, w);
    } else if (next_work_ < works_ * many_.count) {
      if (!may_start(now, u)) return;
      take(unit, next_work_++);
    } else {
      return;
    }
    unit.started = now;
    const double begin = now + ns(m_.setup);
    const double prefetched = k_.map_clocks < 0 ? k_.start_clocks : k_.map_clocks;
    double at = begin + ns(k_.start_clocks);
    if (k_.by_map) at = std::max(at, begin + ns(prefetched) + m_.map_fetch);
    push(at, u, Event::kAsk, 0);
  }

  // A launch that is not programmatic starts after the end of the launch before.
  bool may_start(double now, size_t u) {
    const int64_t launch = next_work_ / works_;
    if (many_.programmatic || launch == 0) return true;
    Launched& before = launched_[size_t(launch - 1)];
    if (before.end < 0)
      before.waiting.push_back(u);
    else if (now < before.end + m_.launch * 1e3)
      push(before.end + m_.launch * 1e3, u, Event::kStart, 0);
    else
      return true;
    return false;
  }

  Tile tile_of(int64_t number) const {
    if (!groups_.empty()) return tile_of_group(number);
    const bool by_weights = k_.weights_fastest;
    // All weights for each group of token tiles, tokens fastest.
    const int64_t high = std::min(k_.token_group, token_tiles_);
    const int64_t first = number / (high * weight_tiles_) * high;
    const int64_t rest = number - first * weight_tiles_;
    const int64_t here = std::min(high, token_tiles_ - first);
    const int64_t weights = by_weights ? number % weight_tiles_ : rest / here;
    const int64_t tokens = by_weights ? number / weight_tiles_ : first + rest % here;
    return {weights, tokens, double(n_ - weights * k_.tile_weights),
            rows_ - tokens * k_.tile_tokens};
  }

  // Tokens fastest within a group, as kernel/common/group_list.cuh has it.
  Tile tile_of_group(int64_t number) const {
    const auto later = std::upper_bound(groups_.begin(), groups_.end(), number,
                                        [](int64_t n, const Group& g) { return n < g.first; });
    const Group& group = *(later - 1);
    const int64_t here = k_.token_tiles(group.rows), at = number - group.first;
    const int64_t weights = at / here, tokens = at % here;
    return {(later - 1 - groups_.begin()) * weight_tiles_ + weights, group.token_tile + tokens,
            double(n_ - weights * k_.tile_weights), group.rows - tokens * k_.tile_tokens};
  }

  // NULL unless the product is grouped.
  const RowsOfTile* rows_of(const Work& work) const {
    if (groups_.empty()) return nullptr;
    const int64_t rows = std::min(tile_of(work.tile).rows, k_.tile_tokens);
    return &k_.by_rows[size_t(rows - 1) / 16];
  }

  // Rows beyond the matrix are filled with zeros, which are never read.
  std::vector<Copy> copies(const Work& work, int64_t stage) const {
    const Tile of_tile = tile_of(work.tile);
    const auto key = [&](uint64_t operand, int64_t tile) {
      return operand << 62 | uint64_t(work.launch) << 54 | uint64_t(tile) << 32 |
             uint64_t(work.first_stage + stage);
    };
    std::vector<Copy> copies;
    const auto add = [&](uint64_t name, const Operand& of, double rows, double all) {
      const double bytes = of.code_bytes * std::min(1.0, rows / all) + of.scale_bytes;
      if (bytes > 0) copies.push_back({name, bytes, of.copies, of.row_bytes});
    };
    add(key(1, of_tile.weights), k_.weights, of_tile.n, double(k_.tile_weights));
    if (const RowsOfTile* const rows = rows_of(work)) {
      add(key(2, of_tile.tokens), rows->tokens, 1, 1);
    } else {
      add(key(2, of_tile.tokens), k_.tokens, double(of_tile.rows), double(k_.tile_tokens));
    }
    return copies;
  }

  // One stage at a time, so that times of memory_ do not run backwards.
  void ask(double now, size_t u) {
    Unit& unit = units_[u];
    const auto ready = [&] {
      return !unit.begin.empty() && unit.asked < unit.begin.back() &&
             unit.asked - unit.freed < k_.stages &&
             (k_.ahead == 0 || unit.asked - unit.arrived < k_.ahead);
    };
    if (!ready() || now < unit.loader_free) return;
    while (unit.asked >= unit.begin[unit.asking + 1]) ++unit.asking;
    const Work& work = unit.work[unit.asking];
    if (waits_to_ask(now, u, work)) return;
    Stage stage;
    stage.work = unit.asking;
    stage.ticket = memory_.ask(now, port(u), copies(work, unit.asked - unit.begin[unit.asking]));
    // Tokens that are not there yet come from the L2 as soon as they are.
    const double tokens = unit.started + k_.tokens_ns;
    if (now < tokens)
      stage.ticket.at = std::max(stage.ticket.at, tokens + m_.copy_latency - m_.hit_saves);
    push(stage.ticket.at, u, Event::kArrive, unit.asked);
    unit.stages.push_back(stage);
    ++unit.asked;
    const bool last = unit.asked == unit.begin[unit.asking + 1];
    const RowsOfTile* const rows = rows_of(work);
    const double copied = k_.weights.copies + (rows ? rows->tokens.copies : k_.tokens.copies);
    unit.loader_free = now + ns(copied * m_.copy_issue + (last ? k_.search_clocks : 0));
    if (ready()) push(unit.loader_free, u, Event::kAsk, 0);
  }

  // Whether the next stage of a programmatic launch is asked for after the end of the one before.
  bool waits_to_ask(double now, size_t u, const Work& work) {
    const Unit& unit = units_[u];
    const int64_t asked = unit.asked - unit.begin[unit.asking];
    if (k_.early_stages == 0 || work.launch == 0 || asked < k_.early_stages) return false;
    Launched& before = launched_[size_t(work.launch - 1)];
    if (before.end < 0) {
      before.asking.push_back(u);
      return true;
    }
    const double told = before.end + m_.end_told;
    if (now < told) push(told, u, Event::kAsk, 0);
    return now < told;
  }

  Stage& stage(Unit& unit, int64_t index) { return unit.stages[size_t(index - unit.freed)]; }

  void arrive(double now, size_t u, int64_t index) {
    Stage& it = stage(units_[u], index);
    memory_.arrived(port(u), it.ticket);
    const int64_t launch = units_[u].work[it.work].launch;
    if (launch == 0) return ready(now, u, index);
    Launched& before = launched_[size_t(launch - 1)];
    if (before.end < 0)
      before.held.emplace_back(u, index);
    else
      push(std::max(now, tokens_after(before)), u, Event::kReady, index);
  }

  // Tokens of a programmatic launch, asked for when the launch before is known to have ended.
  double tokens_after(const Launched& before) const {
    return before.end + m_.end_told + m_.copy_latency - m_.hit_saves;
  }

  void ready(double now, size_t u, int64_t index) {
    Unit& unit = units_[u];
    stage(unit, index).ready = true;
    while (unit.arrived < unit.asked && stage(unit, unit.arrived).ready) ++unit.arrived;
    if (u == 0 && index == 0) result_.first_full_ns = now;
    if (u == 0 && unit.arrived == unit.begin.back()) result_.last_full_ns = now;
    ask(now, u);
    multiply(now, u);
  }

  void multiply(double now, size_t u) {
    Unit& unit = units_[u];
    while (unit.multiplied < unit.arrived) {
      const int64_t index = unit.multiplied;
      while (index >= unit.begin[unit.multiplying + 1]) ++unit.multiplying;
      const bool first = index == unit.begin[unit.multiplying];
      // Its accumulator is free when the tile before, or the one before that, has been stored, and
      // what it shares with the tile before has been read.
      if (first && int64_t(unit.multiplying) - unit.ended >= k_.accumulators) return;
      if (first && k_.shared_part > 0 && int64_t(unit.multiplying) > unit.released) return;
      const RowsOfTile* const rows = rows_of(unit.work[unit.multiplying]);
      const double clocks = rows ? rows->stage_clocks : k_.stage_clocks;
      const double begin = std::max(now, unit.thread_free);
      unit.thread_free = begin + ns(k_.issue_clocks);
      unit.matrix_free = std::max(begin, unit.matrix_free) + ns(clocks);
      unit.matrix_busy += ns(clocks);
      const double visible = unit.matrix_free + ns(rows ? rows->latency_clocks : k_.latency_clocks);
      push(visible, u, Event::kFree, index);
      ++unit.multiplied;
      if (unit.multiplied < unit.begin[unit.multiplying + 1]) continue;
      unit.thread_free += ns(k_.search_clocks);
      push(visible, u, Event::kProduct, int64_t(unit.multiplying));
    }
  }

  // A tile is stored when all its parts are there.
  void product(double now, size_t u, int64_t work) {
    if (u == 0) result_.last_product_ns = now;
    const Work& of = units_[u].work[size_t(work)];
    std::vector<size_t>& parts = parts_[size_t(of.launch * token_tiles_ * weight_tiles_ + of.tile)];
    parts.push_back(u);
    if (int64_t(parts.size()) < k_.split) return;
    const RowsOfTile* const rows = rows_of(of);
    const double clocks = rows ? rows->epilogue_clocks : k_.epilogue_clocks;
    const double bytes = rows ? rows->stored_bytes : k_.stored_bytes;
    for (const size_t part : parts) {
      Unit& unit = units_[part];
      const double begin = std::max(now, unit.epilogue_free);
      if (k_.shared_part > 0) push(begin + ns(clocks) * k_.shared_part, part, Event::kRelease, 0);
      store_free_ = std::max(store_free_, now) + bytes * k_.width / m_.store_rate;
      const double stored = begin + ns(clocks) + k_.exchange_ns;
      unit.epilogue_free = std::max(stored, store_free_);
      push(unit.epilogue_free, part, Event::kEnd, 0);
      unit.epilogue_free += ns(k_.search_clocks);
    }
  }

  void release(double now, size_t u) {
    ++units_[u].released;
    multiply(now, u);
  }

  void end(double now, size_t u) {
    Unit& unit = units_[u];
    end_ = std::max(end_, now);
    const int64_t launch = unit.work[size_t(unit.ended++)].launch;
    if (--launched_[size_t(launch)].left == 0) end_launch(now, launched_[size_t(launch)]);
    if (!k_.persistent)
      push(now + m_.next_cta, u, Event::kStart, 0);
    else
      multiply(now, u);
  }

  void end_launch(double now, Launched& launch) {
    launch.end = now;
    for (const size_t u : launch.waiting) push(now + m_.launch * 1e3, u, Event::kStart, 0);
    for (const size_t u : launch.asking) push(now + m_.end_told, u, Event::kAsk, 0);
    for (const auto& [u, index] : launch.held) push(tokens_after(launch), u, Event::kReady, index);
  }

  const Machine& m_;
  const Kernel& k_;
  const Launches many_;
  const int64_t rows_, n_, token_tiles_, weight_tiles_, works_, k_stages_;
  std::vector<Group> groups_;
  Memory memory_;
  std::vector<Unit> units_;
  std::vector<std::vector<size_t>> parts_;  // of a tile: the units whose part is done
  std::vector<Launched> launched_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
  uint64_t number_ = 0;
  int64_t next_work_ = 0;
  double store_free_ = 0, end_ = 0;
  Result result_;
};

// All tiles are replayed up to so many waves of units; beyond, the second half of these repeats.
constexpr int64_t kWaves = 16;

Result replay(const Machine& m, const Kernel& k, const Shape& shape) {
  const int64_t units = k.units > 0 ? k.units : int64_t(m.sms) / k.width;
  const int64_t waves = ceil_div(k.tiles(shape) * k.split, units);
  if (waves <= kWaves || !shape.groups.empty()) return Simulation(m, k, shape, {}).run();
  const Result half = Simulation(m, k, shape, {}, kWaves / 2).run();
  Result all = Simulation(m, k, shape, {}, kWaves).run();
  const double more = double(waves - kWaves) / double(kWaves / 2);
  all.us += more * (all.us - half.us);
  all.dram_bytes += more * (all.dram_bytes - half.dram_bytes);
  all.bytes += more * (all.bytes - half.bytes);
  return all;
}

}  // namespace

// The clock falls with the third root of the power that products take, once it is at its limit:
// power goes with share, clock and the square of the voltage. Two rounds settle it to a percent or
// two.
Result simulate(const Machine& machine, const Kernel& kernel, const Shape& shape) {
  Machine m = machine;
  Result result = replay(m, kernel, shape);
  for (int round = 0; round < 2 && kernel.busy_clock > 0 && result.us > kLongUs; ++round) {
    const double room = m.busy_share / std::max(1e-3, result.matrix_share);
    m.clock = std::min(machine.clock, kernel.busy_clock * std::cbrt(room));
    result = replay(m, kernel, shape);
  }
  result.clock = m.clock;
  return result;
}

Result simulate(const Machine& machine, const Kernel& kernel, const Shape& shape,
                const Launches& many) {
  if (kernel.persistent) throw std::invalid_argument("launches of a persistent kernel");
  return Simulation(machine, kernel, shape, many).run();
}

}  // namespace model
