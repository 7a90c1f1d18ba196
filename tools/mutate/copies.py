# SPDX-License-Identifier: MIT
"""A copy of the project in which mutants are planted, built and tested."""
import glob
import os
import re
import shutil
import subprocess
import time

import entries

ROOT = entries.ROOT
SECONDS = 300  # for one test; a hang counts as found, but the table says so
IMAGE = re.compile(r'^\w*IMAGE\((?:\w+, )+"([^"]+)\.fatbin", "([^"]+)"', re.M)
# Whose sources are in an image whose name begins so.
SOURCES = {"gemm_sm100": "kernel/sm100", "gemm_sm90": "kernel/sm90", "gemm_sm80": "kernel/sm80",
           "gemm_sm120": "kernel/sm120", "quantize": "kernel/quantize"}
# The library has no such image yet, so its log names none: tests load the PTX themselves.
LOADED_BY_TESTS = "gemm_sm80"
# What tests of that name load alone, compiled from kernel/sm100 for them (test/test.mk).
APART_TESTS, APART = "whose scales have slots of their own", "gemm_sm100.apart.ptx"
HOPPER, BLACKWELL = "gemm_sm90", "gemm_sm100"  # of which some tiles are built
# The library's answer where a build of some tiles lacks the one that is wanted.
NO_ENTRY = re.compile(r"cuLibraryGetKernel refuses .*CUDA_ERROR_NOT_FOUND")


def files_of_labels():
    """Image files by the label that the library's log gives them."""
    found = {}
    for path in glob.glob(os.path.join(ROOT, "host", "**", "*images.def"), recursive=True):
        for file, label in IMAGE.findall(entries.text_of(path)):
            found.setdefault(label, set()).add(file)
    return found


class Loaded:
    """What a test loads of the kernels, by the library's log: image files, and tiles of the Hopper
    or the Blackwell kernel. None where the log does not tell: then all of them."""

    def __init__(self, log=None):
        self.images = self.tiles = None
        if log is None:
            return
        labels = files_of_labels()
        used = re.findall(r"^nvfp4: (.+): cuLibraryGetKernel succeeds$", log, re.M)
        self.images = set().union(*(labels.get(label, set()) for label in used)) or None
        tiles = sorted(set(re.findall(r" variant=sm(?:90|100|120)_(\w+)x\d+\b", log)))
        if tiles:
            self.tiles = tiles


def images_of(mutant, loaded, tree):
    """The PTX files that the mutant's file goes into and its test loads, by name."""
    names = set()
    for prefix, folder in SOURCES.items():
        sources = [f for f in tree.names() if f.startswith(folder + "/") and f.endswith(".cu")]
        if any(file in tree.reached(source) for source in sources for file in mutant.files()):
            names.add(prefix)
    family = HOPPER if "@H200" in mutant.test else BLACKWELL

    def wanted(image):
        if APART_TESTS in mutant.filter or image == APART:
            return APART_TESTS in mutant.filter and image == APART
        prefix = max((p for p in SOURCES if image.startswith(p)), key=len, default=None)
        if prefix not in names:
            return False
        if prefix == LOADED_BY_TESTS:
            return True
        if loaded.images is not None:
            return image in loaded.images
        return prefix in (family, "quantize")
    return wanted


def targets(mutant):
    """What make builds for the mutant's test. The probes are no part of `all`."""
    if mutant.program() == "models":
        return ["build/libnvfp4gemm.so", "emulator"]
    if mutant.program() == "oracle":
        probes = mutant.filter.startswith("test_probes.")
        return ["all", "build/nvfp4_probes"] if probes else ["all"]
    return ["build/libnvfp4gemm.so", "emulator", f"build/{mutant.program()}"]


class Copy:
    """A copy of the tree under BUILD/mutants. It takes the objects along with their times."""

    def __init__(self, build, number, jobs, sources):
        self.root = os.path.join(ROOT, build, "mutants", str(number))
        self.jobs, self.sources, self.output = jobs, sources, ""
        self.clean_targets = None  # what has just been built, without a bug
        shutil.rmtree(self.root, ignore_errors=True)
        ignore = shutil.ignore_patterns(".git", ".venv", ".tools", ".models", "mutants",
                                        "__pycache__", "tsan", "abi")
        shutil.copytree(ROOT, self.root, ignore=ignore, symlinks=True)
        for tool in (".venv", ".tools", entries.MODELS):
            os.symlink(os.path.join(ROOT, tool), os.path.join(self.root, tool))

    def built(self, *pattern):
        """Files of the copy's build folder that match the pattern."""
        return sorted(glob.glob(os.path.join(self.root, "build", *pattern)))

    def build(self, mutant, wanted=lambda image: False, tiles=None):
        """True if what the mutant's test uses builds. Of the images only those wanted are made, of
        the Hopper and the Blackwell kernel only these tiles."""
        stay = self.built("kernel", "*.cubin*")
        stay += [p for p in self.built("test", "*.ptx")
                 if os.path.basename(p) != APART or not wanted(APART)]
        stay += [p for p in self.built("kernel", "*.ptx") if not wanted(os.path.basename(p))]
        keep = [word for path in stay for word in ("-o", os.path.relpath(path, self.root))]
        only = [f"ONLY_TILES={' '.join(tiles)}"] if tiles is not None else []
        return self.run(["make", "-s", f"-j{self.jobs}", "B=build", "PACK=balance", *only, *keep,
                         *targets(mutant)], None) == 0

    def test(self, mutant, log_level=0):
        """Exit status of the mutant's test, or "hang". It ends at the first failure."""
        environment = dict(os.environ)
        environment["LD_LIBRARY_PATH"] = os.path.join(self.root, "build", "emulator")
        environment["NVFP4_BUILD"] = os.path.join(self.root, "build")
        if log_level:
            environment["NVFP4_LOG"] = str(log_level)
        if mutant.tiles:
            environment["NVFP4_TILES"] = mutant.tiles
        if mutant.program() in entries.PYTHON:
            command = [mutant.python(), "-m", "unittest", "--failfast", mutant.filter]
            environment["PYTHONPATH"] = os.pathsep.join(
                os.path.join(self.root, folder) for folder in entries.PYTHON[mutant.program()])
        else:
            device = mutant.test.partition("@")[2]
            if device:
                environment["EMU_DEVICE"], _, sms = device.partition("/")
                if sms:
                    environment["EMU_SMS"] = sms
            if mutant.program() in ("nvfp4_test", "emulator_hw_test"):
                environment["EMU_FORMAL"] = "stop"  # as in test/jobs.txt
                environment["EMU_EXCEPT"] = "reused_columns:sm100_256x256"
            command = [os.path.join("build", mutant.program()), "--abort", mutant.filter]
        return self.run(command, environment)

    def clean(self, mutant):
        """What the mutant's test loads of the kernels, or None if it fails without any bug."""
        if self.clean_targets != targets(mutant):
            if not self.build(mutant):
                return None
            self.clean_targets = targets(mutant)
        if mutant.program() == "nvfp4_test":
            if self.test(mutant, log_level=3) == 0:
                return Loaded(self.output)
        return Loaded() if self.test(mutant) == 0 else None

    def plant(self, mutant, loaded):
        """What the mutant's test says of it, as test() does, or "broken", and the seconds."""
        start = time.time()
        self.clean_targets = None
        wanted = images_of(mutant, loaded, self.sources)
        clean = {file: entries.text_of(file, self.root) for file in mutant.files()}
        made = {}
        for image in self.built("kernel", "*.ptx*"):
            if wanted(os.path.basename(image).replace(".fatbin", "")):
                with open(image, "rb") as content:
                    made[image] = content.read()
        families = tuple(f"{family}.ptx" for family in (HOPPER, BLACKWELL))
        tiles = loaded.tiles if any(image.endswith(families) for image in made) else None
        self.write(mutant.mutated(clean))
        try:
            status = self.build_and_test(mutant, wanted, tiles)
            # The bug made the library ask for a tile that this build lacks: that is no finding.
            if tiles is not None and NO_ENTRY.search(self.output):
                for image in made:
                    if image.endswith(".ptx"):
                        os.remove(image)
                status = self.build_and_test(mutant, wanted, None)
            return status, time.time() - start
        finally:
            self.write(clean)
            # Newer than their source: the next mutant's build links them again, and makes no other.
            for image in sorted(made):
                with open(image, "wb") as content:
                    content.write(made[image])

    def write(self, texts):
        for file, text in texts.items():
            with open(os.path.join(self.root, file), "w", encoding="utf-8") as out:
                out.write(text)

    def build_and_test(self, mutant, wanted, tiles):
        if not self.build(mutant, wanted, tiles):
            return "broken"
        return self.test(mutant, log_level=1 if tiles is not None else 0)

    def run(self, command, environment):
        try:
            done = subprocess.run(command, cwd=self.root, env=environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self.output = f"no end within {SECONDS} s"
            return "hang"
        self.output = done.stdout.decode(errors="replace")
        return done.returncode
