# SPDX-License-Identifier: MIT
# build/nvfp4_bench and the driver that it times the library on.

BENCH_SRC   := $(filter-out bench/idle_driver.cc,$(sort $(wildcard bench/*.cc)))
BENCH_OBJ   := $(BENCH_SRC:%.cc=$(B)/obj/%.o)
IDLE_DRIVER := $(B)/bench/idle/libcuda.so.1

$(B)/obj/bench/%.o: bench/%.cc $(PROGRAM_GCH)
	$(compile_program)
# It reads the clock around single calls.
$(B)/obj/bench/host_overhead.o: private TEST_FLAGS += -O2
$(B)/obj/bench/host_overhead.o: private PROGRAM_BEFORE =
# The command line of CLI11 alone.
$(B)/obj/bench/main.o: private OPTIMIZE := -O0
$(B)/obj/bench/main.o: private PROGRAM_BEFORE =
$(IDLE_DRIVER): bench/idle_driver.cc bench/idle_driver.h $(CUDA_API)
	@mkdir -p $(@D)
	$(call say,LINK)$(CXX) -std=c++17 -O2 -fPIC -shared $(WARN) -I. \
	  $< -o $@ -Wl,-soname,libcuda.so.1
$(B)/nvfp4_bench: $(BENCH_OBJ) $(SUPPORT_OBJ) $(LIB)
	$(call say,LINK)$(CXX) -o $@ $(BENCH_OBJ) $(SUPPORT_OBJ) $(USE_LIBRARY) -ldl -pthread

.PHONY: bench
bench: $(B)/nvfp4_bench $(IDLE_DRIVER) emulator  ## host time of a call, verified first: CSV to stdout
	@CXX='$(CXX)' bench/host_overhead.sh $(B)

.PHONY: bench-emulator
bench-emulator: $(B)/emulator_bench $(B)/nvfp4_bench emulator  ## speed of the emulator by instruction family and shape: CSV to stdout; BEFORE=libcuda.so.1 beside another build
	@BEFORE='$(BEFORE)' CXX='$(CXX)' bench/emulator.sh $(B)

# On a machine with a Hopper GPU and torch for it; PYTHON names another one's.
.PHONY: bench-python
bench-python: $(LIB)  ## host time of calls from Python beside torch's own: CSV to stdout
	NVFP4GEMM_LIBRARY=$(B)/libnvfp4gemm.so.0 PYTHONPATH=tools/python $(PYTHON) bench/host_python.py

.PHONY: setup-plot
setup-plot: | $(SETUP)  ## matplotlib for bench-gpu's picture, into .venv; nothing else needs it
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes \
	  --only-binary=:all: -r tools/setup/requirements.txt -r tools/setup/plot.txt

# On a machine with a GPU: RESULT=bench/results/NAME gets .csv and .svg.
.PHONY: bench-gpu
bench-gpu: $(B)/nvfp4_bench  ## device time beside cuBLASLt, verified first: RESULT.csv and RESULT.svg
	$(B)/nvfp4_bench gpu >$(RESULT).csv
	$(PYTHON) bench/plot.py $(RESULT).csv $(RESULT).svg

-include $(BENCH_OBJ:.o=.d)
