// Sparkle for C++17: sparkle.h with ownership, exceptions and containers; the ABI is that of the C interface.
//
//   sparkle::Device device("cpu");
//   sparkle::Session session(device, "model.onnx");
//   sparkle::Tensor image(sparkle::Type::f32, {1, 3, 224, 224});
//   ... fill image.data<float>() ...
//   std::vector<sparkle::Tensor> outputs = session.run({image});
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sparkle/device.hpp"
#include "sparkle/exception.hpp"
#include "sparkle/sparkle.h"

namespace sparkle {
inline namespace api1 {

// An input or output as the model declares it.
struct TensorInfo {
  std::string name;                     // in the model
  Type type = Type::f32;                // of an element
  bool rank_known = true;               // false: the model leaves open how many axes there are
  Shape shape;                          // -1 where the model leaves a size open
  std::vector<std::string> axis_names;  // of open sizes
};

// How a model is opened; see sparkle_session_options.
struct SessionOptions {
  std::string precision = "fp32";  // of the arithmetic
  std::string algorithm;           // force one where it can serve ("gemm", "winograd4" ...); empty: by cost
  std::string variant;             // force a kernel by name; empty: by cost
  std::string tuning;              // file of measured choices, or "kept"; empty: none
  int64_t memory_budget = 0;       // most bytes of tensors and weights; 0: unlimited
  int64_t plan_cache_bytes = 0;    // of plans for shapes seen before; 0: 256 MiB
  double accuracy = 0;             // most that max |error| / max |output| of a layer may be predicted to reach; 0: 5e-5
  std::string nonfinite;           // "fast" (also empty) or "exact"
  std::string fusion;              // "inverted", "none"; empty: by cost
  std::string fallback;            // "forbid", "warn" (also empty) or "allow"

  // For the C interface; valid as long as these options live.
  sparkle_session_options c() const {
    const auto text = [](const std::string& s) { return s.empty() ? nullptr : detail::whole(s); };
    sparkle_session_options options{};
    // All there are: one more does not compile before it is filled here.
    auto& [size, c_precision, c_algorithm, c_variant, c_tuning, c_budget, c_cache, c_accuracy, c_nonfinite, c_fusion,
           c_fallback] = options;
    size = sizeof options;
    c_precision = text(precision);
    c_algorithm = text(algorithm);
    c_variant = text(variant);
    c_tuning = text(tuning);
    c_budget = memory_budget;
    c_cache = plan_cache_bytes;
    c_accuracy = accuracy;
    c_nonfinite = text(nonfinite);
    c_fusion = text(fusion);
    c_fallback = text(fallback);
    return options;
  }
};

// Plans an ONNX file for the shapes of `inputs` (none: the model's own) and writes plan and packed weights to `output`, which a
// Session opens like a model; see sparkle_compile.
inline void compile(const Device& device, const std::string& path, const std::string& output,
                    const std::vector<Tensor>& inputs = {}, const SessionOptions& options = {}) {
  std::vector<sparkle_tensor> shapes;
  for (const Tensor& t : inputs) shapes.push_back(t.c());
  const sparkle_session_options given = options.c();
  detail::check(sparkle_compile(device.c(), detail::whole(path), &given, shapes.data(), shapes.size(), detail::whole(output)));
}

// Shapes of inputs by name.
using NamedShapes = std::vector<std::pair<std::string, Shape>>;

// What fix() is asked for; empty texts and zeros are the defaults of sparkle_fix_options.
struct FixOptions {
  std::string precision;               // "fp16", "bf16", "int8"; empty: types stay
  std::string target;                  // a machine by name or FILE.json; empty: the device
  std::string only;                    // rules separated by commas; empty: all
  std::string calibration;             // of int8: "mse", "minmax", "percentile", "entropy"
  std::string proof;                   // "best", "reference", "planned", "none"
  double max_extra = 0;                // percent of arithmetic that padding may add to a chain of layers
  int32_t multiple = 0;                // of channels
  double percentile = 0;               // of the values that are kept
  double min_cosine = 0;               // to the original's outputs
  double min_agreement = 0;            // percent of samples that keep their first class
  std::vector<std::string> keep_wide;  // layers that keep their types
  NamedShapes shapes;                  // of inputs whose sizes the model leaves open
};

namespace detail {

inline std::vector<const char*> names_of(const NamedShapes& shapes) {
  std::vector<const char*> names;
  for (const auto& [name, shape] : shapes) names.push_back(whole(name));
  return names;
}
inline std::vector<sparkle_tensor> shapes_of(const NamedShapes& shapes) {
  std::vector<sparkle_tensor> list;
  for (const auto& [name, shape] : shapes) list.push_back(Tensor(Type::f32, shape, nullptr).c());
  return list;
}

}  // namespace detail

// For which runs choose_device() chooses; see sparkle_choice_options.
struct ChoiceOptions {
  int32_t threads = 0;     // of the CPU; 0: what affinity and cgroup quota allow
  int64_t rows = 1;        // items of a run, where the model leaves its first axes open
  NamedShapes shapes;      // of inputs of which it leaves further sizes open
  SessionOptions session;  // that sessions on the device will have
};

// Which of the devices here runs the model fastest, as JSON with its name and why; see sparkle_device_choose.
inline std::string choose_device(const std::string& path, const ChoiceOptions& options = {}) {
  const std::vector<const char*> names = detail::names_of(options.shapes);
  const std::vector<sparkle_tensor> shapes = detail::shapes_of(options.shapes);
  const sparkle_session_options session = options.session.c();
  sparkle_choice_options given{};
  given.size = sizeof given, given.threads = options.threads, given.rows = options.rows;
  given.shape_names = names.data(), given.shapes = shapes.data(), given.shape_count = shapes.size();
  given.session = &session;
  char* json = nullptr;
  detail::check(sparkle_device_choose(detail::whole(path), &given, &json));
  return detail::take_text(json);
}

// Exact rewrites and another precision of an ONNX file, proved; as JSON, see sparkle_fix. `samples`: a tensor per input of
// each.
inline std::string fix(const Device& device, const std::string& path, const std::string& output, const FixOptions& options = {},
                       const std::vector<Tensor>& samples = {}) {
  const auto text = [](const std::string& s) { return s.empty() ? nullptr : detail::whole(s); };
  std::vector<const char*> wide;
  for (const std::string& layer : options.keep_wide) wide.push_back(detail::whole(layer));
  const std::vector<const char*> names = detail::names_of(options.shapes);
  const std::vector<sparkle_tensor> shapes = detail::shapes_of(options.shapes);
  std::vector<sparkle_tensor> tensors;
  for (const Tensor& t : samples) tensors.push_back(t.c());
  sparkle_fix_options given{};
  given.size = sizeof given, given.precision = text(options.precision), given.target = text(options.target);
  given.only = text(options.only), given.calibration = text(options.calibration), given.proof = text(options.proof);
  given.max_extra = options.max_extra, given.multiple = options.multiple, given.percentile = options.percentile;
  given.min_cosine = options.min_cosine, given.min_agreement = options.min_agreement;
  given.keep_wide = wide.data(), given.keep_wide_count = wide.size();
  given.shape_names = names.data(), given.shapes = shapes.data(), given.shape_count = shapes.size();
  char* json = nullptr;
  detail::check(
      sparkle_fix(device.c(), detail::whole(path), detail::whole(output), &given, tensors.data(), tensors.size(), &json));
  return detail::take_text(json);
}

// What check() is told of the model; see sparkle_check_options.
struct CheckOptions {
  NamedShapes shapes;    // of inputs whose sizes the model leaves open
  int32_t threads = 0;   // of "cpu"
  bool measure = false;  // run the model on each target, which must be here
};

// What keeps a model off the fast path of devices, which need not be here; see sparkle_check. `html`: where the page goes.
inline std::string check(const std::string& path, const std::string& targets, const CheckOptions& options = {},
                         std::string* html = nullptr) {
  const std::vector<const char*> names = detail::names_of(options.shapes);
  const std::vector<sparkle_tensor> shapes = detail::shapes_of(options.shapes);
  const sparkle_check_options given{sizeof(sparkle_check_options), names.data(), shapes.data(), shapes.size(), options.threads,
                                    options.measure ? 1 : 0};
  char *json = nullptr, *page = nullptr;
  detail::check(sparkle_check(detail::whole(path), detail::whole(targets), &given, &json, html ? &page : nullptr));
  if (html) *html = detail::take_text(page);
  return detail::take_text(json);
}

// Computes an expression of your own, eval(device, "silu(x) * a + 0.5", {{"x", x}, {"a", a}}); see sparkle_eval.
inline Tensor eval(const Device& device, const std::string& expression,
                   const std::vector<std::pair<std::string, Tensor>>& operands) {
  std::vector<const char*> names;
  std::vector<sparkle_tensor> tensors;
  for (const auto& [name, tensor] : operands) {
    names.push_back(detail::whole(name));
    tensors.push_back(tensor.c());
  }
  sparkle_value* result = nullptr;
  detail::check(sparkle_eval(device.c(), detail::whole(expression), names.data(), tensors.data(), tensors.size(), &result));
  return Tensor(result);
}

// How long Session::measure runs, and what it checks.
struct MeasureOptions {
  double seconds = 0;      // of runs with times of steps and without, about; 0: one
  int32_t runs = 0;        // of each kind, instead of seconds
  std::string check = {};  // of outputs: "auto" (also empty), "always" or "never"
};

// Something that was done in another way than a caller may expect; see sparkle_event.
struct Event {
  std::string what;     // "operator", "device" or "precision"
  std::string from;     // where it was to run, or the type that it was to be computed in
  std::string to;       // where it runs, or the type that it is computed in
  std::string reason;   // "no_kernel", "device_lost" ...
  double cost = 0;      // seconds of each run
  std::string layer;    // the step; empty for devices
  std::string message;  // one sentence
};

// A model ready to run; may be used by any number of threads at once. Copies share it.
class Session {
 public:
  // Opens a file of ONNX or of compile(). Throws where it cannot run, with all that is wrong; see sparkle_session_open.
  Session(const Device& device, const std::string& path, const SessionOptions& options = {}) {
    open([&](const sparkle_session_options* o,
             sparkle_session** s) { return sparkle_session_open(device.c(), detail::whole(path), o, s); },
         options);
  }
  // A model in memory, not needed afterwards.
  Session(const Device& device, const void* model, size_t bytes, const SessionOptions& options = {}) {
    open([&](const sparkle_session_options* o,
             sparkle_session** s) { return sparkle_session_open_memory(device.c(), model, bytes, o, s); },
         options);
  }

  // Goes on with another device, as after a lost one; see sparkle_session_move_to.
  void move_to(const Device& device) const { detail::check(sparkle_session_move_to(c(), device.c())); }

  // What was done in another way than may be expected, so far.
  std::vector<Event> events() const {
    std::vector<Event> list;
    for (size_t i = 0, count = sparkle_session_event_count(c()); i < count; ++i) {
      sparkle_event e{};
      detail::check(sparkle_session_event(c(), i, &e));
      list.push_back({e.what, e.from, e.to, e.reason, e.cost, e.layer, e.message});
    }
    return list;
  }

  // What it takes, in the model's order.
  std::vector<TensorInfo> inputs() const { return infos(sparkle_session_input_count(c()), sparkle_session_input); }
  // What it gives, in the model's order.
  std::vector<TensorInfo> outputs() const { return infos(sparkle_session_output_count(c()), sparkle_session_output); }

  // One tensor per input, in the model's order; inputs are not copied. One tensor per output comes back. Throws for types and
  // shapes that are not the model's.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const {
    std::vector<sparkle_value*> values(sparkle_session_output_count(c()), nullptr);
    const auto list = tensors(inputs);
    detail::check(sparkle_session_run(c(), list.data(), list.size(), values.data(), values.size()));
    std::vector<Tensor> results;
    for (sparkle_value* value : values) results.emplace_back(value);
    return results;
  }
  // The same into memory of the caller.
  void run_into(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) const {
    const auto from = tensors(inputs), to = tensors(outputs);
    detail::check(sparkle_session_run_into(c(), from.data(), from.size(), to.data(), to.size()));
  }
  // Types and shapes of the outputs for these inputs; without memory.
  std::vector<Tensor> output_shapes(const std::vector<Tensor>& inputs) const {
    std::vector<sparkle_tensor> shapes(sparkle_session_output_count(c()));
    const auto list = tensors(inputs);
    detail::check(sparkle_session_output_shapes(c(), list.data(), list.size(), shapes.data(), shapes.size()));
    std::vector<Tensor> results;
    for (const sparkle_tensor& t : shapes)
      results.emplace_back(static_cast<Type>(t.type), Shape(t.shape, t.shape + t.rank), nullptr);
    return results;
  }
  // Bytes that a run on these shapes occupies at its peak: tensors and packed weights.
  int64_t peak_bytes(const std::vector<Tensor>& inputs) const {
    int64_t bytes = 0;
    const auto list = tensors(inputs);
    detail::check(sparkle_session_peak_bytes(c(), list.data(), list.size(), &bytes));
    return bytes;
  }
  // The plan for these shapes: what each step does, how, at what cost and why, as a table or as JSON.
  std::string explain(const std::vector<Tensor>& inputs, bool as_json = false) const {
    return text_of(inputs,
                   [&](auto* s, auto* list, size_t n, char** t) { return sparkle_session_explain(s, list, n, as_json, t); });
  }
  // The plan in its text form, one line per tensor, constant and step.
  std::string plan(const std::vector<Tensor>& inputs) const { return text_of(inputs, sparkle_session_plan); }
  // Runs a few times, with timestamps and without: measured and predicted time of each step, as JSON.
  std::string report(const std::vector<Tensor>& inputs) const { return text_of(inputs, sparkle_session_report); }
  // More runs, beside roofs probed between them, outputs checked; see sparkle_session_measure. Page and Chrome trace as well.
  std::string measure(const std::vector<Tensor>& inputs, const MeasureOptions& options = {}, std::string* html = nullptr,
                      std::string* trace = nullptr) const {
    char *json = nullptr, *page = nullptr, *run = nullptr;
    const auto list = tensors(inputs);
    const sparkle_measure_options given{sizeof(sparkle_measure_options), options.seconds, options.runs,
                                        options.check.empty() ? nullptr : detail::whole(options.check)};
    detail::check(
        sparkle_session_measure(c(), list.data(), list.size(), &given, &json, html ? &page : nullptr, trace ? &run : nullptr));
    if (html) *html = detail::take_text(page);
    if (trace) *trace = detail::take_text(run);
    return detail::take_text(json);
  }
  // Starts a run on buffers; wait for the token with Device::wait. `shapes`: type and shape of each input.
  uint64_t submit(const std::vector<Tensor>& shapes, const std::vector<Buffer>& inputs,
                  const std::vector<Buffer>& outputs) const {
    if (shapes.size() != inputs.size()) throw Exception(SPARKLE_BAD_USAGE, "submit needs a shape for each input buffer.");
    std::vector<sparkle_buffer*> from, to;
    for (const Buffer& b : inputs) from.push_back(b.c());
    for (const Buffer& b : outputs) to.push_back(b.c());
    uint64_t token = 0;
    const auto list = tensors(shapes);
    detail::check(sparkle_session_submit(c(), list.data(), from.data(), from.size(), to.data(), to.size(), &token));
    return token;
  }
  // Runs on tensors in memory of the device, without a copy and without the host: into new tensors, or into `outputs`.
  std::vector<DeviceTensor> run_on_device(const std::vector<DeviceTensor>& inputs) const {
    std::vector<sparkle_device_tensor> to(sparkle_session_output_count(c()));
    const auto from = device_tensors(inputs);
    detail::check(sparkle_session_run_on_device(c(), from.data(), from.size(), to.data(), to.size()));
    std::vector<DeviceTensor> results;
    for (const sparkle_device_tensor& t : to)
      results.emplace_back(static_cast<Type>(t.type), Shape(t.shape, t.shape + t.rank), Buffer(t.buffer));
    return results;
  }
  // The same into tensors of the caller.
  void run_on_device(const std::vector<DeviceTensor>& inputs, const std::vector<DeviceTensor>& outputs) const {
    const auto from = device_tensors(inputs);
    auto to = device_tensors(outputs);
    detail::check(sparkle_session_run_on_device(c(), from.data(), from.size(), to.data(), to.size()));
  }
  // The same, returning at once; wait for the token with Device::wait.
  uint64_t submit_on_device(const std::vector<DeviceTensor>& inputs, const std::vector<DeviceTensor>& outputs) const {
    const auto from = device_tensors(inputs);
    auto to = device_tensors(outputs);
    uint64_t token = 0;
    detail::check(sparkle_session_submit_on_device(c(), from.data(), from.size(), to.data(), to.size(), &token));
    return token;
  }
  sparkle_session* c() const { return handle_.get(); }  // for the C interface

 private:
  static std::vector<sparkle_device_tensor> device_tensors(const std::vector<DeviceTensor>& list) {
    std::vector<sparkle_device_tensor> result;
    for (const DeviceTensor& t : list) result.push_back(t.c());
    return result;
  }
  template <class Open>
  void open(Open&& call, const SessionOptions& o) {
    const sparkle_session_options options = o.c();
    sparkle_session* session = nullptr;
    detail::check(call(&options, &session));
    handle_ = std::shared_ptr<sparkle_session>(session, sparkle_session_release);
  }
  template <class Get>
  std::string text_of(const std::vector<Tensor>& inputs, Get&& get) const {
    char* text = nullptr;
    const auto list = tensors(inputs);
    detail::check(get(c(), list.data(), list.size(), &text));
    return detail::take_text(text);
  }
  template <class Get>
  std::vector<TensorInfo> infos(size_t count, Get&& get) const {
    std::vector<TensorInfo> list;
    for (size_t i = 0; i < count; ++i) {
      sparkle_tensor_info info;
      detail::check(get(c(), i, &info));
      TensorInfo t{info.name, static_cast<Type>(info.type), info.rank >= 0, {}, {}};
      for (int32_t a = 0; a < info.rank; ++a) t.shape.push_back(info.shape[a]), t.axis_names.emplace_back(info.axis_names[a]);
      list.push_back(std::move(t));
    }
    return list;
  }
  static std::vector<sparkle_tensor> tensors(const std::vector<Tensor>& list) {
    std::vector<sparkle_tensor> result;
    for (const Tensor& t : list) result.push_back(t.c());
    return result;
  }
  std::shared_ptr<sparkle_session> handle_;
};

}  // namespace api1
}  // namespace sparkle
