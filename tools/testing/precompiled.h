// SPDX-License-Identifier: MIT
// What every test includes, compiled once: Catch2 takes a second in each file. Nothing of ours but
// catch.h, so that a change of a header compiles the tests that include it and no others.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/testing/catch.h"

#define INSTANCE(...) extern template class __VA_ARGS__;
#include "tools/testing/instances.def"
