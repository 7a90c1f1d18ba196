# SPDX-License-Identifier: MIT
# Programs that test/host starts as child processes, each with a driver of the test's choice.

PROBE       := $(B)/test/host/probe
FAKE_DRIVER := $(B)/test/host/fake/libcuda.so.1
NO_DRIVER   := $(B)/test/host/none/libcuda.so.1
OLD_DRIVER  := $(B)/test/host/ancient/libcuda.so.1
IDLE_PROBE  := $(B)/test/host/idle_probe
TEST_CHILDREN := $(PROBE) $(IDLE_PROBE) $(FAKE_DRIVER) $(NO_DRIVER) $(OLD_DRIVER) $(IDLE_DRIVER)

$(PROBE): test/host/child/probe.c include/nvfp4_gemm.h $(LIB)
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) -std=c99 -O1 $(WARN) -Wno-pedantic -Iinclude $< -o $@ $(LIB) \
	  -Wl,-rpath,'$$ORIGIN/../..' -ldl -pthread
# Without memory the loader passes over LD_LIBRARY_PATH and would find the machine's own driver. An
# RPATH, the old kind, is one more place for the idle driver; it is searched first.
$(IDLE_PROBE): test/host/child/probe.c include/nvfp4_gemm.h $(LIB)
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) -std=c99 -O1 $(WARN) -Wno-pedantic -Iinclude $< -o $@ $(LIB) \
	  -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../..:$$ORIGIN/../../bench/idle' -ldl -pthread

$(FAKE_DRIVER): test/host/child/fake_driver.cc $(CUDA_API) \
                kernel/common/params.h kernel/common/params.def \
                kernel/common/epilogue.h kernel/sm100/params.h
	@mkdir -p $(@D)
	$(call say,LINK)$(CXX) -std=c++17 -O1 -fPIC -shared $(WARN) -I. $< -o $@ \
	  -Wl,-soname,libcuda.so.1

# A file that the loader finds first and cannot load: "no driver" also on a machine that has one.
$(NO_DRIVER):
	@mkdir -p $(@D)
	echo "not a library" > $@

# A driver from before CUDA 12: no cuGetProcAddress_v2.
$(OLD_DRIVER):
	@mkdir -p $(@D)
	echo "int cuInit(unsigned flags) { return flags != 0; }" | \
	  $(CC) -x c -fPIC -shared - -o $@ -Wl,-soname,libcuda.so.1

# The toolkit's stub, under the name of a driver; dangling where the toolkit has none.
TOOLKIT_STUB := $(B)/test/host/stub/libcuda.so.1
$(TOOLKIT_STUB):
	@mkdir -p $(@D)
	ln -sf $(CUDA_HOME)/lib64/stubs/libcuda.so $@

# They start them.
$(B)/test_host $(B)/test_regression: | $(TEST_CHILDREN) $(TOOLKIT_STUB)
