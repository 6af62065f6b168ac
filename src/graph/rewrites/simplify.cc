// simplify(): the table of rewrites, run in order until none of them finds anything.
#include "base/system/out_of_memory.h"
#include "graph/graph.h"
#include "graph/rewrites/rewrites.h"

namespace sparkle {
namespace {

constexpr Rewrite kRewrites[] = {
    {"match_quantized", match_quantized},
    {"fold_constants", fold_constants},
    {"resolve_clips", resolve_clips},
    {"drop_no_ops", drop_no_ops},
    {"merge_moves", merge_moves},
    {"merge_pads", merge_pads},
    {"fold_affine", fold_affine},
    {"match_matmul_bias", match_matmul_bias},
    {"match_group_normalization", match_group_normalization},
    {"match_attention", match_attention},
    {"match_activations", match_activations},
    {"simplify_powers", simplify_powers},  // behind the functions that are written with them
};
constexpr int kMostRounds = 8;  // every rewrite shortens the graph or resolves something; models settle after two or three

Status rewrite(Graph& graph) {
  remove_dead_ops(graph);
  for (int round = 0; round < kMostRounds; ++round) {
    Editor editor(graph);
    bool changed = false;
    for (const Rewrite& rewrite : kRewrites) changed = rewrite.run(editor) || changed;
    editor.finish();
    if (!changed) break;
  }
  Editor editor(graph);
  share_constants(editor);
  editor.finish();
  return ok();
}

}  // namespace

Status simplify(Graph& graph) {
  return guard_memory("Folding the model's constants", [&] { return rewrite(graph); });
}

}  // namespace sparkle
