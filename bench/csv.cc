// SPDX-License-Identifier: MIT
#include "bench/csv.h"

#include <cstdio>
#include <utility>
#include <vector>

namespace bench {
namespace {

using Cells = std::vector<std::pair<const char*, std::string>>;

std::string us(double value) { return figure(value, "%.3f"); }

// How many times faster ours is.
std::string ratio(double other, double ours) {
  return other > 0 && ours > 0 ? us(other / ours) : "";
}

Cells cells(const support::Shape& s, const Ours& o, const Others& other, const Rates& rates,
            double node_us) {
  const double floor = roofline_us(s, rates, o.a_bytes);
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
      {"roofline_node_us", us(floor > 0 ? floor + node_us : 0)},
      {"fp16_us", us(other.f16.first_us)},
      {"fp16_best_us", us(other.f16.best_us)},
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
  };
}

}  // namespace

std::string figure(double value, const char* format) {
  char text[48] = "";
  if (value > 0) std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string csv_columns() {
  std::string line;
  for (const auto& [name, value] : cells({}, {}, {}, {}, 0))
    line += (line.empty() ? "" : ",") + std::string(name);
  return line;
}

std::string csv_row(const support::Shape& shape, const Ours& ours, const Others& others,
                    const Rates& measured, double node_us) {
  std::string line;
  for (const auto& [name, value] : cells(shape, ours, others, measured, node_us))
    line += (line.empty() ? "" : ",") + value;
  return line;
}

}  // namespace bench
