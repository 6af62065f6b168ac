// The public interface from outside: errors, runs, buffers, pools and allocators of the caller's, many threads.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <sparkle/pipeline.hpp>
#include <thread>

#include "api_testing.h"

namespace {

using sparkle::testing::kModel, sparkle::testing::picture, sparkle::testing::status_of;

double largest_difference(const sparkle::Tensor& a, const sparkle::Tensor& b) {
  EXPECT_EQ(a.shape(), b.shape());
  double largest = 0;
  for (int64_t i = 0; i < a.elements(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a.data<float>()[i]) - static_cast<double>(b.data<float>()[i])));
  return largest;
}

TEST(Api, RunsLikeTheReferenceDevice) {
  const sparkle::Device cpu;
  sparkle::DeviceOptions options;
  options.name = "reference";
  const sparkle::Device reference(options);
  const auto x = picture(9, 13);
  const auto y = sparkle::Session(cpu, kModel).run({x}).at(0);
  EXPECT_EQ(y.shape(), (sparkle::Shape{1, 3, 18, 26}));
  EXPECT_LT(largest_difference(y, sparkle::Session(reference, kModel).run({x}).at(0)), 1e-5);
}

TEST(Api, TellsWhatTheModelWants) {
  const sparkle::Device device;
  const sparkle::Session session(device, kModel);
  const auto inputs = session.inputs(), outputs = session.outputs();
  ASSERT_EQ(inputs.size(), 1u);
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(inputs[0].name, "image");
  EXPECT_EQ(inputs[0].type, sparkle::Type::f32);
  ASSERT_EQ(inputs[0].shape.size(), 4u);
  EXPECT_EQ(inputs[0].shape[1], 3);
  EXPECT_EQ(inputs[0].shape[2], -1);
  EXPECT_FALSE(inputs[0].axis_names[2].empty());
  const sparkle::Tensor shape(sparkle::Type::f32, {1, 3, 8, 8}, nullptr);  // planning reads no data
  EXPECT_EQ(session.output_shapes({shape}).at(0).shape(), (sparkle::Shape{1, 3, 16, 16}));
  EXPECT_GT(session.peak_bytes({shape}), 3 * 8 * 8 * 4);
  EXPECT_NE(session.explain({shape}).find("3x3"), std::string::npos);
  EXPECT_EQ(session.explain({shape}, true).front(), '{');
  EXPECT_FALSE(session.plan({shape}).empty());
  EXPECT_NE(session.report({picture(8, 8)}).find("measured_ms"), std::string::npos);
  std::string page, trace;
  const std::string measured = session.measure({picture(8, 8)}, {0.01}, &page, &trace);
  for (const char* part : {"percent_of_roof", "\"outputs_checked\": true", "of plain loops, 3 times"})
    EXPECT_NE(measured.find(part), std::string::npos) << part;
  EXPECT_NE(session.measure({picture(8, 8)}, {0, 1, "never"}).find("not compared: nobody asked for it"), std::string::npos);
  EXPECT_NE(page.find("Memory over time"), std::string::npos);
  EXPECT_NE(trace.find("traceEvents"), std::string::npos);
  EXPECT_THROW(session.measure({picture(8, 8)}, {-1}), sparkle::Exception);
  EXPECT_THROW(session.measure({picture(8, 8)}, {0, 1, "perhaps"}), sparkle::Exception);
  EXPECT_NE(device.describe().find("\"memory\""), std::string::npos);
}

// A field of a protobuf message that holds bytes, fewer than 128.
std::string field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
std::string number(int field_number, int value) { return {static_cast<char>(field_number << 3), static_cast<char>(value)}; }
std::string onnx_node(const std::string& type, const std::string& from, const std::string& to) {
  return field(1, field(1, from) + field(2, to) + field(3, type + "_of_" + from) + field(4, type));
}

// All nodes that cannot run are named by the first call that could know, in C and in C++.
TEST(Api, ModelsThatCannotRunAreNotOpened) {
  const auto value = [](const std::string& name) { return field(1, name) + field(2, field(1, number(1, 1))); };
  const std::string graph = onnx_node("Foo", "x", "a") + onnx_node("Bernoulli", "a", "b") + onnx_node("Foo", "b", "y") +
                            field(2, "g") + field(11, value("x")) + field(12, value("y"));
  const std::string model = number(1, 8) +
                            std::string{char(7 << 3 | 2), char((graph.size() & 127) | 128), char(graph.size() >> 7)} + graph +
                            field(8, number(2, 17));
  const sparkle::Device device;
  std::string said;
  try {
    sparkle::Session(device, model.data(), model.size());
  } catch (const sparkle::Exception& e) {
    EXPECT_EQ(e.status(), SPARKLE_NOT_SERVED);
    said = e.what();
  }
  EXPECT_EQ(
      said,
      "'model in memory' has 3 nodes that cannot run here (Foo x2, Bernoulli x1); export it without them (docs/operators.md "
      "lists what is supported).\n"
      "  Foo x2: ONNX has no operator of this name: 'Foo_of_x', 'Foo_of_b'\n"
      "  Bernoulli x1: this operator is not supported: 'Bernoulli_of_a'");
  sparkle_session* session = nullptr;
  EXPECT_EQ(sparkle_session_open_memory(device.c(), model.data(), model.size(), nullptr, &session), SPARKLE_NOT_SERVED);
  EXPECT_EQ(session, nullptr);
  EXPECT_EQ(sparkle_last_error(), said);
}

TEST(Api, CompiledModelsAreOpenedLikeModels) {
  const sparkle::Device device;
  std::string folder = ::testing::TempDir() + "/sparkle_api_XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string file = folder + "/upscale.sparkle";
  EXPECT_EQ(status_of([&] { sparkle::compile(device, kModel, file); }), SPARKLE_BAD_USAGE);  // its sizes are open
  const auto x = picture(9, 13);
  sparkle::compile(device, kModel, file, {x});
  std::ifstream stream(file, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
  sparkle::SessionOptions gemm;
  gemm.algorithm = "gemm";
  EXPECT_EQ(status_of([&] { sparkle::Session(device, file, gemm); }), SPARKLE_BAD_USAGE);
  EXPECT_EQ(status_of([&] { sparkle::Session(device, bytes.data(), bytes.size() - 1); }), SPARKLE_BAD_FORMAT);
  const sparkle::Session mapped(device, file), copied(device, bytes.data(), bytes.size());
  std::remove(file.c_str());  // what is mapped stays
  ::rmdir(folder.c_str());
  const auto want = sparkle::Session(device, kModel).run({x}).at(0);
  EXPECT_EQ(largest_difference(mapped.run({x}).at(0), want), 0);
  EXPECT_EQ(largest_difference(copied.run({x}).at(0), want), 0);
  EXPECT_EQ(mapped.inputs().at(0).shape, (sparkle::Shape{1, 3, 9, 13}));
  EXPECT_EQ(status_of([&] { mapped.run({picture(8, 8)}); }), SPARKLE_BAD_INPUT);
  EXPECT_EQ(mapped.plan({x}), sparkle::Session(device, kModel).plan({x}));
  sparkle::DeviceOptions options;
  options.name = "reference";
  const sparkle::Device reference(options);
  EXPECT_EQ(status_of([&] { sparkle::Session(reference, bytes.data(), bytes.size()); }), SPARKLE_DEVICE_UNUSABLE);
  EXPECT_EQ(status_of([&] { mapped.move_to(reference); }), SPARKLE_DEVICE_UNUSABLE);
  EXPECT_EQ(largest_difference(mapped.run({x}).at(0), want), 0);
}

TEST(Api, SessionsMoveToAnotherDevice) {
  sparkle::DeviceOptions options;
  options.name = "reference";
  const sparkle::Device reference(options), cpu;
  const sparkle::Session session(reference, kModel);
  const auto x = picture(9, 13);
  const auto want = session.run({x}).at(0);
  const std::vector<sparkle::DeviceTensor> before{{reference, x}};
  EXPECT_EQ(session.run_on_device(before).size(), 1u);
  session.move_to(cpu);
  EXPECT_EQ(session.plan({x}), sparkle::Session(cpu, kModel).plan({x}));
  EXPECT_LT(largest_difference(session.run({x}).at(0), want), 1e-5);
  EXPECT_EQ(status_of([&] { session.run_on_device(before); }), SPARKLE_BAD_USAGE);  // memory of the other device
  EXPECT_EQ(session.run_on_device({{cpu, x}}).size(), 1u);
  EXPECT_EQ(sparkle_session_move_to(session.c(), nullptr), SPARKLE_BAD_USAGE);
  session.move_to(reference);
  EXPECT_EQ(largest_difference(session.run({x}).at(0), want), 0);
}

TEST(Api, ModelsComeFromMemoryToo) {
  std::ifstream file(kModel, std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  const sparkle::Device device;
  sparkle::Session session(device, bytes.data(), bytes.size());
  const auto x = picture(5, 5);
  std::fill(bytes.begin(), bytes.end(), 0);  // not needed any more
  EXPECT_EQ(largest_difference(session.run({x}).at(0), sparkle::Session(device, kModel).run({x}).at(0)), 0);
}

TEST(Api, WritesIntoTheCallersMemory) {
  const sparkle::Device device;
  sparkle::Session session(device, kModel);
  const auto x = picture(6, 7);
  std::vector<float> memory(3 * 12 * 14 + 2, -7);
  const sparkle::Tensor y(sparkle::Type::f32, {1, 3, 12, 14}, memory.data() + 1);
  session.run_into({x}, {y});
  EXPECT_EQ(largest_difference(y, session.run({x}).at(0)), 0);
  EXPECT_EQ(memory.front(), -7);
  EXPECT_EQ(memory.back(), -7);
  const sparkle::Tensor wrong(sparkle::Type::f32, {1, 3, 12, 13}, memory.data());
  EXPECT_EQ(status_of([&] { session.run_into({x}, {wrong}); }), SPARKLE_BAD_INPUT);
}

TEST(Api, BuffersAndTokens) {
  for (const char* name : {"cpu", "reference"}) {
    sparkle::DeviceOptions options;
    options.name = name;
    const sparkle::Device device(options);
    sparkle::Session session(device, kModel);
    const auto x = picture(4, 6);
    sparkle::Buffer in(device, static_cast<int64_t>(x.bytes())), out(device, 3 * 8 * 12 * 4);
    in.write(x.data(), static_cast<int64_t>(x.bytes()));
    const uint64_t token = session.submit({x}, {in}, {out});
    EXPECT_TRUE(device.wait(token));
    EXPECT_TRUE(device.done(token));
    sparkle::Tensor y(sparkle::Type::f32, {1, 3, 8, 12});
    out.read(y.data(), static_cast<int64_t>(y.bytes()));
    EXPECT_EQ(largest_difference(y, session.run({x}).at(0)), 0) << name;
    EXPECT_EQ(status_of([&] { out.read(y.data(), 8, out.bytes() - 4); }), SPARKLE_BAD_USAGE);
    EXPECT_EQ(status_of([&] { session.submit({x}, {in}, {in}); }), SPARKLE_BAD_INPUT);  // too small
  }
}

TEST(Api, ErrorsNameWhatIsWrong) {
  const sparkle::Device device;
  EXPECT_EQ(status_of([&] { sparkle::Session(device, "nothing.onnx"); }), SPARKLE_FILE_UNREADABLE);
  EXPECT_EQ(status_of([&] { sparkle::Session(device, "text", 4); }), SPARKLE_BAD_FORMAT);
  // Of the path before the byte of value 0 there is a file.
  EXPECT_EQ(status_of([&] { sparkle::Session(device, kModel + std::string("\0x", 2)); }), SPARKLE_BAD_USAGE);
  sparkle::SessionOptions options;
  options.precision = "int3";
  EXPECT_EQ(status_of([&] { sparkle::Session(device, kModel, options); }), SPARKLE_NOT_SERVED);
  sparkle::DeviceOptions nowhere;
  nowhere.name = "abacus";
  EXPECT_EQ(status_of([&] { sparkle::Device d(nowhere); }), SPARKLE_BAD_USAGE);
  options = {};
  options.memory_budget = 1000;
  sparkle::Session small(device, kModel, options);
  options = {};
  options.fusion = "all";
  EXPECT_EQ(status_of([&] { sparkle::Session(device, kModel, options); }), SPARKLE_BAD_USAGE);
  // A program that was built before the structure had its last field does not have it.
  options.fusion = "none";
  sparkle_session_options before = options.c();
  before.size = offsetof(sparkle_session_options, fusion);
  before.fusion = reinterpret_cast<const char*>(uintptr_t{8});
  sparkle_session* opened = nullptr;
  EXPECT_EQ(sparkle_session_open(device.c(), std::string(kModel).c_str(), &before, &opened), SPARKLE_OK);
  sparkle_session_release(opened);
  EXPECT_EQ(status_of([&] { small.run({picture(8, 8)}); }), SPARKLE_OVER_MEMORY_BUDGET);
  sparkle::Session session(device, kModel);
  EXPECT_EQ(status_of([&] { session.run({}); }), SPARKLE_BAD_INPUT);
  EXPECT_EQ(status_of([&] { session.run({sparkle::Tensor(sparkle::Type::f32, {1, 3, 8})}); }), SPARKLE_BAD_INPUT);
  EXPECT_EQ(status_of([&] { session.run({sparkle::Tensor(sparkle::Type::f64, {1, 3, 8, 8})}); }), SPARKLE_BAD_INPUT);
  EXPECT_EQ(status_of([&] { session.run({sparkle::Tensor(sparkle::Type::f32, {1, 3, 8, 8}, nullptr)}); }), SPARKLE_BAD_USAGE);
  EXPECT_EQ(status_of([&] { session.output_shapes({sparkle::Tensor(sparkle::Type::f32, {1, 3, -8, 8}, nullptr)}); }),
            SPARKLE_BAD_USAGE);
  EXPECT_EQ(sparkle_session_run(nullptr, nullptr, 0, nullptr, 0), SPARKLE_BAD_USAGE);
  EXPECT_NE(std::string(sparkle_last_error()), "");
  EXPECT_STREQ(sparkle_status_name(SPARKLE_BAD_MODEL), "bad_model");
  sparkle_device_options grown{};
  grown.size = sizeof grown + 8;
  sparkle_device* none = nullptr;
  EXPECT_EQ(sparkle_device_open(&grown, &none), SPARKLE_BAD_USAGE);
  EXPECT_EQ(none, nullptr);
}

TEST(Api, OneSessionServesManyThreads) {
  const sparkle::Device device;
  sparkle::Session session(device, kModel);
  const auto x = picture(10, 10), y = session.run({x}).at(0);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        const auto other = session.run({picture(3 + t, 4 + i % 3)}).at(0);
        wrong += other.shape()[2] != 2 * (3 + t);
        wrong += std::memcmp(session.run({x}).at(0).data(), y.data(), y.bytes()) != 0;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

// Through C++ and C, seen by what a file that was compiled without them says of each.
TEST(Api, EachOptionOfSessionsHasItsEffect) {
  using Options = sparkle::SessionOptions;
  // All there are: one more does not compile before its effect is looked at here.
  [[maybe_unused]] const auto& [precision, algorithm, variant, tuning, memory_budget, plan_cache_bytes, accuracy, nonfinite,
                                fusion, fallback] = Options();
  const sparkle::Device device;
  std::string folder = ::testing::TempDir() + "/sparkle_api_XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string file = folder + "/upscale.sparkle";
  const auto x = picture(9, 13);
  sparkle::compile(device, kModel, file, {x});
  const auto expect = [&](auto field, auto value, const std::string& part) {
    Options options;
    options.*field = value;
    std::string said;
    try {
      sparkle::Session(device, file, options).run({x});
    } catch (const sparkle::Exception& e) {
      said = e.what();
    }
    EXPECT_NE(said.find(part), std::string::npos) << part << ": " << said;
  };
  expect(&Options::precision, "int3", "The precision 'int3' is not supported");
  expect(&Options::algorithm, "gemm", "was compiled with the algorithm chosen by cost, not 'gemm'");
  expect(&Options::variant, "plain", "was compiled with the variant chosen by cost, not 'plain'");
  expect(&Options::tuning, folder + "/none", "/none' cannot be read");
  expect(&Options::memory_budget, 1000, "the memory budget is 1000");
  expect(&Options::accuracy, 1e-2, "was compiled with an accuracy of 5e-05, not 0.01");
  expect(&Options::nonfinite, "exact", "was compiled with algorithms for finite values");
  expect(&Options::fusion, "none", "was compiled with the fusion chosen by cost, not 'none'");
  expect(&Options::fallback, "never", "fallback is 'forbid', 'warn' or 'allow', not 'never'");
  expect(&Options::plan_cache_bytes, -1, "plan_cache_bytes are numbers of bytes");
  EXPECT_EQ(status_of([&] { sparkle::Session(device, file).run({x}); }), SPARKLE_OK);
  std::remove(file.c_str());
  ::rmdir(folder.c_str());

  // Plans of shapes seen before are kept within their bytes, or not.
  int64_t held[2];
  for (const bool kept : {false, true}) {
    std::atomic<int64_t> now{0};
    sparkle::DeviceOptions counted;
    counted.allocator = {&now,
                         [](void* user, size_t bytes, size_t alignment) -> void* {
                           *static_cast<std::atomic<int64_t>*>(user) += static_cast<int64_t>(bytes);
                           return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
                         },
                         [](void* user, void* memory, size_t bytes, size_t) {
                           *static_cast<std::atomic<int64_t>*>(user) -= static_cast<int64_t>(bytes);
                           std::free(memory);
                         }};
    Options options;
    options.plan_cache_bytes = kept ? 0 : 1;
    const sparkle::Device here(counted);
    const sparkle::Session session(here, kModel, options);
    for (const int64_t size : {40, 41, 42, 8}) session.run({picture(size, size)});
    held[kept] = now;
  }
  EXPECT_LT(held[false], held[true]);
}

TEST(Api, AccuracyKeepsOutWhatErrsMore) {
  const sparkle::Device device;
  const auto x = picture(64, 64);
  const auto plan_at = [&](double accuracy) {
    sparkle::SessionOptions options;
    options.accuracy = accuracy;
    return sparkle::Session(device, kModel, options).plan({x});
  };
  EXPECT_EQ(plan_at(1e-9).find("winograd"), std::string::npos);
  EXPECT_EQ(plan_at(0), plan_at(5e-5));
  for (const double wrong : {-1.0, static_cast<double>(NAN), static_cast<double>(INFINITY)})
    EXPECT_EQ(status_of([&] { plan_at(wrong); }), SPARKLE_BAD_USAGE) << wrong;
}

TEST(Api, ExactNonfiniteKeepsOutTransforms) {
  const sparkle::Device device;
  const auto x = picture(64, 64);
  const auto plan_with = [&](const char* nonfinite, const char* algorithm = "") {
    sparkle::SessionOptions options;
    options.accuracy = 1e-2;
    options.nonfinite = nonfinite;
    options.algorithm = algorithm;
    return sparkle::Session(device, kModel, options).plan({x});
  };
  EXPECT_NE(plan_with("fast", "winograd2").find("winograd"), std::string::npos);
  EXPECT_EQ(plan_with("exact").find("winograd"), std::string::npos);
  EXPECT_EQ(plan_with(""), plan_with("fast"));
  EXPECT_EQ(status_of([&] { plan_with("exact", "winograd2"); }), SPARKLE_BAD_USAGE);
  EXPECT_EQ(status_of([&] { plan_with("perhaps"); }), SPARKLE_BAD_USAGE);
}

TEST(Api, SizesOfTensorsAreChecked) {
  using sparkle::Tensor, sparkle::Type;
  EXPECT_EQ(status_of([] { Tensor(Type::f32, {2, -1}); }), SPARKLE_BAD_USAGE);
  EXPECT_EQ(status_of([] { Tensor(Type::f32, {int64_t{1} << 62, 4}); }), SPARKLE_BAD_USAGE);
  EXPECT_EQ(Tensor(Type::f32, {2, 0}).bytes(), 0u);
  const sparkle::Device device;
  for (const sparkle::Shape& shape : {sparkle::Shape{2, -1}, {int64_t{1} << 40, int64_t{1} << 40}, sparkle::Shape(9, 1)})
    EXPECT_EQ(status_of([&] { sparkle::DeviceTensor t(device, sparkle::Type::f32, shape); }), SPARKLE_BAD_USAGE);
}

TEST(Api, PoolOfTheCaller) {
  static std::atomic<int> tasks_seen{0};
  tasks_seen = 0;
  sparkle::DeviceOptions options;
  options.pool.width = 3;
  options.pool.run = [](void*, int32_t tasks, void (*work)(void*, int32_t, int32_t), void* context) {
    std::vector<std::thread> threads;
    std::atomic<int32_t> next{0};
    for (int32_t worker = 0; worker < 3; ++worker)
      threads.emplace_back([&, worker] {
        for (int32_t task; (task = next++) < tasks;) work(context, task, worker);
      });
    for (auto& thread : threads) thread.join();
    tasks_seen += tasks;
  };
  const sparkle::Device own(options), device;
  const auto x = picture(40, 50);
  sparkle::SessionOptions same;
  same.algorithm = "gemm";  // the choice among algorithms may depend on the number of threads
  EXPECT_LT(largest_difference(sparkle::Session(own, kModel, same).run({x}).at(0),
                               sparkle::Session(device, kModel, same).run({x}).at(0)),
            1e-6);
  EXPECT_GT(tasks_seen.load(), 0);
  options.pool.run = nullptr;
  EXPECT_EQ(status_of([&] { sparkle::Device d(options); }), SPARKLE_BAD_USAGE);
  options.pool.width = -1;
  EXPECT_EQ(status_of([&] { sparkle::Device d(options); }), SPARKLE_BAD_USAGE);
}

// y = x * x on `count` floats, as the bytes of an ONNX file.
std::string squares(int64_t count) {
  const auto varint = [](uint64_t value) {
    std::string bytes;
    for (; value >= 128; value >>= 7) bytes += static_cast<char>(value | 128);
    return bytes + static_cast<char>(value);
  };
  const auto number = [&](int field, int64_t value) { return varint(field * 8u) + varint(static_cast<uint64_t>(value)); };
  const auto text = [&](int field, const std::string& bytes) { return varint(field * 8u + 2) + varint(bytes.size()) + bytes; };
  const std::string shape = text(1, number(1, count));
  const std::string type = text(1, number(1, 1) + text(2, shape));  // of floats
  const auto value = [&](const char* name) { return text(1, name) + text(2, type); };
  const std::string node = text(1, "x") + text(1, "x") + text(2, "y") + text(4, "Mul");
  const std::string graph = text(1, node) + text(2, "squares") + text(11, value("x")) + text(12, value("y"));
  return number(1, 8) + text(7, graph) + text(8, number(2, 14));
}

// The pool's threads come with denormals on, flush them while they work for a session, as Sparkle's own do, and have them
// again.
TEST(Api, PoolOfTheCallerFlushesDenormals) {
  static std::atomic<int> tasks_seen{0}, kept{0};
  tasks_seen = kept = 0;
  sparkle::DeviceOptions options;
  options.pool.width = 2;
  options.pool.run = [](void*, int32_t tasks, void (*work)(void*, int32_t, int32_t), void* context) {
    std::vector<std::thread> threads;
    for (int32_t worker = 0; worker < 2; ++worker)
      threads.emplace_back([=] {
        std::fesetenv(FE_DFL_ENV);  // a new thread has the state of the one that made it, which may flush
        for (int32_t task = worker; task < tasks; task += 2) work(context, task, worker);
        volatile float small = 1e-20f;
        kept += small * small != 0;
      });
    for (auto& thread : threads) thread.join();
    tasks_seen += tasks;
  };
  const sparkle::Device device(options);
  constexpr int64_t kCount = 1 << 18;
  const std::string model = squares(kCount);
  sparkle::Session session(device, model.data(), model.size());
  const sparkle::Tensor x(sparkle::Type::f32, {kCount});
  std::fill_n(x.data<float>(), kCount, 1e-20f);
  x.data<float>()[0] = 3;
  const auto y = session.run({x}).at(0);
  EXPECT_GT(tasks_seen.load(), 1);
  EXPECT_GT(kept.load(), 1);
  EXPECT_EQ(y.data<float>()[0], 9);
  EXPECT_EQ(std::count(y.data<float>() + 1, y.data<float>() + kCount, 0.0f), kCount - 1);
}

TEST(Api, AllocatorOfTheCaller) {
  struct Count {
    std::atomic<int64_t> held{0}, calls{0};
    std::atomic<bool> empty{false};
  } count;
  {
    sparkle::DeviceOptions options;
    options.allocator = {&count,
                         [](void* user, size_t bytes, size_t alignment) -> void* {
                           auto& c = *static_cast<Count*>(user);
                           if (c.empty) return nullptr;
                           c.held += static_cast<int64_t>(bytes);
                           ++c.calls;
                           return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
                         },
                         [](void* user, void* memory, size_t bytes, size_t) {
                           static_cast<Count*>(user)->held -= static_cast<int64_t>(bytes);
                           std::free(memory);
                         }};
    const sparkle::Device device(options);
    sparkle::Session session(device, kModel);
    session.run({picture(8, 8)});
    EXPECT_GT(count.calls.load(), 1);
    EXPECT_GT(count.held.load(), 0);
    count.empty = true;
    EXPECT_EQ(status_of([&] { session.run({picture(200, 200)}); }), SPARKLE_OUT_OF_MEMORY);
  }
  EXPECT_EQ(count.held.load(), 0);
}

TEST(Api, LogsToTheCaller) {
  std::mutex mutex;
  std::vector<std::string> lines;
  sparkle::set_log([&](sparkle_log_level, const char* line) {
    const std::lock_guard lock(mutex);
    lines.push_back(line);
  });
  {
    const sparkle::Device device;
  }
  sparkle::set_log({});
  {
    const sparkle::Device device;
  }
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].rfind("device auto: cpu", 0), 0u) << lines[0];
}

// A model of sizes that tools have left behind: it runs with the real ones, which its session tells, and is bound only once.
TEST(Api, LogsSizesThatAreDeclaredWrongly) {
  // x f32 [2, 3] -> Relu -> y, declared as [2, 4].
  const auto field = [](int number, const std::string& bytes) {
    return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(bytes.size()) + bytes;
  };
  const auto varint = [](int number, int value) {
    return std::string{static_cast<char>(number << 3), static_cast<char>(value)};
  };
  const auto tensor = [&](const char* name, int rows, int columns) {
    const std::string shape = field(1, varint(1, rows)) + field(1, varint(1, columns));
    return field(1, name) + field(2, field(1, varint(1, 1) + field(2, shape)));
  };
  const std::string node = field(1, "x") + field(2, "y") + field(4, "Relu");
  const std::string graph = field(1, node) + field(2, "stale") + field(11, tensor("x", 2, 3)) + field(12, tensor("y", 2, 4));
  const std::string model = varint(1, 8) + field(7, graph) + field(8, varint(2, 17));
  std::mutex mutex;
  std::vector<std::string> lines;
  sparkle::set_log([&](sparkle_log_level level, const char* line) {
    const std::lock_guard lock(mutex);
    if (level == SPARKLE_LOG_WARNING) lines.emplace_back(line);
  });
  sparkle::Session session(sparkle::Device(), model.data(), model.size());
  const std::vector<sparkle::Tensor> y = session.run({sparkle::Tensor(sparkle::Type::f32, {2, 3})});
  sparkle::set_log({});
  EXPECT_EQ(y[0].shape(), (sparkle::Shape{2, 3}));
  EXPECT_EQ(session.outputs()[0].shape, (sparkle::Shape{2, 3}));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("declares its output 'y' with the shape 2x4"), std::string::npos) << lines[0];
}

TEST(Api, LogsWhatIsForcedAndCannotServe) {
  std::mutex mutex;
  std::string all;
  sparkle::set_log([&](sparkle_log_level level, const char* line) {
    const std::lock_guard lock(mutex);
    if (level == SPARKLE_LOG_WARNING) all += line;
  });
  sparkle::SessionOptions options;
  options.algorithm = "depthwise";  // the network has dense convolutions only
  sparkle::Session(sparkle::Device(), kModel, options).plan({picture(8, 8)});
  sparkle::set_log({});
  EXPECT_NE(all.find("The algorithm 'depthwise' supports no layer here"), std::string::npos) << all;
}

TEST(Api, ComputesExpressions) {
  const sparkle::Device cpu;
  sparkle::Tensor x(sparkle::Type::f32, {2, 3}), a(sparkle::Type::f32, {3}), b(sparkle::Type::f64, {});
  for (int i = 0; i < 6; ++i) x.data<float>()[i] = static_cast<float>(i) - 2;
  for (int i = 0; i < 3; ++i) a.data<float>()[i] = static_cast<float>(i + 1);
  *b.data<double>() = 0.5;
  for (int round = 0; round < 2; ++round) {
    const sparkle::Tensor y = sparkle::eval(cpu, "relu(x) * a + b", {{"x", x}, {"a", a}, {"b", b}});
    ASSERT_EQ(y.shape(), (sparkle::Shape{2, 3}));
    ASSERT_EQ(y.type(), sparkle::Type::f32);
    for (int i = 0; i < 6; ++i)
      EXPECT_EQ(y.data<float>()[i], std::max(x.data<float>()[i], 0.0f) * a.data<float>()[i % 3] + 0.5f);
  }
  try {
    sparkle::eval(cpu, "x + slu(x)", {{"x", x}});
    FAIL();
  } catch (const sparkle::Exception& e) {
    EXPECT_EQ(e.status(), SPARKLE_BAD_FORMAT);
    EXPECT_STREQ(e.what(), "column 5: there is no function 'slu'; did you mean 'silu'?\n  x + slu(x)\n      ^");
  }
  sparkle_value* value = nullptr;
  EXPECT_EQ(sparkle_eval(nullptr, "x", nullptr, nullptr, 0, &value), SPARKLE_BAD_USAGE);
  EXPECT_EQ(sparkle_eval(cpu.c(), "x", nullptr, nullptr, 1, &value), SPARKLE_BAD_USAGE);
  EXPECT_EQ(status_of([&] { sparkle::eval(cpu, "x + y", {{"x", x}, {"y", sparkle::Tensor(sparkle::Type::f32, {4})}}); }),
            SPARKLE_BAD_INPUT);
}

// Items through a pipeline: results of their own, in order; what is wrong with one is its own too.
TEST(Api, PipelinesGiveWhatRunsGive) {
  const sparkle::Session session(sparkle::Device{}, kModel);
  std::vector<sparkle::Tensor> items;
  for (int i = 0; i < 9; ++i) {
    sparkle::Tensor x(sparkle::Type::f32, {1, 3, 6, 8});
    for (int e = 0; e < 3 * 6 * 8; ++e) static_cast<float*>(x.data())[e] = static_cast<float>((e * (i + 1)) % 17) / 17;
    items.push_back(x);
  }
  std::vector<std::future<sparkle::Pipeline::Outputs>> futures;
  {
    sparkle::Pipeline pipeline(session, {2, 1});
    for (const sparkle::Tensor& x : items) futures.push_back(pipeline.submit({x}));
    futures.push_back(pipeline.submit({sparkle::Tensor(sparkle::Type::f32, {1, 4, 6, 8})}));
    auto offered = pipeline.try_submit({items[0]});
    if (offered.valid()) {
      EXPECT_EQ(offered.get().size(), 1u);
    }
    pipeline.close();
  }
  for (size_t i = 0; i < items.size(); ++i) {
    const auto got = futures[i].get(), wanted = session.run({items[i]});
    ASSERT_EQ(got.size(), 1u);
    ASSERT_EQ(got[0].bytes(), wanted[0].bytes());
    EXPECT_EQ(std::memcmp(got[0].data(), wanted[0].data(), wanted[0].bytes()), 0) << i;
  }
  EXPECT_THROW(futures.back().get(), sparkle::Exception);
  EXPECT_THROW(sparkle::Pipeline(session, {65, 0}), sparkle::Exception);
  EXPECT_EQ(sparkle_pipeline_open(nullptr, nullptr, nullptr), SPARKLE_BAD_USAGE);
  sparkle_pipeline_close(nullptr);
}

}  // namespace
