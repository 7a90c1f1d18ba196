# SPDX-License-Identifier: MIT
# Every promise is a target with a ## line; `make help` prints them.

B        := build
CXX      ?= g++
CC       ?= gcc
NVCC     ?= $(or $(wildcard .tools/cuda/bin/nvcc),$(shell command -v nvcc),$(wildcard /usr/local/cuda/bin/nvcc))
CUDA_HOME := $(abspath $(dir $(realpath $(NVCC)))/..)
PTXAS    := $(CUDA_HOME)/bin/ptxas

WARN     := -Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers
DEPS      = -MMD -MP

# host/: no exceptions, no RTTI, no libstdc++ at run time, one rounding per operation.
HOST_FLAGS := -std=c++17 -O2 -fPIC -fvisibility=hidden -fno-exceptions -fno-rtti -ffp-contract=off \
              -fno-threadsafe-statics -fstack-protector-strong -D_FORTIFY_SOURCE=2 $(WARN) -Iinclude -I. \
              -isystem $(CUDA_HOME)/include
# tools/emulator/: depends on <cuda.h> only.
EMU_FLAGS  := -std=c++20 -O2 -g1 -fPIC -fvisibility=hidden -ffp-contract=off $(WARN) \
              -isystem $(CUDA_HOME)/include

.PHONY: all emulator help
all: $(B)/libnvfp4gemm.so emulator  ## library and emulator

# ---- emulator ------------------------------------------------------------------------------------
EMU_SRC := $(sort $(wildcard tools/emulator/*.cc tools/emulator/*/*.cc))
EMU_OBJ := $(EMU_SRC:%.cc=$(B)/obj/%.o)

$(B)/obj/tools/emulator/%.o: tools/emulator/%.cc
	@mkdir -p $(@D)
	$(CXX) $(EMU_FLAGS) $(DEPS) -c $< -o $@

emulator: $(B)/emulator/libcuda.so.1  ## the stand-in for libcuda.so.1
$(B)/emulator/libcuda.so.1: $(EMU_OBJ)
	@mkdir -p $(@D)
	$(CXX) -shared -Wl,-soname,libcuda.so.1 -Wl,-z,defs -o $@ $^ -pthread -ldl

include kernel/kernel.mk
-include $(EMU_OBJ:.o=.d)

help:  ## this list
	@grep -hE '^[a-z][a-z_-]*:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## */\t/' | sort | expand -t 20
