// SPDX-License-Identifier: MIT
// One function per opcode that has such rules. Each was measured with ptxas 13.0.
#include "tools/emulator/ptx/rules.h"

#include <bit>

namespace emu::ptx {
namespace {

using Rule = std::string (*)(const Instr&);  // a sentence, or nothing

// The constant in operand i, or `otherwise` if a register stands there.
int64_t constant(const Instr& in, size_t i, int64_t otherwise) {
  return i < in.ops.size() && in.ops[i].kind == Operand::Kind::imm ? in.ops[i].imm : otherwise;
}

// A barrier number and a number of threads.
std::string barrier(const Instr& in) {
  if (const int64_t id = constant(in, 0, 0); id < 0 || id > 15)
    return format("barrier %lld does not exist, there are 0 to 15", (long long)id);
  if (constant(in, 1, 0) % 32) return "the number of threads is no multiple of the warp size";
  return "";
}

std::string barrier_arrive(const Instr& in) {
  return constant(in, 1, 32) == 0 ? "an arrival needs the number of threads" : barrier(in);
}

// The position and the length of a bit field.
std::string bit_field(const Instr& in) {
  const size_t n = in.ops.size();
  const bool fits =
      uint64_t(constant(in, n - 2, 0)) < 256 && uint64_t(constant(in, n - 1, 0)) < 256;
  return fits ? "" : "position and length of a bit field are 0 to 255";
}

std::string mbarrier_arrive(const Instr& in) {
  const int32_t count = int32_t(constant(in, 2, 1));
  return in.has(Mod::expect_tx) || count > 0 ? "" : "the number of arrivals is positive";
}

std::string mbarrier_wait(const Instr& in) {
  const bool right = !in.has(Mod::parity) || uint64_t(constant(in, 2, 0)) <= 1;
  return right ? "" : "a parity is 0 or 1";
}

// .sat only where the destination type cannot hold all source values (PTX ISA 9.7.9.21).
std::string cvt(const Instr& in) {
  if (!in.has(Mod::sat) || in.type_count != 2) return "";
  const Type d = in.types[0], a = in.types[1];
  const bool d_signed = class_of(d) == 's', a_signed = class_of(a) == 's';
  if ((!d_signed && class_of(d) != 'u') || (!a_signed && class_of(a) != 'u')) return "";
  const bool holds_all =
      d_signed == a_signed ? bits_of(d) >= bits_of(a) : d_signed && bits_of(d) > bits_of(a);
  return holds_all ? ".sat has no effect between these types and is not allowed" : "";
}

std::string cp_async(const Instr& in) {
  const int64_t n = constant(in, 2, 16);
  const bool with_source = in.ops.size() > (in.has(Mod::L2_cache_hint) ? 4u : 3u);
  if (with_source && uint64_t(constant(in, 3, 0)) > uint64_t(n))
    return "cp.async cannot read more bytes than it writes";
  if (in.has(Mod::cg)) return n == 16 ? "" : "cp.async.cg copies 16 bytes";
  return n == 4 || n == 8 || n == 16 ? "" : "cp.async.ca copies 4, 8 or 16 bytes";
}

std::string cp_async_bulk(const Instr& in) {
  return constant(in, 2, 0) % 16 ? "the size of a bulk copy is a multiple of 16" : "";
}

std::string cp_async_bulk_prefetch(const Instr& in) {
  return constant(in, 1, 0) % 16 ? "the size of a bulk prefetch is a multiple of 16" : "";
}

std::string tcgen05_columns(const Instr& in) {
  const int64_t n = constant(in, 1, 32);
  const bool fits = n >= 32 && n <= 512 && std::has_single_bit(uint64_t(n));
  return fits ? "" : "tensor memory comes in 32, 64, 128, 256 or 512 columns";
}

std::string tcgen05_mma(const Instr& in) {
  if (in.has(Mod::ashift) && (in.has(Mod::collector_a_use) || in.has(Mod::collector_a_fill)))
    return ".ashift does not go with .collector::a::use or .collector::a::fill";
  // A sixth operand besides the lane mask is scale-input-d.
  const size_t masks = in.ops[4].kind == Operand::Kind::vector;
  const bool scales = !in.has(Mod::block_scale) && in.ops.size() - masks == 6;
  return scales && uint64_t(in.ops.back().imm) > 15 ? "D is scaled by 2^-0 to 2^-15" : "";
}

// The sparsity selector says which of four lanes supply the metadata: one lane (0 to 3), a pair (0
// or 1), or all (0). For a pair and 16-bit types ptxas also admits 2 and 3; the manual does not.
std::string mma_sparse(const Instr& in) {
  const uint32_t unit = bits_of(in.type(1)) >= 16 ? 2 : 1;
  const size_t chunks = in.ops[2].elements.size() * 4 / unit;  // of a row
  const int64_t most = chunks == 4 ? 3 : chunks == 8 ? 1 : 0;
  const int64_t n = constant(in, 5, 0);
  return n >= 0 && n <= most ? ""
                             : format("the selector of the metadata is 0 to %lld", (long long)most);
}

std::string setmaxnreg(const Instr& in) {
  const int64_t n = constant(in, 0, 24);
  return n >= 24 && n <= 256 && n % 8 == 0 ? "" : "a multiple of 8 from 24 to 256 expected";
}

// Dimensions count from 0; ptxas lets .global_stride have five, a map has four.
std::string tensormap_replace(const Instr& in) {
  const bool stride = in.has(Mod::global_stride);
  const bool dims =
      stride || in.has(Mod::box_dim) || in.has(Mod::global_dim) || in.has(Mod::element_stride);
  int64_t most = in.has(Mod::elemtype)                                         ? 15
                 : in.has(Mod::interleave_layout)                              ? 2
                 : in.has(Mod::swizzle_mode) || in.has(Mod::swizzle_atomicity) ? 3
                                                                               : 1;
  if (dims) most = stride ? 3 : 4;
  if (in.has(Mod::global_address) || in.has(Mod::rank)) return "";
  const int64_t n = constant(in, 1, 0);
  return n >= 0 && n <= most ? ""
                             : format("the number in the middle is 0 to %lld", (long long)most);
}

std::string cp_fenceproxy(const Instr& in) {
  return constant(in, 2, 128) == 128 ? "" : "a tensor map has 128 bytes";
}

std::string fence_proxy(const Instr& in) {
  return constant(in, 1, 128) == 128 ? "" : "a tensor map has 128 bytes";
}

std::string line_of_cache(const Instr& in) {
  return constant(in, 1, 128) == 128 ? "" : "a line of the cache has 128 bytes";
}

std::string st_bulk(const Instr& in) {
  if (constant(in, 1, 0) % 8) return "the size is a multiple of 8";
  return constant(in, 2, 0) == 0 ? "" : "st.bulk stores zeros only";
}

// A vector of constants only has no known width.
std::string tcgen05_st(const Instr& in) {
  for (const Operand& e : in.ops.back().elements)
    if (e.kind != Operand::Kind::imm) return "";
  return "a vector of constants only";
}

std::string createpolicy(const Instr& in) {
  if (in.has(Mod::range)) return "";
  const uint32_t bits = uint32_t(constant(in, 1, 0x3f800000));
  return bits > 0 && bits <= 0x3f800000 ? "" : "the fraction is above 0 and at most 1";
}

std::string bar_red(const Instr& in) {
  Instr without = in;
  without.ops.erase(without.ops.begin());
  without.ops.pop_back();
  return barrier(without);
}

// scale-d, two signs and up to two transpositions.
std::string wgmma_mma_async(const Instr& in) {
  for (size_t i = 4; i < in.ops.size(); ++i) {
    const int32_t value = int32_t(constant(in, i, 1));
    if (i < 6 && value != 1 && value != -1) return "the sign of an operand is 1 or -1";
    if (i >= 6 && value != 0 && value != 1) return "a transposition is 0 or 1";
  }
  return "";
}

// Which byte and which thread the scales of A and B come from.
std::string mma_sync(const Instr& in) {
  if (!in.has(Mod::block_scale)) return "";
  const int64_t step = in.has(Mod::scale_vec_4X) ? 4 : in.has(Mod::kind_mxf8f6f4) ? 1 : 2;
  for (size_t i = 0; i < 2; ++i) {
    const auto& pair = in.ops[5 + 2 * i].elements;
    const bool constant[] = {pair[0].kind == Operand::Kind::imm,
                             pair[1].kind == Operand::Kind::imm};
    if (constant[0] && (pair[0].imm > 3 || pair[0].imm % step))
      return "the first byte of the scales is a multiple of their number, below 4";
    if (constant[1] && pair[1].imm > (i ? 3 : 1)) return "this thread holds no scales";
  }
  return "";
}

struct Row {
  std::string_view opcode;
  Rule rule;
};
constexpr Row rows[] = {
    {"bar.sync", barrier},
    {"bar.arrive", barrier_arrive},
    {"barrier.sync", barrier},
    {"bar.red", bar_red},
    {"barrier.red", bar_red},
    {"barrier.arrive", barrier_arrive},
    {"mbarrier.test_wait", mbarrier_wait},
    {"mbarrier.try_wait", mbarrier_wait},
    {"bfe", bit_field},
    {"bfi", bit_field},
    {"mbarrier.arrive", mbarrier_arrive},
    {"mbarrier.arrive_drop", mbarrier_arrive},
    {"cvt", cvt},
    {"cp.async", cp_async},
    {"cp.async.bulk", cp_async_bulk},
    {"cp.reduce.async.bulk", cp_async_bulk},
    {"cp.async.bulk.prefetch", cp_async_bulk_prefetch},
    {"tcgen05.alloc", tcgen05_columns},
    {"tcgen05.dealloc", tcgen05_columns},
    {"tcgen05.mma", tcgen05_mma},
    {"wgmma.mma_async", wgmma_mma_async},
    {"mma.sync", mma_sync},
    {"mma.sp", mma_sparse},
    {"mma.sp::ordered_metadata", mma_sparse},
    {"setmaxnreg", setmaxnreg},
    {"fence.proxy", fence_proxy},
    {"tensormap.replace", tensormap_replace},
    {"tensormap.cp_fenceproxy", cp_fenceproxy},
    {"createpolicy", createpolicy},
    {"discard", line_of_cache},
    {"applypriority", line_of_cache},
    {"st.bulk", st_bulk},
    {"tcgen05.st", tcgen05_st},
    {"bar.cta.sync", barrier},
    {"bar.cta.arrive", barrier_arrive},
    {"bar.cta.red", bar_red},
    {"barrier.cta.sync", barrier},
    {"barrier.cta.arrive", barrier_arrive},
    {"barrier.cta.red", bar_red},
};

}  // namespace

void check_rules(const ParsedInstr& in, const Instr& instr) {
  for (const Row& row : rows) {
    if (row.opcode != instr.opcode) continue;
    if (const std::string why = row.rule(instr); !why.empty())
      throw PtxError(in.pos, why + " in '" + std::string(in.text.substr(0, 200)) + "'");
    return;
  }
}

}  // namespace emu::ptx
