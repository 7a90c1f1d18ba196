# SPDX-License-Identifier: MIT
"""tools/emulator/nvfp4emu run: what the program finds there, and what the exit status says."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

COMMAND = os.path.join(os.path.dirname(__file__), "../nvfp4emu")
EMULATOR = os.path.join(os.environ["NVFP4_BUILD"], "emulator")

# Launches the kernel `k` of a file, two warps, on 16 KiB of zeros; its exit status is its second
# argument, or 9 where the launch is not even accepted.
PROGRAM = """
import ctypes, os, sys
cuda = ctypes.CDLL("libcuda.so.1")
version, device, handle = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p
context, module, kernel, memory = handle(), handle(), handle(), ctypes.c_uint64()
name = ctypes.create_string_buffer(100)
text = open(sys.argv[1], "rb").read()
for status in (cuda.cuInit(0), cuda.cuDriverGetVersion(ctypes.byref(version)),
               cuda.cuDeviceGet(ctypes.byref(device), 0), cuda.cuDeviceGetName(name, 100, device),
               cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
               cuda.cuCtxSetCurrent(context), cuda.cuModuleLoadData(ctypes.byref(module), text),
               cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"k"),
               cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(16384)),
               cuda.cuMemsetD8_v2(memory, 0, ctypes.c_size_t(16384))):
    if status:
        sys.exit(9)
arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(memory), ctypes.c_void_p))
if cuda.cuLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, None, arguments, None):
    sys.exit(9)
cuda.cuCtxSynchronize()
print(name.value.decode(), version.value, os.environ.get("EMU_SEED"))
sys.exit(int(sys.argv[2]))
"""

KERNEL = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {{
  .reg .b32 %id, %r; .reg .b64 %my, %offset; .reg .pred %p;
  ld.param.u64 %my, [out];
  mov.u32 %id, %tid.x;
  mul.wide.u32 %offset, %id, 4;
  add.u64 %my, %my, %offset;
  {body}
  ret;
}}
"""
FINE = "st.global.u32 [%my], %id;"
RACY = "st.global.u32 [%my+128], %id; ld.global.u32 %r, [%my]; st.global.u32 [%my+4096], %r;"
FORMAL = ("st.global.u32 [%my], %id; xor.b32 %r, %id, 1; mul.wide.u32 %offset, %r, 4;"
          "ld.param.u64 %my, [out]; add.u64 %my, %my, %offset; ld.global.u32 %r, [%my];"
          "st.global.u32 [%my+4096], %r;")


class Run(unittest.TestCase):
    def emulate(self, body, *options, status=0, environment=()):
        with tempfile.TemporaryDirectory() as folder:
            program, kernel = os.path.join(folder, "p.py"), os.path.join(folder, "k.ptx")
            with open(program, "w") as file:
                file.write(PROGRAM)
            with open(kernel, "w") as file:
                file.write(KERNEL.format(body=body))
            return subprocess.run(
                [COMMAND, "run", *options, sys.executable, program, kernel, str(status)],
                capture_output=True, text=True,
                env={**os.environ, "NVFP4EMU_LIBRARY": EMULATOR, **dict(environment)})

    def test_a_run_without_a_finding_is_quiet_and_the_program_s_own(self):
        done = self.emulate(FINE, "--device", "H200")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("NVIDIA H200 (emulated) 13050", done.stdout)
        self.assertEqual(self.emulate(FINE, status=7).returncode, 7)
        older = self.emulate(FINE, environment=[("EMU_DRIVER_VERSION", "13000")])
        self.assertIn(" 13000 ", older.stdout)

    def test_an_error_is_an_exit_status_even_if_the_program_does_not_mind(self):
        done = self.emulate(RACY)
        self.assertEqual(done.returncode, 1)
        self.assertIn("emulator: error: missing order in kernel k", done.stderr)
        self.assertIn("nvfp4emu: 1 reports of class error, 0 of class formal in 1 runs",
                      done.stderr)

    def test_formal_findings_count_where_they_stop(self):
        self.assertEqual(self.emulate(FORMAL).returncode, 0)
        self.assertIn("emulator: formal: ", self.emulate(FORMAL).stderr)
        self.assertEqual(self.emulate(FORMAL, "--formal", "stop").returncode, 1)

    def test_seeds_and_orders(self):
        done = self.emulate(FINE, "--seeds", "3", "--order", "latest")
        self.assertEqual([line.split()[-1] for line in done.stdout.splitlines()], ["1", "2", "3"])
        self.assertNotEqual(self.emulate(FINE, "--order", "sooner").returncode, 0)

    def test_reports_as_json(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "reports")
            self.emulate(RACY, "--json", file)
            with open(file) as lines:
                reports = [json.loads(line) for line in lines]
        self.assertEqual([r["class"] for r in reports], ["error"])
        self.assertEqual(reports[0]["rule"], "unordered")
        self.assertEqual(len(reports[0]["lines"]), 2)
        self.assertIn("missing order in kernel k", reports[0]["text"])

    def run_python(self, text, *arguments, **environment):
        variables = {**os.environ, "NVFP4EMU_LIBRARY": EMULATOR, **environment}
        return subprocess.run([COMMAND, "run", sys.executable, "-c", text, *arguments],
                              capture_output=True, text=True, check=True, env=variables).stdout

    def test_an_assembler_that_copies_ptx_is_there_for_triton(self):
        tool = self.run_python("import os; print(os.environ['TRITON_PTXAS_PATH'])").strip()
        with tempfile.TemporaryDirectory() as folder:
            ptx, cubin = os.path.join(folder, "k.ptx"), os.path.join(folder, "k.o")
            with open(ptx, "w") as file:
                file.write("any text")
            options = ["-lineinfo", "-v", "--opt-level", "0", "--gpu-name=sm_90a"]
            subprocess.run([tool, *options, ptx, "-o", cubin], check=True)
            with open(cubin) as file:
                self.assertEqual(file.read(), "any text")
            for arguments, said in (([ptx], "no output file"), (["-o", cubin], "no PTX file"),
                                    ([ptx, ptx, "-o", cubin], "one PTX file")):
                done = subprocess.run([tool, *arguments], capture_output=True, text=True)
                self.assertEqual(done.returncode, 255)
                self.assertIn(said, done.stderr)
        for version, named in (("12080", "release 12.8"), ("13050", "release 13.5")):
            said = subprocess.run([tool, "--version"], capture_output=True, text=True,
                                  env={**os.environ, "EMU_DRIVER_VERSION": version}).stdout
            self.assertIn(named, said)

    def test_python_finds_no_nvjitlink_and_the_sitecustomize_of_its_user(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.join(folder, "cuda/pathfinder"))
            with open(os.path.join(folder, "cuda/pathfinder/__init__.py"), "w") as file:
                file.write("class DynamicLibNotFoundError(RuntimeError): pass\n"
                           "def load_nvidia_dynamic_lib(name): return name\n")
            with open(os.path.join(folder, "sitecustomize.py"), "w") as file:
                file.write("import builtins\nbuiltins.of_the_user = 'here'\n")
            out = self.run_python(
                "import cuda.pathfinder as finder\n"
                "print(of_the_user, finder.load_nvidia_dynamic_lib('nvvm'))\n"
                "try: print(finder.load_nvidia_dynamic_lib('nvJitLink'))\n"
                "except finder.DynamicLibNotFoundError as missing: print(missing)",
                PYTHONPATH=folder)
        self.assertEqual(out.splitlines()[0], "here nvvm")
        self.assertIn("nvfp4emu run hides nvJitLink", out.splitlines()[1])

    def test_programs_find_one_library_by_both_names(self):
        out = self.run_python(
            "import ctypes\n"
            "one, two = ctypes.CDLL('libcuda.so.1'), ctypes.CDLL('libcuda.so')\n"
            "print(one.cuInit(0), two.cuDeviceGetCount(ctypes.byref(ctypes.c_int())))")
        self.assertEqual(out.split(), ["0", "0"])

    @unittest.skipUnless(shutil.which("gcc"), "there is no gcc")
    def test_who_asks_for_tables_of_the_driver_is_named_unless_it_goes_on_without(self):
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "ask.c")
            with open(source, "w") as file:
                file.write("int cuGetExportTable(); int ask(void) { return "
                           "cuGetExportTable() + cuGetExportTable() - 801; }\n")
            said = {}
            for name in ("libnvrtc.so.13", "libcudart.so.13"):
                library = os.path.join(folder, name)
                subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", library, "-L", EMULATOR,
                                "-l:libcuda.so.1"], check=True)
                done = subprocess.run(
                    [COMMAND, "run", sys.executable, "-c",
                     "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).ask())", library],
                    capture_output=True, text=True, check=True,
                    env={**os.environ, "NVFP4EMU_LIBRARY": EMULATOR})
                self.assertEqual(done.stdout, "801\n")
                said[name] = done.stderr
        self.assertEqual(said["libnvrtc.so.13"], "")
        sentence = "libcudart.so.13 calls cuGetExportTable, which is not emulated"
        self.assertEqual(said["libcudart.so.13"].count(sentence), 1)

    def test_what_is_wrong_with_the_command_is_said(self):
        for arguments, said in ((["run"], "no program"),
                                (["run", "--bogus", "x"], "unknown option"),
                                (["run", "--seeds", "x", "true"], "--seeds takes a number"),
                                (["run", "--device"], "--device takes a value"),
                                (["walk"], "usage")):
            done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True,
                                  env={**os.environ, "NVFP4EMU_LIBRARY": EMULATOR})
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main()
