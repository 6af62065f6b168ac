#!/usr/bin/env python3
"""Kernels with one mistake each, which the model has to catch: plant.py SOURCE_FOLDER OUT_FOLDER.

Writes OUT/NAME/... with all texts of src/backends/cuda in a namespace of its own, one of them wrong, and
OUT/planted_NAME.cu with an entry sparkle_planted_NAME. A mistake whose place is no longer found ends with an error.
planted_test.cc has what is said of each."""
import pathlib
import re
import sys

MMA, WGMMA, CLUSTER, TF32, ELEMENTS, HALO, BYTES = "mma", "wgmma", "cluster", "tf32", "elements", "halo", "bytes"
FLOAT8, BOXES = "float8", "boxes"
FLASH, FLASH_FMA = "flash", "flash_fma"
FEW, FEW_ROWS, WMMA = "few", "few_rows", "wmma"
BODY = {
    MMA: ("GemmRecord", 128, "GemmMma<Operand::f16, GemmLoader::chunks, 64, 64, 64, 2, 2, 4>"),
    TF32: ("GemmRecord", 128, "GemmMma<Operand::tf32, GemmLoader::chunks, 64, 64, 64, 2, 2, 4>"),
    ELEMENTS: ("GemmRecord", 128, "GemmMma<Operand::f16, GemmLoader::elements, 64, 64, 64, 2, 2, 2>"),
    WGMMA: ("GemmTmaRecord", 384, "GemmWgmma<Operand::f16, 128, 64, 3, 1>"),
    CLUSTER: ("GemmTmaRecord", 384, "GemmWgmma<Operand::f16, 128, 64, 3, 2>"),
    BYTES: ("GemmTmaRecord", 384, "GemmWgmma<Operand::u8, 128, 128, 3, 1>"),
    FLOAT8: ("GemmTmaRecord", 384, "GemmWgmma<Operand::e4m3, 128, 64, 3, 1>"),
    BOXES: ("GemmTmaRecord", 384, "GemmWgmma<Operand::f16, 128, 128, 3, 1>"),
    HALO: ("GemmHaloRecord", 384, "GemmHalo<Operand::f16>"),
    FLASH: ("AttentionRecord", 128, "Flash<Operand::f16, 64, true>"),
    FLASH_FMA: ("AttentionRecord", 256, "FlashFma<64>"),
    FEW: ("FewRecord", 128, "FewPairs<4, 2>"),
    FEW_ROWS: ("FewRecord", 128, "FewRows<5, 1>"),
    WMMA: ("GemmRecord", 128, "GemmWmma<true>"),
}
HEADERS = {HALO: "gemm_halo.cuh", BYTES: "gemm_wgmma.cuh", FLOAT8: "gemm_wgmma.cuh", WGMMA: "gemm_wgmma.cuh",
           CLUSTER: "gemm_wgmma.cuh", BOXES: "gemm_wgmma.cuh", FLASH: "attention/flash.cuh",
           FLASH_FMA: "attention/flash_fma.cuh", FEW: "gemm_few.cuh", FEW_ROWS: "gemm_few.cuh", WMMA: "gemm_wmma.cuh"}
PROLOGUES = (WGMMA, CLUSTER, BYTES, FLOAT8, BOXES, HALO)
F_FLASH, F_FMA, F_ROWS = "kernels/attention/flash.cuh", "kernels/attention/flash_fma.cuh", "kernels/attention/flash_rows.cuh"
F_SCORES, F_INDEX = "kernels/attention/flash_scores.cuh", "kernels/attention/attention_index.cuh"
F_FEW, F_WMMA = "kernels/gemm_few.cuh", "kernels/gemm_wmma.cuh"
F_HALO, F_BOXES = "kernels/gemm_halo.cuh", "kernels/products/gemm_boxes.cuh"
F_BOX_FORMS = "kernels/products/box_forms.cuh"
F_TARGET = "ptx/target.cuh"
F_MMA, F_WGMMA, F_PIPELINE = "kernels/gemm_mma.cuh", "kernels/gemm_wgmma.cuh", "kernels/gemm_pipeline.cuh"
# name: kernel, file, what stands there, what is planted.
MISTAKES = {
    "nothing_mma": (MMA, F_MMA, "", ""),
    "nothing_elements": (ELEMENTS, F_MMA, "", ""),
    "nothing_tf32": (TF32, F_MMA, "", ""),
    "nothing_wgmma": (WGMMA, F_WGMMA, "", ""),
    "nothing_halo": (HALO, F_HALO, "", ""),
    "halo_never_lets_go": (HALO, F_HALO, "if (pixels_before != 0) let_go(pixels_before, lane);", ""),
    "halo_pixels_unawaited": (HALO, F_HALO, "barrier_wait(pixels.full(), pixels.parity);", ""),
    "halo_of_another_tap": (HALO, F_HALO, "tap_r * g.dilation[1] * width", "tap_r * g.dilation[1] * (width - 1)"),
    "nothing_cluster": (CLUSTER, F_WGMMA, "", ""),
    "nothing_bytes": (BYTES, F_WGMMA, "", ""),
    "nothing_float8": (FLOAT8, F_WGMMA, "", ""),
    "float8_sums_kept_in_tensor_cores": (FLOAT8, "kernels/products/gemm_float8.cuh",
        "k > 0);\n    wgmma_commit();\n    wgmma_wait<0>();\n    hold(part);\n"
        "    Gemm::let_go(shared, turn.stage, lane);\n    SPARKLE_UNROLL\n"
        "    for (int i = 0; i < Gemm::kColumns / 2; ++i) sums[i] += part[i];",
        "k > 0 || step > 0);\n    wgmma_commit();\n    wgmma_wait<0>();\n    hold(part);\n"
        "    Gemm::let_go(shared, turn.stage, lane);\n    for (int i = 0; i < Gemm::kColumns / 2; ++i) sums[i] = part[i];"),
    "bytes_of_pixels_unsynchronised": (BYTES, "kernels/integers/zero_points.cuh",
        "sync_threads(barrier, kThreads);\n    const uint32_t lane",
        "const uint32_t lane"),
    "bytes_outside_forgotten": (BYTES, "kernels/gemm_finish.cuh",
        "if (record.w_taps != nullptr && x_zero != 0) give_back_outside(record, pixel, sums);", ""),
    "nothing_boxes": (BOXES, F_BOXES, "", ""),
    "boxes_overwritten": (BOXES, F_BOXES, "if (at.lane == 0) wait_stores_read<0>();  // the part before", ""),
    "boxes_unfenced": (BOXES, F_BOXES, "fence_async_proxy();\n    sync_warp();", "sync_warp();"),
    "boxes_wrong_swizzle": (BOXES, F_BOX_FORMS, "store_matrix_4(box + line + (chunk ^ j * 32), words);",
        "store_matrix_4(box + line + (chunk + j * 32) % 128, words);"),
    "bytes_of_pixels_over_boxes": (BYTES, F_WGMMA, "kZeroPointsAt = kBoxes ? kTermsAt : kStripsAt",
        "kZeroPointsAt = kStripsAt"),
    "bytes_outside_by_boxes": (BYTES, F_WGMMA, "record.boxes != 0 && !gives_back_outside", "record.boxes != 0"),
    "boxes_left_behind": (BOXES, F_BOXES, "if (lane == 0) wait_stores_read<0>();\n  }", "static_cast<void>(lane);\n  }"),
    "boxes_terms_unsynchronised": (BOXES, F_BOXES, "    }\n    sync_threads(barrier, kThreads);", "    }"),
    "boxes_terms_too_soon": (BOXES, F_BOXES, "sync_threads(barrier, kThreads);  // those", "// those"),
    "boxes_residual_unawaited": (BOXES, F_BOXES,
        "if (part % kPartsAtOnce == 0) barrier_wait(Gemm::full(at.shared, turn.stage), turn.parity);", ""),
    "boxes_residual_unfenced": (BOXES, F_BOXES, "fence_async_proxy();  // the engine writes there next", ""),
    "bytes_of_pixels_unfenced": (BYTES, "kernels/integers/zero_points.cuh",
        "fence_async_proxy();  // the engine writes there next", ""),
    "boxes_residual_kept": (BOXES, F_BOXES, "Gemm::let_go(at.shared, turn.stage, at.lane);", ""),
    "early_read": (MMA, F_PIPELINE, "wait_copies<kStages - 2>();", "wait_copies<kStages - 1>();"),
    "missing_barrier": (MMA, F_PIPELINE, "wait_copies<kStages - 2>();\n        sync_block();", "wait_copies<kStages - 2>();"),
    "stage_too_soon": (MMA, F_PIPELINE, "next = shared + (kStages - 1) * kStageBytes", "next = shared"),
    "wrong_swizzle": (MMA, F_MMA,
        "return chunk_place<kBytes>(warp_m * kWarpM + lane % 16, lane / 16);",
        "return (warp_m * kWarpM + lane % 16) * kBytes + lane / 16 * 16;"),
    "sums_over_stages": (MMA, F_PIPELINE,
        "wait_copies<0>();\n    sync_block();  // what",
        "wait_copies<0>();\n    // what"),
    "missing_warp_barrier": (MMA, F_MMA, "      sync_warp();\n      SPARKLE_ROLLED", "      SPARKLE_ROLLED"),
    "splits_left_counted": (MMA, "kernels/gemm_splits.cuh", "if (thread == 0) store_global(record.counters + tile, 0u);", ""),
    "taps_beyond_the_edge": (MMA, "kernels/gemm_loaders.cuh",
        "(taps_inside[i] & bits) == bits",
        "taps_inside[i] != 0 && bits != ~0u"),
    "put_unsynchronised": (ELEMENTS, F_PIPELINE,
        "wait_copies<0>();\n        sync_block();\n        const bool more",
        "wait_copies<0>();\n        const bool more"),
    "tf32_unrounded": (TF32, F_MMA, "a[i][r] = as_tf32(a[i][r]);", "{}"),
    "wrong_phase": (WGMMA, F_WGMMA,
        "barrier_wait(full(shared, turn.stage), turn.parity)",
        "barrier_wait(full(shared, turn.stage), turn.parity ^ 1)"),
    "wrong_phase_of_copies": (WGMMA, F_WGMMA,
        "turn.parity ^ 1);\n        barrier_arrive",
        "turn.parity);\n        barrier_arrive"),
    "copies_without_waiting": (WGMMA, F_WGMMA, "barrier_wait(empty(shared, turn.stage), turn.parity ^ 1);", ""),
    "wrong_descriptor": (WGMMA, "ptx/wgmma.cuh", "uint64_t{1} << 62", "uint64_t{2} << 62"),
    "wrong_stride": (WGMMA, "ptx/wgmma.cuh", "uint64_t{1024 >> 4} << 32", "uint64_t{512 >> 4} << 32"),
    "let_go_too_soon": (WGMMA, F_WGMMA, "wgmma_wait<1>();", "wgmma_wait<2>();"),
    "sums_read_early": (WGMMA, F_WGMMA, "wgmma_wait<0>();\n    hold(sums);", "hold(sums);"),
    "missing_wgmma_fence": (WGMMA, F_WGMMA, "wgmma_fence();", ""),
    "wrong_bytes": (WGMMA, F_WGMMA,
        "barrier_arrive_expecting(barrier, kStageBytes)",
        "barrier_arrive_expecting(barrier, kLeftBytes)"),
    "barriers_unsynchronised": (WGMMA, F_WGMMA, "} else {\n      sync_block();\n    }", "}"),
    "cluster_counts_its_own": (CLUSTER, F_WGMMA, "4 * kConsumers * kCluster);", "4 * kConsumers);"),
    "cluster_lets_go_of_its_own": (CLUSTER, F_WGMMA,
        "if (lane < kCluster) barrier_arrive_at(empty(shared, stage), lane);",
        "if (lane < kCluster) barrier_arrive(empty(shared, stage));"),
    "cluster_share_to_itself": (CLUSTER, F_WGMMA, "kCluster > 1 ? (1 << kCluster) - 1 : 0", "0"),
    "nothing_few": (FEW, F_FEW, "", ""),
    "nothing_few_rows": (FEW_ROWS, F_FEW, "", ""),
    "nothing_wmma": (WMMA, F_WMMA, "", ""),
    "few_unshifted": (FEW, F_FEW, "lane % 4 * 2 - lane / 4 % 2", "lane % 4 * 2"),
    "few_copies_unawaited": (FEW, F_FEW, "wait_copies<0>();", ""),
    "few_image_overwritten": (FEW, F_FEW, "sync_block();  // copies are there, and what the image held is done with", ""),
    "few_image_unsynchronised": (FEW, F_FEW,
        "sync_block();\n      const int32_t next",
        "const int32_t next"),
    "few_filters_unsynchronised": (FEW, F_FEW, "sync_block();\n    Filters filters;", "Filters filters;"),
    "few_pairs_beyond": (FEW, F_FEW, "p.there = number < pairs;", "p.there = true;"),
    "few_image_not_zero": (FEW, F_FEW, "store_shared_16(shared.image + i, Words4{});", ""),
    "few_rows_beyond": (FEW_ROWS, F_FEW, "row = first < last ? first : last;", "row = first;"),
    "few_rows_unturned": (FEW_ROWS, F_FEW, "a[(turn + step) % kSteps]", "a[step]"),
    "few_rows_not_a_row_apart": (FEW_ROWS, F_FEW, "+ at % 2 - of / (kTiles * kSteps)", "+ at % 2"),
    "wmma_half_of_k": (WMMA, F_WMMA, "k + k_first, x_instance", "k, x_instance"),
    "wmma_columns_as_rows": (WMMA, F_WMMA, "store_fragment(out, sums, kSide);", "store_fragment(out, sums, kSide + 4);"),
    "cluster_ends_early": (CLUSTER, F_WGMMA, "if constexpr (kCluster > 1) sync_cluster();", ""),
    "wgmma_begins_too_soon": (WGMMA, F_WGMMA, "wait_for_prerequisites();", ""),
    "cluster_copies_too_soon": (CLUSTER, F_WGMMA,
        "wait_for_prerequisites();\n    launch_dependents();\n\n    if (group == 0) {",
        "launch_dependents();\n    if (group != 0) wait_for_prerequisites();\n    if (group == 0) {"),
    "wgmma_half_waits": (WGMMA, F_WGMMA,
        "wait_for_prerequisites();",
        "if (group != 0 || thread_id() == 0) wait_for_prerequisites();"),
    "wgmma_lets_none_begin": (WGMMA, F_WGMMA, "launch_dependents();", ""),
    "halo_begins_too_soon": (HALO, F_HALO, "wait_for_prerequisites();", ""),
    "begins_too_soon": (MMA, F_TARGET, "cuda_model::wait_for_prerequisites();", ""),
    "nothing_flash": (FLASH, F_FLASH, "", ""),
    "nothing_flash_fma": (FLASH_FMA, F_FMA, "", ""),
    "flash_early_read": (FLASH, F_FLASH, "wait_copies<0>();", "wait_copies<1>();"),
    "flash_missing_barrier": (FLASH, F_FLASH, "sync_block();", ""),
    "flash_stage_too_soon": (FLASH, F_FLASH, "load_block(key + kKeys, next)", "load_block(key + kKeys, now)"),
    "flash_wrong_rescale": (FLASH, F_FLASH, "*= rescale[i][r / 2]", "*= rescale[i][r % 2]"),
    "flash_sum_not_rescaled": (FLASH, F_SCORES, "multiply_add(sum[i][half], rescale[i][half], total)", "sum[i][half] + total"),
    "flash_largest_of_a_lane": (FLASH, F_SCORES,
        "for (const uint32_t lanes : {1u, 2u}) most = larger_of(most, shuffle_xor(most, lanes));",
        "most = larger_of(most, shuffle_xor(most, 1u));"),
    "flash_wrong_swizzle": (FLASH, F_FLASH,
        "Rows::place(lane % 8 + lane / 16 * 8, lane / 8 % 2)",
        "(lane % 8 + lane / 16 * 8) * kRowBytes + lane / 8 % 2 * 16"),
    "flash_wrong_step": (FLASH, F_ROWS, "(at ^ (chunk % kExchanged * 16))", "(at + (chunk % kExchanged * 16))"),
    "flash_chunks_crossed": (FLASH, F_FLASH, "lane % 8 + lane / 16 * 8, lane / 8 % 2", "lane % 16, lane / 16"),
    "flash_values_not_transposed": (FLASH, F_FLASH, "load_matrix_4_transposed(", "load_matrix_4("),
    "flash_mask_off_by_one": (FLASH, F_SCORES, "k >= seen.end) score", "k > seen.end) score"),
    "flash_window_off_by_one": (FLASH, F_INDEX, "seen.begin = place - left;", "seen.begin = place - left + 1;"),
    "flash_keys_beyond_the_last": (FLASH, F_FLASH, "key + kKeys > seen_last", "key > seen_last"),
    "flash_mask_of_another_row": (FLASH, F_SCORES,
        "static_cast<uint32_t>(row + i) * kFlashMaskRow",
        "static_cast<uint32_t>(row) * kFlashMaskRow"),
    "flash_hidden_is_a_number": (FLASH, F_SCORES, "bits == kFlashHidden ? -INFINITY : score + mask", "score + mask"),
    "flash_result_unsynchronised": (FLASH, F_FLASH, "sync_warp();\n    // Store.", "// Store."),
    "flash_fma_keys_unsynchronised": (FLASH_FMA, F_FMA, "sync_block();  // keys", "// keys"),
    "flash_fma_values_unsynchronised": (FLASH_FMA, F_FMA, "sync_block();  // values", "// values"),
    "flash_fma_values_unawaited": (FLASH_FMA, F_FMA,
        "wait_copies<0>();\n      sync_block();  // values",
        "sync_block();  // values"),
    "flash_fma_sum_not_rescaled": (FLASH_FMA, F_FMA, "sum[i] *= rescale;", ""),
}


def write(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")


def main():
    source, out = (pathlib.Path(a) for a in sys.argv[1:3])
    texts = [f for f in sorted((source / "backends" / "cuda").rglob("*")) if f.suffix in (".cuh", ".h", ".inc")]
    for name, (kind, place, before, planted) in MISTAKES.items():
        for file in texts:
            text = file.read_text(encoding="utf-8")
            where = file.relative_to(source / "backends" / "cuda").as_posix()
            if where == place:
                if text.count(before) != 1 and before:
                    sys.exit(f"plant.py: '{before}' stands {text.count(before)} times in {place}, where {name} expects it once")
                text = text.replace(before, planted) if before else text
            text = re.sub(r"\bnamespace sparkle::cuda\b", f"namespace sparkle::planted_{name}", text)
            write(out / name / "backends" / "cuda" / where, text)
        record, threads, body = BODY[kind]
        header = HEADERS.get(kind, "gemm_mma.cuh")
        entry = "SPARKLE_KERNEL_WITH_PROLOGUE" if kind in PROLOGUES else "SPARKLE_KERNEL"
        write(out / f"planted_{name}.cu", f'#include "{name}/backends/cuda/kernels/{header}"\n\n'
              f"using namespace sparkle::planted_{name};\n\n"
              f"{entry}(sparkle_planted_{name}, {record}, {threads}, 1) {{ {body}::run(record); }}\n")
        print(out / f"planted_{name}.cu", out / name)
    for file in out.glob("planted_*.cu"):  # of mistakes that were planted once: the build takes in what lies here
        if file.stem.removeprefix("planted_") not in MISTAKES:
            file.unlink()


if __name__ == "__main__":
    main()
