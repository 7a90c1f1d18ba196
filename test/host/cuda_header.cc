// SPDX-License-Identifier: MIT
// host/cuda/ against NVIDIA's own header, by the compiler. cuda.h comes first, so that our
// declarations in a namespace of their own can stand beside it.
#include "tools/testing/catch.h"

#if __has_include(<cuda.h>)

#include <cuda.h>
#include <cudaTypedefs.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ours {
#include "host/cuda/types.h"
}  // namespace ours

// Signatures are declared by NVIDIA's types, of which cuda.h has renamed some by macros.
namespace declared {
#define FUNCTION(name, parameters) CUresult name parameters;
#include "host/cuda/functions.def"
#undef FUNCTION
}  // namespace declared

#define NUMBER(type, name, value)                                                   \
  static_assert(static_cast<long long>(ours::name) == static_cast<long long>(name), \
                #name " is another number");
#include "host/cuda/numbers.def"
#undef NUMBER

// clang-format off
#define FUNCTION(name, parameters)                                                        \
  static_assert(std::is_same<decltype(&declared::name), decltype(&::name)>::value,        \
                #name " has another signature");
// clang-format on
#include "host/cuda/functions.def"
#undef FUNCTION

// The library and the tools ask for a version of each, whose type has that version in its name.
#define ENTRY(name, version)                                                             \
  static_assert(std::is_same<decltype(&declared::name), PFN_##name##_v##version>::value, \
                #name " of " #version " has another signature");
#include "host/driver/driver.def"
#include "tools/harness/driver.def"
#undef ENTRY

#define SAME_SIZE(type)                                                                     \
  static_assert(sizeof(ours::type) == sizeof(type) && alignof(ours::type) == alignof(type), \
                #type " has another size or alignment");
#define SAME_FIELD(type, field)                                         \
  static_assert(offsetof(ours::type, field) == offsetof(type, field) && \
                    sizeof(ours::type{}.field) == sizeof(type{}.field), \
                #type "::" #field " is elsewhere");
SAME_SIZE(cuuint32_t)
SAME_SIZE(cuuint64_t)
SAME_SIZE(CUdevice)
SAME_SIZE(CUdeviceptr)
SAME_SIZE(CUresult)
SAME_SIZE(CUdevice_attribute)
SAME_SIZE(CUlaunchAttributeID)
SAME_SIZE(CUstreamCaptureMode)
SAME_SIZE(CUstreamCaptureStatus)
SAME_SIZE(CUlaunchAttributeValue)
SAME_FIELD(CUlaunchAttributeValue, clusterDim)
SAME_FIELD(CUlaunchAttributeValue, programmaticStreamSerializationAllowed)
SAME_SIZE(CUlaunchAttribute)
SAME_FIELD(CUlaunchAttribute, id)
SAME_FIELD(CUlaunchAttribute, value)
SAME_SIZE(CUlaunchConfig)
SAME_FIELD(CUlaunchConfig, gridDimX)
SAME_FIELD(CUlaunchConfig, gridDimY)
SAME_FIELD(CUlaunchConfig, gridDimZ)
SAME_FIELD(CUlaunchConfig, blockDimX)
SAME_FIELD(CUlaunchConfig, blockDimY)
SAME_FIELD(CUlaunchConfig, blockDimZ)
SAME_FIELD(CUlaunchConfig, sharedMemBytes)
SAME_FIELD(CUlaunchConfig, hStream)
SAME_FIELD(CUlaunchConfig, attrs)
SAME_FIELD(CUlaunchConfig, numAttrs)
SAME_SIZE(CUDA_KERNEL_NODE_PARAMS)
SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, func)
SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, gridDimX)
SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, blockDimZ)
SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, sharedMemBytes)
SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, kernelParams)
SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, extra)
SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, kern)
SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, ctx)
SAME_SIZE(CUgraphEdgeData)
SAME_FIELD(CUgraphEdgeData, from_port)
SAME_FIELD(CUgraphEdgeData, type)
static_assert(sizeof(ours::CUtensorMap) == sizeof(CUtensorMap), "a map has another size");
static_assert(alignof(ours::CUtensorMap) >= alignof(CUtensorMap), "a map lies too loosely");

TEST_CASE("Our declarations of the driver are those of cuda.h") {
  SUCCEED("by the assertions above, when this was compiled");
}

#else

TEST_CASE("Our declarations of the driver are those of cuda.h") {
  SKIP_TEST("there was no cuda.h when this was compiled");
}

#endif
