# SPDX-License-Identifier: MIT
# The emulator: a libcuda.so.1 that programs find through LD_LIBRARY_PATH.

EMU_DIRS := base ptx memory arithmetic hardware machine op order trace driver
EMU_SRC  := $(sort $(foreach d,$(EMU_DIRS),$(wildcard tools/emulator/$d/*.cc)))
EMU_OBJ  := $(EMU_SRC:%.cc=$(B)/obj/%.o)

$(B)/obj/tools/emulator/%.o: tools/emulator/%.cc
	@mkdir -p $(@D)
	$(call say,CXX)$(CXX) $(EMU_FLAGS) $(DEPS) -c $< -o $@

emulator: $(B)/emulator/libcuda.so.1  ## the stand-in for libcuda.so.1
$(B)/emulator/libcuda.so.1: $(EMU_OBJ) tools/emulator/driver/libcuda.map
	@mkdir -p $(@D)
	$(call say,LINK)$(CXX) -shared -Wl,-soname,libcuda.so.1 -Wl,-z,defs \
	  -Wl,--version-script=tools/emulator/driver/libcuda.map -o $@ $(EMU_OBJ) -pthread -ldl

-include $(EMU_OBJ:.o=.d)
