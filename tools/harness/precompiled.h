// SPDX-License-Identifier: MIT
// What the command line, bench/ and the probes include of the standard library, compiled once: it is
// half of what one of their files takes. Nothing of ours, so that a change of a header compiles what
// includes it and nothing else.
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
