// SPDX-License-Identifier: MIT
// A kernel's PTX of which a test launches a few entries: the emulator checks all that is there
// before it runs anything.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tools/testing/catch.h"

namespace gemm_test {

// The entries and functions with a body, in the order of the text.
struct PtxBody {
  std::string_view name;
  bool is_entry;
  size_t begin, end;  // between the braces
};
inline std::vector<PtxBody> ptx_bodies(const std::string& ptx) {
  std::vector<size_t> heads;
  for (const char* word : {".entry ", ".func ", ".section"})
    for (size_t at = ptx.find(word); at != ptx.npos; at = ptx.find(word, at + 1))
      heads.push_back(at);
  std::sort(heads.begin(), heads.end());
  heads.push_back(ptx.size());
  std::vector<PtxBody> all;
  for (size_t i = 0; i + 1 < heads.size(); ++i) {
    const size_t at = heads[i], head = ptx.find_first_of("{;", at);
    if (ptx[at + 1] == 's' || head == ptx.npos || ptx[head] == ';') continue;
    size_t name = ptx.find_first_not_of(' ', ptx.find(' ', at));
    if (ptx[name] == '(') name = ptx.find_first_not_of(' ', ptx.find(')', name) + 1);  // result
    const size_t close = ptx.rfind("\n}", heads[i + 1]);
    REQUIRE(head < close);
    all.push_back({std::string_view(ptx).substr(name, ptx.find_first_of("(\n", name) - name),
                   ptx[at + 1] == 'e', head + 1, close});
  }
  return all;
}

// Entries that `keep` does not take by their name return at once, and functions that the others do
// not call.
template <class Keep>
std::string with_entries(const std::string& ptx, Keep keep) {
  const std::vector<PtxBody> bodies = ptx_bodies(ptx);
  std::unordered_map<std::string_view, size_t> functions;
  std::vector<bool> kept(bodies.size());
  std::vector<size_t> open;
  for (size_t i = 0; i < bodies.size(); ++i) {
    if (!bodies[i].is_entry) functions.emplace(bodies[i].name, i);
    kept[i] = bodies[i].is_entry && keep(bodies[i].name);
    if (kept[i]) open.push_back(i);
  }
  const auto in_name = [&](size_t at) { return std::isalnum(ptx[at]) || ptx[at] == '_'; };
  while (!open.empty()) {
    const PtxBody body = bodies[open.back()];
    open.pop_back();
    for (size_t at = body.begin, end; at < body.end; at = end + 1) {
      for (end = at; in_name(end);) ++end;
      const auto found = functions.find(std::string_view(ptx).substr(at, end - at));
      if (end == at || found == functions.end() || kept[found->second]) continue;
      kept[found->second] = true;
      open.push_back(found->second);
    }
  }
  std::string out;
  size_t copied = 0;
  for (size_t i = 0; i < bodies.size(); ++i) {
    if (kept[i]) continue;
    out.append(ptx, copied, bodies[i].begin - copied).append("ret;");
    copied = bodies[i].end;
  }
  return out.append(ptx, copied, ptx.npos);
}

}  // namespace gemm_test
