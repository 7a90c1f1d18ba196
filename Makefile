# SPDX-License-Identifier: MIT
# Every promise is a target with a ## line; `make help` prints them.

# CLOCKS=1: kernels that note when they reach what (kernel/common/clocks.cuh), in a folder of their
# own.
B        := $(if $(CLOCKS),build/clocks,build)
CXX      ?= g++
CC       ?= gcc

# What `make setup` found. Goals that need it make it first: make builds an included file that is
# missing or old, then reads everything again.
SETUP    := .tools/setup.mk
ifneq ($(filter setup run try test mutants picture,$(MAKECMDGOALS)),)
include $(SETUP)
else ifneq ($(wildcard $(SETUP)),)
include $(SETUP)
endif
NVCC     ?= $(or $(wildcard .tools/cuda/bin/nvcc),$(shell command -v nvcc),\
                 $(wildcard /usr/local/cuda/bin/nvcc))
ifneq ($(and $(filter environment command,$(origin NVCC)),$(NVCC)),)
ifeq ($(shell command -v '$(NVCC)'),)
$(error NVCC=$(NVCC) is no program; without it, "make setup" finds or installs an nvcc)
endif
endif
# Without set-up, what plain `make` misses is said in one line, before anything fails on it.
ifeq ($(wildcard $(SETUP)),)
ifeq ($(or $(MAKECMDGOALS),all),all)
MISSING := $(shell tools/setup/missing.sh build '$(CXX)' \
             '$(if $(wildcard kernel/prebuilt),true,$(NVCC))')
$(if $(MISSING),$(error missing here: $(MISSING). "make setup" installs it))
endif
endif
# The emulator is built where NVIDIA's cuda.h is, which nothing else needs.
CUDA_HOME := $(if $(realpath $(NVCC)),$(abspath $(dir $(realpath $(NVCC)))/..))
CUDA_INCLUDE := $(if $(CUDA_HOME),-isystem $(CUDA_HOME)/include)
CUDA_H   := $(shell $(CXX) $(CUDA_INCLUDE) -E -include cuda.h -x c++ /dev/null \
              >/dev/null 2>&1 && echo here)
ifneq ($(if $(CUDA_H),,$(filter emulator,$(MAKECMDGOALS))),)
$(error the emulator needs NVIDIA's cuda.h: "make setup" brings it, or NVCC=/path/to/nvcc names a \
  toolkit that has it)
endif
PTXAS    := $(CUDA_HOME)/bin/ptxas
PYTHON   ?= .venv/bin/python

# A variable's value if somebody gave it one, on the command line or in the environment.
given     = $(if $(filter environment command,$(origin $1)),$($1))

# Commands are named, not shown; V=1 shows them. STEPS: how many there will be, each then has its
# number.
say       = $(if $(V),,@$(if $(STEPS),echo >>$(B)/steps; printf '[%3d of $(STEPS)] %-6s %s\n' \
              $$(wc -l <$(B)/steps),printf '  %-6s %s\n') $(1) $@ && )

# A stamp's recipe runs each time and writes the file only if its content changes. ALWAYS= leaves
# the stamps alone: make -n cannot know that they will not change, and counts what depends on them.
ALWAYS   ?= FORCE

# All cores, unless -j says otherwise. A make that this one starts has what this one has: GNU make
# 4.3 does not yet say so here.
ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell nproc)
endif

# A folder's precompiled.h, compiled once, stands before each of its sources:
# $(call precompiled,FOLDER) is the option, $(call gch,FOLDER) what objects depend on, made by
# $(call precompile,FLAGS).
# A compiler that does not take what was compiled, because its options differ, reads the text.
# g++ 12 breaks off where they differ by -O1 and -O2 alone: such a source stands without it.
# PRECOMPILED= compiles every source as it stands.
PRECOMPILED ?= yes
precompiled  = $(if $(PRECOMPILED),-include $(B)/obj/$1/precompiled.h)
gch          = $(if $(PRECOMPILED),$(B)/obj/$1/precompiled.h.gch)
precompile   = $(call say,CXX)$(CXX) $1 $(DEPS) -x c++-header $< -o $@
$(B)/obj/%/precompiled.h:
	@mkdir -p $(@D) && echo '#include "$*/precompiled.h"' >$@
# Without these ccache keeps nothing that is compiled after such a header.
export CCACHE_SLOPPINESS ?= pch_defines,time_macros

WARN     := -Wall -Wextra -Wpedantic -Wshadow
DEPS      = -MMD -MP

# CPPFLAGS, CXXFLAGS, CFLAGS and LDFLAGS are the user's and come last; another level of
# _FORTIFY_SOURCE replaces ours.
FORTIFY    = $(if $(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CXXFLAGS)),,-D_FORTIFY_SOURCE=2)
USER_FLAGS = $(CPPFLAGS) $(CXXFLAGS)

# tools/emulator/: depends on <cuda.h> only.
EMU_FLAGS  := -std=c++20 -O2 -g1 -fPIC -fvisibility=hidden -ffp-contract=off $(WARN) \
              -I. -Itools/emulator/include $(CUDA_INCLUDE) $(USER_FLAGS)
# Tests and the command line; what compares many numbers is worth optimising.
OPTIMIZE    := -O1
TEST_COMMON  = -std=c++20 $(OPTIMIZE) -ffp-contract=off $(WARN) \
               -Iinclude -I. -Itools/emulator/include $(CUDA_INCLUDE) $(USER_FLAGS)
TEST_FLAGS   = $(TEST_COMMON) \
               -DNVFP4_TEST_PTX_DIR='"$(B)/test"' -DNVFP4_TEST_KERNEL_DIR='"$(KERNEL_OUT)"'

# For rules that compile and link at once.
CUDA_API  := $(wildcard host/cuda/*)

.PHONY: all long-steps emulator help
all: long-steps $(B)/libnvfp4gemm.so $(if $(CUDA_H),emulator) $(B)/nvfp4  ## library, emulator, command line; GPUS="90 100": with images for these GPUs alone

include kernel/kernel.mk
include host/host.mk
include tools/testing/testing.mk
include tools/emulator/emulator.mk
include tools/nvfp4/nvfp4.mk
include tools/nvfp4/few_images.mk
include tools/package/package.mk
include tools/python/python.mk
include tools/gates.mk
include bench/bench.mk
include tools/probe/probe.mk
include tools/model/model.mk
include test/test.mk

# ---- set-up --------------------------------------------------------------------------------------
.PHONY: setup clean FORCE
setup: $(SETUP)  ## compilers, test framework, Python environment: found, or installed

# Again, too, when somebody removed the Python environment.
$(SETUP): tools/setup/setup.sh tools/setup/requirements.txt tools/setup/cuda.txt \
          tools/setup/missing.sh $(if $(shell command -v $(PYTHON)),,FORCE)
	@NVCC='$(call given,NVCC)' PYTHON='$(call given,PYTHON)' tools/setup/setup.sh $@

clean:  ## remove build/; what set-up installed stays
	rm -rf $(B)

# ---- form ----------------------------------------------------------------------------------------
# The public header is laid out by hand: its comments are a manual in columns.
FORMATTED = $(filter-out include/nvfp4_gemm.h, \
  $(shell git ls-files '*.c' '*.h' '*.cc' '*.cu' '*.cuh'))
.PHONY: format format-check
format:  ## clang-format every source
	@clang-format -i $(FORMATTED)
format-check:  ## fail if clang-format would change a source
	@clang-format --dry-run --Werror $(FORMATTED)

# What ships, a file at a time; the settings and what is left out are in .clang-tidy.
TIDY     := $(HOST_SRC:=.tidy)
.PHONY: tidy $(TIDY)
tidy: $(TIDY)  ## clang-tidy finds nothing in the library
$(TIDY): TIDY_FLAGS = $(HOST_FLAGS) -DNVFP4_COMPILER='""'
$(TIDY): %.tidy:
	$(call say,TIDY)clang-tidy --quiet $* -- $(TIDY_FLAGS)

help:  ## this list
	@grep -hE '^[a-z][a-z0-9_-]*:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## */\t/' | sort | expand -t 16
