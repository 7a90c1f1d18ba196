#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""build/nvfp4_probes in the emulator: each question has every answer, by the setting that stands
for a GPU that answers so."""
import os
import subprocess
import unittest

BUILD = os.environ.get("NVFP4_BUILD", "build")
QUIET = {"EMU_FORMAL": "ignore", "EMU_SMS": "4", "EMU_WORKERS": "4"}


def ask(name, **settings):
    """(word, exit code) of that question."""
    environment = {**os.environ, "LD_LIBRARY_PATH": os.path.join(BUILD, "emulator"), **QUIET,
                   **settings}
    done = subprocess.run([os.path.join(BUILD, "nvfp4_probes"), name], env=environment, text=True,
                          capture_output=True, timeout=120, check=False)
    lines = done.stdout.splitlines()
    assert len(lines) == 1, done.stdout + done.stderr
    said, word = lines[0].split(",")[0].split(": ")
    assert said == name
    return word, done.returncode


class Probes(unittest.TestCase):
    def answers(self, name, *rows):
        for settings, word in rows:
            with self.subTest(name, **settings):
                self.assertEqual(ask(name, **settings), (word, 1 if word == "unknown" else 0))

    def follows(self, name, setting, each, **settings):
        """The number of the answer grows by `each` for each step of the setting."""
        words = []
        for value in (1, 101):
            word, code = ask(name, **settings, **{setting: str(value)})
            self.assertEqual(code, 0)
            words.append(int(word))
        self.assertAlmostEqual((words[1] - words[0]) / 100, each, delta=each / 20)

    def test_n_multiple_of_8(self):
        self.answers("n_multiple_of_8", ({"EMU_N_STEP": "8"}, "yes"), ({"EMU_N_STEP": "16"}, "no"),
                     ({"EMU_N_STEP": "32"}, "unknown"))  # not even 48 tokens

    def test_pairs(self):
        for name, wrong in (("mma_before_cp_pair", "overtakes"), ("pair_tail", "wrong")):
            self.answers(name, ({"EMU_CP_OVERTAKES": "0", "EMU_ORDER": "latest"}, "ordered"),
                         ({"EMU_CP_OVERTAKES": "1", "EMU_ORDER": "latest"}, wrong))

    def test_clocks_of_a_start(self):
        for name in ("setup", "empty_cta"):
            with self.subTest(name):
                one = int(ask(name, EMU_INSTRUCTION_CLOCKS="1")[0])
                self.follows(name, "EMU_INSTRUCTION_CLOCKS", one)
        self.follows("map_fetch", "EMU_MAP_CLOCKS", 1)
        self.assertEqual(ask("map_fetch", EMU_MAP_CLOCKS="0"), ("0", 0))

    def test_clocks_of_tensor_memory(self):
        self.follows("scale_copy", "EMU_CP_CLOCKS", 1)
        self.follows("load_drain", "EMU_DRAIN_CLOCKS", 1)

    def test_lane_bands(self):
        self.answers("lane_bands", ({"EMU_SCALE_BANDS": "own"}, "own"),
                     ({"EMU_SCALE_BANDS": "first"}, "first"),
                     ({"EMU_SCALE_BANDS": "equal"}, "unknown"))  # where the launch fails

    def test_pair_scales(self):
        self.answers("pair_scales", ({"EMU_PAIR_SCALES": "halves"}, "halves"),
                     ({"EMU_PAIR_SCALES": "whole"}, "whole"))

    def test_mma_before_cp(self):
        self.answers("mma_before_cp", ({"EMU_CP_OVERTAKES": "0", "EMU_ORDER": "latest"}, "ordered"),
                     ({"EMU_CP_OVERTAKES": "1", "EMU_ORDER": "latest"}, "overtakes"))

    def test_zero_groups(self):
        self.answers("zero_groups", ({"EMU_MMA_MODEL": "groups"}, "groups"),
                     ({"EMU_MMA_MODEL": "blocks"}, "blocks"),
                     ({"EMU_MMA_MODEL": "blocks", "EMU_MMA_ZERO_GROUP": "0"}, "blocks_later"))

    def test_alloc_beside(self):
        self.answers("alloc_beside", ({"EMU_SM_COLUMNS": "1", "EMU_SMS": "1"}, "waits"),
                     ({"EMU_SM_COLUMNS": "0", "EMU_SMS": "1"}, "beside"))

    def test_fence_in_flight(self):
        self.answers("fence_in_flight",
                     ({"EMU_FENCE_WAITS": "1", "EMU_ORDER": "latest"}, "waits"),
                     ({"EMU_FENCE_WAITS": "0", "EMU_ORDER": "latest"}, "goes_on"),
                     ({"EMU_ORDER": "soonest"}, "unknown"))  # no load is under way

    def test_rows_beyond(self):
        self.answers("rows_beyond", ({"EMU_COPY_RATE": "64"}, "cost"),
                     ({"EMU_COPY_RATE": "0"}, "free"))

    def test_rates(self):
        for name in ("port_rate", "push_rate"):
            for rate in (8, 32):
                with self.subTest(name, rate=rate):
                    word, code = ask(name, EMU_COPY_RATE=str(rate))
                    self.assertEqual(code, 0)
                    self.assertAlmostEqual(int(word), rate, delta=rate / 16)

    def test_clusters_at_once(self):
        self.answers("clusters_at_once", ({"EMU_SMS": "8"}, "4"),
                     ({"EMU_SMS": "6", "EMU_WORKERS": "3"}, "3"))
        self.answers("clusters_of_4", ({"EMU_SMS": "8", "EMU_WORKERS": "2"}, "2"),
                     ({"EMU_SMS": "12", "EMU_WORKERS": "3"}, "3"))

    def test_a_hopper_is_asked_what_it_has(self):
        self.assertEqual(ask("zero_groups", EMU_DEVICE="H200"), ("left out", 0))
        self.assertEqual(ask("port_rate", EMU_DEVICE="H200", EMU_COPY_RATE="8")[0], "8")

    def test_another_name_is_refused(self):
        done = subprocess.run([os.path.join(BUILD, "nvfp4_probes"), "lane"], capture_output=True,
                              check=False)
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
