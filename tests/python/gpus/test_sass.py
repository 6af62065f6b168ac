"""scripts/sass on kernels that touch device memory before they have waited for those that they follow."""

import importlib.machinery
import importlib.util
import pathlib

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
