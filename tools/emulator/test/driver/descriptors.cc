// SPDX-License-Identifier: MIT
// nvfp4emu.h: what it says of a descriptor is what an instruction would do with it.
#include <cstring>

#include "tools/emulator/test/support/driver_session.h"

TEST_CASE("A shared-memory descriptor is explained or refused with a sentence for each field") {
  in_child([](Session& s) {
    const auto read =
        s.extension<decltype(&nvfp4emu_read_smem_descriptor)>("nvfp4emu_read_smem_descriptor");
    nvfp4emu_smem_descriptor d{};
    char text[512] = "";
    // 128-byte swizzle, groups of eight rows 1024 bytes apart, at 0x460.
    IS(s, read(2ull << 61 | 1ull << 46 | 64ull << 32 | 0x46, 128, 2, &d, text, sizeof text), 0);
    IS(s, d.address, 0x460);
    IS(s, d.stride, 1024);
    IS(s, d.lead, 0);
    IS(s, d.swizzle, 128);
    d.address = 7;
    IS(s, read(2ull << 61 | 64ull << 32 | 0x46, 128, 2, &d, text, sizeof text), -1);
    IS(s, strstr(text, "bits 48:46") != nullptr, 1);
    IS(s, d.address, 7);
    IS(s, read(0, 128, 2, &d, text, 8), -1);
    IS(s, strlen(text), 7);
    IS(s, read(0, 128, 2, &d, nullptr, 0), -1);
  });
}

TEST_CASE("An instruction descriptor is explained or refused with a sentence for each field") {
  in_child([](Session& s) {
    const auto read = s.extension<decltype(&nvfp4emu_read_instruction_descriptor)>(
        "nvfp4emu_read_instruction_descriptor");
    nvfp4emu_instruction_descriptor d{};
    char text[512] = "";
    // CUTLASS's for M = 128, N = 64 (golden table idesc_nvfp4), and with other scales.
    IS(s, read(0x08100480, "mxf4nvf4", 16, 0, &d, text, sizeof text), 0);
    IS(s, d.m, 128);
    IS(s, d.n, 64);
    IS(s, std::string(d.a) + d.b + d.d + d.scale == "e2m1e2m1f32ue4m3", 1);
    IS(s, d.negate_a || d.negate_b || d.transpose_a || d.transpose_b, 0);
    IS(s, read(0x089004a0, "mxf4", 32, 0, &d, text, sizeof text), 0);
    IS(s, std::string(d.scale) == "ue8m0", 1);
    IS(s, d.scale_b_id, 2);
    IS(s, read(0x08100480 | 1, "mxf4nvf4", 16, 0, &d, text, sizeof text), -1);
    IS(s, strstr(text, "bits") != nullptr, 1);
    IS(s, read(0x08100480, "mxf5", 16, 0, &d, text, sizeof text), -1);
  });
}
