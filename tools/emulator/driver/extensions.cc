// SPDX-License-Identifier: MIT
// The emulator's own exports (nvfp4emu.h).
#pragma GCC visibility push(default)
#include "nvfp4emu.h"
#pragma GCC visibility pop

#include "tools/emulator/driver/call.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "tools/emulator/base/settings.h"
#include "tools/emulator/base/tell.h"
#include "tools/emulator/machine/report.h"
#include "tools/emulator/order/reason.h"

using namespace emu::driver;

int nvfp4emu_counters(const char* name, uint64_t* value) {
  if (!name || !value) return -1;
  State& s = state();
  std::lock_guard guard(s.lock);
#define EMU_COUNTER(counter, text) \
  if (!strcmp(name, #counter)) return *value = s.counters.counter, 0;
#include "tools/emulator/machine/counters.def"
#undef EMU_COUNTER
  return -1;
}

int nvfp4emu_counter_name(unsigned index, const char** name, const char** meaning) {
  static constexpr struct {
    const char *name, *meaning;
  } all[] = {
#define EMU_COUNTER(counter, text) {#counter, text},
#include "tools/emulator/machine/counters.def"
#undef EMU_COUNTER
  };
  if (!name || !meaning || index >= std::size(all)) return -1;
  *name = all[index].name;
  *meaning = all[index].meaning;
  return 0;
}

int nvfp4emu_set(const char* name, const char* value) {
  if (!name || !value) return -1;
  const emu::SettingRow* row = emu::find_setting(name);
  if (!row || !row->per_launch) return -1;
  std::lock_guard running(state().execution);  // no grid reads settings while they change
  return row->set(emu::settings(), value) ? 0 : -1;
}

namespace {

// Copies as much of `all` as fits, always NUL-terminated. Returns the bytes that all of it needs.
size_t hand_out(const std::string& all, char* text, size_t bytes) {
  if (text && bytes) {
    size_t n = std::min(all.size(), bytes - 1);
    memcpy(text, all.data(), n);
    text[n] = 0;
  }
  return all.size() + 1;
}

}  // namespace

size_t nvfp4emu_calls(char* text, size_t bytes) {
  return hand_out(state().record.text(), text, bytes);
}

size_t nvfp4emu_findings(char* text, size_t bytes) {
  State& s = state();
  std::lock_guard guard(s.lock);
  return hand_out(s.findings, text, bytes);
}

int nvfp4emu_findings_of(const char* rule, uint64_t* count) {
  if (!rule || !count) return -1;
  if (!emu::order::is_reason(rule) && !emu::report::is_rule(rule)) return -1;
  State& s = state();
  std::lock_guard guard(s.lock);
  const auto found = s.findings_by_rule.find(rule);
  *count = found == s.findings_by_rule.end() ? 0 : found->second;
  return 0;
}

void nvfp4emu_report_to(void (*reader)(const char* object)) { emu::set_object_listener(reader); }

void nvfp4emu_reset_calls(void) { state().record.reset(); }

int nvfp4emu_fail(const char* entry, uint64_t nth, int status) {
  if (!entry || !is_entry(entry) || (nth && status == CUDA_SUCCESS)) return -1;
  state().record.plan(entry, nth, CUresult(status));
  return 0;
}

int nvfp4emu_fail_pending(void) { return state().record.pending(); }

void nvfp4emu_ledger(nvfp4emu_counts* counts) {
  State& s = state();
  std::lock_guard guard(s.lock);
  *counts = {};
  counts->allocations = s.allocations.size();
  counts->allocated_bytes = s.memory ? s.memory->used() : 0;
  counts->host_allocations = s.host_blocks.size();
  for (const auto& [handle, module] : s.modules) counts->modules += !module->library;
  counts->libraries = s.libraries.size();
  counts->streams = s.streams.size();
  counts->events = s.events.size();
  counts->graphs = s.graphs.size();
  counts->graph_instances = s.graph_instances.size();
  for (const auto& [handle, context] : s.contexts) counts->contexts += !context->destroyed;
}
