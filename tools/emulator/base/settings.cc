// SPDX-License-Identifier: MIT
// Reads the EMU_* settings.
#include "tools/emulator/base/settings.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tools/emulator/base/tell.h"

namespace emu {

namespace {

template <class T>
struct Word {
  const char* text;
  T value;
};
constexpr Word<Order> order_words[] = {
    {"soonest", Order::soonest}, {"latest", Order::latest}, {"random", Order::random}};
constexpr Word<Reaction> reaction_words[] = {
    {"stop", Reaction::stop}, {"report", Reaction::report}, {"ignore", Reaction::ignore}};
constexpr Word<MmaModel> mma_model_words[] = {{"groups", MmaModel::groups},
                                              {"blocks", MmaModel::blocks}};
constexpr Word<ScaleBands> scale_band_words[] = {
    {"equal", ScaleBands::equal}, {"first", ScaleBands::first}, {"own", ScaleBands::own}};
constexpr Word<PairScales> pair_scale_words[] = {{"halves", PairScales::halves},
                                                 {"whole", PairScales::whole}};
constexpr const auto& words_of(ScaleBands) { return scale_band_words; }
constexpr const auto& words_of(PairScales) { return pair_scale_words; }
constexpr const auto& words_of(MmaModel) { return mma_model_words; }
constexpr const auto& words_of(Order) { return order_words; }
constexpr const auto& words_of(Reaction) { return reaction_words; }

// ---- text to value: false if it is none -------------------------------------------------------

bool number(const char* text, uint64_t largest, uint64_t& value) {
  char* end = nullptr;
  errno = 0;
  const uint64_t read = strtoull(text, &end, 0);
  if (*text < '0' || *text > '9' || *end || errno || read > largest) return false;
  value = read;
  return true;
}

template <class T>
bool parse(const char* text, T& value, uint64_t largest) {
  if constexpr (std::is_enum_v<T>) {
    for (const auto& word : words_of(T{}))
      if (!strcmp(text, word.text)) return value = word.value, true;
    return false;
  } else {
    uint64_t read = 0;
    if (!number(text, largest, read)) return false;
    value = T(read);
    return true;
  }
}

bool parse(const char* text, std::string& value, uint64_t) {
  value = text;
  return true;
}

// "3" or "3-5".
bool range(const std::string& text, uint64_t largest, uint64_t& first, uint64_t& last) {
  const size_t dash = std::min(text.find('-'), text.size());
  if (!number(text.substr(0, dash).c_str(), largest, first)) return false;
  last = first;
  if (dash < text.size() && !number(text.c_str() + dash + 1, largest, last)) return false;
  return first <= last;
}

bool parse(const char* text, Blocks& value, uint64_t) {
  Blocks read;
  return range(text, ~0ull, read.first, read.last) && (value = read, true);
}

constexpr uint64_t largest_warp = 31, largest_rank = 15;

// An empty text selects no warp.
bool parse(const char* text, Late& value, uint64_t) {
  if (!*text) return value = Late{}, true;
  const std::string all = text;
  if (all == "seed") return value = Late{}, value.by_seed = true;
  const size_t dot = std::min(all.find('.'), all.size());
  uint64_t first, last, rank = Late::any_rank;
  if (!range(all.substr(0, dot), largest_warp, first, last)) return false;
  if (dot < all.size() && !number(text + dot + 1, largest_rank, rank)) return false;
  value = {uint32_t(first), uint32_t(last), uint32_t(rank)};
  return true;
}

// ---- value to text ----------------------------------------------------------------------------

template <class T>
std::string show(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    for (const auto& word : words_of(value))
      if (word.value == value) return word.text;
    return "";
  } else {
    return std::to_string(value);
  }
}
std::string show(const std::string& value) { return value; }
std::string show(const Blocks& b) { return std::to_string(b.first) + "-" + std::to_string(b.last); }
std::string show(const Late& late) {
  if (late.by_seed) return "seed";
  if (late.last < late.first) return "";
  const std::string rank = late.rank == Late::any_rank ? "" : "." + std::to_string(late.rank);
  return std::to_string(late.first) + "-" + std::to_string(late.last) + rank;
}

// ---- what is wanted ---------------------------------------------------------------------------

template <class T>
std::string wanted(T, uint64_t largest) {
  if constexpr (std::is_enum_v<T>) {
    std::string all = "one of";
    for (const auto& word : words_of(T{})) all += std::string(" ") + word.text;
    return all;
  } else {
    return "a number from 0 to " + std::to_string(largest);
  }
}
std::string wanted(const std::string&, uint64_t) { return "a text"; }
std::string wanted(Blocks, uint64_t) { return "a block's number, or first-last"; }
std::string wanted(Late, uint64_t) {
  return "a warp's number from 0 to " + std::to_string(largest_warp) +
         ", or first-last, and then .rank if wanted; or `seed`";
}

std::string names() {
  std::string all;
  for (const SettingRow& row : setting_rows())
    all += (all.empty() ? "" : ", ") + std::string(row.name);
  return all;
}

// How many letters differ, come or go between two names.
size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t corner = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t other = corner + (a[i - 1] != b[j - 1]);
      corner = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, other});
    }
  }
  return row.back();
}

// Others' variables begin with EMU_ as well: a name that nearly is one of ours is meant for us.
bool resembles_ours(const std::string& name) {
  constexpr size_t slips = 3;
  return std::any_of(setting_rows().begin(), setting_rows().end(),
                     [&](const SettingRow& row) { return distance(name, row.name) <= slips; });
}

}  // namespace

const std::vector<SettingRow>& setting_rows() {
  enum { process, launch };
  static const std::vector<SettingRow> rows = {
#define EMU_SETTING(name, type, field, value, largest, when, meaning)                       \
  {#name,                                                                                   \
   meaning,                                                                                 \
   when == launch,                                                                          \
   [](Settings& to, const char* text) { return parse(text, to.field, uint64_t(largest)); }, \
   [](const Settings& from) { return show(from.field); },                                   \
   [] { return wanted(type{}, uint64_t(largest)); }},
#include "tools/emulator/base/settings.def"
#undef EMU_SETTING
  };
  return rows;
}

const SettingRow* find_setting(const std::string& name) {
  for (const SettingRow& row : setting_rows())
    if (name == row.name) return &row;
  return nullptr;
}

// An empty value is the default.
Settings read_settings(const char* const* environment, std::string* error, std::string* warning) {
  Settings s;
  for (; *environment; ++environment) {
    const char* equals = strchr(*environment, '=');
    if (strncmp(*environment, "EMU_", 4) || !equals) continue;
    const std::string name(*environment, size_t(equals - *environment));
    const char* value = equals + 1;
    const SettingRow* row = find_setting(name);
    if (!row && !resembles_ours(name)) continue;
    if (!row)
      *warning = name + " is no setting and changes nothing; there are " + names();
    else if (*value && !row->set(s, value))
      *error = name + "=" + value + " is not " + row->wanted();
  }
  return s;
}

Settings& settings() {
  static Settings values = [] {
    std::string error, warning;
    Settings read = read_settings(environ, &error, &warning);
    if (!warning.empty()) tell(warning);
    if (error.empty()) return read;
    tell(error);
    exit(2);
  }();
  return values;
}

}  // namespace emu
