// ONNX Runtime through its C interface, in two ways:
//   onnxruntime           a model of one Conv node as anybody would run it: channels first in and out, all optimisations. The
//   layout
//                         conversions that it puts around the node are timed.
//   onnxruntime_blocked   the conversions excluded: its internal convolution on blocked channels alone (the node that its own
//                         optimiser puts in, domain com.microsoft.nchwc), input and filters blocked before, output left
//                         blocked. It has no such path for groups of a few channels.
// Inside a model the conversions are paid at the edges only, so the second is what a layer costs there.
#include <onnx.pb.h>

#include <algorithm>
#include <functional>

#include "peers/onnxruntime_library.h"
#include "peers/peers.h"

namespace sparkle::cli {
namespace {

// Where element (n,c,h,w) of a map of `channels` lies; the last dimension of blocked maps is `block` channels.
struct Order {
  int64_t channels, height, width, block;  // block 1: channels first
  int64_t at(int64_t n, int64_t c, int64_t h, int64_t w) const {
    return (((n * (channels / block) + c / block) * height + h) * width + w) * block + c % block;
  }
  int64_t elements(int64_t n) const { return n * channels * height * width; }
};

// How a layer is laid out for one of the two ways.
struct Form {
  Order x, y;
  int64_t groups = 1;
  std::vector<float> w, bias;
  std::vector<int64_t> w_shape;
  bool blocked = false;
};

int64_t rounded(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

Form as_is(const PeerLayer& layer) {
  const Problem& p = layer.call.problem;
  Form f{{p.c, p.in[1], p.in[2], 1}, {p.k, p.out[1], p.out[2], 1}, p.groups, {}, {}, {}, false};
  f.w.assign(layer.w, layer.w + layer.call.inputs[1].elements());
  f.w_shape = {p.k, p.c / p.groups, p.window.filter[1], p.window.filter[2]};
  if (layer.bias) f.bias.assign(layer.bias, layer.bias + p.k);
  return f;
}

// Channels in blocks of a vector, filters as the internal convolution reads them: [K/b][C/b][R][S][c][k], or [K/b][C][R][S][k]
// where channels come unblocked (fewer than a block of them) or have filters of their own. Errors: operator_not_served.
Result<Form> blocked(const PeerLayer& layer, int64_t block) {
  const Problem& p = layer.call.problem;
  const int64_t group_c = p.c / p.groups, group_k = p.k / p.groups, k = rounded(p.k, block);
  const bool depthwise = p.groups > 1 && group_c == 1 && group_k == 1, few = p.groups == 1 && p.c < block;
  const bool supported =
      p.k % 4 == 0 && (p.groups == 1 ? few || p.c % 4 == 0 : depthwise || (group_c % block == 0 && group_k % block == 0));
  if (!supported)
    return Error{Reason::operator_not_served, "ONNX Runtime has no blocked convolution for these channels and groups."};
  const int64_t c = few ? p.c : rounded(p.c, block);
  Form f{{c, p.in[1], p.in[2], few ? 1 : block}, {k, p.out[1], p.out[2], block}, depthwise ? k : p.groups, {}, {}, {}, true};
  const int64_t filter_c = depthwise ? 1 : few ? p.c : p.groups > 1 ? group_c : c, inner = depthwise || few ? 1 : block;
  const int64_t r = p.window.filter[1], s = p.window.filter[2], taps = r * s;
  f.w_shape = {k, filter_c, r, s};
  f.w.assign(static_cast<size_t>(k * filter_c * taps), 0);
  for (int64_t o = 0; o < p.k; ++o)
    for (int64_t i = 0; i < group_c; ++i)
      for (int64_t t = 0; t < taps; ++t)
        f.w[static_cast<size_t>(((((o / block) * (filter_c / inner) + i / inner) * taps + t) * inner + i % inner) * block +
                                o % block)] = layer.w[(o * group_c + i) * taps + t];
  if (layer.bias) f.bias.assign(static_cast<size_t>(k), 0), std::copy(layer.bias, layer.bias + p.k, f.bias.begin());
  return f;
}

void add_constant(onnx::GraphProto& graph, onnx::NodeProto& node, const char* name, const std::vector<int64_t>& shape,
                  const std::vector<float>& values) {
  onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  for (int64_t d : shape) tensor.add_dims(d);
  tensor.set_raw_data(values.data(), values.size() * sizeof(float));
  node.add_input(name);
}

void add_value(onnx::ValueInfoProto& value, const char* name, const std::vector<int64_t>& shape) {
  value.set_name(name);
  auto& type = *value.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  for (int64_t d : shape) type.mutable_shape()->add_dim()->set_dim_value(d);
}

std::string model_of(const Form& form, const Problem& p) {
  const char* const domain = form.blocked ? "com.microsoft.nchwc" : "";
  onnx::ModelProto model;
  model.set_ir_version(8);
  auto& plain = *model.add_opset_import();
  plain.set_domain("");
  plain.set_version(17);
  if (form.blocked) {
    auto& internal = *model.add_opset_import();
    internal.set_domain(domain);
    internal.set_version(1);
  }
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("layer");
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type("Conv");
  node.set_domain(domain);
  node.add_input("x");
  add_constant(graph, node, "w", form.w_shape, form.w);
  if (!form.bias.empty()) add_constant(graph, node, "b", {static_cast<int64_t>(form.bias.size())}, form.bias);
  node.add_output("y");
  const auto ints = [&](const char* name, std::initializer_list<int64_t> values) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INTS);
    for (int64_t v : values) attribute.add_ints(v);
  };
  const Window& w = p.window;
  ints("kernel_shape", {w.filter[1], w.filter[2]});
  ints("strides", {w.stride[1], w.stride[2]});
  ints("dilations", {w.dilation[1], w.dilation[2]});
  ints("pads", {w.pad_begin[1], w.pad_begin[2], w.pad_end[1], w.pad_end[2]});
  auto& group = *node.add_attribute();
  group.set_name("group");
  group.set_type(onnx::AttributeProto::INT);
  group.set_i(form.groups);
  add_value(*graph.add_input(), "x", {p.n, form.x.channels, p.in[1], p.in[2]});
  add_value(*graph.add_output(), "y", {p.n, form.y.channels, p.out[1], p.out[2]});
  return model.SerializeAsString();
}

class RuntimeRun final : public PeerRun {
 public:
  explicit RuntimeRun(std::shared_ptr<OnnxRuntime> runtime) : runtime_(std::move(runtime)) {}
  ~RuntimeRun() override {
    runtime_->release(OnnxRuntime::kReleaseValue, x_value_);
    runtime_->release(OnnxRuntime::kReleaseValue, y_value_);
    runtime_->release(OnnxRuntime::kReleaseSession, session_);
  }
  Status prepare(const PeerLayer& layer, const Form& form) {
    const Problem& p = layer.call.problem;
    call_ = layer.call, order_ = form.y;
    SPARKLE_CHECK(runtime_->session(model_of(form, p),
                                    form.blocked ? OnnxRuntime::kNoOptimisation : OnnxRuntime::kAllOptimisations, &session_));
    x_.assign(static_cast<size_t>(form.x.elements(p.n)), 0);
    y_.assign(static_cast<size_t>(form.y.elements(p.n)), 0);
    each_element(call_.inputs[0], [&](int64_t at, int64_t n, int64_t c, int64_t h, int64_t w) {
      x_[static_cast<size_t>(form.x.at(n, c, h, w))] = layer.x[at];
    });
    SPARKLE_CHECK(tensor(x_, {p.n, form.x.channels, p.in[1], p.in[2]}, &x_value_));
    return tensor(y_, {p.n, form.y.channels, p.out[1], p.out[2]}, &y_value_);
  }
  Status run(int64_t calls) override {
    static const char* const in = "x";
    static const char* const out = "y";
    for (int64_t i = 0; i < calls; ++i)
      SPARKLE_CHECK(runtime_->call(OnnxRuntime::kRun, "run the layer", session_, static_cast<const void*>(nullptr), &in,
                                   const_cast<const void* const*>(&x_value_), size_t{1}, &out, size_t{1}, &y_value_));
    return ok();
  }
  Status result(float* y) override {
    each_element(call_.output, [&](int64_t at, int64_t n, int64_t c, int64_t h, int64_t w) {
      y[at] = y_[static_cast<size_t>(order_.at(n, c, h, w))];
    });
    return ok();
  }

 private:
  template <class F>
  static void each_element(const TensorDesc& desc, F visit) {
    const Dims &s = desc.shape, &p = desc.layout.strides;
    for (int64_t n = 0; n < s[0]; ++n)
      for (int64_t c = 0; c < s[1]; ++c)
        for (int64_t h = 0; h < s[2]; ++h)
          for (int64_t w = 0; w < s[3]; ++w) visit(desc.layout.offset + n * p[0] + c * p[1] + h * p[2] + w * p[3], n, c, h, w);
  }

  Status tensor(std::vector<float>& values, const std::vector<int64_t>& shape, void** value) const {
    return runtime_->tensor(values.data(), values.size() * sizeof(float), shape, onnx::TensorProto::FLOAT, value);
  }

  std::shared_ptr<OnnxRuntime> runtime_;
  AnchorCall call_;
  Order order_{};
  std::vector<float> x_, y_;
  void *session_ = nullptr, *x_value_ = nullptr, *y_value_ = nullptr;
};

class RuntimePeer final : public Peer {
 public:
  RuntimePeer(std::shared_ptr<OnnxRuntime> runtime, bool internal) : runtime_(std::move(runtime)), internal_(internal) {}
  std::string name() const override { return internal_ ? "onnxruntime_blocked" : "onnxruntime"; }
  std::string version() const override { return runtime_->version(); }
  Result<std::unique_ptr<PeerRun>> prepare(const PeerLayer& layer) override {
    const Problem& p = layer.call.problem;
    if (p.kind != ProblemKind::conv || p.rank != 2 || p.epilogue.activation != Activation::none)
      return Error{Reason::operator_not_served, "onnxruntime takes part in convolutions of two dimensions."};
    Form form = as_is(layer);
    if (internal_) {
      SPARKLE_TRY(made, blocked(layer, block()));
      form = std::move(made);
    }
    auto run = std::make_unique<RuntimeRun>(runtime_);
    SPARKLE_CHECK(run->prepare(layer, form));
    return std::unique_ptr<PeerRun>(std::move(run));
  }

 private:
  // Its block is a vector of fp32, 8 where there is no AVX-512; Arm's kernels take four vectors.
  static int64_t block() {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") ? 16 : 8;
#else
    return 16;
#endif
  }
  std::shared_ptr<OnnxRuntime> runtime_;
  bool internal_;
};

}  // namespace

Result<Peers> open_onnxruntime(const std::string& file, int threads) {
  SPARKLE_TRY(runtime, OnnxRuntime::open(file, threads));
  Peers peers;
  peers.push_back(std::make_unique<RuntimePeer>(runtime, false));
  peers.push_back(std::make_unique<RuntimePeer>(runtime, true));
  return peers;
}

}  // namespace sparkle::cli
