# SPDX-License-Identifier: MIT
# What other projects take: the static library, and an installation that pkg-config and CMake find.

STATIC  := $(B)/libnvfp4gemm.a
OBJCOPY ?= objcopy

# One object that needs nothing else of ours: its inner symbols are made local, so that they cannot
# meet those of the program or of a second copy.
$(STATIC): $(HOST_OBJ)
	@mkdir -p $(B)/obj/package
	$(call say,LINK)$(CC) -r -nostdlib -Wl,--force-group-allocation \
	  -o $(B)/obj/package/nvfp4gemm.o $(HOST_OBJ)
	@$(OBJCOPY) --localize-hidden $(B)/obj/package/nvfp4gemm.o
	@rm -f $@
	@$(AR) rcsD $@ $(B)/obj/package/nvfp4gemm.o

# LIBDIR may be any folder; the CMake files find the others from where they lie.
PREFIX     ?= /usr/local
LIBDIR     ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
BINDIR     ?= $(PREFIX)/bin
MANDIR     ?= $(PREFIX)/share/man
BASHDIR    ?= $(PREFIX)/share/bash-completion/completions
INSTALLER   = PREFIX='$(PREFIX)' LIBDIR='$(LIBDIR)' INCLUDEDIR='$(INCLUDEDIR)' \
              BINDIR='$(BINDIR)' MANDIR='$(MANDIR)' BASHDIR='$(BASHDIR)' DESTDIR='$(DESTDIR)' \
              PROGRAM='$(PROGRAM)' EMULATOR='$(EMULATOR)' tools/package/install.sh

# The program as installed looks for the library where the installation puts it; RUNPATH=no where
# the loader looks there anyway, as in a distribution's package.
INSTALLED_PROGRAM := $(B)/obj/package/nvfp4
# Linked at every installation: PREFIX may be another one than last time.
$(INSTALLED_PROGRAM): $(TOOL_OBJ) $(SUPPORT_OBJ) $(LIB) FORCE
	@mkdir -p $(@D)
	$(call say,LINK)$(CXX) -o $@ $(TOOL_OBJ) $(SUPPORT_OBJ) -L$(B) -lnvfp4gemm $(LDFLAGS) \
	  -ldl -pthread \
	  $(if $(filter no,$(RUNPATH)),,-Wl,-rpath,'$$ORIGIN/'$$(realpath -m \
	    --relative-to='$(BINDIR)' '$(LIBDIR)'))

# The program writes its own manual.
MANUAL := $(B)/obj/package/nvfp4.1 $(B)/obj/package/nvfp4.bash
$(B)/obj/package/nvfp4.1: $(B)/nvfp4
	@mkdir -p $(@D)
	@$(B)/nvfp4 generate man >$@
$(B)/obj/package/nvfp4.bash: $(B)/nvfp4
	@mkdir -p $(@D)
	@$(B)/nvfp4 generate bash >$@

.PHONY: static install uninstall check-install
static: $(STATIC)  ## build/libnvfp4gemm.a, self-contained
install: $(LIB) $(STATIC) $(if $(PROGRAM),$(INSTALLED_PROGRAM) $(MANUAL)) $(if $(EMULATOR),emulator)  ## to PREFIX, LIBDIR, DESTDIR; PROGRAM=1: build/nvfp4 and its man page, EMULATOR=1: the emulator as well
	@$(INSTALLER) install $(B)
uninstall:  ## remove what install with the same variables put there
	@$(INSTALLER) uninstall $(B)
check-install: $(LIB) $(STATIC) $(B)/nvfp4 emulator  ## consumers in C, C++, CMake, static, from a DESTDIR installation
	@CC='$(CC)' CXX='$(CXX)' MAKE='$(MAKE)' tools/gates/check_install.sh $(B)

# ---- packages ------------------------------------------------------------------------------------

.PHONY: dist release check-package check-bare
# Its images are those for drivers from 12.9, which an H200 runs as fast as nvcc's
# (docs/notebook.md).
DIST_KERNELS ?= 12.9
DIST_IMAGES  := $(patsubst $(KERNEL_OUT)/%,$(KERNEL_OUT_$(DIST_KERNELS))/%,\
                $(KERNEL_IMAGES) $(KERNEL_FATBINS) $(COMPILER_TXT))
dist:  ## build/dist/*.tar.gz: the last commit with kernel images for drivers from 12.9, for g++ alone
	@+$(MAKE) --no-print-directory KERNELS=$(DIST_KERNELS) PACK=size kernels
	@tools/package/dist.sh $(B) $(DIST_IMAGES)
release: dist  ## build/release: that tarball, wheels for two processors, Debian packages, SHA256SUMS; TAG=v0.1.0 must be the commit
	@PYTHON='$(PYTHON)' tools/package/release.sh $(B) '$(TAG)'
check-package: dist  ## that tarball: built by make, CMake, dpkg-buildpackage, Conan, and used
	@PYTHON='$(PYTHON)' tools/package/check_package.sh $(B)
check-bare: $(if $(filter emulator,$(PART)),,dist) emulator-wheel  ## OS=debian12|debian13|testing: the same in a fresh chroot, README's two commands, and the wheel nvfp4emu
	@tools/package/check_bare.sh $(B) '$(OS)'

# ---- the wheel of Python -------------------------------------------------------------------------

.PHONY: setup-wheel wheel wheel-aarch64 check-wheel
setup-wheel: | $(SETUP)  ## what makes the wheel, into .venv; nothing else needs it
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes \
	  --only-binary=:all: -r tools/setup/wheel.txt
wheel: $(LIB) | $(filter setup-wheel,$(MAKECMDGOALS))  ## build/wheel/*.whl: the Python package with the library, for any CPython from 3.10 on
	@PYTHON='$(PYTHON)' tools/python/wheel.sh $(B)
check-wheel: wheel  ## that wheel: auditwheel names manylinux_2_28 or older; installed and tried under each CPython that is here
	@PYTHON='$(PYTHON)' tools/python/check_wheel.sh $(B)/wheel/*.whl

# The same for the hosts of GB200, GH200 and Spark; the kernel images know no host.
CROSS := aarch64-linux-gnu
wheel-aarch64: $(LIB)  ## build/aarch64/wheel/*.whl: the package for aarch64, by a cross compiler
	@command -v $(CROSS)-g++ >/dev/null || \
	  { echo 'no $(CROSS)-g++ here: package g++-$(CROSS)' >&2; exit 1; }
	@+$(MAKE) --no-print-directory B=$(B)/aarch64 KERNEL_OUT=$(KERNEL_OUT) NVCC='$(NVCC)' \
	  CC=$(CROSS)-gcc CXX=$(CROSS)-g++ AR=$(CROSS)-ar OBJCOPY=$(CROSS)-objcopy wheel
