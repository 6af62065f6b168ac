// oneDNN 3.7 or newer through its C interface: one convolution_forward primitive, all formats its own choice ("any"), operands
// brought into them before; or one matmul primitive. Builds for SYCL (those of the Python package index) pass each call through
// a queue, which costs some 8 us that the library in a program of its own kind would not pay: that much, measured on a layer of
// 16 x 16 x 1 x 1 in the same repetition with the same number of calls, is taken off.
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>

#include "base/median.h"
#include "peers/library.h"
#include "peers/peers.h"

namespace sparkle::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kLeastMajor = 3, kLeastMinor = 7;

// clang-format off
#define SPARKLE_DNNL(X)                                                                                                    \
  X(version) X(engine_create) X(stream_create) X(stream_wait) X(memory_desc_create_with_tag)                               \
  X(memory_desc_create_with_strides) X(memory_desc_destroy) X(memory_desc_get_size) X(memory_create) X(memory_destroy)     \
  X(convolution_forward_primitive_desc_create) X(matmul_primitive_desc_create) X(primitive_desc_query)                     \
  X(primitive_desc_query_md) X(primitive_desc_destroy) X(primitive_create) X(primitive_destroy) X(primitive_execute)       \
  X(reorder_primitive_desc_create)
// clang-format on

struct OneDnn {
  std::shared_ptr<Library> library;
#define SPARKLE_MEMBER(name) decltype(&::dnnl_##name) name = nullptr;
  SPARKLE_DNNL(SPARKLE_MEMBER)
#undef SPARKLE_MEMBER
  dnnl_engine_t engine = nullptr;
  dnnl_stream_t stream = nullptr;
  bool queued = false;  // calls pass through a queue

  Status check(dnnl_status_t status, const char* doing) const {
    if (status == dnnl_success) return ok();
    const Reason reason = status == dnnl_unimplemented ? Reason::operator_not_served : Reason::internal;
    return Error{reason, "oneDNN answered " + std::to_string(status) + " when asked to " + doing + "."};
  }
};

// A memory descriptor, its memory and what holds the bytes.
class Memory {
 public:
  explicit Memory(const OneDnn& dnnl) : dnnl_(dnnl) {}
  ~Memory() {
    if (memory_) dnnl_.memory_destroy(memory_);
    std::free(bytes_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  Status allocate(const_dnnl_memory_desc_t desc) {
    const size_t size = (dnnl_.memory_desc_get_size(desc) + 64 + 63) / 64 * 64;
    bytes_ = std::aligned_alloc(64, size);
    if (!bytes_) return Error{Reason::out_of_memory, "There is no memory for oneDNN's operands."};
    std::memset(bytes_, 0, size);
    return dnnl_.check(dnnl_.memory_create(&memory_, desc, dnnl_.engine, bytes_), "use memory");
  }
  dnnl_memory_t get() const { return memory_; }
  void* bytes() const { return bytes_; }

 private:
  const OneDnn& dnnl_;
  dnnl_memory_t memory_ = nullptr;
  void* bytes_ = nullptr;
};

struct Operand {
  int argument = 0;
  dnnl_memory_desc_t given = nullptr;  // as the comparison has it
  const float* values = nullptr;       // nullptr: the output
  size_t count = 0;
};

class DnnlRun final : public PeerRun {
 public:
  explicit DnnlRun(const OneDnn& dnnl) : dnnl_(dnnl) {}
  ~DnnlRun() override {
    if (primitive_) dnnl_.primitive_destroy(primitive_);
    if (desc_) dnnl_.primitive_desc_destroy(desc_);
    for (dnnl_memory_desc_t d : owned_) dnnl_.memory_desc_destroy(d);
  }

  Status convolution(const PeerLayer& layer) {
    const Problem& p = layer.call.problem;
    const Window& w = p.window;
    const dnnl_dims_t x{p.n, p.c, p.in[1], p.in[2]}, y{p.n, p.k, p.out[1], p.out[2]};
    const dnnl_dims_t grouped{p.groups, p.k / p.groups, p.c / p.groups, w.filter[1], w.filter[2]};
    const dnnl_dims_t whole{p.k, p.c, w.filter[1], w.filter[2]};
    const bool groups = p.groups > 1;
    const dnnl_dims_t bias{p.k}, stride{w.stride[1], w.stride[2]}, dilation{w.dilation[1] - 1, w.dilation[2] - 1};
    const dnnl_dims_t begin{w.pad_begin[1], w.pad_begin[2]}, end{w.pad_end[1], w.pad_end[2]};
    dnnl_memory_desc_t any_x, any_w, any_y, b = nullptr;
    SPARKLE_CHECK(tagged(any_x, 4, x, dnnl_format_tag_any));
    SPARKLE_CHECK(tagged(any_w, groups ? 5 : 4, groups ? grouped : whole, dnnl_format_tag_any));
    SPARKLE_CHECK(tagged(any_y, 4, y, dnnl_format_tag_any));
    if (layer.bias) SPARKLE_CHECK(tagged(b, 1, bias, dnnl_a));
    SPARKLE_CHECK(dnnl_.check(
        dnnl_.convolution_forward_primitive_desc_create(&desc_, dnnl_.engine, dnnl_forward_inference, dnnl_convolution_auto,
                                                        any_x, any_w, b, any_y, stride, dilation, begin, end, nullptr),
        "convolve"));
    Operand in{DNNL_ARG_SRC, nullptr, layer.x, static_cast<size_t>(layer.call.inputs[0].elements())};
    Operand filter{DNNL_ARG_WEIGHTS, nullptr, layer.w, static_cast<size_t>(layer.call.inputs[1].elements())};
    SPARKLE_CHECK(as_given(in.given, x, layer.call.inputs[0]));
    SPARKLE_CHECK(tagged(filter.given, groups ? 5 : 4, groups ? grouped : whole, groups ? dnnl_abcde : dnnl_abcd));
    std::vector<Operand> operands{in, filter};
    if (layer.bias) operands.push_back({DNNL_ARG_BIAS, b, layer.bias, static_cast<size_t>(p.k)});
    SPARKLE_CHECK(as_given(given_y_, y, layer.call.output));
    return finish(operands, static_cast<size_t>(layer.call.output.elements()));
  }

  Status product(const PeerLayer& layer) {
    const Problem& p = layer.call.problem;
    const dnnl_dims_t a{p.rows, p.depth}, b{p.depth, p.columns}, c{p.rows, p.columns};
    dnnl_memory_desc_t da, db, dc;
    SPARKLE_CHECK(tagged(da, 2, a, dnnl_ab));
    // A right operand that changes arrives as it is; a constant one may be packed.
    SPARKLE_CHECK(tagged(db, 2, b, layer.constant_weights ? dnnl_format_tag_any : dnnl_ab));
    SPARKLE_CHECK(tagged(dc, 2, c, dnnl_ab));
    SPARKLE_CHECK(
        dnnl_.check(dnnl_.matmul_primitive_desc_create(&desc_, dnnl_.engine, da, db, nullptr, dc, nullptr), "multiply"));
    dnnl_memory_desc_t plain;
    SPARKLE_CHECK(tagged(plain, 2, b, dnnl_ab));
    given_y_ = dc;
    return finish({{DNNL_ARG_SRC, da, layer.x, static_cast<size_t>(p.rows * p.depth)},
                   {DNNL_ARG_WEIGHTS, plain, layer.w, static_cast<size_t>(p.depth * p.columns)}},
                  static_cast<size_t>(p.rows * p.columns));
  }

  Status run(int64_t calls) override {
    for (int64_t i = 0; i < calls; ++i)
      SPARKLE_CHECK(dnnl_.check(
          dnnl_.primitive_execute(primitive_, dnnl_.stream, static_cast<int>(arguments_.size()), arguments_.data()), "run"));
    return dnnl_.check(dnnl_.stream_wait(dnnl_.stream), "finish");
  }
  Status result(float* y) override {
    Memory plain(dnnl_);
    SPARKLE_CHECK(plain.allocate(given_y_));
    SPARKLE_CHECK(reorder(memories_.back()->get(), desc_of(dnnl_query_dst_md), plain.get(), given_y_));
    std::memcpy(y, plain.bytes(), outputs_ * sizeof(float));
    return ok();
  }
  Result<double> fixed_seconds(int64_t calls) override {
    if (!dnnl_.queued || !tiny_) return 0.0;
    std::vector<double> taken;
    for (int i = 0; i < 5; ++i) {
      const auto begin = Clock::now();
      SPARKLE_CHECK(tiny_(calls));
      taken.push_back(std::chrono::duration<double>(Clock::now() - begin).count() / static_cast<double>(calls));
    }
    return median(taken);
  }
  std::string chose() const override {
    const char* text = nullptr;
    dnnl_.primitive_desc_query(desc_, dnnl_query_impl_info_str, 0, &text);
    return text ? text : "";
  }
  void set_tiny(std::function<Status(int64_t)> tiny) { tiny_ = std::move(tiny); }

 private:
  Status tagged(dnnl_memory_desc_t& desc, int rank, const dnnl_dims_t dims, dnnl_format_tag_t tag) {
    SPARKLE_CHECK(dnnl_.check(dnnl_.memory_desc_create_with_tag(&desc, rank, dims, dnnl_f32, tag), "describe a tensor"));
    owned_.push_back(desc);
    return ok();
  }
  Status as_given(dnnl_memory_desc_t& desc, const dnnl_dims_t dims, const TensorDesc& tensor) {
    dnnl_dims_t strides;
    for (int i = 0; i < 4; ++i) strides[i] = tensor.layout.strides[i];
    SPARKLE_CHECK(dnnl_.check(dnnl_.memory_desc_create_with_strides(&desc, 4, dims, dnnl_f32, strides), "describe a tensor"));
    owned_.push_back(desc);
    return ok();
  }
  const_dnnl_memory_desc_t desc_of(dnnl_query_t what) const { return dnnl_.primitive_desc_query_md(desc_, what, 0); }

  Status reorder(dnnl_memory_t from, const_dnnl_memory_desc_t from_desc, dnnl_memory_t to, const_dnnl_memory_desc_t to_desc) {
    dnnl_primitive_desc_t desc;
    SPARKLE_CHECK(dnnl_.check(
        dnnl_.reorder_primitive_desc_create(&desc, from_desc, dnnl_.engine, to_desc, dnnl_.engine, nullptr), "reorder"));
    dnnl_primitive_t primitive;
    const dnnl_status_t made = dnnl_.primitive_create(&primitive, desc);
    dnnl_.primitive_desc_destroy(desc);
    SPARKLE_CHECK(dnnl_.check(made, "reorder"));
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    const dnnl_status_t done = dnnl_.primitive_execute(primitive, dnnl_.stream, 2, arguments);
    const dnnl_status_t waited = dnnl_.stream_wait(dnnl_.stream);
    dnnl_.primitive_destroy(primitive);
    SPARKLE_CHECK(dnnl_.check(done, "reorder"));
    return dnnl_.check(waited, "reorder");
  }

  Status finish(const std::vector<Operand>& operands, size_t outputs) {
    outputs_ = outputs;
    SPARKLE_CHECK(dnnl_.check(dnnl_.primitive_create(&primitive_, desc_), "compile a primitive"));
    for (const Operand& o : operands) {
      const const_dnnl_memory_desc_t wanted = o.argument == DNNL_ARG_SRC       ? desc_of(dnnl_query_src_md)
                                              : o.argument == DNNL_ARG_WEIGHTS ? desc_of(dnnl_query_weights_md)
                                                                               : o.given;
      Memory given(dnnl_);
      SPARKLE_CHECK(given.allocate(o.given));
      std::memcpy(given.bytes(), o.values, o.count * sizeof(float));
      auto memory = std::make_unique<Memory>(dnnl_);
      SPARKLE_CHECK(memory->allocate(wanted));
      SPARKLE_CHECK(reorder(given.get(), o.given, memory->get(), wanted));
      arguments_.push_back({o.argument, memory->get()});
      memories_.push_back(std::move(memory));
    }
    auto y = std::make_unique<Memory>(dnnl_);
    SPARKLE_CHECK(y->allocate(desc_of(dnnl_query_dst_md)));
    arguments_.push_back({DNNL_ARG_DST, y->get()});
    memories_.push_back(std::move(y));
    return ok();
  }

  const OneDnn& dnnl_;
  dnnl_primitive_desc_t desc_ = nullptr;
  dnnl_primitive_t primitive_ = nullptr;
  std::vector<dnnl_memory_desc_t> owned_;
  dnnl_memory_desc_t given_y_ = nullptr;
  std::vector<std::unique_ptr<Memory>> memories_;  // the output last
  std::vector<dnnl_exec_arg_t> arguments_;
  size_t outputs_ = 0;
  std::function<Status(int64_t)> tiny_;
};

class DnnlPeer final : public Peer {
 public:
  DnnlPeer(OneDnn dnnl, std::string version) : dnnl_(std::move(dnnl)), version_(std::move(version)) {}
  // The layer whose time is the queue's.
  Status prepare_tiny() {
    Problem p;
    p.c = p.k = 16;
    const AnchorCall call = call_of(p);
    const std::vector<float> ones(16 * 16, 1);
    tiny_ = std::make_unique<DnnlRun>(dnnl_);
    return tiny_->convolution({call, ones.data(), ones.data(), nullptr, true});
  }
  std::string name() const override { return "onednn"; }
  std::string version() const override { return version_; }
  Result<std::unique_ptr<PeerRun>> prepare(const PeerLayer& layer) override {
    const Problem& p = layer.call.problem;
    auto run = std::make_unique<DnnlRun>(dnnl_);
    const bool plain = p.epilogue.activation == Activation::none;
    if (p.kind == ProblemKind::conv && p.rank == 2 && plain) {
      SPARKLE_CHECK(run->convolution(layer));
    } else if (p.kind == ProblemKind::matmul && p.batch == 1 && p.epilogue.operands() == 0 && plain) {
      SPARKLE_CHECK(run->product(layer));
    } else {
      return Error{Reason::operator_not_served, "onednn takes part in convolutions of two dimensions and in products."};
    }
    run->set_tiny([this](int64_t calls) { return tiny_->run(calls); });
    return std::unique_ptr<PeerRun>(std::move(run));
  }

 private:
  OneDnn dnnl_;
  std::string version_;
  std::unique_ptr<DnnlRun> tiny_;
};

// Wheels lay oneDNN's runtime beside it, where the loader does not look: what is loaded already it takes. Elsewhere the files
// are not there, or are not needed.
void load_runtime(const std::filesystem::path& folder) {
  const auto driver = folder / "libintelocl.so";
  if (std::filesystem::exists(driver)) ::setenv("OCL_ICD_FILENAMES", driver.c_str(), 0);
  for (const char* name : {"libhwloc.so.15", "libtcm.so.1", "libtbb.so.12", "libintlc.so.5", "libimf.so", "libirng.so",
                           "libsvml.so", "libumf.so.1", "libur_loader.so.0", "libOpenCL.so.1", "libsycl.so.9"})
    if (const auto library = folder / name; std::filesystem::exists(library)) ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

Result<Peers> open_onednn(const std::string& file, int) {
  // The threads follow the process's CPUs.
  load_runtime(std::filesystem::path(file).parent_path());
  OneDnn dnnl;
  SPARKLE_TRY(library, Library::open("onednn", file));
  dnnl.library = std::move(library);
  SPARKLE_CHECK(dnnl.library->find(dnnl.version, "dnnl_version"));
  const dnnl_version_t& v = *dnnl.version();
  const std::string version = std::to_string(v.major) + "." + std::to_string(v.minor) + "." + std::to_string(v.patch);
  if (v.major != kLeastMajor || v.minor < kLeastMinor)
    return Error{Reason::device_unusable, "The oneDNN of '" + file + "' is version " + version +
                                              "; its kernels changed much since, so at least 3.7 is measured against. Run "
                                              "scripts/setup bench, or name another library with onednn=FILE."};
#define SPARKLE_FIND(name) SPARKLE_CHECK(dnnl.library->find(dnnl.name, "dnnl_" #name));
  SPARKLE_DNNL(SPARKLE_FIND)
#undef SPARKLE_FIND
  dnnl.queued = (v.cpu_runtime & DNNL_RUNTIME_SYCL) != 0;
  SPARKLE_CHECK(dnnl.check(dnnl.engine_create(&dnnl.engine, dnnl_cpu, 0), "make a CPU engine"));
  SPARKLE_CHECK(dnnl.check(dnnl.stream_create(&dnnl.stream, dnnl.engine, dnnl_stream_default_flags), "make a stream"));
  auto peer = std::make_unique<DnnlPeer>(std::move(dnnl), version + (v.cpu_runtime & DNNL_RUNTIME_SYCL ? ", SYCL" : ""));
  SPARKLE_CHECK(peer->prepare_tiny());
  Peers peers;
  peers.push_back(std::move(peer));
  return peers;
}

}  // namespace sparkle::cli
