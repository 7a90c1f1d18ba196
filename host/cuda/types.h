// SPDX-License-Identifier: MIT
// Types of the CUDA driver that we use, with NVIDIA's names and layout.
#pragma once

#include <cstddef>
#include <cstdint>

using cuuint32_t = uint32_t;
using cuuint64_t = uint64_t;

using CUdevice = int;
using CUdeviceptr = unsigned long long;

// ---- handles ------------------------------------------------------------------------------------

using CUcontext = struct CUctx_st*;
using CUevent = struct CUevent_st*;
using CUfunction = struct CUfunc_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphExec = struct CUgraphExec_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUkernel = struct CUkern_st*;
using CUlibrary = struct CUlib_st*;
using CUmodule = struct CUmod_st*;
using CUstream = struct CUstream_st*;

// ---- numbers ------------------------------------------------------------------------------------

// A driver may return numbers that are not in the table.
enum CUresult : unsigned {};
enum CUdevice_attribute : unsigned {};
enum CUdriverProcAddressQueryResult : unsigned {};
enum CUfunction_attribute : unsigned {};
enum CUgraphNodeType : unsigned {};
enum CUjit_option : unsigned {};
enum CUlaunchAttributeID : unsigned {};
enum CUlibraryOption : unsigned {};
enum CUstreamCaptureMode : unsigned {};
enum CUstreamCaptureStatus : unsigned {};
enum CUtensorMapDataType : unsigned {};
enum CUtensorMapFloatOOBfill : unsigned {};
enum CUtensorMapInterleave : unsigned {};
enum CUtensorMapL2promotion : unsigned {};
enum CUtensorMapSwizzle : unsigned {};

#define NUMBER(type, name, value) constexpr type name = static_cast<type>(value);
#include "host/cuda/numbers.def"
#undef NUMBER

// ---- structures ---------------------------------------------------------------------------------

struct alignas(128) CUtensorMap {
  cuuint64_t opaque[16];
};

union CUlaunchAttributeValue {
  alignas(8) char pad[64];
  struct {
    unsigned x, y, z;
  } clusterDim;
  int programmaticStreamSerializationAllowed;
};

struct CUlaunchAttribute {
  CUlaunchAttributeID id;
  char pad[8 - sizeof(CUlaunchAttributeID)];
  CUlaunchAttributeValue value;
};

struct CUlaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute* attrs;
  unsigned numAttrs;
};

struct CUgraphEdgeData {
  unsigned char from_port, to_port, type, reserved[5];
};

struct CUDA_KERNEL_NODE_PARAMS {
  CUfunction func;
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  void** kernelParams;
  void** extra;
  CUkernel kern;
  CUcontext ctx;
};

struct CUctxCreateParams;
