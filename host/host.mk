# SPDX-License-Identifier: MIT
# The library: host/ by the C++ compiler, kernel images by .incbin, linked by the C compiler so
# that no C++ runtime can slip in.

# Words alone: CMakeLists.txt reads them as well. No exceptions, no RTTI, no
# libstdc++ at run time, one rounding per operation; sqrt is an instruction and no import.
HOST_OPTIONS := -O2 -fPIC -fvisibility=hidden -fno-exceptions -fno-rtti -ffp-contract=off \
                -fno-math-errno -fno-threadsafe-statics -fstack-protector-strong
# nodelete: the driver keeps what it loaded, so the table that knows it must stay as well.
LIB_OPTIONS  := -Wl,-z,defs -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack \
                -Wl,-z,separate-code -Wl,-z,nodelete -Wl,--as-needed -Wl,--gc-sections

LIB       := $(B)/libnvfp4gemm.so
SONAME    := libnvfp4gemm.so.0
HOST_SRC  := $(sort $(wildcard host/*/*.cc host/*/*/*.cc))
HOST_FLAGS = -std=c++17 $(HOST_OPTIONS) $(FORTIFY) $(WARN) -Iinclude -I. $(USER_FLAGS)
HOST_OBJ  := $(HOST_SRC:%.cc=$(B)/obj/%.o) $(B)/obj/host/images.o
# Which images are in the object: another KERNELS or other GPUS are another object.
IMAGES_FROM := $(B)/obj/host/kernels.txt
$(IMAGES_FROM): $(ALWAYS)
	@mkdir -p $(@D) && echo '$(KERNEL_OUT) $(GPUS)' | cmp -s - $@ || \
	  echo '$(KERNEL_OUT) $(GPUS)' >$@

$(B)/obj/host/%.o: host/%.cc
	@mkdir -p $(@D)
	$(call say,CXX)$(CXX) $(HOST_FLAGS) $(DEPS) -c $< -o $@

# Its inner loop is the one that is worth vectorising.
$(B)/obj/host/reference/reference.o $(B)/obj/host/reference/reference_wide.o: HOST_FLAGS += -O3
$(B)/obj/host/words/build_info.o: HOST_FLAGS += -DNVFP4_COMPILER='"$(COMPILER_OF_KERNELS)"'

$(addsuffix /host/words/build_info.o,$(B)/obj $(B)/abi $(B)/tsan): \
  $(COMPILER_TXT) $(IMAGES_FROM)

# The images are in the object's folder, as kernel/images.sh puts them there.
compile_images = $(call say,CC)$(CC) -I. $(CPPFLAGS) $(CFLAGS) -c $< -Wa,-I,$(@D)/images \
  -DIMAGES_SUM=$$(cat $(@D)/images/* | cksum | cut -d' ' -f1) -o $@
$(B)/obj/host/images.o: host/run/images.S host/plan/images.def host/plan/quantizer_images.def \
                         $(KERNEL_FATBINS) $(COMPILER_TXT) $(IMAGES_FROM)
	@mkdir -p $(@D)
	@kernel/images.sh '$(GPUS)' $(KERNEL_OUT) $(@D)/images
	$(compile_images)

# In place of -ldl, so that the library runs with older glibc than this machine's.
LIBDL := $(B)/obj/package/libdl.so
$(LIBDL): tools/package/libdl.sh
	@mkdir -p $(@D)
	@CC='$(CC)' tools/package/libdl.sh $@

LIB_FLAGS := -shared -Wl,-soname,$(SONAME) -Wl,--version-script=host/api/libnvfp4gemm.map \
             $(LIB_OPTIONS) \
             $(LDFLAGS)

$(LIB): $(HOST_OBJ) host/api/libnvfp4gemm.map $(LIBDL)
	$(call say,LINK)$(CC) $(LIB_FLAGS) -o $@ $(HOST_OBJ) -lm $(LIBDL) -pthread
	ln -sf $(notdir $(LIB)) $(B)/$(SONAME)

.PHONY: library
library: $(LIB)  ## build/libnvfp4gemm.so

-include $(HOST_OBJ:.o=.d)
