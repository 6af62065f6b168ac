// sparkle fix MODEL -o OUT: rewrites that change nothing, another precision where it is asked for, and the proof of both.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/files/new_file.h"
#include "base/printable.h"
#include "command.h"
#include "device/known/known_devices.h"
#include "fix/fix.h"
#include "fix/report_json.h"
#include "fix_command/samples.h"
#include "measure/check_targets.h"
#include "run_command/model_inputs.h"

namespace sparkle::cli {
namespace {

struct FixArguments {
  CommonOptions machine;
  RunOptions samples;
  std::string model, output, target = "auto", precision, calibration = "mse", proof = "best";
  std::vector<std::string> only, shapes, wide;
  int multiple = 0;
  double max_extra = 25, percentile = 99.99, cosine = 0, agreement = 100;
};

// What the target's units want of channels. A machine without such a unit takes any number, and so nothing is padded for it.
Status take_target(const FixArguments& a, const fix::Document& model, fix::FixOptions& options) {
  CommonOptions target = a.machine;
  target.device = a.target;
  const bool here = a.target == "auto" || a.target == "reference" || is_here(a.target);
  SPARKLE_TRY(device, here ? describe_device(target) : described_device(a.target));
  fix::take_sizes(device, model, a.multiple, options);
  return ok();
}

Result<fix::FixOptions> options_of(const FixArguments& a, const fix::Document& model, const Graph& graph) {
  fix::FixOptions options;
  if (!a.precision.empty() && (!parse_name(a.precision, options.precision) || options.precision == Precision::tf32))
    return Error{Reason::bad_usage, "There is no precision '" + a.precision + "'; write fp16, bf16 or int8."};
  options.only = a.only;
  SPARKLE_CHECK(fix::check_rules(options));
  (void)fix::parse_name(a.calibration, options.quantize.cut);
  (void)fix::parse_name(a.proof, options.proof);
  options.quantize.percentile = a.percentile;
  options.max_extra = a.max_extra / 100;
  options.least_cosine = a.cosine;
  options.least_agreement = a.agreement / 100;
  options.wide = a.wide;
  SPARKLE_CHECK(take_target(a, model, options));
  const auto inputs = declared_tensors(graph, graph.inputs);
  SPARKLE_TRY(samples, read_samples(inputs, a.samples));
  options.samples = std::move(samples);
  if (options.samples.empty()) {
    SPARKLE_TRY(shapes, input_shapes(inputs, a.shapes));
    for (size_t i = 0; i < inputs.size(); ++i) options.shapes[inputs[i].name] = shapes[i];
  }
  return options;
}

int run_fix(const FixArguments& a) {
  if (auto apart = check_apart(a.output, a.model); !apart.ok()) return fail(apart.error());
  auto document = fix::Document::read(a.model);
  if (!document.ok()) return fail(document.error());
  auto graph = document->to_graph();
  if (!graph.ok()) return fail(graph.error());
  auto options = options_of(a, *document, *graph);
  if (!options.ok()) return fail(options.error());
  auto device = open_device(a.machine);
  if (!device.ok()) return fail(device.error());
  auto fixed = fix::fix_model(*document, *options, device->backend);
  if (!fixed.ok())
    return fixed.error().reason == Reason::too_inaccurate ? (fail(fixed.error()), kCheckFailed) : fail(fixed.error());
  if (auto written = write_model_proto(fixed->model.model(), a.output); !written.ok()) return fail(written.error());
  if (a.machine.json) {
    nlohmann::json json = fix::report_json(fixed->report);
    json["model"] = a.model;
    json["written"] = a.output;
    std::printf("%s\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return kDone;
  }
  for (const std::string& line : fix::to_lines(fixed->report)) std::printf("%s\n", printable(line).c_str());
  std::printf("written  %s\n", printable(a.output).c_str());
  return kDone;
}

}  // namespace

void add_fix(CLI::App& app, Chosen& chosen) {
  auto* command =
      app.add_subcommand("fix", "Bring a model onto a device's fast path: exact rewrites and precision, with proof");
  auto a = std::make_shared<FixArguments>();
  add_machine(*command, a->machine, Machines::here);
  a->samples.command = command;
  command->add_option("model", a->model, "ONNX file")->required();
  command->add_option("inputs", a->samples.inputs,
                      "what ranges are measured on and answers compared with: pictures, .npy, .pb, folders of them, folders of "
                      "test_data_set_*; none: two samples of seeded random values");
  command->add_option("-o,--output", a->output, "the file to write")->required();
  command->add_option("--target", a->target,
                      "the machine that the model is for: auto (this one), a name of 'sparkle check', or FILE.json");
  command->add_option("--precision", a->precision, "fp16, bf16 or int8; without it the model keeps its types");
  command
      ->add_option("--only", a->only, "this rule alone: fold_constants, fold_batch_normalization, merge_layouts, pad_channels")
      ->allow_extra_args(false);
  command->add_option("--multiple", a->multiple, "of channels, instead of what the target's units want")
      ->check(CLI::Range(1, 256));
  command->add_option("--max-extra", a->max_extra, "the most extra arithmetic of a chain of layers, in percent")
      ->check(CLI::Range(0.0, 10000.0));
  command->add_option("--calibration", a->calibration, "int8: how ranges are cut: mse, minmax, percentile or entropy")
      ->check(CLI::IsMember({"mse", "minmax", "percentile", "entropy"}));
  command->add_option("--percentile", a->percentile, "int8: the share of values that are kept, in percent")
      ->check(CLI::Range(50.0, 100.0));
  command->add_option("--keep-wide", a->wide, "a layer that keeps its type")->allow_extra_args(false);
  command->add_option("--proof", a->proof, "best (plain loops where that takes some seconds), reference, planned or none")
      ->check(CLI::IsMember({"best", "reference", "planned", "none"}));
  command->add_option("--min-cosine", a->cosine, "to the original's outputs; 0.999, for int8 0.99")
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--min-agreement", a->agreement, "of the first class over the given samples, in percent")
      ->check(CLI::Range(0.0, 100.0));
  command->add_option("--shape", a->shapes, "NAME=1x3x224x224, for random values")->allow_extra_args(false);
  a->samples.words.dashes = "--";
  command->add_option("--preset", a->samples.words.preset, "how pictures become tensors: see 'sparkle run --help'");
  command->add_option("--size", a->samples.words.size, "WxH, or the shorter side before cropping");
  command->add_option("--crop", a->samples.words.crop, "WxH or one number, cut from the centre");
  command->add_option("--fit", a->samples.words.fit, "crop, stretch, letterbox or none")
      ->check(CLI::IsMember({"crop", "stretch", "letterbox", "none"}));
  command->add_option("--color", a->samples.words.color, "rgb, bgr, grey or y")
      ->check(CLI::IsMember({"rgb", "bgr", "grey", "y"}));
  command->add_option("--scale", a->samples.words.scale, "pixels (0..255) are multiplied by this: 1/255");
  command->add_option("--mean", a->samples.words.mean, "subtracted after scaling: one number or three");
  command->add_option("--std", a->samples.words.std, "divided by afterwards: one number or three");
  command->callback([&chosen, a] { chosen = [=] { return run_fix(*a); }; });
}

}  // namespace sparkle::cli
