// SPDX-License-Identifier: MIT
// The CUDA driver's interface as far as we use it, so that building needs no header of NVIDIA's.
// test/host/cuda_header.cc compares all of it with cuda.h where there is one. Nothing is defined
// here: the functions are found at run time, and their declarations give the types of pointers.
#pragma once

#include "host/cuda/types.h"

#define FUNCTION(name, parameters) CUresult name parameters;
#include "host/cuda/functions.def"
#undef FUNCTION
