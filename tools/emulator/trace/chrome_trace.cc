// SPDX-License-Identifier: MIT
// See chrome_trace.h.
#include "tools/emulator/trace/chrome_trace.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <map>

namespace emu {

namespace {

// The format knows milliseconds and nanoseconds only: one of these is one instruction.
constexpr const char header[] =
    "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"unit\":\"warp instructions of the cluster, shown "
    "as ns\"},\"traceEvents\":[\n";
constexpr const char footer[] = "\n]}\n";
constexpr uint64_t gap = 100;  // between launches

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (uint8_t(c) < 0x20 || uint8_t(c) >= 0x7F)
      out += format("\\u%04x", uint8_t(c));
    else
      out += c;
  }
  return out + "\"";
}

// What the process has written, so that one file holds all launches.
struct Written {
  std::string path;
  uint64_t launches = 0, processes = 0, flows = 0, time = 0;
  bool empty = true;  // no event yet
};
Written written;

std::vector<std::string> lines_of(const std::string& source) {
  std::vector<std::string> lines(1);
  for (const char c : source) {
    if (c == '\n')
      lines.emplace_back();
    else if (c != '\t' || !lines.back().empty())
      lines.back() += c;
  }
  return lines;
}

// Puts spans on rows: on one row a span lies inside another or beside it.
class Rows {
 public:
  // `nests`: a span may lie inside another one.
  uint32_t place(const TraceSpan& span, bool nests) {
    for (uint32_t row = 0; row < open_.size(); ++row)
      if (fits(open_[row], span, nests)) return row;
    open_.push_back({span.end});
    return uint32_t(open_.size() - 1);
  }

 private:
  static bool fits(std::vector<uint64_t>& ends, const TraceSpan& span, bool nests) {
    while (!ends.empty() && ends.back() <= span.begin) ends.pop_back();
    if (!ends.empty() && (!nests || ends.back() < span.end)) return false;
    ends.push_back(span.end);
    return true;
  }
  std::vector<std::vector<uint64_t>> open_;  // per row the ends of what is open, innermost last
};

class Writer {
 public:
  Writer(FILE* file, const Launch& launch)
      : file_(file), launch_(launch), lines_(lines_of(launch.module->source)) {}

  void add(const Timeline& timeline) {
    for (uint32_t rank = 0; rank < timeline.ranks(); ++rank)
      if (timeline.shows(rank)) add_block(timeline, rank);
    add_flows(timeline);
  }

 private:
  struct Track {
    std::string name;
    bool asynchronous;
    uint32_t row;
    bool operator<(const Track& t) const {
      return std::tie(asynchronous, name, row) < std::tie(t.asynchronous, t.name, t.row);
    }
  };
  struct Place {
    uint64_t process;
    uint32_t thread;
  };

  void event(const std::string& body) {
    fprintf(file_, "%s{%s}", written.empty ? "" : ",\n", body.c_str());
    written.empty = false;
  }

  void metadata(const char* what, uint64_t process, uint32_t thread, const std::string& args) {
    event(format("\"ph\":\"M\",\"pid\":%" PRIu64 ",\"tid\":%u,\"name\":\"%s\",\"args\":{", process,
                 thread, what) +
          args + "}");
  }

  // The role of a warp is what it executed.
  static std::map<uint32_t, std::string> warp_names(const Timeline& timeline, uint32_t rank) {
    std::map<uint32_t, const TraceKind*> first;
    for (const TraceSpan& s : timeline.spans()) {
      if (s.rank != rank) continue;
      const TraceKind*& kind = first[s.warp];
      if (*s.kind->role && (!kind || s.kind < kind)) kind = s.kind;
    }
    std::map<uint32_t, std::string> names;
    for (const auto& [warp, kind] : first)
      names[warp] = format("warp %2u", warp) + (kind ? std::string(" ") + kind->role : "");
    return names;
  }

  void add_block(const Timeline& timeline, uint32_t rank) {
    const uint64_t process = ++written.processes;
    const Dim3 b = timeline.block(rank);
    metadata("process_name", process, 0,
             "\"name\":" +
                 quoted(format("%s block (%u,%u,%u), launch %" PRIu64,
                               launch_.function->name.c_str(), b.x, b.y, b.z, written.launches)));
    const auto warps = warp_names(timeline, rank);
    std::vector<size_t> order;
    for (size_t i = 0; i < timeline.spans().size(); ++i)
      if (timeline.spans()[i].rank == rank) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t c) {
      const TraceSpan &x = timeline.spans()[a], &y = timeline.spans()[c];
      return x.begin != y.begin ? x.begin < y.begin : x.end > y.end;
    });
    std::map<std::string, Rows> rows;
    std::map<Track, std::vector<size_t>> tracks;
    for (const size_t i : order) {
      const TraceSpan& s = timeline.spans()[i];
      const std::string name = s.asynchronous ? s.kind->unit : warps.at(s.warp);
      const uint32_t row = rows[name].place(s, !s.asynchronous);
      tracks[{name, s.asynchronous, row}].push_back(i);
    }
    uint32_t thread = 0;
    for (const auto& [track, spans] : tracks) {
      metadata("thread_name", process, ++thread,
               "\"name\":" + quoted(track.asynchronous || track.row
                                        ? track.name + format(" %u", track.row)
                                        : track.name));
      metadata("thread_sort_index", process, thread, format("\"sort_index\":%u", thread));
      for (const size_t i : spans) {
        places_[i] = {process, thread};
        add_span(timeline.spans()[i], {process, thread});
      }
    }
    if (!timeline.fault().empty())
      event(format("\"ph\":\"i\",\"s\":\"p\",\"pid\":%" PRIu64 ",\"tid\":1,\"ts\":%" PRIu64
                   ",\"name\":\"fault\",\"args\":{\"text\":",
                   process, written.time + timeline.end()) +
            quoted(timeline.fault()) + "}");
  }

  void add_span(const TraceSpan& s, Place at) {
    const uint32_t line = s.in->pos.line;
    std::string args = format("\"PTX line\":%u,\"PTX\":", line) +
                       quoted(line && line <= lines_.size() ? lines_[line - 1] : "");
    args += format(",\"warp\":%u", s.warp);
    if (s.lanes) args += format(",\"lanes\":\"0x%08x\"", s.lanes);
    if (!s.barrier.empty()) args += ",\"mbarrier\":" + quoted(s.barrier);
    if (s.tries) args += format(",\"tries\":%" PRIu64, s.tries);
    for (const auto& [name, value] : s.counted)
      args += format(",\"%s\":%" PRIu64, name.c_str(), value);
    event(format("\"ph\":\"X\",\"pid\":%" PRIu64 ",\"tid\":%u,\"ts\":%" PRIu64 ",\"dur\":%" PRIu64
                 ",\"name\":\"%s\",\"cat\":\"%s\",\"args\":{",
                 at.process, at.thread, written.time + s.begin, s.end - s.begin, s.in->opcode,
                 s.kind->category) +
          args + "}");
  }

  // An arrow from the last half instruction of what ended a phase to that of the wait.
  void add_flows(const Timeline& timeline) {
    const auto end = [&](const char* ph, uint64_t id, size_t span) {
      const Place at = places_.at(span);
      event(format("\"ph\":\"%s\",\"id\":%" PRIu64 ",\"pid\":%" PRIu64 ",\"tid\":%u,\"ts\":%" PRIu64
                   ".5,\"name\":\"releases\",\"cat\":\"flow\"%s",
                   ph, id, at.process, at.thread, written.time + timeline.spans()[span].end - 1,
                   *ph == 'f' ? ",\"bp\":\"e\"" : ""));
    };
    for (size_t i = 0; i < timeline.spans().size(); ++i) {
      const size_t from = timeline.spans()[i].released_by;
      if (from == TraceSpan::no_span || !places_.count(i) || !places_.count(from)) continue;
      const uint64_t id = ++written.flows;
      end("s", id, from);
      end("f", id, i);
    }
    places_.clear();
  }

  FILE* file_;
  const Launch& launch_;
  std::vector<std::string> lines_;
  std::map<size_t, Place> places_;  // of the timeline's spans
};

}  // namespace

bool write_chrome_trace(const std::string& path, const Launch& launch,
                        const std::vector<std::shared_ptr<Timeline>>& timelines,
                        std::string* error) {
  const bool again = written.path == path;
  FILE* file = fopen(path.c_str(), again ? "r+" : "w");
  if (!file) {
    *error = "EMU_TRACE=" + path + " cannot be written: " + strerror(errno);
    return false;
  }
  if (again) {
    fseek(file, -long(strlen(footer)), SEEK_END);
  } else {
    written = {};
    written.path = path;
    fputs(header, file);
  }
  ++written.launches;
  uint64_t longest = 0;
  Writer writer(file, launch);
  for (const auto& timeline : timelines) {
    writer.add(*timeline);
    longest = std::max(longest, timeline->end() + 1);
  }
  written.time += longest + gap;
  fputs(footer, file);
  const bool complete = !ferror(file);
  if (fclose(file) == 0 && complete) return true;
  *error = "EMU_TRACE=" + path + " could not be written to its end: " + strerror(errno);
  return false;
}

}  // namespace emu
