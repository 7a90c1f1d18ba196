// SPDX-License-Identifier: MIT
// The part of the CUDA driver's interface that we use, so that building needs no header of
// NVIDIA's. test/host/cuda_header.cc compares all of it with cuda.h if that is installed. Nothing
// is defined here: the functions are found at run time, and the declarations give their pointers
// types.
#pragma once

#include "host/cuda/types.h"

#define FUNCTION(name, parameters) CUresult name parameters;
#include "host/cuda/functions.def"
#undef FUNCTION
