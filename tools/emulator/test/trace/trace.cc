// SPDX-License-Identifier: MIT
// The time line as a file: which blocks, how launches follow each other, what a fault leaves. That
// the file keeps the format's rules is tested in test/oracle/test_trace.py.
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "tools/emulator/test/support/exec_support.h"

namespace {

const std::string memory = ".shared .align 16 .b8 s[64];";
const std::string copies = R"(
  mbarrier.init.shared::cta.b64 [s], 1; fence.proxy.async;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [s], 16;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s+16], [%out], 16, [s];
  W: mbarrier.try_wait.parity.shared::cta.b64 %p0, [s], 0; @!%p0 bra W;)";

// Traces to a file of its own while it lives.
class Traced {
 public:
  explicit Traced(uint64_t first, uint64_t last) {
    char name[] = "/tmp/nvfp4-trace-XXXXXX";
    const int file = mkstemp(name);
    REQUIRE(file >= 0);
    close(file);
    path_ = name;
    emu::settings().trace = path_;
    emu::settings().trace_blocks = {first, last};
    emu::settings().order = emu::Order::latest;
  }
  ~Traced() { remove(path_.c_str()); }
  std::string text() const {
    std::stringstream all;
    all << std::ifstream(path_).rdbuf();
    return all.str();
  }

 private:
  exec_test::SettingsGuard guard_;
  std::string path_;
};

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++n;
  return n;
}

}  // namespace

TEST_CASE("a time line has the chosen blocks of every launch") {
  const Traced trace(1, 2);
  exec_test::run(copies, {{2, 2, 1}, {}, {}}, std::vector<uint32_t>(4), memory);
  exec_test::run("mov.u32 %r0, 1;", {}, std::vector<uint32_t>(4), memory);  // no such block
  // Each block a word of its own: clusters run at once.
  exec_test::run(
      "mov.u32 %r0, %ctaid.x; mul.wide.u32 %rd0, %r0, 4; add.u64 %rd0, %rd0, %out;"
      "st.global.u32 [%rd0], 1;",
      {{2}, {}, {}}, std::vector<uint32_t>(4), memory);
  const std::string text = trace.text();
  for (const char* block :
       {"k block (1,0,0), launch 1", "k block (0,1,0), launch 1", "k block (1,0,0), launch 3"}) {
    CAPTURE(block);
    CHECK(count(text, block) == 1);
  }
  CHECK(count(text, "process_name") == 3);
  CHECK(count(text, "\"unit\":\"warp instructions of the cluster, shown as ns\"") == 1);
  CHECK(count(text, "\"name\":\"st\"") == 1);
  CHECK(text.substr(text.size() - 4) == "\n]}\n");
}

TEST_CASE("a copy is a span from its issue to its end with an arrow to the wait") {
  const Traced trace(0, 0);
  exec_test::run(copies, {}, std::vector<uint32_t>(4), memory);
  const std::string text = trace.text();
  CHECK(count(text, "\"name\":\"cp.async.bulk\"") == 2);  // of the warp, of the TMA
  CHECK(contains(text, "\"mbarrier\":\"ends 0x400 phase 0\""));
  CHECK(contains(text, "\"mbarrier\":\"0x400 phase 0\""));
  CHECK(count(text, "\"ph\":\"s\"") == 1);
  CHECK(count(text, "\"ph\":\"f\"") == 1);
  CHECK(contains(text, "\"bulk_bytes\":16"));
}

TEST_CASE("a launch that faults leaves its time line up to the fault") {
  const Traced trace(0, 0);
  exec_test::fault(copies + "ld.shared.u32 %r0, [s+40]; red.global.add.u32 [%out], %r0;", {},
                   nullptr, memory);
  const std::string text = trace.text();
  CHECK(contains(text, "\"name\":\"fault\""));
  CHECK(contains(text, "nobody has written"));
  CHECK(contains(text, "cp.async.bulk"));
}
