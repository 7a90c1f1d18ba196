// SPDX-License-Identifier: MIT
// One LZ4 block, by lz4's doc/lz4_Block_format.md: a row of sequences, each a token, literals, and
// a match, which repeats bytes of the output. The last sequence ends after its literals.
#include "tools/emulator/driver/unpack.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace emu::driver {

namespace {

constexpr size_t shortest_match = 4;

class Unpacker {
 public:
  Unpacker(std::string_view packed, size_t bytes) : in_(packed), bytes_(bytes) {
    out_.reserve(bytes);
  }

  bool unpack() {
    while (at_ < in_.size()) {
      const unsigned token = byte();
      if (!literals(token >> 4)) return false;
      if (at_ == in_.size()) break;
      if (!match(token & 15)) return false;
    }
    return out_.size() == bytes_;
  }
  std::string take() { return std::move(out_); }

 private:
  size_t left() const { return in_.size() - at_; }
  size_t room() const { return bytes_ - out_.size(); }
  unsigned byte() { return uint8_t(in_[at_++]); }

  // Fifteen in the token: bytes follow, the last of which is not 255.
  bool length(unsigned in_token, size_t& length) {
    length = in_token;
    if (in_token < 15) return true;
    while (left() > 0) {
      const unsigned more = byte();
      length += more;
      if (more < 255) return true;
    }
    return false;
  }
  bool literals(unsigned in_token) {
    size_t n = 0;
    if (!length(in_token, n) || n > left() || n > room()) return false;
    out_.append(in_.substr(at_, n));
    at_ += n;
    return true;
  }
  bool match(unsigned in_token) {
    if (left() < 2) return false;
    const size_t low = byte(), back = low | byte() << 8;
    size_t n = 0;
    if (back == 0 || back > out_.size() || !length(in_token, n)) return false;
    n += shortest_match;
    if (n > room()) return false;
    // A match may overlap its own output. So it is copied in pieces that double, each a whole
    // number of repetitions except the last.
    for (const size_t from = out_.size() - back; n > 0;) {
      const size_t piece = std::min(n, out_.size() - from);
      out_.append(out_, from, piece);
      n -= piece;
    }
    return true;
  }

  std::string_view in_;
  size_t bytes_, at_ = 0;
  std::string out_;
};

}  // namespace

std::optional<std::string> unpack_lz4(std::string_view packed, size_t bytes) {
  Unpacker unpacker(packed, bytes);
  if (!unpacker.unpack()) return std::nullopt;
  return unpacker.take();
}

}  // namespace emu::driver
