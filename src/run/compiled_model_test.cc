// Compiled files: a session that opens one gives the numbers of a session on the model, bit for bit; a file of another machine,
// version or format, cut short or changed is refused with a sentence, whatever was changed and whoever repaired the hashes.
#include "prepare/compiled_model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <random>

#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"
#include "base/folder_testing.h"
#include "base/half_floats.h"
#include "base/system/thread_pool.h"
#include "device/probe_cpu.h"
#include "families/common.h"
#include "families/pointwise/pointwise.h"
#include "graph/graph_text.h"
#include "graph/test_graphs.h"
#include "graph/evaluate/values.h"
#include "networks/zoo.h"
#include "prepare/compile_model.h"
#include "run/session.h"
#include "run/compiled_testing.h"
#include "run/session_testing.h"

namespace sparkle {
namespace {

namespace fs = std::filesystem;
using testing::Bytes;
using testing::bytes_of;
using testing::refusal;
using testing::replaced;
using testing::section_of;
using testing::with_section;

std::shared_ptr<Backend> cpu(const Device& device = probe_cpu()) {
  return cpu::make_cpu_backend(device, std::make_shared<ThreadPool>(2));
}

Graph zoo(std::string_view name) {
  ZooOptions options;
  options.batchnorm = true;
  return std::move(*zoo_network(name, options));
}

class Compiled : public testing::FolderTest {
 protected:
  std::string path() const { return FolderTest::path("model.sparkle"); }

  void compile(const Graph& graph, std::shared_ptr<Backend> backend, const SessionOptions& options = {}) {
    std::vector<Dims> shapes;
    for (TensorId id : graph.inputs) shapes.push_back(graph.tensor(id).shape);
    const auto done = compile_model(graph, backend, options, shapes, path());
    ASSERT_TRUE(done.ok()) << done.error().message;
    EXPECT_EQ(static_cast<uintmax_t>(done->file_bytes), fs::file_size(path()));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);  // nothing beside it
  }
  Bytes read() const { return bytes_of(path()); }
  std::unique_ptr<Session> session(std::shared_ptr<Backend> backend, const SessionOptions& options = {}) const {
    auto model = CompiledModel::open(path());
    EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message);
    if (!model.ok()) return nullptr;
    auto opened = Session::open(*model, std::move(backend), options);
    EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().message);
    return opened.ok() ? std::move(*opened) : nullptr;
  }
};

void expect_same_bits(Session& have, Session& want) {
  const auto inputs = testing::random_inputs(want);
  const auto a = have.run(inputs), b = want.run(inputs);
  ASSERT_TRUE(a.ok()) << a.error().message;
  ASSERT_TRUE(b.ok()) << b.error().message;
  ASSERT_EQ(a->size(), b->size());
  for (size_t i = 0; i < a->size(); ++i) {
    ASSERT_EQ((*a)[i].shape, (*b)[i].shape);
    EXPECT_EQ(std::memcmp((*a)[i].bytes.get(), (*b)[i].bytes.get(), static_cast<size_t>((*b)[i].size_bytes())), 0);
  }
}

TEST_F(Compiled, GivesTheSameBits) {
  for (const char* name : {"tiny_chain", "tiny_residual", "tiny_depthwise", "tiny_unet", "tiny_detector", "tiny_attention"})
    for (const auto& backend : {cpu(), make_reference_backend()}) {
      SCOPED_TRACE(std::string(name) + " on " + backend->device().name);
      const Graph graph = zoo(name);
      compile(graph, backend);
      const auto opened = session(backend);
      ASSERT_TRUE(opened);
      auto plain = Session::open(graph, backend, {});
      ASSERT_TRUE(plain.ok());
      expect_same_bits(*opened, **plain);
      const auto inputs = testing::random_inputs(*opened);
      EXPECT_EQ(to_text(**opened->prepare(inputs)).size() > 0, true);
      auto model = CompiledModel::open(path());
      ASSERT_TRUE(model.ok());
      EXPECT_TRUE((*model)->check_weights().ok());
    }
}

// The plan depends on what values weights have, which the file does not hold: it says what they fit.
TEST_F(Compiled, KeepsWeightsInSixteenBits) {
  const auto backend = cpu();
  SessionOptions options;
  options.algorithm = "gemm_f16";
  for (const bool exact : {false, true}) {
    Graph graph = std::move(*zoo_network("tiny_residual"));
    int64_t bytes = 0;
    for (GraphTensor& t : graph.tensors) {
      if (!t.constant || t.dtype != DType::f32) continue;
      bytes += t.constant->size_bytes();
      for (int64_t i = 0; exact && i < t.constant->elements(); ++i)
        t.constant->data<float>()[i] = half_to_float(float_to_half(t.constant->data<float>()[i]));
    }
    compile(graph, backend, options);
    auto direct = Session::open(graph, backend, options);
    ASSERT_TRUE(direct.ok());
    auto opened = session(backend, options);
    ASSERT_NE(opened, nullptr);
    const auto inputs = testing::random_inputs(*opened);
    const auto plan = opened->prepare(inputs);
    ASSERT_TRUE(plan.ok());
    int half = 0;
    for (const PlanStep& step : (*plan)->steps) half += variant_of(step.schedule).starts_with("half");
    EXPECT_TRUE(half > 0 || !best_vector_unit(backend->device()));
    expect_same_bits(*opened, **direct);
    EXPECT_LT(static_cast<int64_t>(fs::file_size(path())), bytes + 65536);  // without the model's own weights
  }
}

// The fields of a record as text.
struct Fields {
  std::map<std::string, std::string> text;
  void operator()(const char* name, const std::string& value) { text[name] = value; }
  template <class Number>
  void operator()(const char* name, const Number& value) {
    text[name] = std::to_string(value);
  }
};

// Every field of the record of options arrives in the file.
TEST_F(Compiled, HoldsEveryOption) {
  SessionOptions options;
  options.algorithm = "gemm", options.variant = "plain", options.fusion = "none";
  options.memory_budget = int64_t{1} << 30, options.accuracy = 1e-3, options.fuse = false, options.exact_nonfinite = true;
  PlanSettings defaults;
  Fields given, plain;
  options.visit(given), defaults.visit(plain);
  for (const auto& [name, value] : given.text) EXPECT_NE(value, plain.text[name]) << name << " is not looked at here";
  compile(zoo("tiny_chain"), cpu(), options);
  const auto model = CompiledModel::open(path());
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_TRUE((*model)->options() == static_cast<const PlanSettings&>(options));
}

TEST_F(Compiled, ServesManySessionsAndOutlivesItsName) {
  const auto backend = cpu();
  compile(zoo("tiny_residual"), backend);
  const auto a = session(backend), b = session(backend);
  fs::remove(path());
  expect_same_bits(*a, *b);
}

TEST_F(Compiled, RefusesAnotherMachine) {
  compile(zoo("tiny_chain"), cpu());
  const auto refused = [&](const Device& device) {
    auto model = CompiledModel::open(path());
    EXPECT_TRUE(model.ok());
    const auto opened = Session::open(*model, cpu(device), {});
    EXPECT_FALSE(opened.ok());
    if (opened.ok()) return std::string();
    EXPECT_EQ(opened.error().reason, Reason::device_unusable);
    return opened.error().message;
  };
  Device device = probe_cpu();
  device.name = "another processor";
  EXPECT_NE(refused(device).find("this is 'another processor'"), std::string::npos);
  device = probe_cpu();
  device.cores += 1;
  EXPECT_NE(refused(device).find("--threads"), std::string::npos);
  device = probe_cpu();
  device.memory.front().bytes *= 2;
  EXPECT_NE(refused(device).find("holds"), std::string::npos);
  device = probe_cpu();
  device.units.clear();
  EXPECT_NE(refused(device).find("math units"), std::string::npos);
  // Rates are measured anew at any time; the file keeps those it was planned with.
  device = probe_cpu();
  device.clock_hz *= 2, device.calibrated = true;
  device.link_bytes_per_second = 5e9, device.link_seconds = 1e-5;
  device.paces.push_back({"gemm tile6x2", "avx2", 1.25});
  for (MathUnit& unit : device.units) unit.flops_per_second *= 3;
  EXPECT_TRUE(session(cpu(device)));
}

TEST_F(Compiled, RefusesOtherOptionsAndShapes) {
  const auto backend = cpu();
  SessionOptions gemm;
  gemm.algorithm = "gemm";
  compile(zoo("tiny_chain"), backend, gemm);
  auto model = *CompiledModel::open(path());
  SessionOptions asked;
  asked.algorithm = "winograd2";
  EXPECT_EQ(Session::open(model, backend, asked).error().reason, Reason::bad_usage);
  asked = {};
  asked.accuracy = 1e-3;
  EXPECT_EQ(Session::open(model, backend, asked).error().reason, Reason::bad_usage);
  asked = {};
  asked.variant = "plain";
  EXPECT_EQ(Session::open(model, backend, asked).error().reason, Reason::bad_usage);
  EXPECT_TRUE(session(backend, gemm));
  const auto opened = session(backend);
  auto inputs = testing::random_inputs(*opened);
  inputs[0] = HostTensor::zeros(DType::f32, {1, 3, 7, 7});
  const auto result = opened->run(inputs);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("compile the model for this shape"), std::string::npos) << result.error().message;
  asked = {};
  asked.memory_budget = 1000;
  const auto tight = session(backend, asked)->run(testing::random_inputs(*opened));
  ASSERT_FALSE(tight.ok());
  EXPECT_EQ(tight.error().reason, Reason::over_memory_budget);
}

// A file compiled for exact infinities opens with and without the option, and one compiled without it does not open with it.
TEST_F(Compiled, KeepsExactNonfinite) {
  const auto backend = cpu();
  SessionOptions exact;
  exact.exact_nonfinite = true;
  compile(zoo("tiny_chain"), backend, exact);
  EXPECT_TRUE((*CompiledModel::open(path()))->options().exact_nonfinite);
  for (const bool asked : {true, false}) {
    SessionOptions options;
    options.exact_nonfinite = asked;
    const auto opened = session(backend, options);
    EXPECT_TRUE(opened->run(testing::random_inputs(*opened)).ok());
  }
  compile(zoo("tiny_chain"), backend, {});
  EXPECT_EQ(Session::open(*CompiledModel::open(path()), backend, exact).error().reason, Reason::bad_usage);
}

TEST_F(Compiled, RefusesWhatIsCutShort) {
  const auto backend = cpu();
  compile(zoo("tiny_chain"), backend);
  const Bytes whole = read();
  ASSERT_EQ(refusal(whole, backend), "");
  for (size_t size = 0; size < whole.size(); size += size < 300 ? 1 : 997)
    EXPECT_NE(refusal(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)), backend), "") << size;
  Bytes longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_NE(refusal(longer, backend), "");
}

TEST_F(Compiled, RefusesFlippedBits) {
  const auto backend = cpu();
  compile(zoo("tiny_chain"), backend);
  Bytes bytes = read();
  const auto header = *read_compiled_header(bytes, "file");
  const auto flipped = [&](size_t at, int bit) {
    bytes[at] ^= static_cast<std::byte>(1 << bit);
    const std::string said = refusal(bytes, backend);
    bytes[at] ^= static_cast<std::byte>(1 << bit);
    return said;
  };
  for (size_t at = 0; at < kCompiledHeaderBytes; ++at)
    for (const int bit : {0, 7}) EXPECT_NE(flipped(at, bit), "") << "byte " << at << " of the header";
  for (size_t s = 1; s < kCompiledSections; ++s)
    for (size_t i = 0; i < header.sections[s].bytes; i += 1 + header.sections[s].bytes / 50)
      EXPECT_NE(flipped(header.sections[s].at + i, 3), "") << "byte " << i << " of section " << s;
  // Weights are looked at on demand.
  const auto model = *CompiledModel::from_memory(bytes, "file");
  EXPECT_TRUE(model->check_weights().ok());
  size_t found = 0, at = static_cast<size_t>(kCompiledWeightsAt);
  for (const size_t end = at + header[CompiledSection::weights].bytes; at < end; at += 61) {
    bytes[at] ^= std::byte{16};
    const auto changed = CompiledModel::from_memory(bytes, "file");  // values kept for planning are looked at here
    found += !changed.ok() || !(*changed)->check_weights().ok();
    bytes[at] ^= std::byte{16};
  }
  EXPECT_GT(found, header[CompiledSection::weights].bytes / 61 / 2);  // the rest are the lines between constants
}

TEST_F(Compiled, RefusesOtherVersionsAndFormats) {
  const auto backend = cpu();
  compile(zoo("tiny_chain"), backend);
  Bytes bytes = read();
  auto header = *read_compiled_header(bytes, "file");
  header.version = "99.1.0";
  auto begin = compiled_header(header);
  std::copy(begin.begin(), begin.end(), bytes.begin());
  EXPECT_NE(refusal(bytes, backend).find("compiled by Sparkle 99.1.0"), std::string::npos);
  bytes = read();
  bytes[8] = std::byte{77};
  EXPECT_NE(refusal(bytes, backend).find("has the format 77"), std::string::npos);
  EXPECT_NE(refusal({}, backend), "");
}

// Hashes do not make a file true: whoever changes it can repair them.
TEST_F(Compiled, BelievesNothingThatIsOnlyHashed) {
  const auto backend = cpu();
  compile(zoo("tiny_residual"), backend);
  const Bytes file = read();
  const auto changed = [&](CompiledSection section, const std::string& from, const std::string& to) {
    return refusal(with_section(file, section, replaced(section_of(file, section), from, to)), backend);
  };
  ASSERT_EQ(refusal(with_section(file, CompiledSection::plan, section_of(file, CompiledSection::plan)), backend), "");
  EXPECT_NE(changed(CompiledSection::plan, "arena ", "arena 9"), "");
  EXPECT_NE(changed(CompiledSection::plan, " at=", " at=1"), "");
  EXPECT_NE(changed(CompiledSection::plan, "step ", "stop "), "");
  EXPECT_NE(changed(CompiledSection::graph, "op=conv", "op=pool"), "");
  EXPECT_NE(changed(CompiledSection::graph, "shape=[1,", "shape=[100000000,"), "");
  EXPECT_NE(changed(CompiledSection::graph, "in=[", "in=[99999,"), "");
  EXPECT_NE(changed(CompiledSection::graph, "outputs=[", "outputs=[-7,"), "");
  EXPECT_NE(changed(CompiledSection::options, "fuse=1", "fuse=0"), "");
  EXPECT_NE(changed(CompiledSection::options, "algorithm=-", "algorithm=gem"), "");
  EXPECT_NE(changed(CompiledSection::constants, "at=0", "at=64000000000000"), "");
  EXPECT_NE(changed(CompiledSection::constants, "constant at=", "constant at=-"), "");
  EXPECT_NE(changed(CompiledSection::constants, "bytes=", "bytes=9"), "");
  EXPECT_NE(changed(CompiledSection::constants, "key=", "key=x"), "");
  EXPECT_NE(changed(CompiledSection::constants, "constant ", ""), "");
  EXPECT_NE(changed(CompiledSection::device, "\"cores\"", "\"corse\""), "");
  EXPECT_NE(refusal(with_section(file, CompiledSection::tuning, "nonsense"), backend), "");
  for (const CompiledSection section : {CompiledSection::options, CompiledSection::device, CompiledSection::graph,
                                        CompiledSection::constants, CompiledSection::plan})
    EXPECT_NE(refusal(with_section(file, section, ""), backend), "");
}

// Every operator's fields survive as text; what bind() folds away is refused.
TEST(GraphText, ReadsBackWhatItPrints) {
  for (const char* name : {"tiny_unet", "tiny_detector", "tiny_attention"}) {
    Graph graph = zoo(name);
    ASSERT_TRUE(simplify(graph).ok());
    std::vector<InputBinding> bindings;
    for (TensorId id : graph.inputs) bindings.push_back({graph.tensor(id).shape, std::nullopt});
    Graph bound = *sparkle::bind(graph, bindings);
    ASSERT_TRUE(simplify(bound).ok());
    const auto text = bound_graph_text(bound);
    ASSERT_TRUE(text.ok()) << text.error().message;
    const auto back = graph_from_text(*text);
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(*bound_graph_text(*back), *text);
    for (size_t i = 0; i < bound.ops.size(); ++i) EXPECT_EQ(back->ops[i].params.index(), bound.ops[i].params.index());
  }
  testing::GraphBuilder b;
  const TensorId x = b.input({2, 3});
  EXPECT_FALSE(bound_graph_text(b.done(b.op("Shape", ShapeOp{}, {x}))).ok());
  for (const char* text :
       {"", "sparkle-graph 3\n", "sparkle-graph 2\n", "sparkle-graph 2\nname=a opset=1 inputs=[] outputs=[]\n",
        "sparkle-graph 2\nname=a opset=1 inputs=[0] outputs=[0]\n"})
    EXPECT_FALSE(graph_from_text(text).ok()) << text;
}

ConvOp conv_of(int64_t pad, int64_t groups) {
  ConvOp conv;
  conv.pads_begin = conv.pads_end = {pad, pad};
  conv.groups = groups;
  return conv;
}

// Changes the settings one by one; a new one must be given a value here.
struct Changer {
  int wanted = 0, at = 0;
  std::string name;
  template <class T>
  void operator()(std::string_view field, T& value) {
    if (at++ != wanted) return;
    name = field;
    if constexpr (std::is_same_v<T, std::string>)
      value = field == "algorithm" ? "gemm" : field == "variant" ? "plain" : field == "fusion" ? "none" : "unknown here";
    else if constexpr (std::is_same_v<T, bool>) value = !value;
    else if constexpr (std::is_floating_point_v<T>) value = static_cast<T>(1.2345678901234567e-3);
    else value = 123456789;
  }
};

TEST_F(Compiled, EverySettingTravels) {
  const auto backend = cpu();
  testing::GraphBuilder b;  // a block that becomes one step where nothing forbids it
  const auto conv = [&](TensorId x, int64_t c, int64_t k, int64_t groups, int filter) {
    return b.op("Conv", conv_of(filter / 2, groups), {x, b.weights({k, c / groups, filter, filter}, -0.3f)});
  };
  TensorId x = b.pointwise(PointwiseOp::relu, {conv(b.input({1, 24, 28, 28}), 24, 144, 1, 1)});
  x = b.pointwise(PointwiseOp::relu, {conv(x, 144, 144, 144, 3)});
  const Graph graph = b.done(conv(x, 144, 24, 1, 1));
  for (int wanted = 0;; ++wanted) {
    SessionOptions options;
    Changer change{wanted, 0, {}};
    options.visit(change);
    if (wanted >= change.at) break;
    SCOPED_TRACE(change.name);
    const PlanSettings& settings = options;
    EXPECT_NE(settings, PlanSettings{});
    compile(graph, backend, options);
    const auto model = CompiledModel::open(path());
    ASSERT_TRUE(model.ok()) << model.error().message;
    EXPECT_EQ((*model)->options(), settings);
    const auto plan = (*model)->plan();
    EXPECT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_TRUE(check_options(**model, options).ok());
  }
}

}  // namespace
}  // namespace sparkle
