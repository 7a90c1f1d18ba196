// SPDX-License-Identifier: MIT
#include "bench/csv.h"

#include <cstdio>
#include <utility>
#include <vector>

namespace bench {
namespace {

std::string us(double value) { return figure(value, "%.3f"); }

// How many times faster ours is.
std::string ratio(double other, double ours) {
  return other > 0 && ours > 0 ? us(other / ours) : "";
}

}  // namespace

std::vector<std::pair<const char*, std::string>> csv_cells(const Row& row, const Yardstick& by) {
  const support::Shape& s = row.shape;
  const Ours& o = row.ours;
  const Others& other = row.others;
  const double floor = roofline_us(s, by.rates, o.a_bytes);
  const auto per_us = [&](double amount, double unit, const char* format) {
    return o.us > 0 ? figure(amount / o.us / unit, format) : "";
  };
  return {
      {"m", std::to_string(s.m)},
      {"n", std::to_string(s.n)},
      {"k", std::to_string(s.k)},
      {"variant", o.variant},
      {"us", us(o.us)},
      {"us_p10", us(o.p10)},
      {"us_p90", us(o.p90)},
      {"plain_us", us(o.plain_us)},
      {"host_us", us(o.host_us)},
      {"pdl_us", us(o.pdl_us)},
      {"tflops", per_us(operations(s), 1e6, "%.1f")},
      {"gb_per_s", per_us(compulsory_bytes(s, o.a_bytes), 1e3, "%.0f")},
      {"roofline_us", us(floor)},
      {"roofline_percent", per_us(100 * floor, 1, "%.1f")},
      {"roofline_node_us", us(floor > 0 ? floor + by.node_us : 0)},
      {"fp16_us", us(other.f16.first_us)},
      {"fp16_best_us", us(other.f16.best_us)},
      {"bf16_us", us(other.bf16.first_us)},
      {"bf16_best_us", us(other.bf16.best_us)},
      {"fp8_us", us(other.e4m3.first_us)},
      {"fp8_best_us", us(other.e4m3.best_us)},
      {"nvfp4_us", us(other.nvfp4.first_us)},
      {"nvfp4_best_us", us(other.nvfp4.best_us)},
      {"x_fp16", ratio(other.f16.first_us, o.us)},
      {"x_fp16_best", ratio(other.f16.best_us, o.us)},
      {"x_fp8", ratio(other.e4m3.first_us, o.us)},
      {"x_fp8_best", ratio(other.e4m3.best_us, o.us)},
      {"x_fp16_pdl", ratio(other.f16.first_us, o.pdl_us)},
      {"gpumode_us", us(o.gpumode_us)},
      {"bf16_bias_us", us(o.bf16_bias_us)},
      {"bf16_bias_ratio", ratio(o.bf16_bias_us, o.us)},
      {"silu_us", us(o.silu_us)},
      {"c_us", us(o.c_us)},
      {"w4a16_fp16_us", us(row.f16_tokens.us)},
      {"w4a16_fp16_pdl_us", us(row.f16_tokens.pdl_us)},
      {"w4a16_bf16_us", us(row.bf16_tokens.us)},
      {"w4a16_bf16_pdl_us", us(row.bf16_tokens.pdl_us)},
      {"w4a16_bf16_roofline_us", us(roofline_us(s, by.rates, kHalfBytes))},
      {"w4a16_bf16_x_best", ratio(other.bf16.best_us, row.bf16_tokens.us)},
      {"peer_us", us(row.peer_us)},
      {"peer_over_w4a16_bf16", ratio(row.peer_us, row.bf16_tokens.us)},
      {"sm_mhz", row.sm_mhz > 0 ? std::to_string(row.sm_mhz) : ""},
      {"slowed_by", row.slowed_by},
  };
}

std::string figure(double value, const char* format) {
  char text[48] = "";
  if (value > 0) std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string csv_columns() {
  std::string line;
  for (const auto& [name, value] : csv_cells({}, {}))
    line += (line.empty() ? "" : ",") + std::string(name);
  return line;
}

std::string csv_row(const Row& row, const Yardstick& by) {
  std::string line;
  bool first = true;
  for (const auto& [name, value] : csv_cells(row, by)) {
    line += (first ? "" : ",") + value;
    first = false;
  }
  return line;
}

}  // namespace bench
