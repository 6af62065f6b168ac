// sparkle run MODEL [INPUT ...]: pictures or tensors in, classes, figures or pictures out.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/median.h"
#include "choose_device.h"
#include "fix/fix.h"
#include "fix_command/samples.h"
#include "base/system/out_of_memory.h"
#include "base/printable.h"
#include "run_command/model_inputs.h"
#include "plan/explain.h"
#include "run_command/progress.h"
#include "onnx/metadata.h"
#include "open_together.h"
#include "report/float_type.h"
#include "run_command/show_answer.h"
#include "prepare/shape_advice.h"
#include "vision/pictures/picture.h"
#include "vision/tasks/labels.h"
#include "vision/tasks/picture_task.h"
#include "run/opening/foreign_model.h"
#include "run/opening/open_model.h"
#include "run_command/run_options.h"
#include "run_command/stream/stream.h"

namespace sparkle::cli {
namespace {

struct Prepared {
  std::vector<HostTensor> tensors;
  std::vector<std::string> notes;    // how each input came about
  std::shared_ptr<const Plan> plan;  // none where the model runs in parts
  // Of a picture as the first input: what is answered, and what the answer lies over.
  std::optional<TaskGuess> task;
  Preprocess preprocess;
  Image picture;
};

Result<std::shared_ptr<const Plan>> plan_of(Session& session, const std::vector<HostTensor>& inputs) {
  if (session.in_parts()) return std::shared_ptr<const Plan>();
  return session.prepare(inputs);
}

// Plans before anything large is made: nothing is filled that the memory budget has no room for.
// `first`: the first input's picture where it has been read.
Result<Prepared> prepare_inputs(Session& session, const RunOptions& o, std::optional<Picture> first) {
  Prepared p;
  const auto& wanted = session.inputs();
  if (o.inputs.empty()) {
    SPARKLE_TRY(shapes, input_shapes(wanted, o.shapes));
    SPARKLE_TRY(unfilled, unfilled_inputs(wanted, shapes));
    SPARKLE_TRY(plan, plan_of(session, unfilled));
    SPARKLE_CHECK(fill_inputs(wanted, unfilled, 1));
    p.tensors = std::move(unfilled);
    p.plan = std::move(plan);
    for (size_t i = 0; i < wanted.size(); ++i)
      p.notes.push_back("'" + printable(wanted[i].name) + "' " + shapes[i].to_string() +
                        (wanted[i].dtype == DType::f32 ? ", seeded random values" : ", zeros"));
    return p;
  }
  if (o.inputs.size() == 1 && wanted.size() > 1 && o.inputs[0].ends_with(".npz")) {
    SPARKLE_TRY(tensors, read_inputs_together(o.inputs[0], wanted));
    for (size_t i = 0; i < wanted.size(); ++i)
      p.notes.push_back("'" + printable(wanted[i].name) + "' from " +
                        printable(std::filesystem::path(o.inputs[0]).filename().string()) + ": " +
                        tensors[i].shape.to_string() + " as stored");
    p.tensors = std::move(tensors);
    SPARKLE_TRY(plan, session.prepare(p.tensors));
    p.plan = std::move(plan);
    return p;
  }
  if (o.inputs.size() != wanted.size())
    return Error{Reason::bad_usage, "The model has " + std::to_string(wanted.size()) +
                                        (wanted.size() == 1 ? " input; " : " inputs; ") + std::to_string(o.inputs.size()) +
                                        (o.inputs.size() == 1 ? " file is given" : " files are given") +
                                        "; give one for each, in this order: " + listed_inputs(wanted) + "."};
  struct Given {
    size_t input = 0;
    Picture picture;
    Preprocess preprocess;
  };
  std::vector<Given> pictures;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const std::string& path = o.inputs[i];
    if (auto wrong = no_path(path)) return *std::move(wrong);
    const std::string head =
        "'" + printable(wanted[i].name) + "' from " + printable(std::filesystem::path(path).filename().string());
    if (is_tensor_file(path)) {
      SPARKLE_TRY(tensor, read_tensor_file(path));
      p.notes.push_back(head + ": " + tensor.shape.to_string() + " as stored");
      p.tensors.push_back(std::move(tensor));
      continue;
    }
    SPARKLE_TRY(preprocess, preprocess_for(wanted[i], o));
    SPARKLE_TRY(picture, i == 0 && first ? Result<Picture>(std::move(*first)) : read_picture(path));
    first.reset();
    p.tensors.push_back({wanted[i].dtype, tensor_shape(picture.width, picture.height, preprocess), nullptr});
    p.notes.push_back(head + " (" + picture.size_text() + "): " + note_of(preprocess, o));
    pictures.push_back({i, std::move(picture), preprocess});
  }
  SPARKLE_TRY(plan, plan_of(session, p.tensors));
  p.plan = std::move(plan);
  if (!pictures.empty() && pictures[0].input == 0) {
    const Dims& shape = p.tensors[0].shape;
    const int height = height_axis(pictures[0].preprocess);
    SPARKLE_TRY(task, choose_task(session, p.plan.get(), shape[height], shape[height + 1], o));
    p.task = std::move(task), p.preprocess = pictures[0].preprocess;
    if (p.task) p.picture = pictures[0].picture.image();
  } else if (!o.task.empty()) {
    return Error{Reason::bad_usage, "--task " + o.task + " is about a picture, and the first input is none; give a picture."};
  }
  for (Given& given : pictures) {
    SPARKLE_TRY(tensor, to_tensor(given.picture.rows(), given.preprocess));
    given.picture = {};  // large pictures are no longer needed
    SPARKLE_TRY(typed, in_float_type(tensor, wanted[given.input].dtype));
    p.tensors[given.input] = std::move(typed);
  }
  return p;
}

// A picture for a network that leaves height and width open may be one to enlarge.
int try_upscale(const CommonOptions& common, const RunOptions& o, OpenDevice& device, Session& session, bool& handled,
                std::optional<Picture>& picture) {
  handled = false;
  const auto& inputs = session.inputs();
  if (!o.task.empty() && o.task != "upscale") return kDone;
  if (o.inputs.size() != 1 || is_tensor_file(o.inputs[0]) || inputs.size() != 1 || session.outputs().size() != 1) return kDone;
  const Dims& shape = inputs[0].shape;
  if (shape.size() != 4 || shape[2] > 0 || shape[3] > 0) return kDone;
  if (auto wrong = no_path(o.inputs[0])) return handled = true, fail(*wrong);
  auto preprocess = preprocess_for(inputs[0], o);
  if (!preprocess.ok()) return handled = true, fail(preprocess.error());
  auto read = read_picture(o.inputs[0]);
  if (!read.ok()) return handled = true, fail(read.error());
  auto image = guard_memory("Reading the picture", [&]() -> Result<Image> { return read->image(); });
  if (!image.ok()) return handled = true, fail(image.error());
  picture = std::move(*read);
  return run_upscale(common, o, device, session, *image, *preprocess, handled);
}

// Options that nothing here would read are refused, not ignored.
Status check_applies(const RunOptions& o) {
  if (!o.frames.empty()) return ok();
  if (!o.inputs.empty() && !o.shapes.empty())
    return Error{Reason::bad_usage, "--shape is for runs on random values; the given inputs have shapes."};
  if (std::all_of(o.inputs.begin(), o.inputs.end(), is_tensor_file))
    return refuse_options(*o.command,
                          {"--preset", "--size", "--crop", "--fit", "--color", "--scale", "--mean", "--std", "--pad-value",
                           "--tile", "--overlap", "--reference", "--task", "--threshold", "--iou"},
                          "is for pictures, and no picture is given");
  return ok();
}

// The model in another precision, as `sparkle fix` would write it: ranges measured on the inputs of this very run.
Result<ModelFile> read_in_precision(const CommonOptions& common, const RunOptions& o, const std::shared_ptr<Backend>& backend) {
  fix::FixOptions options;
  if (!parse_name(common.precision, options.precision) || options.precision == Precision::tf32)
    return Error{Reason::bad_usage, "There is no precision '" + common.precision + "'; write fp32, fp16, bf16 or int8."};
  SPARKLE_TRY(document, fix::Document::read(o.model));
  fix::take_sizes(backend->device(), document, 0, options);
  SPARKLE_TRY(graph, document.to_graph());
  const auto inputs = declared_tensors(graph, graph.inputs);
  SPARKLE_TRY(samples, read_samples(inputs, o));
  options.samples = std::move(samples);
  if (options.samples.empty()) {
    SPARKLE_TRY(shapes, input_shapes(inputs, o.shapes));
    for (size_t i = 0; i < inputs.size(); ++i) options.shapes[inputs[i].name] = shapes[i];
  }
  SPARKLE_TRY(fixed, fix::fix_model(document, options, backend));
  fixed.report.ranges.clear();  // `sparkle fix` prints them
  if (!common.json)
    for (const std::string& line : fix::to_lines(fixed.report)) print_note(line);
  ModelFile model;
  SPARKLE_TRY(changed, fixed.model.to_graph());
  model.graph = std::move(changed);
  return model;
}

int print_json(const nlohmann::json& json) {
  std::printf("%s\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  return kDone;
}

int run(const CommonOptions& asked, RunOptions o) {
  // Pictures are prepared later: what is chosen for is the model in its own shapes.
  auto here = with_device(
      asked, {o.model, std::all_of(o.inputs.begin(), o.inputs.end(), is_tensor_file) ? o.inputs : std::vector<std::string>(),
              o.shapes});
  if (!here.ok()) return fail(here.error());
  CommonOptions common = *here;
  common.precision = "fp32";  // whatever the model's tensors are from here on
  if (auto applies = check_applies(o); !applies.ok()) return fail(applies.error());
  o.metadata = read_metadata(o.model);
  auto labels = read_labels(o.labels);
  if (!labels.ok()) return fail(labels.error());
  if (labels->empty()) *labels = labels_of(o.metadata);
  if (names_several_devices(common.device)) {
    auto together = open_model_together(asked, o.model, Roofs::kept_or_estimated, o.batch);
    if (!together.ok()) return fail(together.error(), common);
    if (!is_stream(o, *together->sessions[0]))
      return fail({Reason::bad_usage, "--device " + common.device +
                                          " names several devices, which share many items; give a folder, several files or "
                                          "--frames, or name one device."});
    return run_stream(common, o, *together, *labels);
  }
  if (auto applies = refuse_options(*o.command, {"--split"}, "is for several devices, as in --device cpu,vulkan:0");
      !applies.ok())
    return fail(applies.error());
  auto device = open_device(common);
  if (!device.ok()) return fail(device.error(), common);
  auto model = asked.precision == "fp32" ? read_model(o.model) : read_in_precision(asked, o, device->backend);
  if (!model.ok()) return fail(model.error());
  auto options = session_options(common, *device);
  if (!options.ok()) return fail(options.error());
  auto opened = open_session(std::move(*model), device->backend, *options, o.batch);
  if (!opened.ok()) return fail(opened.error());
  Session& session = **opened;
  o.outputs = std::all_of(o.inputs.begin(), o.inputs.end(), is_tensor_file) ? output_forms(session, nullptr)
                                                                            : known_output_forms(session);
  if (is_stream(o, session)) {
    Together alone;
    alone.names.push_back(common.device == "auto" ? "cpu" : common.device), alone.note = device->note;
    alone.sessions.push_back(std::move(*opened));
    return run_stream(common, o, alone, *labels);
  }
  if (auto applies = refuse_options(*o.command, {"--trace"}, "is for many items; 'sparkle report --trace' draws one run");
      !applies.ok())
    return fail(applies.error());
  if (!o.output.empty())
    if (auto made = make_output_folder(o.output); !made.ok()) return fail(made.error());
  bool handled = false;
  std::optional<Picture> picture;
  if (const int status = try_upscale(common, o, *device, session, handled, picture); handled || status != kDone) return status;
  if (auto applies = refuse_options(*o.command, {"--tile", "--overlap", "--reference", "--shrink-first"},
                                    "is for networks that enlarge a picture, which this one does not");
      !applies.ok())
    return fail(applies.error());
  auto inputs = prepare_inputs(session, o, std::move(picture));
  if (!inputs.ok()) return fail(inputs.error(), common);
  const Plan* plan = inputs->plan.get();
  if (plan) {
    if (!o.labels.empty() && (!inputs->task || inputs->task->task == Task::classify))
      if (auto fitting = check_labels(output_forms(session, plan), *labels); !fitting.ok()) return fail(fitting.error());
    if (auto fast = check_fallback(*plan, common); !fast.ok()) return fail(fast.error(), common);
  } else if (!common.require.empty()) {
    return fail({Reason::bad_usage,
                 "--require is about the layers of a plan, and this model runs in parts, without one; leave it out."});
  }
  if (!common.json) {
    std::printf("device   %s\n", device->note.empty() ? common.device.c_str() : device->note.c_str());
    for (const std::string& note : inputs->notes) std::printf("input    %s\n", note.c_str());
    if (plan) std::printf("memory   %s at peak (tensors and weights)\n", format_bytes(session.peak_bytes(*plan)).c_str());
    else std::printf("plan     in parts, since only the data tells some of the paths or shapes\n");
    if (plan && plan->budget_steps > 0) std::printf("budget   %s\n", budget_note(*plan).c_str());
    std::fflush(stdout);
  }
  std::vector<double> ms;
  std::vector<HostTensor> outputs;
  Progress progress("running", o.repeat, !common.json && o.repeat > 1);
  for (int i = 0; i < o.repeat; ++i) {
    RunReport report;
    auto result = session.run(inputs->tensors, &report);
    progress.step();
    if (!result.ok()) return progress.clear(), fail(result.error(), common);
    outputs = std::move(*result);
    ms.push_back(report.seconds * 1e3);
  }
  progress.clear();
  const double first = ms[0];
  const double middle = median(ms);
  if (!common.json) {
    std::printf("time     first %.2f ms", first);
    if (o.repeat > 1) std::printf(", median %.2f ms of %d", middle, o.repeat);
    std::printf("\n");
  }
  nlohmann::json rows = nlohmann::json::array();
  std::vector<std::string> written;
  // Where a task is answered, its answer is what is printed.
  const bool figures_alone = inputs->task && inputs->task->task != Task::classify, quiet = common.json || inputs->task;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = session.outputs()[i].name;
    const auto figures = in_float_type(outputs[i], DType::f32);
    if (!figures.ok()) return fail(figures.error());
    rows.push_back(show_output(name, *figures, outputs[i].dtype, *labels, figures_alone ? 0 : o.top, quiet));
    if (o.output.empty()) continue;
    if (auto saved = save_output(o.output, name, outputs[i], *figures, written); !saved.ok()) return fail(saved.error());
  }
  nlohmann::json answer;
  if (inputs->task) {
    auto shown =
        show_answer(session, outputs, *inputs->task, inputs->preprocess, inputs->picture, *labels, o, common.json, written);
    if (!shown.ok()) return fail(shown.error());
    answer = std::move(*shown);
  }
  if (common.json) {
    nlohmann::json json{{"model", o.model},   {"device", device->note}, {"inputs", inputs->notes},
                        {"first_ms", first},  {"median_ms", middle},    {"outputs", rows},
                        {"written", written}, {"in_parts", !plan},      {"events", json_of(session.events().all())}};
    if (plan) {
      json["peak_bytes"] = session.peak_bytes(*plan);
      json["budget_steps"] = plan->budget_steps, json["budget_lost_ms"] = plan->budget_seconds * 1e3;
    }
    if (!answer.is_null()) json["answer"] = std::move(answer);
    return print_json(json);
  }
  for (const std::string& path : written) std::printf("written  %s\n", printable(path).c_str());
  return kDone;
}

}  // namespace

void add_run(CLI::App& app, Chosen& chosen) {
  auto* command = app.add_subcommand("run", "Run a model on pictures, .npy or .pb tensors");
  auto common = std::make_shared<CommonOptions>();
  auto o = std::make_shared<RunOptions>();
  o->command = command;
  o->words.dashes = "--";
  add_common(*command, *common);
  command->add_option("model", o->model, "ONNX file, or a file of 'sparkle compile'")->required();
  command->add_option("inputs", o->inputs,
                      "one file per input of the model: JPEG, PNG, WebP, TIFF, BMP or PNM (turned upright by its EXIF, alpha "
                      "composited over white; - for standard input), .npy, .npz (arrays by the inputs' names), or .pb; none: "
                      "seeded random values, integers zero. Of a model with one input many files, folders "
                      "and "
                      "patterns ('photos/*.jpg'): items, one behind the other");
  command->add_option("--shape", o->shapes, "NAME=1x3x224x224, for random values");
  command->add_option("--labels", o->labels, "class names, one per line");
  command->add_option("--top", o->top, "classes to show")->check(CLI::Range(1, 100000));
  command->add_option("--repeat", o->repeat, "runs; the median is shown")->check(CLI::Range(1, 100000));
  command->add_option(
      "--output", o->output,
      "folder for outputs: .npy, and .png of pictures; of many items a file of answers, its name ending in .jsonl or "
      ".csv, that is gone on with where it stopped, or where the task is drawn (detect, segment, upscale, depth) a folder for "
      "the pictures beside answers.jsonl");
  command
      ->add_option("--batch", o->batch,
                   "many items: so many in a run; a model made for one takes them where its operators keep items apart")
      ->check(CLI::Range(1, 65536));
  command->add_option("--frames", o->frames, "WxH: the input is a stream of raw rgb24 frames, - from standard input");
  command->add_flag("--live", o->live, "frames that there is no time for are dropped, and counted");
  command
      ->add_option("--split", o->split,
                   "several devices: auto leaves out those that are predicted to bring next to nothing, always takes all")
      ->check(CLI::IsMember({"auto", "always"}));
  command->add_option("--trace", o->trace,
                      "many items: also writes when each was uploaded, computed and downloaded, and on which device, to this "
                      "file, for Perfetto or chrome://tracing");
  command->add_option(
      "--preset", o->words.preset,
      "pictures: imagenet (shorter side 256, crop 224, mean and deviation), unit (0..1), raw (0..255), mobilenet "
      "(x/127.5-1), ultraface (stretched, (x-127)/128), yolox (BGR, letterbox, 0..255), yolo (letterbox in the middle, "
      "0..1), yolov10 (the same), detr (stretched, mean and deviation of imagenet), rtdetr (stretched, 0..1), "
      "torchvision (the same), deeplab (stretched, x/127.5-1; without it guessed, and said)");
  command
      ->add_option("--task", o->task,
                   "of pictures: classify, detect, segment, upscale, depth or embed; without it guessed from the outputs")
      ->check(CLI::IsMember({"classify", "detect", "segment", "upscale", "depth", "embed"}));
  command->add_option("--threshold", o->threshold, "detect: boxes with a smaller score are left out")
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--iou", o->iou, "detect: the most that two boxes of a class share of their union")
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--size", o->words.size, "WxH, or the shorter side before cropping");
  command->add_option("--crop", o->words.crop, "WxH or one number, cut from the centre");
  command->add_option("--fit", o->words.fit, "crop, stretch, letterbox or none")
      ->check(CLI::IsMember({"crop", "stretch", "letterbox", "none"}));
  command->add_option("--color", o->words.color, "rgb, bgr, grey or y")->check(CLI::IsMember({"rgb", "bgr", "grey", "y"}));
  command->add_option("--scale", o->words.scale, "pixels (0..255) are multiplied by this: 1/255");
  command->add_option("--mean", o->words.mean, "subtracted after scaling: one number or three");
  command->add_option("--std", o->words.std, "divided by afterwards: one number or three");
  command->add_option("--pad-value", o->words.pad_value, "letterbox: pixel value of the rest")->check(finite_number());
  command->add_option("--tile", o->tile, "enlarging networks: input pixels per tile side; 0: whole")
      ->check(CLI::Range(0, 65536));
  command->add_option("--overlap", o->overlap, "enlarging networks: input pixels shared at tile borders")
      ->check(CLI::Range(0, 4096));
  command->add_option("--reference", o->reference, "enlarging networks: the true large picture, for PSNR");
  command->add_flag("--shrink-first", o->shrink_first,
                    "enlarging networks: shrink the picture first, then compare the result with it, for PSNR");
  command->callback([&chosen, common, o] { chosen = [=] { return run(*common, *o); }; });
}

}  // namespace sparkle::cli
