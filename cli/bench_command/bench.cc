// sparkle bench MODEL | --layers F.csv | --batch F | --conv TEXT | --gemm TEXT: checked, interleaved with peak probes, medians.
#include "base/files/new_file.h"
#include "bench_command/bench_beside.h"
#include "bench_command/bench_layers.h"
#include "bench_command/bench_load.h"
#include "bench_command/bench_model.h"
#include "bench_command/bench_pipeline.h"
#include "command.h"

namespace sparkle::cli {
namespace {

struct BenchArguments {
  const CLI::App* command = nullptr;
  CommonOptions common;
  ModelBench model;
  LayerBench layer;
  PipelineBenchOptions piped;
  bool pipeline = false;
  std::string trace;
};

// What is given must belong together: nothing is ignored in silence.
Status check_combination(const BenchArguments& a) {
  const CLI::App& c = *a.command;
  if (!a.model.model.empty()) {
    SPARKLE_CHECK(refuse_options(c,
                                 {"--layers", "--batch", "--dt", "--dir", "--conv", "--gemm", "--filter", "--ladder",
                                  "--ablate", "--crossover", "--planes", "--batches", "--seed"},
                                 "is for layers and does not go with a model"));
    if (a.model.against.empty())
      SPARKLE_CHECK(refuse_options(c, {"--rounds", "--round-ms"}, "is for layers and for models --against another engine"));
    else
      SPARKLE_CHECK(
          refuse_options(c, {"--pipeline", "--serve", "--runs", "--streams", "--items", "--depth", "--trace"},
                         "does not go with --against, which takes engines in turns; there are --rounds and --duration"));
    if (a.model.duration > 0)
      SPARKLE_CHECK(refuse_options(c, {"--runs", "--pipeline", "--serve"}, "does not go with --duration"));
    if (a.model.streams > 0)
      SPARKLE_CHECK(refuse_options(c, {"--runs", "--pipeline", "--serve"}, "does not go with --streams, which has --duration"));
    if (!a.model.inputs.empty())
      SPARKLE_CHECK(refuse_options(c, {"--shape"}, "is for random values; the given inputs have shapes"));
    if (a.pipeline) SPARKLE_CHECK(refuse_options(c, {"--serve", "--runs"}, "does not go with --pipeline, which has --items"));
    else SPARKLE_CHECK(refuse_options(c, {"--items", "--depth", "--trace"}, "is for items in a pipeline and needs --pipeline"));
    if (a.model.serve) SPARKLE_CHECK(refuse_options(c, {"--output", "--json", "--runs"}, "does not go with --serve"));
    return ok();
  }
  SPARKLE_CHECK(refuse_options(c,
                               {"--input", "--shape", "--runs", "--duration", "--streams", "--serve", "--fusion", "--pipeline",
                                "--items", "--depth", "--trace"},
                               "measures a model and needs one, as in 'sparkle bench MODEL'"));
  SPARKLE_CHECK(refuse_options(c, {"--fallback"}, "is for the steps of a model and needs one; rows of layers name kernels"));
  if (a.layer.layers.empty() && a.layer.batch.empty())
    SPARKLE_CHECK(refuse_options(c, {"--filter"}, "picks layers of a list and needs --layers or --batch"));
  if (a.layer.batch.empty()) SPARKLE_CHECK(refuse_options(c, {"--dt", "--dir"}, "is for problem files and needs --batch"));
  if (a.layer.options.planes)
    SPARKLE_CHECK(refuse_options(c, {"--gemm", "--ablate", "--against", "--crossover", "--batches"},
                                 "does not go with --planes, which is for convolutions alone and the optimisation steps"));
  if (a.layer.crossover)
    SPARKLE_CHECK(refuse_options(c, {"--ladder", "--ablate", "--against", "--algorithm", "--variant", "--output"},
                                 "does not go with --crossover, which compares algorithms and prints"));
  if (a.layer.batches > 0)
    SPARKLE_CHECK(refuse_options(c, {"--ladder", "--ablate", "--against", "--crossover", "--round-ms"},
                                 "does not go with --batches, which hands all of them over at once"));
  if (a.layer.ladder) {
    SPARKLE_CHECK(
        refuse_options(c, {"--algorithm", "--variant", "--tuning"}, "does not go with --ladder, whose steps choose their own"));
    SPARKLE_CHECK(refuse_options(c, {"--ablate", "--against"}, "does not go with --ladder"));
  }
  if (a.layer.ablate) {
    SPARKLE_CHECK(refuse_options(c, {"--algorithm", "--variant", "--tuning"},
                                 "does not go with --ablate, which takes the planner's implicit GEMM"));
    SPARKLE_CHECK(refuse_options(c, {"--against"}, "does not go with --ablate"));
  }
  return ok();
}

int bench(const BenchArguments& a) {
  if (auto fits = check_combination(a); !fits.ok()) return fail(fits.error());
  if (!a.model.output.empty()) {
    if (auto apart = check_apart(a.model.output, a.model.model); !apart.ok()) return fail(apart.error());
    if (auto writable = check_writable(a.model.output); !writable.ok()) return fail(writable.error());
  }
  if (!a.trace.empty()) {
    if (auto apart = check_apart(a.trace, a.model.model); !apart.ok()) return fail(apart.error());
    if (auto writable = check_writable(a.trace); !writable.ok()) return fail(writable.error());
  }
  if (a.pipeline) return bench_pipeline(a.common, a.model, a.piped, a.trace);
  if (!a.model.model.empty()) {
    if (!a.model.against.empty()) return bench_beside(a.common, a.model, a.layer.options);
    return a.model.streams > 0 ? bench_load(a.common, a.model) : bench_model(a.common, a.model);
  }
  LayerBench layer = a.layer;
  layer.against = a.model.against;
  layer.output = a.model.output;
  return bench_layers(a.common, layer);
}

}  // namespace

void add_bench(CLI::App& app, Chosen& chosen) {
  auto* command = app.add_subcommand("bench", "Measure layers, a convolution or a whole model against the measured roofs");
  auto a = std::make_shared<BenchArguments>();
  a->command = command;
  add_common(*command, a->common);
  command->add_option("model,--model", a->model.model, "ONNX file, or a file of 'sparkle compile'");
  command->add_option("--layers", a->layer.layers, "layer list, CSV: name,n,c,h,w,k,r,s,stride_h,...");
  command->add_option("--batch", a->layer.batch,
                      "problem file of oneDNN's benchdnn (conv): --dt, --dir, --mb, --batch and problems; n\"name\" is kept");
  command->add_option("--dt", a->layer.dt, "element type of problems as benchdnn says it: f32, f16, bf16");
  command->add_option("--dir", a->layer.dir, "as benchdnn: FWD_I, FWD_D without a bias, FWD_B with one")
      ->check(CLI::IsMember({"FWD_I", "FWD_D", "FWD_B"}));
  command->add_option("--filter", a->layer.filters, "only layers of the list with this in their names");
  command->add_option("--conv", a->layer.convs, "a convolution: ic64ih56oc64oh56kh3ph1");
  command->add_option("--gemm", a->layer.gemms, "a matrix product m x n x k of two changing operands: 64x12544x147");
  command->add_flag("--planes", a->layer.options.planes,
                    "convolutions of tensors that lie plane by plane (NCHW), not channels last");
  command->add_flag("--ladder", a->layer.ladder, "the optimisation steps one after another");
  command->add_flag(
      "--ablate", a->layer.ablate,
      "one pattern off at a time: tile, block (CPUs), vectorise, pipeline, fuse; on GPUs also what their kernels have besides");
  command->add_flag(
      "--crossover", a->layer.crossover,
      "filters of growing length by transforms and by the best other algorithm, and where transforms begin to win");
  command
      ->add_option("--batches", a->layer.batches,
                   "so many batches handed over at once, each with operands of its own: resident, and with transfers beside "
                   "what these take alone")
      ->check(CLI::Range(1, 1000));
  command->add_option("--against", a->model.against,
                      "other engines in the same process, in turns: onednn,onnxruntime,openblas for layers, onnxruntime for "
                      "models, each perhaps =LIBRARY");
  command->add_option("--rounds", a->layer.options.rounds, "rounds of measurement")->check(CLI::Range(1, 1000));
  command
      ->add_option_function<double>(
          "--round-ms", [a](double ms) { a->layer.options.seconds_per_round = ms * 1e-3; },
          "time of a round for each layer and engine, 30 by default")
      ->check(finite_number())
      ->check(CLI::Range(0.1, 10000.0));
  command->add_option("--seed", a->layer.options.seed, "of operands' values and of what is checked; else another one each time")
      ->check(CLI::Range(int64_t{1}, int64_t{999999999}));
  command
      ->add_option("--input", a->model.inputs,
                   "TensorProto or .npy file, one per input of the model; else seeded random values")
      ->allow_extra_args(false);
  command->add_option("--shape", a->model.shapes, "NAME=1x3x224x224 for inputs whose sizes the model leaves open")
      ->allow_extra_args(false);
  command->add_option("--runs", a->model.runs, "timed runs of a model; 0: about a second")->check(CLI::Range(0, 1000000));
  command->add_option("--duration", a->model.duration, "seconds to measure a model for, instead of --runs")
      ->check(positive_number())
      ->check(CLI::Range(0.001, 86400.0));
  command
      ->add_option("--streams", a->model.streams,
                   "so many requests of a model at once, each by a thread of its own: latency and throughput")
      ->check(CLI::Range(1, 256));
  command->add_flag("--pipeline", a->pipeline,
                    "items one after another, each waited for, beside the same through a pipeline: latency, throughput, how "
                    "busy the device is. Of several devices (--device A,B): rates alone and together");
  command->add_option("--trace", a->trace,
                      "with --pipeline: also writes when each item of the first round was uploaded, computed and downloaded to "
                      "this file, for Perfetto or chrome://tracing");
  command->add_option("--items", a->piped.items, "items of a round; 0: about a third of a second")
      ->check(CLI::Range(0, 1000000));
  command->add_option("--depth", a->piped.depth, "items that the device has at once")->check(CLI::Range(1, 64));
  command->add_flag("--serve", a->model.serve, "answer 'run N' lines on standard input with wall times, for comparisons");
  command->add_option("--output", a->model.output, "also write the JSON to this file");
  command->callback([&chosen, a] { chosen = [a] { return bench(*a); }; });
}

}  // namespace sparkle::cli
