// Sparkle for C++17: sparkle.h with ownership, exceptions and containers; the ABI is that of the C interface.
//
//   sparkle::Device device("cpu");
//   sparkle::Session session(device, "model.onnx");
//   sparkle::Tensor image(sparkle::Type::f32, {1, 3, 224, 224});
//   ... fill image.data<float>() ...
//   std::vector<sparkle::Tensor> outputs = session.run({image});
#pragma once

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sparkle/exception.hpp"
#include "sparkle/sparkle.h"

namespace sparkle {
inline namespace api1 {

inline std::string version() { return sparkle_version(); }

enum class Type {
  f32 = SPARKLE_F32,
  f16 = SPARKLE_F16,
  bf16 = SPARKLE_BF16,
  f64 = SPARKLE_F64,
  i8 = SPARKLE_I8,
  u8 = SPARKLE_U8,
  i16 = SPARKLE_I16,
  u16 = SPARKLE_U16,
  i32 = SPARKLE_I32,
  u32 = SPARKLE_U32,
  i64 = SPARKLE_I64,
  u64 = SPARKLE_U64,
  boolean = SPARKLE_BOOL,
  f8e4m3fn = SPARKLE_F8E4M3FN,
  f8e4m3fnuz = SPARKLE_F8E4M3FNUZ,
  f8e5m2 = SPARKLE_F8E5M2,
  f8e5m2fnuz = SPARKLE_F8E5M2FNUZ,
  f8e8m0 = SPARKLE_F8E8M0,
  f4e2m1 = SPARKLE_F4E2M1,  // this and the following: one byte each, the element in its low bits
  i4 = SPARKLE_I4,
  u4 = SPARKLE_U4,
  i2 = SPARKLE_I2,
  u2 = SPARKLE_U2,
};
inline size_t size_of(Type type) { return sparkle_type_size(static_cast<sparkle_type>(type)); }

using Shape = std::vector<int64_t>;

// A dense row-major tensor in host memory; copies share the memory.
class Tensor {
 public:
  Tensor() = default;
  // Memory of its own, zeros.
  Tensor(Type type, Shape shape) : type_(type), shape_(std::move(shape)) {
    check_sizes();
    owned_ = std::shared_ptr<void>(::operator new(bytes() + 1), [](void* p) { ::operator delete(p); });
    std::memset(owned_.get(), 0, bytes());
    data_ = owned_.get();
  }
  // The caller's memory, not copied; it must stay as long as the tensor and all copies of it are used.
  Tensor(Type type, Shape shape, void* memory) : type_(type), shape_(std::move(shape)), data_(memory) {}
  // Takes over a value of the C interface.
  explicit Tensor(sparkle_value* value)
      : owned_(value, [](void* p) { sparkle_value_release(static_cast<sparkle_value*>(p)); }) {
    const sparkle_tensor t = sparkle_value_tensor(value);
    type_ = static_cast<Type>(t.type);
    shape_.assign(t.shape, t.shape + t.rank);
    data_ = t.data;
  }

  Type type() const { return type_; }
  const Shape& shape() const { return shape_; }
  int64_t elements() const {
    int64_t n = 1;
    for (int64_t size : shape_) n *= size;
    return n;
  }
  size_t bytes() const { return static_cast<size_t>(elements()) * size_of(type_); }
  void* data() const { return data_; }
  template <class T>
  T* data() const {
    return static_cast<T*>(data_);
  }
  // What keeps the memory alive; nullptr for the caller's memory.
  const std::shared_ptr<void>& owner() const { return owned_; }

  sparkle_tensor c() const {
    if (shape_.size() > SPARKLE_MAX_RANK) throw Exception(SPARKLE_BAD_USAGE, "A tensor has at most 8 axes.");
    sparkle_tensor t{};
    t.type = static_cast<sparkle_type>(type_);
    t.rank = static_cast<int32_t>(shape_.size());
    for (size_t a = 0; a < shape_.size(); ++a) t.shape[a] = shape_[a];
    t.data = data_;
    return t;
  }

  // Throws where no memory can have these sizes.
  void check_sizes() const {
    double total = static_cast<double>(size_of(type_));
    bool signs = true;
    for (int64_t size : shape_) signs = signs && size >= 0, total *= static_cast<double>(size);
    if (!signs || !(total < 4611686018427387904.0))
      throw Exception(SPARKLE_BAD_USAGE, "A tensor's sizes are 0 or more, its bytes fewer than 2^62.");
  }

 private:
  Type type_ = Type::f32;
  Shape shape_;
  std::shared_ptr<void> owned_;
  void* data_ = nullptr;
};

using LogFunction = std::function<void(sparkle_log_level, const char*)>;
// Where notes go that are neither results nor errors; an empty function: nowhere. Not to be called while work is going on.
inline void set_log(LogFunction function) {
  static LogFunction current;
  sparkle_set_log(nullptr, nullptr);
  current = std::move(function);
  if (!current) return;
  sparkle_set_log([](void*, sparkle_log_level level, const char* message) { current(level, message); }, nullptr);
}

struct DeviceOptions {
  std::string name = "auto";  // "auto", "cpu", "vulkan", "vulkan:1", "cuda", "reference"
  int threads = 0;            // of Sparkle's own pool; 0: what affinity and cgroup quota allow
  bool calibrate = false;     // measure this machine's rates first
  sparkle_thread_pool pool{};
  sparkle_allocator allocator{};
  std::string fallback = {};  // "allow": the CPU in the place of a device that cannot be used here; see sparkle_device_options
};

// Where models run; copies share it.
class Device {
 public:
  explicit Device(const DeviceOptions& o = {}) {
    const sparkle_device_options options = c_options(o);
    sparkle_device* device = nullptr;
    detail::check(sparkle_device_open(&options, &device));
    handle_ = std::shared_ptr<sparkle_device>(device, sparkle_device_release);
  }
  explicit Device(const char* name, int threads = 0) : Device(DeviceOptions{name ? name : "auto", threads, false, {}, {}}) {}
  // The caller's Vulkan device and queue; see sparkle_vulkan_options, whose size is filled in here.
  explicit Device(sparkle_vulkan_options vulkan, const DeviceOptions& o = {}) {
    const sparkle_device_options options = c_options(o);
    vulkan.size = sizeof vulkan;
    sparkle_device* device = nullptr;
    detail::check(sparkle_vulkan_device_open(&vulkan, &options, &device));
    handle_ = std::shared_ptr<sparkle_device>(device, sparkle_device_release);
  }
  // The machine as one JSON object.
  std::string describe() const {
    char* text = nullptr;
    detail::check(sparkle_device_describe(c(), &text));
    return detail::take_text(text);
  }
  // What was moved between buffers, and between host and device, since the device was opened.
  sparkle_traffic traffic() const {
    sparkle_traffic traffic{};
    traffic.size = sizeof traffic;
    detail::check(sparkle_device_traffic(c(), &traffic));
    return traffic;
  }
  bool done(uint64_t token) const { return sparkle_device_done(c(), token) != 0; }
  // Waits for work; false when the time is over first. Zero: for ever.
  bool wait(uint64_t token, std::chrono::nanoseconds timeout = {}) const {
    const sparkle_status status = sparkle_device_wait(c(), token, timeout.count());
    if (status == SPARKLE_TIMEOUT) return false;
    detail::check(status);
    return true;
  }
  // A stream of the caller's before and behind work of this CUDA device; see sparkle_device_follow_cuda_stream.
  void follow_cuda_stream(uint64_t stream) const { detail::check(sparkle_device_follow_cuda_stream(c(), stream)); }
  void lead_cuda_stream(uint64_t stream, uint64_t token) const {
    detail::check(sparkle_device_lead_cuda_stream(c(), stream, token));
  }
  sparkle_device* c() const { return handle_.get(); }

 private:
  // Valid as long as the options given live.
  static sparkle_device_options c_options(const DeviceOptions& o) {
    sparkle_device_options options{};
    options.size = sizeof options;
    options.name = detail::whole(o.name);
    options.threads = o.threads;
    options.calibrate = o.calibrate;
    options.pool = o.pool;
    options.allocator = o.allocator;
    options.fallback = o.fallback.empty() ? nullptr : detail::whole(o.fallback);
    return options;
  }
  std::shared_ptr<sparkle_device> handle_;
};

// Memory of a device; copies share it.
class Buffer {
 public:
  Buffer(const Device& device, int64_t bytes) {
    sparkle_buffer* buffer = nullptr;
    detail::check(sparkle_buffer_allocate(device.c(), bytes, &buffer));
    handle_ = std::shared_ptr<sparkle_buffer>(buffer, sparkle_buffer_release);
  }
  // Host memory as a buffer, neither copied nor freed.
  Buffer(const Device& device, void* memory, int64_t bytes) {
    sparkle_buffer* buffer = nullptr;
    detail::check(sparkle_buffer_import(device.c(), memory, bytes, &buffer));
    handle_ = std::shared_ptr<sparkle_buffer>(buffer, sparkle_buffer_release);
  }
  // A part of the caller's VkBuffer, neither copied nor freed; see sparkle_buffer_wrap_vulkan. The size is filled in here.
  Buffer(const Device& device, sparkle_vulkan_buffer vulkan) {
    vulkan.size = sizeof vulkan;
    sparkle_buffer* buffer = nullptr;
    detail::check(sparkle_buffer_wrap_vulkan(device.c(), &vulkan, &buffer));
    handle_ = std::shared_ptr<sparkle_buffer>(buffer, sparkle_buffer_release);
  }
  // The caller's CUDA memory, neither copied nor freed; see sparkle_buffer_wrap_cuda.
  static Buffer of_cuda(const Device& device, uint64_t address, int64_t bytes) {
    sparkle_buffer* buffer = nullptr;
    detail::check(sparkle_buffer_wrap_cuda(device.c(), address, bytes, &buffer));
    return Buffer(buffer);
  }
  // Takes over a buffer of the C interface.
  explicit Buffer(sparkle_buffer* buffer) : handle_(buffer, sparkle_buffer_release) {}
  int64_t bytes() const { return sparkle_buffer_bytes(c()); }
  void* host() const { return sparkle_buffer_host(c()); }
  void write(const void* from, int64_t bytes, int64_t offset = 0) {
    detail::check(sparkle_buffer_write(c(), offset, from, bytes));
  }
  void read(void* to, int64_t bytes, int64_t offset = 0) const { detail::check(sparkle_buffer_read(c(), offset, to, bytes)); }
  sparkle_buffer* c() const { return handle_.get(); }

 private:
  std::shared_ptr<sparkle_buffer> handle_;
};

// A dense row-major tensor in memory of a device; copies share the memory.
class DeviceTensor {
 public:
  // Memory of its own, with whatever lies there.
  DeviceTensor(const Device& device, Type type, Shape shape)
      : shape_of_(type, std::move(shape), nullptr), buffer_(device, bytes_of(shape_of_)) {}
  // The values of a host tensor, uploaded.
  DeviceTensor(const Device& device, const Tensor& from) : DeviceTensor(device, from.type(), from.shape()) { upload(from); }
  // From the buffer's first byte on.
  DeviceTensor(Type type, Shape shape, Buffer buffer)
      : shape_of_(type, std::move(shape), nullptr), buffer_(std::move(buffer)) {}

  Type type() const { return shape_of_.type(); }
  const Shape& shape() const { return shape_of_.shape(); }
  size_t bytes() const { return shape_of_.bytes(); }
  const Buffer& buffer() const { return buffer_; }
  // Both wait for work on the buffer that was submitted before, and return when the values are there.
  void upload(const Tensor& from) {
    if (from.bytes() != bytes()) throw Exception(SPARKLE_BAD_USAGE, "The tensor to upload has another size than its place.");
    buffer_.write(from.data(), static_cast<int64_t>(bytes()));
  }
  Tensor download() const {
    Tensor to(type(), shape());
    buffer_.read(to.data(), static_cast<int64_t>(bytes()));
    return to;
  }
  sparkle_device_tensor c() const {
    const sparkle_tensor shape = shape_of_.c();
    sparkle_device_tensor t{};
    t.type = shape.type;
    t.rank = shape.rank;
    for (int32_t a = 0; a < shape.rank; ++a) t.shape[a] = shape.shape[a];
    t.buffer = buffer_.c();
    return t;
  }

 private:
  static int64_t bytes_of(const Tensor& shape) {
    shape.check_sizes();
    (void)shape.c();  // throws where there are too many axes
    return static_cast<int64_t>(shape.bytes() > 0 ? shape.bytes() : 1);
  }
  Tensor shape_of_;  // without memory
  Buffer buffer_;
};

struct TensorInfo {
  std::string name;
  Type type = Type::f32;
  bool rank_known = true;
  Shape shape;                          // -1 where the model leaves a size open
  std::vector<std::string> axis_names;  // of open sizes
};

struct SessionOptions {
  std::string precision = "fp32";
  std::string algorithm, variant, tuning;  // see sparkle_session_options
  int64_t memory_budget = 0, plan_cache_bytes = 0;
  double accuracy = 0;
  std::string nonfinite;  // "fast" (also empty) or "exact"
  std::string fusion;     // "inverted", "none"; empty: by cost
  std::string fallback;   // "forbid", "warn" (also empty) or "allow"

  // Valid as long as these options live.
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

struct FixOptions {
  std::string precision, target, only, calibration, proof;  // empty: the default
  double max_extra = 0;
  int32_t multiple = 0;
  double percentile = 0, min_cosine = 0, min_agreement = 0;
  std::vector<std::string> keep_wide;
  NamedShapes shapes;
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

struct CheckOptions {
  NamedShapes shapes;   // of inputs whose sizes the model leaves open
  int32_t threads = 0;  // of "cpu"
  bool measure = false;
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

struct MeasureOptions {
  double seconds = 0;      // of runs with times of steps and without, about; 0: one
  int32_t runs = 0;        // of each kind, instead of seconds
  std::string check = {};  // of outputs: "auto" (also empty), "always" or "never"
};

// Something that was done in another way than a caller may expect; see sparkle_event.
struct Event {
  std::string what, from, to, reason;
  double cost = 0;  // seconds of each run
  std::string layer, message;
};

// A model ready to run; may be used by any number of threads at once. Copies share it.
class Session {
 public:
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

  std::vector<Event> events() const {
    std::vector<Event> list;
    for (size_t i = 0, count = sparkle_session_event_count(c()); i < count; ++i) {
      sparkle_event e{};
      detail::check(sparkle_session_event(c(), i, &e));
      list.push_back({e.what, e.from, e.to, e.reason, e.cost, e.layer, e.message});
    }
    return list;
  }

  std::vector<TensorInfo> inputs() const { return infos(sparkle_session_input_count(c()), sparkle_session_input); }
  std::vector<TensorInfo> outputs() const { return infos(sparkle_session_output_count(c()), sparkle_session_output); }

  // One tensor per input, in the model's order; inputs are not copied.
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
  int64_t peak_bytes(const std::vector<Tensor>& inputs) const {
    int64_t bytes = 0;
    const auto list = tensors(inputs);
    detail::check(sparkle_session_peak_bytes(c(), list.data(), list.size(), &bytes));
    return bytes;
  }
  std::string explain(const std::vector<Tensor>& inputs, bool as_json = false) const {
    return text_of(inputs,
                   [&](auto* s, auto* list, size_t n, char** t) { return sparkle_session_explain(s, list, n, as_json, t); });
  }
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
  sparkle_session* c() const { return handle_.get(); }

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
