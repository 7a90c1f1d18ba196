// SPDX-License-Identifier: MIT
// See tell.h.
#include "tools/emulator/base/tell.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace emu {
namespace {
std::atomic<Listener> instead{nullptr}, reader{nullptr};
std::atomic<ObjectListener> of_objects{nullptr};
}  // namespace

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= ' ')
      out += c;
    else
      out += c == '\n' ? "\\n" : c == '\t' ? "\\t" : " ";
  }
  return out + '"';
}

// The places "7:3" of all "PTX line 7:3" in the report, as the items of a JSON list.
std::string lines_of(const std::string& report) {
  constexpr const char words[] = "PTX line ";
  std::string all;
  for (size_t at = 0; (at = report.find(words, at)) != std::string::npos;) {
    at += sizeof words - 1;
    const std::string place = report.substr(at, report.find_first_not_of("0123456789:", at) - at);
    all += (all.empty() ? "" : ",") + quoted(place.substr(0, place.find_last_not_of(':') + 1));
  }
  return all;
}

std::string lines_of(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines) all += (all.empty() ? "" : ",") + quoted(line);
  return all;
}

std::string object_of(const std::string& report, const Label& label) {
  const std::string rule = label.rule.empty() ? "" : "\"rule\":" + quoted(label.rule) + ",";
  const std::string more = label.more ? "\"more\":" + std::to_string(label.more) + "," : "";
  const std::string lines = label.more ? lines_of(label.lines) : lines_of(report);
  return "{\"class\":" + quoted(label.of_class) + "," + rule + more + "\"lines\":[" + lines +
         "],\"text\":" + quoted(report) + "}";
}

}  // namespace

void record(const std::string& report, const Label& label) {
  const std::string object = object_of(report, label);
  if (const ObjectListener listener = of_objects) return listener(object.c_str());
  const char* const path = getenv("NVFP4EMU_REPORT");
  if (!path || !*path) return;
  FILE* const file = fopen(path, "a");
  if (!file) return;
  fprintf(file, "%s\n", object.c_str());
  fclose(file);
}

void say(const std::string& report, const std::string& of_class) {
  if (of_objects) return;
  const std::string all = of_class == "note" ? report : of_class + ": " + report;
  if (const Listener listener = instead)
    listener(all);
  else
    fprintf(stderr, "emulator: %s\n", all.c_str());
}

void tell(const std::string& report, const Label& label) {
  record(report, label);
  say(report, label.of_class);
}

void print(const std::string& text) {
  if (const Listener other = reader)
    other(text);
  else
    fwrite(text.data(), 1, text.size(), stdout);
}

void set_listener(Listener listener) { instead = listener; }
void set_object_listener(ObjectListener listener) { of_objects = listener; }
void set_reader(Listener given) { reader = given; }

}  // namespace emu
