// SPDX-License-Identifier: MIT
// See fat_binary.h.
#include "tools/emulator/driver/fat_binary.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "tools/emulator/driver/unpack.h"
#include "tools/emulator/ptx/target.h"

namespace emu::driver {

namespace {

constexpr uint32_t container_magic = 0xBA55ED50, wrapper_magic = 0x466243B1;

struct Wrapper {
  uint32_t magic, version;
  const void* container;
};

struct Container {
  uint32_t magic;
  uint16_t version, head_bytes;
  uint64_t bytes;  // of all entries
};

struct Entry {
  uint16_t kind, version;
  uint32_t head_bytes;
  uint64_t stored_bytes;  // a multiple of 8
  uint32_t packed_bytes, options_at;
  uint16_t isa_minor, isa_major;
  uint32_t arch;
  uint64_t name;
  uint64_t flags;
  uint64_t reserved;
  uint64_t bytes;  // unpacked; 0 where the payload is not packed
};
static_assert(sizeof(Entry) == 64);

constexpr uint16_t kind_ptx = 1;
constexpr uint64_t packed_by_lz4 = 0x2000, packed_by_zstd = 0x8000;
constexpr uint64_t most_bytes = uint64_t{1} << 30;  // of a PTX text; more is a damaged header

uint32_t magic_of(const void* image) {
  const auto* bytes = static_cast<const uint8_t*>(image);
  uint32_t magic = 0;
  // Byte by byte: a shorter image ends where it differs.
  for (int i = 0; i < 4; ++i) {
    magic |= uint32_t(bytes[i]) << 8 * i;
    const uint32_t seen = (uint64_t{1} << (8 * i + 8)) - 1;
    if (magic != (container_magic & seen) && magic != (wrapper_magic & seen)) return 0;
  }
  return magic;
}

// The word after ".target", which starts a line of its own.
std::string_view target_of(std::string_view text) {
  const size_t at = text.find(".target");
  if (at == text.npos) return {};
  const size_t from = text.find_first_not_of(" \t", at + 7);
  if (from == text.npos) return {};
  return text.substr(from, text.find_first_of(" \t\r\n,/", from) - from);
}

std::optional<std::string> unpack(const Entry& entry, std::string_view payload) {
  if (entry.bytes > most_bytes || entry.packed_bytes > payload.size()) return std::nullopt;
  const std::string_view packed = payload.substr(0, entry.packed_bytes);
  if (entry.flags & packed_by_lz4) return unpack_lz4(packed, entry.bytes);
  if (entry.flags & packed_by_zstd) return unpack_zstd(packed, entry.bytes);
  return std::string(payload);
}

class Reader {
 public:
  Reader(std::string_view entries, int compute_capability)
      : left_(entries), compute_capability_(compute_capability) {}

  FatPtx read() {
    while (!left_.empty()) {
      Entry entry;
      if (left_.size() < sizeof entry) return damaged("an entry's head is cut short");
      memcpy(&entry, left_.data(), sizeof entry);
      if (entry.head_bytes < sizeof entry || entry.head_bytes > left_.size() ||
          entry.stored_bytes > left_.size() - entry.head_bytes)
        return damaged("an entry is longer than the container");
      if (entry.kind == kind_ptx && !consider(entry)) return damaged("PTX does not unpack");
      left_.remove_prefix(entry.head_bytes + entry.stored_bytes);
    }
    return std::move(best_);
  }

 private:
  bool consider(const Entry& entry) {
    if ((entry.flags & packed_by_zstd) && !zstd_is_here()) {
      best_.complaint =
          "its PTX is packed by zstd and there is no libzstd.so.1; fatbinary's "
          "--compress-mode=speed packs by LZ4";
      return true;
    }
    std::optional<std::string> text =
        unpack(entry, left_.substr(entry.head_bytes, entry.stored_bytes));
    if (!text) return false;
    text->resize(strnlen(text->data(), text->size()));
    ptx::Target target;
    if (!ptx::find_target(target_of(*text), target) || !target.runs_on(compute_capability_) ||
        target.number < number_)
      return true;
    number_ = target.number;
    best_.verdict = FatPtx::Verdict::found;
    best_.text = std::move(*text);
    return true;
  }
  static FatPtx damaged(const char* how) {
    return {FatPtx::Verdict::damaged, {}, std::string("a fat binary is damaged: ") + how};
  }

  std::string_view left_;
  int compute_capability_;
  int number_ = 0;
  FatPtx best_;
};

}  // namespace

bool is_fat_binary(const void* image) { return magic_of(image) != 0; }

FatPtx ptx_of_fat_binary(const void* image, int compute_capability) {
  if (magic_of(image) == wrapper_magic) {
    Wrapper wrapper;
    memcpy(&wrapper, image, sizeof wrapper);
    image = wrapper.container;
  }
  Container container;
  memcpy(&container, image, sizeof container);
  const char* const entries = static_cast<const char*>(image) + container.head_bytes;
  return Reader({entries, container.bytes}, compute_capability).read();
}

}  // namespace emu::driver
