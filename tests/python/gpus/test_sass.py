"""scripts/sass on kernels that touch device memory before they have waited for those that they follow."""

import importlib.machinery
import importlib.util
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[3]
LOADER = importlib.machinery.SourceFileLoader("sass", str(ROOT / "scripts" / "sass"))
SASS = importlib.util.module_from_spec(importlib.util.spec_from_loader("sass", LOADER))
LOADER.exec_module(SASS)

CODE = """
arch = sm_80
		Function : of_before
        /*0000*/                   LDG.E R4, desc[UR4][R2.64] ;
arch = sm_90a
		Function : waits
        /*0000*/                   SYNCS.EXCH.64 URZ, [UR8], UR4 ;
        /*0010*/                   ACQBULK ;
        /*0020*/                   PREEXIT ;
        /*0030*/                   LDG.E R4, desc[UR4][R2.64] ;
		Function : hurries
        /*0000*/              @!P0 UTMALDG.4D [UR8], [UR4] ;
        /*0010*/                   ACQBULK ;
        /*0020*/                   PREEXIT ;
		Function : never_waits
        /*0000*/                   STG.E desc[UR4][R2.64], R5 ;
"""
PTX = """
.visible .entry waits_too(
	ld.param.u64 	%rd1, [waits_too_param_0];
	st.shared.u32 	[%r1], %r2;
	prefetch.tensormap [%rd1];
	griddepcontrol.wait;
	ld.global.nc.f32 	%f1, [%rd1];
}
.visible .entry hurries_too(
	@%p1 ld.global.nc.f32 	%f1, [%rd1];
	griddepcontrol.wait;
}
.visible .entry never_waits_either(
	st.global.f32 	[%rd1], %f1;
}
"""


def test_what_comes_before_the_wait_is_found(tmp_path):
    (tmp_path / "code").write_text(CODE, encoding="utf-8")
    (tmp_path / "ptx").write_text(PTX, encoding="utf-8")
    cuobjdump = tmp_path / "cuobjdump"
    cuobjdump.write_text(f'#!/bin/sh\n[ "$1" = -sass ] && cat "{tmp_path}/code" || cat "{tmp_path}/ptx"\n', encoding="utf-8")
    cuobjdump.chmod(0o755)
    problems, count = SASS.early_accesses(tmp_path / "any.fatbin", cuobjdump)
    assert count == 6
    assert problems == [
        "hurries touches device memory before it has waited: UTMALDG",
        "never_waits has no ACQBULK",
        "never_waits has no PREEXIT",
        "hurries_too touches device memory before it has waited: @%p1 ld.global.nc.f32 \t%f1, [%rd1];",
        "never_waits_either has no griddepcontrol.wait in its PTX",
    ]


def test_warps_a_core_follow_from_registers_threads_and_shared_memory():
    assert SASS.resident(64, 128, 0, 80) == 8  # 8 x 4 warps of 2048 registers
    assert SASS.resident(65, 128, 0, 80) == 7  # 72 are handed out
    assert SASS.resident(32, 1024, 0, 80) == 2 and SASS.resident(32, 1024, 0, 86) == 1  # warps
    assert SASS.resident(16, 32, 0, 90) == 32 and SASS.resident(16, 32, 0, 86) == 16  # blocks
    assert SASS.resident(32, 128, 81 * 1024, 80) == 2 and SASS.resident(32, 128, 82 * 1024, 80) == 1  # a KiB a block
    assert SASS.resident(255, 128, 200 * 1024, 80) == 0  # no room


def test_instructions_are_counted_by_pipe():
    uniform = ["UIADD3", "ULOP3", "UMOV", "ULEA", "UISETP", "ULDC", "R2UR", "S2UR", "VOTEU"]
    others = ["UTMALDG", "UBLKCP", "UCGABAR_ARV", "USETMAXREG", "R2P", "VOTE", "IADD3", "HMMA"]
    assert all(SASS.UNIFORM.match(name) for name in uniform)
    assert not any(SASS.UNIFORM.match(name) for name in others)
    kernel = SASS.Kernel("sparkle_gemm_mma_128x128_f16", 80)
    loop = ["HMMA", "IADD3", "UIADD3", "R2UR", "FFMA", "LDSM"]
    kernel.code = [(16 * i, False, name, name) for i, name in enumerate(loop)] + [(96, True, "BRA", "BRA 0x0")]
    sizes = SASS.variants()[kernel.name]
    found = SASS.measured(kernel, sizes, {"registers": 214})
    assert (found["products"], found["alu"], found["fma"], found["uniform"], found["loads"]) == (1, 1, 1, 2, 1)
    assert found["clocks"]["alu"] == 2 and found["clocks"]["uniform"] == 4 and found["clocks"]["fma"] == 2
    assert found["stages"] == 4 and found["blocks"] == {80: 2, 86: 1}


def kernel_of(text):
    """A kernel of lines 'LABEL: @P0 OPERATION OPERANDS', in which labels stand for their addresses."""
    kernel, labels, lines = SASS.Kernel("sparkle_gemm_wgmma_128x256x1_bf16", 90), {}, []
    for line in filter(None, map(str.strip, text.splitlines())):
        label, _, rest = line.rpartition(": ")
        labels |= {label: f"{16 * len(lines):#x}"} if label else {}
        lines.append(rest)
    for i, line in enumerate(lines):
        words = [labels.get(word, word) for word in line.split()]
        predicated = words[0].startswith("@")
        text = " ".join(words[predicated:])
        kernel.code.append((16 * i, predicated, re.match(r"\w+", text)[0], text))
    return kernel, {name: int(at, 16) for name, at in labels.items()}


PERSISTENT = """
    tile: S2R R1, SR_TID.X
    loop: HGMMA.64x256x16.F32.BF16 R24, gdesc[UR4]
          @P0 BRA loop
          WARPGROUP.DEPBAR.LE gsb0, 0x0
          @P1 BRA whole
          STG.E.128 desc[UR10][R4.64], R8
          STG.E.128 desc[UR10][R4.64], R12
          STG.E.128 desc[UR10][R4.64], R16
          MEMBAR.SC.GPU
   whole: @P2 BRA alone
          LDSM.16.M88.4 R4, [R20]
          FADD R8, R8, R4
   alone: LDC R4, c[0x2][R5]
          BRX R4 -0x100
    relu: FMNMX R8, RZ, R8, !PT
          FMNMX R9, RZ, R9, !PT
          BRA put
    rare: MUFU.EX2 R8, R8
          LDC R4, c[0x2][R5+0xc]
          BRX R4 -0x100
    case: BRA put
     put: @P3 BRA wide
          STG.E.128 desc[UR10][R4.64], R8
          STG.E.128 desc[UR10][R4.64+0x10], R12
          BRA end
    wide: F2FP.BF16.F32.PACK_AB R8, R9, R8
          F2FP.BF16.F32.PACK_AB R10, R11, R10
          STSM.16.M88.4 [R20], R8
          @P4 BRA end
          UTMASTG.2D [UR12], [UR18]
     end: @P5 BRA tile
          EXIT
"""


def test_the_way_behind_a_loop_rounds_and_stores_and_is_short():
    kernel, at = kernel_of(PERSISTENT)
    count = lambda words: SASS.epilogue.counted(kernel.code, kernel.jumps(), (at["loop"], at["loop"] + 16), (), words)
    # depbar, bra, bra, ldc, brx, bra, 2 f2fp, stsm, bra, utmastg, bra: sums in parts, a residual and f32 lie beside the way.
    assert count([at["put"], at["relu"], at["rare"], at["case"]]) == 12
    assert count([at["relu"], at["relu"], at["rare"], at["case"]]) == 15
    assert count([at["rare"], at["rare"], at["rare"], at["case"]]) == 16
    assert count([]) is None  # no table, no way
    assert SASS.epilogue.counted(kernel.code[: at["wide"] // 16], kernel.jumps(), (at["loop"], at["loop"] + 16)) is None


ROLLED = """
    loop: HMMA.16816.F32.BF16 R4, R8, R12, R4
          @P0 BRA loop
          BAR.SYNC.DEFER_BLOCKING 0x0
  strips: @P1 BRA other
          STS.64 [R1], R4
   other: @P2 BRA rows
          STS.64 [R1], R6
    rows: LDS.128 R8, [R1]
          @P3 BRA narrow
          F2FP.BF16.F32.PACK_AB R8, R9, R8
          STG.E.128 desc[UR10][R4.64], R8
          BRA next
  narrow: F2FP.BF16.F32.PACK_AB R8, RZ, R8
          F2FP.BF16.F32.PACK_AB R9, RZ, R9
          F2FP.BF16.F32.PACK_AB R10, RZ, R10
          STG.E.U16 desc[UR10][R4.64], R8
    next: IADD3 R2, R2, 0x4, RZ
          LEAVE_ROWS
          LEAVE_STRIPS
          EXIT
"""


def test_turns_behind_a_loop_count_and_fragments_are_stored_once():
    # A row is lds, bra, f2fp, stg, bra, iadd3 and the way back: 7. A strip two tests, four rows and the way back: 31. Three of
    # them, both stores, the barrier before and the end behind.
    jumps = ROLLED.replace("LEAVE_ROWS", "@P4 BRA rows").replace("LEAVE_STRIPS", "@P5 BRA strips")
    kernel, _ = kernel_of(jumps)
    assert SASS.epilogue.counted(kernel.code, kernel.jumps(), (0, 16), (4, 3)) == 1 + 3 * 31 + 2 + 1
    assert SASS.epilogue.counted(kernel.code, kernel.jumps(), (0, 16), (4, 3, 2)) is None  # there are but two loops
    # Where calls leave the loops their last turn has no jump back: rows of 8, the last of 7, and so strips of 35, the last 34.
    calls = ROLLED.replace("LEAVE_ROWS", "@P4 CALL.REL.NOINC out\nBRA rows")
    kernel, _ = kernel_of(calls.replace("LEAVE_STRIPS", "out: @P5 CALL.REL.NOINC gone\nBRA strips\ngone: NOP"))
    assert SASS.epilogue.counted(kernel.code, kernel.jumps(), (0, 16), (4, 3)) == 1 + 2 * 35 + 34 + 2 + 2


def test_counts_that_grow_are_told():
    kept = {"registers": 168, "loop": 57, "products": 4, "epilogue": 566}
    assert not list(SASS.differing(kept | {"epilogue": 570}, kept))
    assert list(SASS.differing(kept | {"epilogue": 600, "loop": 60}, kept)) == [
        "loop 60 instead of 57",
        "epilogue 600 instead of 566",
    ]
    assert list(SASS.differing(kept | {"epilogue": None}, kept)) == ["epilogue None instead of 566"]
    without = {what: kept[what] for what in ("registers", "loop", "products")}
    assert not list(SASS.differing(without | {"epilogue": None}, without))


def test_tables_of_indexed_jumps_are_those_of_the_kernel(tmp_path):
    text = """
64-bit ELF: type=ET_EXEC, ABI=8, sm=90, toolkit=13.0, flags=0x6005a04
arch = sm_90a
.nv.constant2.one
0x00017120 0x00017020
0x0000a6a0

.nv.constant0.one
0x00000000 0x00000000
.nv.constant2.two
0x00000040
arch = sm_80
.nv.constant2.two
0x00000080
"""
    cuobjdump = tmp_path / "cuobjdump"
    cuobjdump.write_text(f"#!/bin/sh\ncat <<'END'\n{text}END\n", encoding="utf-8")
    cuobjdump.chmod(0o755)
    tables = SASS.tables_of(tmp_path / "any.fatbin", cuobjdump)
    assert tables == {("one", 90): [0x17120, 0x17020, 0xA6A0], ("two", 90): [0x40], ("two", 80): [0x80]}
