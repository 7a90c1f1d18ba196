// SPDX-License-Identifier: MIT
// Headers of the standard library for the command line, bench/ and the probes, compiled once: they
// are half of what one of their files takes. None of ours is here, so a changed header compiles
// only what includes it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
