// SPDX-License-Identifier: MIT
// wmma and mma.sp: what fragments hold and what products give, as hashes of all words against those
// recorded in golden/fragment_words.csv. The same PTX runs on an H100 or H200 and in the emulator.
// FRAGMENT_RECORD: a file to write the hashes to instead.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>

#include "tools/emulator/test/h200/device.h"
#include "tools/emulator/test/models/tensor_numbers.h"

namespace {

using support::NumberType;
using support::SumType;

constexpr uint32_t kBlocks = 20, kIn = 8192, kOut = 4096;  // bytes of a block

std::string registers(const char* name, uint32_t count) {
  std::string text = "{";
  for (uint32_t i = 0; i < count; ++i)
    text += (i ? ", " : "") + std::string(name) + std::to_string(i);
  return text + "}";
}

// A program, what its operands are, and where a block finds them.
struct Program {
  std::string name, body;
  NumberType a, b;
  SumType c;
  bool lanes = false;      // operands lane by lane, 64 bytes each, with metadata, not as matrices
  bool half_tf32 = false;  // metadata names halves of tf32
};

std::string text_of(const Program& p) {
  const char* const unit = p.lanes ? "64" : "0";
  return ".version 8.7\n.target sm_90a\n.address_size 64\n"
         ".visible .entry k(.param .u64 p_in, .param .u64 p_out)\n{\n"
         ".reg .b32 a<8>, b<8>, c<8>, d<8>, e, t, u; .reg .b64 in, out, x;\n"
         "ld.param.u64 in, [p_in]; ld.param.u64 out, [p_out]; mov.u32 t, %tid.x;\n"
         "mov.u32 u, %ctaid.x; mul.wide.u32 x, u, " +
         std::to_string(kIn) + "; add.u64 in, in, x; mul.wide.u32 x, u, " + std::to_string(kOut) +
         "; add.u64 out, out, x;\nmul.wide.u32 x, t, " + unit + "; add.u64 in, in, x;\n" + p.body +
         "ret;\n}\n";
}

std::string keep(const char* name, uint32_t count, uint32_t at) {
  std::string text;
  for (uint32_t i = 0; i < count; ++i)
    text += "st.global.b32 [x+" + std::to_string(at + 128 * i) + "], " + name + std::to_string(i) +
            ";\n";
  return text;
}
const char* const kLane = "mul.wide.u32 x, t, 4; add.u64 x, out, x;\n";

// ---- wmma --------------------------------------------------------------------------------------

struct Shape {
  const char* text;
  uint32_t m, n, k;
};
constexpr Shape kShapes[] = {
    {"m16n16k16", 16, 16, 16}, {"m32n8k16", 32, 8, 16}, {"m8n32k16", 8, 32, 16}};

// D at the block's first 2048 bytes, then the registers of A and of B.
Program wmma(const Shape& s, NumberType type, SumType c, SumType d, bool rows, uint32_t a_count,
             uint32_t b_count, const std::string& more = "") {
  const std::string shape = std::string(".") + s.text, t = name_of(type);
  const auto count = [&](SumType x) { return s.m * s.n / (x == SumType::f16 ? 64 : 32); };
  const std::string a = registers("a", a_count), b = registers("b", b_count),
                    c_text = registers("c", count(c)), d_text = registers("d", count(d)),
                    a_layout = rows ? ".row" : ".col", b_layout = rows ? ".col" : ".row";
  std::string types = "." + name_of(d) + "." + t + "." + t + "." + name_of(c);
  if (t == "f16") types = "." + name_of(d) + "." + name_of(c);
  const std::string product = "wmma.mma" + (t == "b1" ? more : "") + ".sync.aligned" + a_layout +
                              b_layout + shape + types + (t == "b1" ? "" : more);
  const std::string body =
      "wmma.load.a.sync.aligned" + a_layout + shape + ".global." + t + " " + a + ", [in];\n" +
      "wmma.load.b.sync.aligned" + b_layout + shape + ".global." + t + " " + b + ", [in+2048];\n" +
      "wmma.load.c.sync.aligned" + a_layout + shape + ".global." + name_of(c) + " " + c_text +
      ", [in+4096];\n" + product + " " + d_text + ", " + a + ", " + b + ", " + c_text + ";\n" +
      "wmma.store.d.sync.aligned" + b_layout + shape + ".global." + name_of(d) + " [out], " +
      d_text + ";\n" + kLane + keep("a", a_count, 2048) + keep("b", b_count, 3072);
  return {product, body, type, type, c};
}

void add_wmma(std::vector<Program>& to) {
  for (const Shape& s : kShapes)
    for (const bool rows : {true, false}) {
      for (const SumType c : {SumType::f16, SumType::f32})
        for (const SumType d : {SumType::f16, SumType::f32})
          to.push_back(wmma(s, NumberType::f16, c, d, rows, 8, 8));
      to.push_back(wmma(s, NumberType::bf16, SumType::f32, SumType::f32, rows, s.m / 4, s.n / 4));
      for (const NumberType t : {NumberType::s8, NumberType::u8})
        for (const char* more : {"", ".satfinite"})
          to.push_back(wmma(s, t, SumType::s32, SumType::s32, rows, s.m / 8, s.n / 8, more));
    }
  for (const bool rows : {true, false})
    to.push_back(
        wmma({"m16n16k8", 16, 16, 8}, NumberType::tf32, SumType::f32, SumType::f32, rows, 4, 4));
  for (const NumberType t : {NumberType::s4, NumberType::u4})
    to.push_back(wmma({"m8n8k32", 8, 8, 32}, t, SumType::s32, SumType::s32, true, 1, 1));
  for (const char* op : {".and.popc", ".xor.popc"})
    to.push_back(
        wmma({"m8n8k128", 8, 8, 128}, NumberType::b1, SumType::s32, SumType::s32, true, 1, 1, op));
}

// ---- mma.sp ------------------------------------------------------------------------------------

Program sparse(const char* kind, uint32_t k, NumberType a, NumberType b, SumType d, uint32_t words,
               uint32_t selector) {
  const uint32_t count = d == SumType::f16 ? 2 : 4;
  const std::string name = std::string("mma.") + kind + ".sync.aligned.m16n8k" + std::to_string(k) +
                           ".row.col." + name_of(d) + "." + name_of(a) + "." + name_of(b) + "." +
                           name_of(d);
  std::string body;
  const auto load = [&](const char* r, uint32_t n, uint32_t at) {
    for (uint32_t i = 0; i < n; ++i)
      body += "ld.global.b32 " + std::string(r) + std::to_string(i) + ", [in+" +
              std::to_string(at + 4 * i) + "];\n";
  };
  load("a", words, 0);
  load("b", words, 16);
  load("c", count, 32);
  body += "ld.global.b32 e, [in+48];\n" + name + " " + registers("d", count) + ", " +
          registers("a", words) + ", " + registers("b", words) + ", " + registers("c", count) +
          ", e, " + std::to_string(selector) + ";\n" + kLane + keep("d", count, 0);
  return {name + " " + std::to_string(selector), body, a, b, d, true, a == NumberType::tf32};
}

void add_sparse(std::vector<Program>& to) {
  using T = NumberType;
  for (const char* kind : {"sp", "sp::ordered_metadata"}) {
    const auto add = [&](uint32_t k, T a, T b, SumType d, uint32_t words, uint32_t selectors) {
      for (uint32_t s = 0; s < selectors; ++s) to.push_back(sparse(kind, k, a, b, d, words, s));
    };
    for (const SumType d : {SumType::f16, SumType::f32})
      add(16, T::f16, T::f16, d, 2, 4), add(32, T::f16, T::f16, d, 4, 2);
    add(16, T::bf16, T::bf16, SumType::f32, 2, 4);
    add(32, T::bf16, T::bf16, SumType::f32, 4, 2);
    add(8, T::tf32, T::tf32, SumType::f32, 2, 4);
    add(16, T::tf32, T::tf32, SumType::f32, 4, 2);
    for (const T a : {T::e4m3, T::e5m2})
      for (const T b : {T::e4m3, T::e5m2}) add(64, a, b, SumType::f32, 4, 1);
    for (const T a : {T::s8, T::u8})
      add(32, a, T::s8, SumType::s32, 2, 2), add(64, a, T::u8, SumType::s32, 4, 1);
    for (const T a : {T::s4, T::u4})
      add(64, a, T::s4, SumType::s32, 2, 2), add(128, a, T::u4, SumType::s32, 4, 1);
  }
}

// ---- running them ------------------------------------------------------------------------------

void place(std::vector<uint8_t>& to, size_t at, size_t bytes, NumberType type,
           std::mt19937_64& random, int kind) {
  std::vector<uint8_t> part(bytes);
  support::fill(part, type, random, kind);
  std::copy(part.begin(), part.end(), to.begin() + long(at));
}

// fp16 accumulators lie in halves.
void place_sums(std::vector<uint8_t>& to, size_t at, size_t bytes, SumType type,
                std::mt19937_64& random, int kind) {
  const size_t each = type == SumType::f16 ? 2 : 4;
  for (size_t i = 0; i < bytes; i += each) {
    const uint32_t c = support::random_accumulator(type, random, kind);
    std::memcpy(&to[at + i], &c, each);
  }
}

uint32_t random_metadata(bool half_tf32, std::mt19937_64& random) {
  constexpr uint32_t pairs[] = {0x4, 0x8, 0x9, 0xC, 0xD, 0xE}, halves[] = {0x4, 0xE};
  uint32_t word = 0;
  for (uint32_t i = 0; i < 32; i += 4)
    word |= (half_tf32 ? halves[random() % 2] : pairs[random() % 6]) << i;
  return word;
}

std::vector<uint8_t> inputs(const Program& p) {
  std::mt19937_64 random(p.name.size());
  std::vector<uint8_t> all(kBlocks * kIn);
  for (uint32_t block = 0; block < kBlocks; ++block) {
    const int kind = int(block % support::kDataKinds);
    const size_t at = block * kIn;
    for (uint32_t lane = 0; p.lanes && lane < 32; ++lane) {
      place(all, at + lane * 64, 16, p.a, random, kind);
      place(all, at + lane * 64 + 16, 16, p.b, random, kind);
      place_sums(all, at + lane * 64 + 32, 16, p.c, random, kind);
      const uint32_t metadata = random_metadata(p.half_tf32, random);
      std::memcpy(&all[at + lane * 64 + 48], &metadata, 4);
    }
    if (p.lanes) continue;
    place(all, at, 2048, p.a, random, kind);
    place(all, at + 2048, 2048, p.b, random, kind);
    place_sums(all, at + 4096, 2048, p.c, random, kind);
  }
  return all;
}

uint64_t hash_of(const std::vector<uint8_t>& bytes) {
  uint64_t h = 0xCBF29CE484222325;
  for (const uint8_t b : bytes) h = (h ^ b) * 0x100000001B3;
  return h;
}

uint64_t run(const Program& p) {
  const h200::Module module(text_of(p));
  const h200::Buffer in(inputs(p)), out(std::vector<uint8_t>(kBlocks * kOut));
  CUdeviceptr at[] = {in.address(), out.address()};
  void* arguments[] = {&at[0], &at[1]};
  module.launch("k", kBlocks, 32, 0, arguments);
  return hash_of(out.download<uint8_t>());
}

std::map<std::string, uint64_t> recorded() {
  const std::string here = __FILE__;
  std::ifstream in(here.substr(0, here.find("h200/fragment_probe.cc")) +
                   "golden/fragment_words.csv");
  std::map<std::string, uint64_t> all;
  for (std::string line; std::getline(in, line);)
    if (const size_t comma = line.find(','); line[0] != '#' && comma != line.npos)
      all[line.substr(0, comma)] = std::strtoull(line.c_str() + comma + 1, nullptr, 16);
  return all;
}

}  // namespace

TEST_CASE("wmma and mma.sp give the words that are recorded", "[sm90][fragments]") {
  USE_HOPPER(device);
  std::vector<Program> programs;
  add_wmma(programs);
  add_sparse(programs);
  const char* const path = std::getenv("FRAGMENT_RECORD");
  std::ofstream record;
  if (path) record.open(path);
  const std::map<std::string, uint64_t> words = recorded();
  for (const Program& p : programs) {
    const uint64_t hash = run(p);
    char text[40];
    std::snprintf(text, sizeof text, ",%016llx\n", (unsigned long long)hash);
    if (path) record << p.name << text;
    INFO(p.name << text);
    if (!path) CHECK((words.count(p.name) && words.at(p.name) == hash));
  }
  if (!device.emulated()) WARN(programs.size() << " programs");
}
