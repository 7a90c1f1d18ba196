# SPDX-License-Identifier: MIT
"""nvfp4_bench in the emulator: what it times on a GPU it verifies here."""
import os
import subprocess
import tempfile
import unittest

import nvfp4


class Bench(unittest.TestCase):
    def says(self, *arguments, device="B200"):
        done = subprocess.run([os.path.join(nvfp4.BUILD, "nvfp4_bench"), *arguments],
                              capture_output=True, text=True,
                              env={**os.environ, "EMU_DEVICE": device})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_products(self):
        for device, more in (("B200", []), ("H200", ["--a16"])):
            out = self.says("gpu", "--shape", "5x256x128,3x256x128", *more, device=device)
            self.assertEqual(out.count("the checked elements have the reference's bits"), 2, out)
            self.assertIn("nothing is timed in the emulator", out)

    def test_a_decoder_layer(self):
        for device in ("B200", "H200"):
            self.assertIn("a small layer is right", self.says("layer", device=device))

    def test_experts(self):
        self.assertIn("nothing is timed", self.says("grouped"))
        self.assertIn("nothing is timed", self.says("grouped", "--a-type", "bf16", device="H200"))

    def test_layers_beside_peers(self):
        with tempfile.TemporaryDirectory() as folder:
            layers = os.path.join(folder, "layers.csv")
            with open(layers, "w", encoding="utf-8") as file:
                file.write("model,layer,tensor_parallel,n,k\na,up,1,192,256\na,down,1,128,320\n")
            out = self.says("peers", "--layers", layers, "--tokens", "3,64", device="H200")
        self.assertIn("nothing is timed", out)


if __name__ == "__main__":
    unittest.main()
