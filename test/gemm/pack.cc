// SPDX-License-Identifier: MIT
// Weights are packed and unpacked on the device to the bytes of the host functions: every tail of N
// and K, batches, slices of rows, either layout of scales. Nothing else is written.
#include <array>
#include <cstring>

#include "test/gemm/gpu.h"

namespace {

using support::DeviceBuffer;
using support::Random;

constexpr uint8_t kBefore = 0xA5;

struct Call {
  int64_t n, k, l = 1;
  int32_t format = NVFP4_OPERAND_FORMAT_NVFP4, layout = NVFP4_SCALE_LAYOUT_128X4;
  int64_t first_row = 0, rows = 0;  // those of the call; 0: all
  int32_t packing = NVFP4_PACKING_SM90_1;

  int64_t count() const { return rows > 0 ? rows : n - first_row; }
  int64_t ld() const { return (k + 31) / 32 * 32 + 32; }
  int64_t codes_stride() const { return (count() * ld() + 63) / 32 * 32; }
  int64_t scales_stride() const {
    return int64_t(nvfp4_scale_bytes_for(count(), k, layout, format) + 47) / 16 * 16;
  }
  int64_t packed_stride() const {
    const int64_t one = int64_t(nvfp4_packed_bytes(1, support::block_of(format), packing, format));
    return int64_t(nvfp4_packed_bytes(n, k, packing, format)) + (l > 1 ? one : 0);
  }
};

nvfp4_pack_desc desc_of(const Call& c, void* codes, void* scales, void* packed) {
  nvfp4_pack_desc d = NVFP4_PACK_DESC_INIT;
  d.n = c.n, d.k = c.k, d.l = c.l, d.first_row = c.first_row, d.rows = c.rows;
  d.codes = codes, d.codes_ld = c.ld(), d.codes_batch_stride = c.codes_stride();
  d.scales = scales, d.scales_batch_stride_bytes = c.scales_stride();
  d.packed = packed, d.packed_batch_stride_bytes = c.packed_stride();
  d.packing = c.packing, d.format = c.format, d.scale_layout = c.layout;
  return d;
}

struct Arrays {
  std::vector<uint8_t> codes, scales, packed;
  explicit Arrays(const Call& c)
      : codes(size_t(c.l * c.codes_stride() / 2), kBefore),
        scales(size_t(c.l * c.scales_stride()), kBefore),
        packed(size_t(c.l * c.packed_stride()), kBefore) {}
  nvfp4_pack_desc desc(const Call& c) {
    return desc_of(c, codes.data(), scales.data(), packed.data());
  }
};

void fill(std::vector<uint8_t>& bytes, uint64_t seed) {
  Random random(seed);
  for (uint8_t& byte : bytes) byte = uint8_t(random.below(256));
}

using OnDevice = nvfp4_status (*)(const nvfp4_pack_desc*, void*);
using OnHost = nvfp4_status (*)(const nvfp4_pack_desc*);

Arrays on_device(const Gpu& gpu, const Call& call, const Arrays& before, OnDevice function) {
  const DeviceBuffer codes(gpu.driver, before.codes), scales(gpu.driver, before.scales),
      packed(gpu.driver, before.packed);
  const nvfp4_pack_desc d = desc_of(call, codes.pointer(), scales.pointer(), packed.pointer());
  const nvfp4_status status = function(&d, nullptr);
  INFO(nvfp4_last_error());
  REQUIRE(status == NVFP4_SUCCESS);
  gpu.driver.check(gpu.driver.cuCtxSynchronize(), "cuCtxSynchronize");
  Arrays after(call);
  after.codes = codes.download(), after.scales = scales.download(),
  after.packed = packed.download();
  for (const DeviceBuffer* b : {&codes, &scales, &packed}) REQUIRE(b->guards_intact());
  return after;
}

// The host function clears padding of scales, the kernel leaves it.
void leave_padding(const Call& call, Arrays& host, const Arrays& before) {
  if (call.layout != NVFP4_SCALE_LAYOUT_128X4) return;
  const int64_t scales = call.k / support::block_of(call.format);
  const std::vector<uint8_t> ones(size_t(call.count() * scales), 1);
  std::vector<uint8_t> used(nvfp4_scale_bytes_for(call.count(), call.k, call.layout, call.format));
  REQUIRE(nvfp4_scale_convert_host(ones.data(), NVFP4_SCALE_LAYOUT_LINEAR, used.data(), call.layout,
                                   call.count(), scales * 16) == NVFP4_SUCCESS);
  for (int64_t batch = 0; batch < call.l; ++batch)
    for (size_t i = 0; i < used.size(); ++i) {
      const size_t at = size_t(batch * call.scales_stride()) + i;
      if (used[i] == 0) host.scales[at] = before.scales[at];
    }
}

void require_host_bytes(const Gpu& gpu, const Call& call, OnDevice function, OnHost twin) {
  CAPTURE(call.n, call.k, call.l, call.format, call.layout, call.first_row, call.rows);
  Arrays before(call);
  const bool packs = twin == nvfp4_pack_weights_host;
  if (packs) {
    fill(before.codes, 1), fill(before.scales, 2);
  } else {
    Arrays source(call);
    fill(source.codes, 3), fill(source.scales, 4);
    const nvfp4_pack_desc d = source.desc(call);
    REQUIRE(nvfp4_pack_weights_host(&d) == NVFP4_SUCCESS);
    before.packed = source.packed;
  }
  Arrays want = before;
  const nvfp4_pack_desc d = want.desc(call);
  REQUIRE(twin(&d) == NVFP4_SUCCESS);
  if (!packs) leave_padding(call, want, before);
  const Arrays got = on_device(gpu, call, before, function);
  REQUIRE(got.packed == want.packed);
  REQUIRE(got.codes == want.codes);
  REQUIRE(got.scales == want.scales);
}

void require_both(const Gpu& gpu, const Call& call) {
  require_host_bytes(gpu, call, nvfp4_pack_weights, nvfp4_pack_weights_host);
  require_host_bytes(gpu, call, nvfp4_unpack_weights, nvfp4_unpack_weights_host);
}

}  // namespace

TEST_CASE("weights with every tail of N and K are packed as on the host", "[pack]") {
  const Gpu gpu;
  for (const support::ScaledFormat& format : support::kScaledFormats)
    for (int64_t k = format.block; k <= 128 + format.block; k += format.block)
      for (const int64_t n : {1, 9, 16, 63, 65, 130})
        require_both(
            gpu, {n, k, 1, format.format,
                  (n + k / 16) % 2 == 0 ? NVFP4_SCALE_LAYOUT_128X4 : NVFP4_SCALE_LAYOUT_LINEAR});
}

TEST_CASE("several matrices are packed in one call", "[pack]") {
  const Gpu gpu;
  for (const int32_t layout : {NVFP4_SCALE_LAYOUT_128X4, NVFP4_SCALE_LAYOUT_LINEAR})
    for (const int32_t format : {NVFP4_OPERAND_FORMAT_NVFP4, NVFP4_OPERAND_FORMAT_MXFP4})
      require_both(gpu, {150, 224, 3, format, layout});
}

TEST_CASE("slices of rows are packed and unpacked as on the host", "[pack]") {
  const Gpu gpu;
  for (const int32_t layout : {NVFP4_SCALE_LAYOUT_128X4, NVFP4_SCALE_LAYOUT_LINEAR})
    for (const auto& [first, rows] : {std::pair{0, 64}, {64, 128}, {192, 0}, {128, 85}})
      require_both(gpu, {213, 96, 2, NVFP4_OPERAND_FORMAT_NVFP4, layout, first, rows});
}

TEST_CASE("a grid of packing walks on where there are more units than CTAs", "[pack]") {
  const Gpu gpu;
  const int64_t units = gpu.info.sms * 24 + 5;
  require_both(gpu, {64, units * 64, 1, NVFP4_OPERAND_FORMAT_MXFP4});
  require_both(gpu, {1, 16, units, NVFP4_OPERAND_FORMAT_NVFP4, NVFP4_SCALE_LAYOUT_LINEAR});
}

TEST_CASE("the order of 10.x has every tail of N and K and slices as on the host",
          "[pack]") {
  const Gpu gpu;
  constexpr int32_t kPacking = NVFP4_PACKING_SM100_1;
  for (const support::ScaledFormat& format : support::kScaledFormats) {
    for (int64_t k = format.block; k <= 256 + format.block; k += format.block) {
      const int64_t n = std::array{1, 31, 127, 129, 200}[size_t(k / 16 % 5)];
      const int32_t layout = k / 16 % 2 == 0 ? NVFP4_SCALE_LAYOUT_128X4 : NVFP4_SCALE_LAYOUT_LINEAR;
      require_both(gpu, {n, k, 1, format.format, layout, 0, 0, kPacking});
    }
  }
  for (const int32_t layout : {NVFP4_SCALE_LAYOUT_128X4, NVFP4_SCALE_LAYOUT_LINEAR}) {
    require_both(gpu, {150, 352, 3, NVFP4_OPERAND_FORMAT_MXFP4, layout, 0, 0, kPacking});
    for (const auto& [first, rows] : {std::pair{0, 128}, {128, 128}, {256, 0}, {128, 172}})
      require_both(gpu, {300, 336, 2, NVFP4_OPERAND_FORMAT_NVFP4, layout, first, rows, kPacking});
  }
  const int64_t units = gpu.info.sms * 24 + 5;
  require_both(
      gpu, {1, 16, units, NVFP4_OPERAND_FORMAT_NVFP4, NVFP4_SCALE_LAYOUT_LINEAR, 0, 0, kPacking});
}

TEST_CASE("packing is captured into a graph and may be repeated into the same memory", "[pack]") {
  const Gpu gpu;
  const Call call{70, 80};
  Arrays source(call);
  fill(source.codes, 5), fill(source.scales, 6);
  const DeviceBuffer codes(gpu.driver, source.codes), scales(gpu.driver, source.scales);
  const DeviceBuffer packed(gpu.driver, source.packed);
  const nvfp4_pack_desc d = desc_of(call, codes.pointer(), scales.pointer(), packed.pointer());
  REQUIRE(nvfp4_prepare() == NVFP4_SUCCESS);
  CUstream stream;
  CUgraph graph;
  CUgraphExec executable;
  const support::Driver& driver = gpu.driver;
  driver.check(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  driver.check(driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), "begin");
  REQUIRE(nvfp4_pack_weights(&d, stream) == NVFP4_SUCCESS);
  driver.check(driver.cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
  size_t nodes = 0;
  driver.check(driver.cuGraphGetNodes(graph, nullptr, &nodes), "cuGraphGetNodes");
  CHECK(nodes == 1);
  driver.check(driver.cuGraphInstantiateWithFlags(&executable, graph, 0),
               "cuGraphInstantiateWithFlags");
  const nvfp4_pack_desc host = source.desc(call);
  REQUIRE(nvfp4_pack_weights_host(&host) == NVFP4_SUCCESS);
  for (int replay = 0; replay < 2; ++replay) {
    driver.check(driver.cuGraphLaunch(executable, stream), "cuGraphLaunch");
    driver.check(driver.cuStreamSynchronize(stream), "cuStreamSynchronize");
    CHECK(packed.download() == source.packed);
  }
  driver.check(driver.cuGraphExecDestroy(executable), "cuGraphExecDestroy");
  driver.check(driver.cuGraphDestroy(graph), "cuGraphDestroy");
  driver.check(driver.cuStreamDestroy(stream), "cuStreamDestroy");
}
