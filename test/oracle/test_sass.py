# SPDX-License-Identifier: MIT
"""tools/gates/sass.py reads machine code right: control bits, loops, and the cheapest way through
them."""
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/gates"))
import sass  # noqa: E402
from sass_tails import tail_rows  # noqa: E402


def instruction(address, text, stall, sets=7, waits=0):
    """As nvdisasm -hex prints one: the stall count is bits 105 to 108, so 41 to 44 of the second
    word; then, after one bit, which scoreboards the result and the reading of operands set, 7 for
    none, and a bit for each that is waited for."""
    high = stall << 41 | sets << 46 | 7 << 49 | waits << 52
    return (f"        /*{address:04x}*/                   {text} ;      /* 0x0000000000007918 */\n"
            f"                                                            /* 0x{high:016x} */\n")


# Two steps to a k-block, after a wait that may be repeated out of line; the commit is jumped over
# by the last k-blocks. The loop over an incomplete k-block's steps gives no stage back.
LISTING = (
    "\t.section\t.text.nvfp4_gemm_sm100_test,\"ax\",@progbits\n.text.nvfp4_gemm_sm100_test:\n"
    + instruction(0x00, "R2UR UR6, R2", 9)
    + instruction(0x01, "UTMACCTL.PF [UR4]", 1)
    + instruction(0x02, "SYNCS.EXCH.64 URZ, [UR8], UR4", 2)
    + instruction(0x08, "UTMALDG.3D [UR8], [UR4]", 6)
    + ".L_x_1:\n" + instruction(0x10, "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R12]", 2)
    + instruction(0x20, "@!P0 BRA `(.L_x_9)", 12)
    + ".L_x_8:\n" + instruction(0x30, "R2UR UR4, R1", 1)
    + instruction(0x40, "UTCOMMA.4X gdesc[UR4]", 1)
    + instruction(0x50, "UIADD3 UR6, UPT, UPT, UR4, 0x2, URZ", 3)
    + instruction(0x60, "UTCOMMA.4X gdesc[UR6]", 1)
    + instruction(0x70, "@P2 BRA `(.L_x_3)", 5)
    + instruction(0x80, "UTCBAR [UR4], URZ", 7)
    + ".L_x_3:\n" + instruction(0x90, "@P1 BRA `(.L_x_1)", 4)
    + ".L_x_4:\n" + instruction(0xA0, "UTCOMMA.4X gdesc[UR8]", 1)
    + instruction(0xB0, "@P3 BRA `(.L_x_4)", 11)
    + instruction(0xC0, "EXIT", 5)
    + ".L_x_9:\n" + instruction(0xD0, "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R12]", 15)
    + instruction(0xE0, "BRA `(.L_x_8)", 15)
    + instruction(0xF0, "STL [R1], R2", 1))

# One thread initialises a barrier, then loads by one of two ways. Branches that ask which thread
# it is are apart, and a path around the first one is shorter.
START = (
    ".text.start:\n" + instruction(0x00, "S2R R0, SR_TID.X", 1, sets=2)
    + instruction(0x10, "UTMACCTL.PF [UR4]", 3)
    + instruction(0x20, "@!P0 BRA `(.L_x_1)", 5, waits=4)
    + instruction(0x30, "SYNCS.EXCH.64 URZ, [UR8], UR4", 14)
    + ".L_x_1:\n" + instruction(0x40, "@P1 BRA `(.L_x_2)", 6)
    + instruction(0x50, "NOP", 15)
    + instruction(0x60, "UTMALDG.3D [UR8], [UR4]", 1)
    + instruction(0x70, "BRA `(.L_x_3)", 1)
    + ".L_x_2:\n" + instruction(0x80, "NOP", 4)
    + instruction(0x90, "UTMALDG.3D [UR8], [UR4]", 1)
    + ".L_x_3:\n" + instruction(0xA0, "UTMACCTL.PF [UR4]", 3)
    + instruction(0xB0, "EXIT", 5))

# Two parts: rows are put, then what came is added to what is kept, and stored by threads. Then a
# sub-tile that may jump over its store.
TAIL = (
    ".text.tail:\n" + instruction(0x00, "@!P0 MEMBAR.ALL.GPU", 1)
    + ".L_x_1:\n" + instruction(0x08, "LDTM.x16 R4, tmem[UR9]", 2, sets=1)
    + instruction(0x10, "STS.128 [R2], R4", 4, waits=2)
    + instruction(0x20, "@P1 BRA `(.L_x_1)", 7)
    + instruction(0x30, "LDS.128 R20, [R6]", 1, sets=0)
    + instruction(0x40, "LDTM.x16 R4, tmem[UR9]", 2, sets=1)
    + instruction(0x50, "FADD R4, R4, R20", 4, waits=3)
    + instruction(0x60, "@P0 BRA `(.L_x_2)", 5)
    + instruction(0x70, "F2FP.F16.F32.PACK_AB R4, RZ, R4", 3)
    + instruction(0x80, "BRA `(.L_x_3)", 6)
    + ".L_x_2:\n" + instruction(0x90, "F2FP.BF16.F32.PACK_AB R4, RZ, R4", 3)
    + ".L_x_3:\n" + instruction(0xA0, "STG.E.128 desc[UR8][R8.64], R4", 1)
    + instruction(0xB0, "STG.E.128 desc[UR8][R8.64], R4", 2)
    + ".L_x_4:\n" + instruction(0xC0, "LDTM.x32 R4, tmem[UR9]", 2, sets=1)
    + instruction(0xD0, "FADD R4, R4, R3", 4, waits=2)
    + instruction(0xE0, "@P0 BRA `(.L_x_5)", 5)
    + instruction(0xF0, "F2FP.F16.F32.PACK_AB R4, RZ, R4", 3)
    + instruction(0x100, "BRA `(.L_x_6)", 6)
    + ".L_x_5:\n" + instruction(0x110, "F2FP.BF16.F32.PACK_AB R4, RZ, R4", 1)
    + ".L_x_6:\n" + instruction(0x120, "@P2 BRA `(.L_x_7)", 5)
    + instruction(0x130, "UTMASTG.3D [UR16], [UR8]", 6)
    + ".L_x_7:\n" + instruction(0x140, "@P1 BRA `(.L_x_4)", 7)
    + instruction(0x150, "EXIT", 5))


class Sass(unittest.TestCase):
    def test_stall_counts_are_read_from_the_control_bits(self):
        instructions, labels = sass.functions(LISTING)["nvfp4_gemm_sm100_test"]
        self.assertEqual([i.stall for i in instructions],
                         [9, 1, 2, 6, 2, 12, 1, 1, 3, 1, 5, 7, 4, 1, 11, 5, 15, 15, 1])
        self.assertEqual(labels[".L_x_8"], 0x30)

    def test_a_k_block_goes_by_the_commit_and_repeats_no_wait(self):
        rows = {what.split(" ", 1)[1]: number for what, number in sass.figures("sm100", LISTING)}
        self.assertEqual(rows["stall clocks of a k-block"], 2 + 12 + 1 + 1 + 3 + 1 + 5 + 7 + 4)
        self.assertEqual(rows["stall clocks from step to step"], 1 + 3)
        self.assertEqual(rows["stall clocks a step"], 36 // 2)

    def test_the_first_load_comes_after_a_barrier_of_its_thread(self):
        rows = dict(sass.rows_of_start(*sass.functions(START)["start"]))
        self.assertEqual(rows["stall clocks before the first load"], 1 + 3 + 5 + 14 + 6 + 4)
        # The branch waits for a result of 12 clocks, of which 4 have passed.
        self.assertEqual(rows["clocks before the first load"], 12 + 5 + 14 + 6 + 4)
        self.assertEqual(rows["clocks before the first map"], 1)

    def test_a_sub_tile_goes_by_its_store_and_waits_for_what_it_loads(self):
        rows = dict(tail_rows("tail_plain", *sass.functions(TAIL)["tail"]))
        # A tensor memory load's 80 clocks, 40 of 16 columns, and no way around the store.
        self.assertEqual(rows["clocks of a sub-tile, f16"], 80 + 4 + 5 + 3 + 6 + 5 + 6 + 7)
        self.assertEqual(rows["clocks of a sub-tile, bf16"], 80 + 4 + 5 + 1 + 5 + 6 + 7)
        self.assertEqual(rows["clocks of 16 rows of 2 parts, put"], 40 + 4 + 7)
        self.assertEqual(rows["clocks of 16 rows of 2 parts, f16"],
                         1 + 40 + 4 + 5 + 3 + 6 + 1 + 2)
        self.assertEqual(rows["clocks of 16 rows of 2 parts, bf16"], 1 + 40 + 4 + 5 + 3 + 1 + 2)
        self.assertEqual(rows["fences for the GPU before 16 rows of 2 parts"], 1)
        self.assertEqual(len(rows), 6)

    def test_what_goes_to_local_memory_and_to_uniform_registers_is_counted(self):
        hopper = LISTING.replace("UTCOMMA", "HGMMA").replace("@P3 BRA `(.L_x_4)", "NOP")
        rows = {what.split(" ", 1)[1]: number for what, number in sass.figures("sm90", hopper)}
        self.assertEqual(rows["local-memory instructions"], 1)
        self.assertEqual(rows["R2UR in the loop"], 1)
        self.assertEqual(rows["R2UR in all"], 2)

    def test_committed_figures_are_read_as_they_are_written(self):
        path = os.path.join(os.path.dirname(sass.__file__), "sass.txt")
        _, most = sass.committed(path)
        self.assertGreater(len(most), 500)
        with open(path, encoding="utf-8") as text:
            self.assertEqual(sass.lines_of(most.items()), text.read().splitlines()[3:])


class Comments(unittest.TestCase):
    def test_the_kernel_states_the_clocks_of_the_table(self):
        gates = os.path.dirname(sass.__file__)
        with open(os.path.join(gates, "sass.txt"), encoding="utf-8") as file:
            clocks = [int(each) for each in re.findall(r"sm100\S*.*stall clocks a step (\d+)",
                                                       file.read())]
        with open(os.path.join(gates, "../../kernel/sm100/mma.cuh"), encoding="utf-8") as file:
            words = " ".join(file.read().replace("//", " ").split())
        stated = re.search(r"A step takes (\d+) to (\d+) clocks to issue", words)
        self.assertEqual([int(each) for each in stated.groups()], [min(clocks), max(clocks)])


if __name__ == "__main__":
    unittest.main()
