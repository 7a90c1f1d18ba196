// SPDX-License-Identifier: MIT
// Fat binaries: which of their PTX a device gets, the two ways of packing, damage.
//
// The two containers are what fatbinary 13.0.88 makes of three files, for sm_80 with older0 and
// older1, for sm_90 with newer0 to newer2, and for sm_103a, with
//   --create=OUT -64 --compress-all --compress-mode=MODE --image3=kind=ptx,sm=80,file=... (and 90,
//   103a)
#include <cstdint>
#include <cstring>

#include "tools/emulator/driver/unpack.h"
#include "tools/emulator/test/support/driver_session.h"

using Bytes = std::vector<char>;

namespace {

const char* const by_lz4 =
    "50ed55ba010010007002000000000000010001015000000090000000000000008e00000040000000000008005000"
    "0000000000000000000011200000000000000000000000000000cf00000000000000480000000000000000000000"
    "00000000f35b2e76657273696f6e20382e300a2e74617267657420736d5f38300a2e616464726573735f73697a65"
    "2036340a2e76697369626c65202e656e747279206f6c64657230280a2e706172616d202e75363420700a290a7b0a"
    "2e726567202e6233322025723c343e3b0a6d6f760f00bf312c303b0a7265743b0a7d5100031f3151001eb0313b0a"
    "7265743b0a7d0a000000010001015000000098000000000000009800000040000000000008005a00000000000000"
    "0000000011200000000000000000000000000000200100000000000048000000000000000000000000000000f35b"
    "2e76657273696f6e20382e300a2e74617267657420736d5f39300a2e616464726573735f73697a652036340a2e76"
    "697369626c65202e656e747279206e6577657230280a2e706172616d202e75363420700a290a7b0a2e726567202e"
    "6233322025723c343e3b0a6d6f760f00bf312c303b0a7265743b0a7d5100031f3151001e1f3151000b1f3251001e"
    "b0323b0a7265743b0a7d0a0001000101500000005800000000000000520000004000000008000800670000000000"
    "00000000000011201000000000000000000000000000500000000000000048000000000000000000000000000000"
    "f0412e76657273696f6e20382e380a2e74617267657420736d5f313033610a2e616464726573735f73697a652036"
    "340a2e76697369626c65202e656e747279206f7468657228290a7b0a7265743b0a7d0a00000000000000";

const char* const by_zstd =
    "50ed55ba010010005002000000000000010001015000000080000000000000007c00000040000000000008005000"
    "0000000000000000000011800000000000000000000000000000cf00000000000000480000000000000000000000"
    "0000000028b52ffd20cf9d03008207191970cf0390869228b4ac791cfeffc6d29f3022555e547fc5fb01406bd7be"
    "eabf8f116d82e63ec5251f706130cd8d7fafb5c346ec0ea979c28751afc0dea30331f5f5f166771849e5d4eb0ef6"
    "4ad28552ff18612f439649b97af3b0f6b246f881247d9f3a0400a01021ba5450ae4a36cf00000000010001015000"
    "000088000000000000008300000040000000000008005a0000000000000000000000118000000000000000000000"
    "0000000020010000000000004800000000000000000000000000000028b52ffd602000cd0300a247191870790350"
    "a497b344a93b8fffbf778e925ebb37e1d25fa5d80084ef6d9b54ff4d1cf1ac29da6489ca070c8ba6f9f1efd57658"
    "8aa3513547f225d52bb8f7cb25c6be4adeec5033e9b47aa3c19e4dca50eaef38b2d7214c44b9faf3b2f6ba3e589a"
    "267db73a0600a010417440644224a8a05c956c9e0100000000000100010150000000580000000000000054000000"
    "40000000080008006700000000000000000000001180100000000000000000000000000050000000000000004800"
    "000000000000000000000000000028b52ffd20505d020002c5111790bb0140d91317636df4f0f6995947f8fc9451"
    "cc411f14004688fc36422804bdcbbb74fadb6a2e93b0f353348edc875db96f33b614573110aaf1fc557abd62d294"
    "cdb1f73e0d0000000000";

Bytes bytes_of(const char* hex) {
  Bytes bytes;
  for (; *hex; hex += 2) bytes.push_back(char(std::stoi(std::string(hex, 2), nullptr, 16)));
  return bytes;
}

void has(Session& s, CUlibrary library, const char* name, CUresult expected) {
  CUkernel kernel = nullptr;
  IS(s, s.cuLibraryGetKernel(&kernel, library, name), expected);
}

// The library has newer0 to newer2, and from the other files nothing.
void is_the_newer_one(Session& s, const void* image) {
  CUlibrary library = nullptr;
  OK(s, s.cuLibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0));
  for (const char* name : {"newer0", "newer1", "newer2"}) has(s, library, name, CUDA_SUCCESS);
  for (const char* name : {"older0", "other"}) has(s, library, name, CUDA_ERROR_NOT_FOUND);
  OK(s, s.cuLibraryUnload(library));
}

CUresult loaded(Session& s, const void* image) {
  CUmodule module = nullptr;
  const CUresult result = s.cuModuleLoadData(&module, image);
  if (result == CUDA_SUCCESS) s.cuModuleUnload(module);
  return result;
}

// A process for each flip: what is said of all refusals has to fit in a pipe.
void most_wrong_bytes_are_refused(const Bytes& good, int flip) {
  in_child([&](Session& s) {
    s.start();
    int refused = 0;
    // Not the container's length (bytes 8 to 15), which is all there is to tell where it ends.
    for (size_t i = 16; i < good.size(); ++i) {
      Bytes bad = good;
      bad[i] = char(bad[i] ^ flip);
      refused += loaded(s, bad.data()) != CUDA_SUCCESS;
    }
    IS(s, refused > 180, 1);
  });
}

}  // namespace

TEST_CASE("A device gets the PTX of the highest target that it runs however it is packed") {
  in_child([](Session& s) {
    s.start();
    const Bytes lz4 = bytes_of(by_lz4);
    is_the_newer_one(s, lz4.data());
    is_the_newer_one(s, bytes_of(by_zstd).data());
    // As nvcc embeds it: magic, version, pointer.
    struct {
      uint32_t magic = 0x466243B1, version = 1;
      const void* container;
      const void* unused = nullptr;
    } wrapper;
    wrapper.container = lz4.data();
    is_the_newer_one(s, &wrapper);
  });
}

TEST_CASE("A fat binary whose PTX does not run on the device is no binary for it") {
  // Only the entry for sm_103a: the container's head, then what follows the first two entries.
  const std::string said = in_child([](Session& s) {
    s.start();
    const Bytes all = bytes_of(by_lz4);
    uint64_t entry_bytes[2] = {}, bytes = 0;
    size_t at = 16;
    for (uint64_t& n : entry_bytes) {
      uint32_t head = 0;
      memcpy(&head, &all[at + 4], 4);
      memcpy(&n, &all[at + 8], 8);
      at += head + n;
    }
    Bytes last(all.begin(), all.begin() + 16);
    last.insert(last.end(), all.begin() + ptrdiff_t(at), all.end());
    bytes = last.size() - 16;
    memcpy(&last[8], &bytes, 8);
    IS(s, loaded(s, last.data()), CUDA_ERROR_NO_BINARY_FOR_GPU);
  });
  CHECK(said.find("a fat binary has no PTX that the emulated device runs") != said.npos);
}

TEST_CASE("A damaged fat binary is refused whichever byte it is that is wrong") {
  for (const char* good : {by_lz4, by_zstd}) {
    for (const int flip : {0x01, 0x80, 0xFF}) most_wrong_bytes_are_refused(bytes_of(good), flip);
  }
  in_child([](Session& s) {
    s.start();
    Bytes longer = bytes_of(by_lz4);  // the first entry's payload, beyond the container
    longer[16 + 8 + 3] = 1;
    IS(s, loaded(s, longer.data()), CUDA_ERROR_INVALID_IMAGE);
  });
}

TEST_CASE("An LZ4 block that is cut short or names bytes before its first does not unpack") {
  using emu::driver::unpack_lz4;
  // a, then 19 times the byte before it, then five bytes.
  const std::string run = std::string("\x1F\x61\1\0\0\x50", 6) + "bcdef";
  CHECK(unpack_lz4(run, 25) == std::string(20, 'a') + "bcdef");
  CHECK_FALSE(unpack_lz4(run, 24));
  CHECK_FALSE(unpack_lz4(run, 26));
  for (size_t n = 1; n < run.size(); ++n) {
    CAPTURE(n);
    CHECK_FALSE(unpack_lz4(run.substr(0, n), 25));
  }
  CHECK(unpack_lz4(std::string("\x36"
                               "abc\3\0\x10!",
                               8),
                   14) == "abcabcabcabca!");
  for (const char back : {'\0', '\2'}) {
    std::string far = run;
    far[2] = back;
    CHECK_FALSE(unpack_lz4(far, 25));
  }
}

TEST_CASE("A zstd frame that is cut short or has another size than it should does not unpack") {
  using emu::driver::unpack_zstd;
  // The payload of the first entry: after the container's head and the entry's own.
  const Bytes all = bytes_of(by_zstd);
  const std::string frame(&all[16 + 80], 0x7c);
  const std::optional<std::string> text = unpack_zstd(frame, 0xcf);
  REQUIRE(text);
  CHECK(text->find(".version 8.0") == 0);
  for (const size_t bytes : {0xce, 0xd0}) CHECK_FALSE(unpack_zstd(frame, bytes));
  for (size_t n = 0; n < frame.size(); ++n) {
    CAPTURE(n);
    CHECK_FALSE(unpack_zstd(frame.substr(0, n), 0xcf));
  }
}
