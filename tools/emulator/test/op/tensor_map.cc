// SPDX-License-Identifier: MIT
// Tensor maps that a kernel edits, and reductions through them.
#include <cstring>

#include "tools/emulator/hardware/tensor_map_bits.h"
#include "tools/emulator/test/support/exec_support.h"

using Words = std::vector<uint32_t>;

namespace {

constexpr uint32_t tensor_at = 64;  // in words after the buffer's start: 4 rows of 8

// A template with a null address for 8 x 4 words of `type` in boxes of 4 x 2.
Words buffer(uint32_t type = 2) {
  alignas(64) emu::TensorMap map;
  const uint64_t dims[2] = {8, 4}, strides[1] = {32};
  const uint32_t box[2] = {4, 2}, steps[2] = {1, 1};
  emu::TensorMapArguments a;
  a.map = &map;
  a.type = type;
  a.rank = 2;
  a.dims = dims;
  a.strides = strides;
  a.box = box;
  a.element_strides = steps;
  REQUIRE(emu::encode_tiled(a, 100, &map) == "");
  Words words(tensor_at + 32 + 8);
  const emu::EncodedMap bytes = map;
  memcpy(words.data(), &bytes, sizeof bytes);
  for (uint32_t i = 0; i < 32; ++i) words[tensor_at + i] = 100 + i;
  return words;
}

const char* const declarations =
    ".shared .align 128 .b8 map[128]; .shared .align 128 .b8 s[128]; .shared .align 8 .b64 bar;";

// The warp copies the template to shared memory; lane 0 puts the tensor's address into it.
const std::string edit =
    "mov.u32 %r0, %laneid; setp.eq.u32 %p1, %r0, 0; mul.wide.u32 %rd1, %r0, 4;"
    "add.s64 %rd1, %out, %rd1; ld.global.u32 %r1, [%rd1]; shl.b32 %r2, %r0, 2; mov.u32 %r3, map;"
    "add.s32 %r2, %r2, %r3; st.shared.u32 [%r2], %r1; bar.warp.sync -1;"
    "add.s64 %rd2, %out, 256;"
    "@%p1 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r3], %rd2;";
const std::string publish =
    "bar.warp.sync -1; add.s64 %rd3, %out, 128;"
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd3],"
    " [%r3], 128; fence.proxy.tensormap::generic.acquire.gpu [%rd3], 128; @!%p1 bra OUT;";
const std::string load =
    "mov.u32 %r4, bar; mov.u32 %r5, s; mov.u32 %r6, 4; mov.u32 %r7, 2;"
    "mbarrier.init.shared.b64 [%r4], 1; mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 32;"
    "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r5],"
    " [%rd3, {%r6, %r7}], [%r4];"
    "W: mbarrier.try_wait.parity.shared.b64 %p2, [%r4], 0; @!%p2 bra W;"
    "ld.shared.v4.u32 {%r8, %r9, %r10, %r11}, [s]; st.global.v4.u32 [%out+384], {%r8, %r9, %r10,"
    " %r11}; ld.shared.v4.u32 {%r8, %r9, %r10, %r11}, [s+16];"
    "st.global.v4.u32 [%out+400], {%r8, %r9, %r10, %r11}; OUT:";
const exec_test::Shape warp{{}, {32}, {}};

}  // namespace

TEST_CASE("a kernel edits a tensor map in shared memory and loads through the copy") {
  Words out = run(edit + publish + load, warp, buffer(), declarations);
  CHECK(Words(out.begin() + 96, out.end()) == Words{120, 121, 122, 123, 128, 129, 130, 131});
  // One row and two words less: what lies outside is zero.
  out =
      run(edit +
              "mov.u32 %r4, 6; @%p1 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r3],"
              " 0, %r4; @%p1 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r3], 1, 3;" +
              publish + load,
          warp, buffer(), declarations);
  CHECK(Words(out.begin() + 96, out.end()) == Words{120, 121, 0, 0, 0, 0, 0, 0});
  // Rows 64 bytes apart.
  out =
      run(edit +
              "mov.b64 %rd4, 64; @%p1 tensormap.replace.tile.global_stride.shared::cta.b1024.b64"
              " [%r3], 0, %rd4; @%p1 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r3],"
              " 1, 2;" +
              publish + "mov.u32 %r7, 0;" +
              std::string(load).replace(load.find("mov.u32 %r7, 2;"), 15, "mov.u32 %r7, 0;"),
          warp, buffer(), declarations);
  CHECK(Words(out.begin() + 96, out.end()) == Words{104, 105, 106, 107, 120, 121, 122, 123});
}

namespace {

// As Triton makes a map of 8 x 4 words in boxes of 4 x 2: every field, of 128 zeros.
std::string made(const std::string& box_0 = "4") {
  const std::string at = ".shared::cta.b1024";
  std::string text =
      "mov.u32 %r0, %laneid; setp.eq.u32 %p1, %r0, 0; mov.u32 %r3, map; mov.u32 %r1, 0;"
      "shl.b32 %r2, %r0, 2; add.s32 %r2, %r2, %r3; st.shared.u32 [%r2], %r1; bar.warp.sync -1;"
      "add.s64 %rd2, %out, 256; mov.b64 %rd4, 32; mov.u32 %r4, 8; mov.u32 %r5, 4; mov.u32 %r6, 2;"
      "mov.u32 %r7, 1; mov.u32 %r8, " +
      box_0 + "; @!%p1 bra EDITED;";
  const auto replace = [&](const std::string& field, const std::string& value) {
    text += "tensormap.replace.tile." + field + at + (value.find("%rd") == 0 ? ".b64" : ".b32") +
            " [%r3], " + value + ";";
  };
  const auto replace_of = [&](const std::string& field, const std::string& value) {
    text += "tensormap.replace.tile." + field + at +
            (value.find("%rd") != std::string::npos ? ".b64" : ".b32") + " [%r3], " + value + ";";
  };
  replace("global_address", "%rd2");
  replace("rank", "1");
  replace_of("box_dim", "0, %r8");
  replace_of("box_dim", "1, %r6");
  replace_of("global_dim", "0, %r4");
  replace_of("global_dim", "1, %r5");
  replace_of("global_stride", "0, %rd4");
  replace_of("element_stride", "0, %r7");
  replace_of("element_stride", "1, %r7");
  for (const char* field : {"elemtype", "interleave_layout", "swizzle_mode", "fill_mode"})
    replace(field, field[0] == 'e' ? "2" : "0");
  return text + "EDITED:";
}

}  // namespace

TEST_CASE("a kernel makes a tensor map of zeros which is judged where it is used") {
  const Words out = run(made() + publish + load, warp, buffer(), declarations);
  CHECK(Words(out.begin() + 96, out.end()) == Words{120, 121, 122, 123, 128, 129, 130, 131});
  CHECK(contains(fault(made("3") + publish + load, warp, nullptr, declarations),
                 "boxDim[0] is 3 elements"));
  // No map at all: a byte that belongs to no field.
  std::string garbage = made();
  garbage.replace(garbage.find("mov.u32 %r1, 0;"), 15,
                  "setp.eq.u32 %p2, %r0, 16; selp.u32 %r1, 5, 0, %p2;");
  CHECK(contains(fault(garbage, warp, nullptr, declarations), "no tiled tensor map"));
}

TEST_CASE("an edited map that breaks a rule is a fault and so are bytes that are no map") {
  const auto broken = [](const std::string& field) {
    return fault(edit + "@%p1 tensormap.replace.tile." + field + publish + load, warp, nullptr,
                 declarations);
  };
  // fault() runs on an empty buffer: no template.
  CHECK(contains(broken("rank.shared::cta.b1024.b32 [%r3], 1;"), "boxDim[0] is 1 elements"));
  CHECK(contains(broken("rank.shared::cta.b1024.b32 [%r3], 5;"), "no tensor map has the value 5"));
}

TEST_CASE("a tensor reduction updates the elements inside the tensor") {
  const auto reduce = [](const std::string& op, uint32_t type) {
    return run(
        edit + publish +
            "mov.u32 %r5, s; mov.u32 %r6, 4; mov.u32 %r7, 3;"
            "st.shared.v4.u32 [s], {1, 2, 3, 4}; st.shared.v4.u32 [s+16], {5, 5, 5, 5};"
            "fence.proxy.async.shared::cta; cp.reduce.async.bulk.tensor.2d.global.shared::cta." +
            op +
            ".tile.bulk_group [%rd3, {%r6, %r7}], [%r5]; cp.async.bulk.commit_group;"
            "cp.async.bulk.wait_group 0; OUT:",
        warp, buffer(type), declarations);
  };
  Words out = reduce("add", 2);  // row 3 is the last: the second row of the box is dropped
  CHECK(Words(out.begin() + tensor_at + 28, out.begin() + tensor_at + 36) ==
        Words{129, 131, 133, 135, 0, 0, 0, 0});
  CHECK(out[tensor_at + 27] == 127);
  CHECK(reduce("min", 3)[tensor_at + 28] == 1);
  CHECK(reduce("xor", 2)[tensor_at + 28] == (128 ^ 1));
  CHECK_THROWS_AS(reduce("and", 7), emu::Fault);
  CHECK_THROWS_AS(reduce("inc", 3), emu::Fault);
}
