// Sparkle in C++: tensors, devices and memory of devices. Part of sparkle.hpp.
#ifndef SPARKLE_DEVICE_HPP
#define SPARKLE_DEVICE_HPP

#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sparkle/exception.hpp"
#include "sparkle/sparkle.h"

namespace sparkle {
inline namespace api1 {

// The version of the library that runs, "1.2.3".
inline std::string version() { return sparkle_version(); }

// Types of elements; sparkle_type says what each is.
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
// Bytes of one element.
inline size_t size_of(Type type) { return sparkle_type_size(static_cast<sparkle_type>(type)); }

// Sizes of a tensor's axes, outermost first.
using Shape = std::vector<int64_t>;

// A dense row-major tensor in host memory; copies share the memory.
class Tensor {
 public:
  // Nothing: a float32 without axes and memory.
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

  Type type() const { return type_; }            // of an element
  const Shape& shape() const { return shape_; }  // of all axes, outermost first
  // How many there are: the product of the shape.
  int64_t elements() const {
    int64_t n = 1;
    for (int64_t size : shape_) n *= size;
    return n;
  }
  // Their size.
  size_t bytes() const { return static_cast<size_t>(elements()) * size_of(type_); }
  void* data() const { return data_; }  // the first element
  // The same as elements of T, which is not checked.
  template <class T>
  T* data() const {
    return static_cast<T*>(data_);
  }
  // What keeps the memory alive; nullptr for the caller's memory.
  const std::shared_ptr<void>& owner() const { return owned_; }

  // For the C interface; valid as long as this tensor is. Throws where there are too many axes.
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

// What set_log takes: a level and one line without a line end, from any thread.
using LogFunction = std::function<void(sparkle_log_level, const char*)>;
// Where notes go that are neither results nor errors; an empty function: nowhere. Not to be called while work is going on.
inline void set_log(LogFunction function) {
  static LogFunction current;
  sparkle_set_log(nullptr, nullptr);
  current = std::move(function);
  if (!current) return;
  sparkle_set_log([](void*, sparkle_log_level level, const char* message) { current(level, message); }, nullptr);
}

// How a device is opened; see sparkle_device_options.
struct DeviceOptions {
  std::string name = "auto";      // "cpu", "vulkan", "vulkan:1", "cuda", "reference"; "auto" is the CPU, see choose_device()
  int threads = 0;                // of Sparkle's own pool; 0: what affinity and cgroup quota allow
  bool calibrate = false;         // measure this machine's rates first
  sparkle_thread_pool pool{};     // of the caller's; empty: one of Sparkle's own
  sparkle_allocator allocator{};  // of the caller's; empty: the C++ runtime's
  std::string fallback = {};  // "allow": the CPU in the place of a device that cannot be used here; see sparkle_device_options
};

// Where models run; copies share it.
class Device {
 public:
  // Opens it. Throws for names that there are not and for devices that cannot be used here.
  explicit Device(const DeviceOptions& o = {}) {
    const sparkle_device_options options = c_options(o);
    sparkle_device* device = nullptr;
    detail::check(sparkle_device_open(&options, &device));
    handle_ = std::shared_ptr<sparkle_device>(device, sparkle_device_release);
  }
  // The same by its name alone: Device("cpu"), Device("vulkan:1"). `threads` of a CPU: 0 is what affinity and quota allow.
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
  // Whether the work of a token is complete.
  bool done(uint64_t token) const { return sparkle_device_done(c(), token) != 0; }
  // Waits for work; false when the time is over first. Zero: for ever.
  bool wait(uint64_t token, std::chrono::nanoseconds timeout = {}) const {
    const sparkle_status status = sparkle_device_wait(c(), token, timeout.count());
    if (status == SPARKLE_TIMEOUT) return false;
    detail::check(status);
    return true;
  }
  // What is submitted from now on waits for what this CUDA stream holds; see sparkle_device_follow_cuda_stream.
  void follow_cuda_stream(uint64_t stream) const { detail::check(sparkle_device_follow_cuda_stream(c(), stream)); }
  // What the stream gets from now on waits for the work of the token; see sparkle_device_lead_cuda_stream.
  void lead_cuda_stream(uint64_t stream, uint64_t token) const {
    detail::check(sparkle_device_lead_cuda_stream(c(), stream, token));
  }
  sparkle_device* c() const { return handle_.get(); }  // for the C interface

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
  // New memory with whatever lies there.
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
  int64_t bytes() const { return sparkle_buffer_bytes(c()); }  // its size
  void* host() const { return sparkle_buffer_host(c()); }      // its address; nullptr where the host cannot see it
  // Copies from the host to byte `offset` of the buffer; returns when it is done.
  void write(const void* from, int64_t bytes, int64_t offset = 0) {
    detail::check(sparkle_buffer_write(c(), offset, from, bytes));
  }
  // The same from the buffer to the host.
  void read(void* to, int64_t bytes, int64_t offset = 0) const { detail::check(sparkle_buffer_read(c(), offset, to, bytes)); }
  sparkle_buffer* c() const { return handle_.get(); }  // for the C interface

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

  Type type() const { return shape_of_.type(); }            // of an element
  const Shape& shape() const { return shape_of_.shape(); }  // of all axes, outermost first
  size_t bytes() const { return shape_of_.bytes(); }        // of all elements
  const Buffer& buffer() const { return buffer_; }          // where they lie
  // Other values from the host, of as many bytes. Waits for work on the buffer that was submitted before, and returns when they
  // are there.
  void upload(const Tensor& from) {
    if (from.bytes() != bytes()) throw Exception(SPARKLE_BAD_USAGE, "The tensor to upload has another size than its place.");
    buffer_.write(from.data(), static_cast<int64_t>(bytes()));
  }
  // The values, in host memory; waits likewise.
  Tensor download() const {
    Tensor to(type(), shape());
    buffer_.read(to.data(), static_cast<int64_t>(bytes()));
    return to;
  }
  // For the C interface; valid as long as this tensor is.
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

}  // namespace api1
}  // namespace sparkle
#endif  // SPARKLE_DEVICE_HPP
