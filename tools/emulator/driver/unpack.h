// SPDX-License-Identifier: MIT
// The two ways in which fatbinary packs an image.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace emu::driver {

// What `packed` unpacks to, if that is `bytes` long; nothing if it is not, or if `packed` is
// damaged.
std::optional<std::string> unpack_lz4(std::string_view packed, size_t bytes);

// The same by the system's libzstd.so.1; nothing where there is none.
std::optional<std::string> unpack_zstd(std::string_view packed, size_t bytes);
bool zstd_is_here();

}  // namespace emu::driver
