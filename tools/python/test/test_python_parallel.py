# SPDX-License-Identifier: MIT
"""nvfp4gemm.parallel in two processes: gloo on the CPU wherever torch is, NCCL where two GPUs are
(`make check-hw PART=python`). What a process does is in parallel_rank.py."""
import os
import subprocess
import sys
import tempfile
import unittest

import package

try:
    import torch
    import torch.distributed
except ImportError as error:
    raise unittest.SkipTest("this Python has no torch") from error

import gpus

RANKS = 2
WHY_NOT = gpus.why_not(torch, RANKS)


def run(backend, *arguments, seconds=240):
    """What rank 0 said; raises with what was said where a process fails."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, os.path.join(package.HERE, "parallel_rank.py")]
        ranks = [subprocess.Popen([*command, str(rank), str(RANKS), os.path.join(folder, "meet"),
                                   backend, *arguments], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True) for rank in range(RANKS)]
        try:
            said = [rank.communicate(timeout=seconds)[0] for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
        codes = [rank.returncode for rank in ranks]
        if any(codes):
            raise AssertionError(f"ranks ended with {codes}\n" + "\n".join(said))
        return said[0]


class OfTorch(unittest.TestCase):
    @unittest.skipUnless(torch.distributed.is_available() and torch.distributed.is_gloo_available(),
                         "torch has no gloo here")
    def test_two_processes_on_the_cpu(self):
        self.assertIn("ok: layers", run("gloo"))

    @unittest.skipIf(WHY_NOT, WHY_NOT)
    def test_two_gpus(self):
        said = run("nccl")
        print(said, end="")
        self.assertIn("ok: layers", said)

    @unittest.skipIf(WHY_NOT, WHY_NOT)
    def test_time_on_two_gpus(self):
        said = run("nccl", "time")
        print(said, end="")
        self.assertIn("4096 tokens", said)


if __name__ == "__main__":
    unittest.main()
