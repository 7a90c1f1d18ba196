// SPDX-License-Identifier: MIT
// build/model: times of kernels on a B200 from parameters.def, and what they are worth
// (docs/model.md).
#include <algorithm>
#include <cstdio>
#include <string>

#include "tools/model/forecast.h"
#include "tools/model/hopper.h"

namespace {

using namespace model;

double percent(const Comparison& c) { return 100 * (c.ratio() - 1); }

// Rows further off than `limit` percent are marked.
void print(const std::string& title, const std::vector<Comparison>& rows, double limit,
           const char* mark) {
  size_t off = 0;
  std::printf("# %s: measured, model, difference\n", title.c_str());
  for (const Comparison& row : rows) {
    const bool beyond = percent(row) > limit || percent(row) < -limit;
    off += beyond;
    std::printf("%-52s %10.3f %10.3f %+6.1f %%%s\n", row.what.c_str(), row.measured, row.predicted,
                percent(row), beyond ? mark : "");
  }
  std::printf("# %zu of %zu rows within %.0f %%\n\n", rows.size() - off, rows.size(), limit);
}

void print_parameters() {
  std::printf("# parameter, unit, B200, H200, source\n");
  for (const Parameter& p : kParameters)
    std::printf("%-16s %-8s %10g %10g  %s\n", p.name, p.unit, kB200.*p.field, kH200.*p.field,
                p.source);
}

void print_order(const std::vector<Comparison>& kernels) {
  int wrong = 0;
  for (const Comparison& a : kernels)
    for (const Comparison& b : kernels)
      if (a.what.find("bf16") != std::string::npos && b.what.find("bf16") != std::string::npos &&
          a.measured > 1.1 * b.measured && a.predicted <= b.predicted)
        ++wrong;
  std::printf(
      "# kernels of the ladder that differ by 10 %% or more: %d pairs in the wrong order%s\n\n",
      wrong, wrong ? "  MISSING" : "");
}

void print_spans(const std::string& file, const std::string& gpu) {
  const std::vector<Comparison> spans = measured_spans(kH200, file);
  print("H200, us of " + file, spans, 20, "  beyond 20 %");
  const Errors errors = errors_of(spans);
  std::printf(
      "# median error %.1f %% (10 wanted)%s, within 20 %%: %.1f %% (95 wanted)%s, bias %+.1f %%\n",
      100 * errors.median, errors.median > 0.1 ? "  MISSING" : "", 100 * errors.within_20,
      errors.within_20 < 0.95 ? "  MISSING" : "", 100 * errors.bias);
  for (const bool programmatic : {false, true})
    print("H200, graph of launches, us of " + gpu,
          measured_launches(kH200, gpu, file, programmatic), 20, "  beyond 20 %");
}

// A time of 1 stands for so much.
Band of_one(const Band& band) { return {1 / band.high, 1 / band.low}; }

// What is shorter than 20 us is judged by what is shorter, whose error has one side.
struct Bands {
  Band long_ones = of_one(band_of(public_kernels(kB200)));
  Band short_ones = of_one(band_of(short_launches(kB200)));
  const Band& of(double us) const { return us < 20 ? short_ones : long_ones; }
};

void print_head(const Bands& bands) {
  std::printf(
      "# The sm_100a kernel as it is, on a B200, by the model: first CTA's start to last store.\n"
      "# No B200 has run it. band: by public kernels a time of 1 stands for %.2f to %.2f, and\n"
      "# below 20 us, by loops of launches, for %.2f to %.2f.\n"
      "# us: fp16 of alpha times the sum; bf16_us: with bias and factors; formula_us: as before\n"
      "# the machine code of a tile's end was read.\n"
      "# programmatic_us: from one end to the next of launches back to back with static weights.\n"
      "m,n,k,kernel,us,low_us,high_us,light_us,binds,clock_ghz,tflops,programmatic_us,bf16_us,"
      "formula_us",
      bands.long_ones.low, bands.long_ones.high, bands.short_ones.low, bands.short_ones.high);
  for (const Way& way : ways()) std::printf(",%s", way.name.c_str());
  std::printf("\n");
}

void print_forecasts() {
  const Bands bands;
  print_head(bands);
  for (const Shape& s : forecast_shapes()) {
    const Forecast f = forecast(kB200, s);
    const Band& band = bands.of(f.best_us);
    char programmatic[32] = "-";
    if (f.programmatic_us > 0)
      std::snprintf(programmatic, sizeof programmatic, "%.2f", f.programmatic_us);
    std::printf("%lld,%lld,%lld,%s,%.2f,%.2f,%.2f,%.2f,%s,%.2f,%.0f,%s,%.2f,%.2f",
                static_cast<long long>(s.m), static_cast<long long>(s.n),
                static_cast<long long>(s.k), f.kernel.c_str(), f.best_us, f.best_us * band.low,
                f.best_us * band.high, f.light_us, f.binds.c_str(), f.clock,
                2e-6 * double(s.m) * double(s.n) * double(s.k) / f.best_us, programmatic,
                f.engine_us, f.formula_us);
    for (const double us : f.us)
      if (us > 0)
        std::printf(",%.2f", us);
      else
        std::printf(",-");
    std::printf("\n");
    std::fflush(stdout);
  }
}

// Kernel alone, and from end to end of programmatic launches.
void print_steps() {
  const Shape shapes[] = {{128, 7168, 16384}, {128, 4096, 7168}, {128, 7168, 2048}};
  std::printf("# us on a B200 by the model: alone, and programmatic launches back to back\n");
  std::printf("%-28s %6s  %17s  %17s  %17s\n", "", "stages", "7168 x 16384", "4096 x 7168",
              "7168 x 2048");
  for (const Step& step : steps(kB200)) {
    std::printf("%-28s %6d", step.kernel.name.c_str(), step.kernel.stages);
    for (const Shape& shape : shapes)
      std::printf("  %8.2f %8.2f", simulate(kB200, step.kernel, shape).us,
                  simulate(kB200, step.kernel, shape, {6, true, step.grids}).interval_us);
    std::printf("\n");
  }
}

// Tiles of 64 and 128 tokens, whole and cut along K, where at least two parts of one kind run at
// once.
void print_cuts() {
  std::printf(
      "# us on a B200 by the model, kernel alone; parts of K in a cluster; +: two loads ahead\n");
  std::printf("m,n,k");
  for (const Cut& cut : cuts())
    std::printf(",%d/%d%s", cut.tokens, cut.parts, cut.ahead ? "+" : "");
  std::printf("\n");
  for (const Shape& s : forecast_shapes()) {
    if (2 * cut_kernel(kB200, cuts()[3], s).tiles(s) > 148) continue;
    std::printf("%lld,%lld,%lld", static_cast<long long>(s.m), static_cast<long long>(s.n),
                static_cast<long long>(s.k));
    for (const Cut& cut : cuts())
      std::printf(",%.2f", simulate(kB200, cut_kernel(kB200, cut, s), s).us);
    std::printf("\n");
  }
}

// 256x256 as it is, with accumulators that overlap, and as NVFP4_MMA_BEFORE_CP=0 compiles it, with
// one.
void print_overlap() {
  std::printf("# us on a B200 by the model, D in bf16: as it is, and with one accumulator\n");
  std::printf("%6s %-14s %9s %5s  %9s %5s\n", "size", "", "us", "PF", "one", "PF");
  for (const int64_t size : {4096, 8192, 16384}) {
    const Shape shape{size, size, size};
    const double operations = 2e-9 * double(size) * double(size) * double(size);
    for (Kernel kernel : sm100_kernels(kB200, Tail::kEngine, size)) {
      if (kernel.shared_part == 0) continue;
      const double us = simulate(kB200, kernel, shape).us;
      kernel.accumulators = 1;
      kernel.shared_part = 0;
      const double one = simulate(kB200, kernel, shape).us;
      std::printf("%6d %-14s %9.2f %5.2f  %9.2f %5.2f\n", int(size), kernel.name.c_str(), us,
                  operations / us, one, operations / one);
    }
  }
}

// Masked products of others; then the layers of bench/experts.def.
void print_grouped() {
  std::printf("# us on a B200 by the model, grouped products, beside published times of others\n");
  std::printf(
      "# us: by ends as by counts; linear_us: beside it, if the tokens' scales are linear\n");
  std::printf("groups,most_rows,n,k,entry,us,linear_us,ctas,reading_us,published_us,each\n");
  const auto print_row = [](const Groups& g) {
    const GroupedForecast f = grouped_forecast(kB200, g);
    std::printf("%d,%d,%d,%d,%s,%.1f,%.1f,%lld,%.1f", int(g.rows.size()),
                int(*std::max_element(g.rows.begin(), g.rows.end())), int(g.n), int(g.k),
                f.kernel.c_str(), f.us, f.linear_us, static_cast<long long>(f.ctas), f.reading_us);
    std::printf(g.published_us > 0 ? ",%.1f" : ",-", g.published_us);
    for (const auto& [name, us] : f.each) std::printf(",%.1f", us);
    std::printf("\n");
    std::fflush(stdout);
  };
  for (const Groups& g : published_groups()) print_row(g);
  for (const Layer& layer : expert_layers()) {
    std::printf("# %s\n", layer.name.c_str());
    for (const int64_t rows : {4, 32, 128})
      print_row(even_groups(layer.experts, rows, layer.n, layer.k, 0));
  }
}

void print_gated() {
  std::printf(
      "# us on a B200 by the model, gated products of n columns, and one product of 2 n rows\n");
  std::printf("m,n,k,entry,us,product_us\n");
  const Shape shapes[] = {{16, 14336, 4096},  {128, 14336, 4096}, {16, 28672, 8192},
                          {128, 28672, 8192}, {256, 28672, 8192}, {2048, 14336, 4096}};
  for (const Shape& s : shapes) {
    const GatedForecast f = gated_forecast(kB200, s);
    std::printf("%d,%d,%d,%s,%.2f,%.2f\n", int(s.m), int(s.n), int(s.k), f.kernel.c_str(), f.us,
                f.product_us);
  }
}

void print_packed() {
  std::printf("# us on a B200 by the model, D in bf16 with a bias: weights as given and packed,\n");
  std::printf("# alone, and from one end to the next of programmatic launches, static weights\n");
  std::printf("m,n,k,kernel,us,interval_us,packed_kernel,packed_us,packed_interval_us\n");
  const Shape shapes[] = {{128, 7168, 16384}, {128, 4096, 7168}, {128, 7168, 2048},
                          {16, 7168, 16384},  {16, 4096, 7168},  {16, 7168, 2048},
                          {1, 7168, 16384},   {1, 4096, 7168},   {1, 7168, 2048},
                          {1024, 7168, 2048}, {4096, 4096, 4096}};
  for (const Shape& s : shapes) {
    const PackedForecast f = packed_forecast(kB200, s);
    std::printf("%d,%d,%d", int(s.m), int(s.n), int(s.k));
    for (const bool packed : {false, true})
      std::printf(",%s,%.2f,%.2f", f.kernel[packed].c_str(), f.us[packed], f.interval_us[packed]);
    std::printf("\n");
    std::fflush(stdout);
  }
}

// Least times of every kind of epilogue, and those of each way.
void print_kinds() {
  std::printf("# us on a B200 by the model, by kind of epilogue\nm,n,k,kind,kernel,us");
  for (const Way& way : ways()) std::printf(",%s", way.name.c_str());
  std::printf("\n");
  const std::pair<const char*, Tail> kinds[] = {{"fast", Tail::kEngine},
                                                {"scaled", Tail::kScaled},
                                                {"C", Tail::kC},
                                                {"row maxima", Tail::kRowMaxima},
                                                {"SiLU", Tail::kSilu}};
  for (const Shape& s : forecast_shapes()) {
    for (const auto& [name, tail] : kinds) {
      const KindForecast f = kind_forecast(kB200, s, tail);
      std::printf("%d,%d,%d,%s,%s,%.2f", int(s.m), int(s.n), int(s.k), name, f.kernel.c_str(),
                  f.best_us);
      for (const double us : f.us)
        if (us > 0)
          std::printf(",%.2f", us);
        else
          std::printf(",-");
      std::printf("\n");
      std::fflush(stdout);
    }
  }
}

// Large squares, D in bf16, beside the best published time. held_us: the forecast, longer
// by as much as the model is too short for that published kernel.
void print_squares() {
  std::printf("# us on a B200 by the model, D in bf16, and the best published\n");
  std::printf("size,kernel,us,low_us,high_us,pf,held_us,held_pf,published_us,published_pf,whose\n");
  const Bands bands;
  for (const Square& square : public_squares()) {
    const double size = double(square.size), operations = 2e-9 * size * size * size;
    const KindForecast f =
        kind_forecast(kB200, {square.size, square.size, square.size}, Tail::kEngine);
    const Band& band = bands.of(f.best_us);
    const double held = f.best_us * square.published_us / square_us(kB200, square.size);
    std::printf("%d,%s,%.2f,%.2f,%.2f,%.2f,%.2f,%.2f,%.2f,%.2f,%s\n", int(square.size),
                f.kernel.c_str(), f.best_us, f.best_us * band.low, f.best_us * band.high,
                operations / f.best_us, held, operations / held, square.published_us,
                operations / square.published_us, square.whose.c_str());
  }
}

}  // namespace

int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  if (what == "parameters") {
    print_parameters();
  } else if (what == "micro") {
    print("public micro-benchmarks, B200", micro_benchmarks(kB200), 5, "  MISSING");
  } else if (what == "public") {
    const std::vector<Comparison> kernels = public_kernels(kB200);
    print("public kernels, B200", kernels, 20, "  MISSING");
    print_order(kernels);
    print("public kernels below 20 us, B200", short_launches(kB200), 20, "  beyond 20 %");
  } else if (what == "h200" && count > 3) {
    print_spans(arguments[2], arguments[3]);
  } else if (what == "steps") {
    print_steps();
  } else if (what == "cuts") {
    print_cuts();
  } else if (what == "overlap") {
    print_overlap();
  } else if (what == "grouped") {
    print_grouped();
  } else if (what == "gated") {
    print_gated();
  } else if (what == "packed") {
    print_packed();
  } else if (what == "kinds") {
    print_kinds();
  } else if (what == "squares") {
    print_squares();
  } else if (what == "shapes") {
    print_forecasts();
  } else {
    std::fprintf(stderr,
                 "model parameters | micro | public | h200 CLOCKS.csv GPU.csv | steps | cuts | "
                 "overlap | grouped | gated | packed | kinds | squares | shapes\n");
    return 2;
  }
  return 0;
}
