// Compiled files of plans whose device lacks kernels: opened again they give the bits, the plan and the events of the session
// that was planned live; where the host may not help, or is another, they are refused; no file makes the host do what its plan
// does not say.
#include <gtest/gtest.h>

#include <cstring>

#include "base/folder_testing.h"
#include "device/device_json.h"
#include "networks/zoo.h"
#include "prepare/compile_model.h"
#include "run/compiled_testing.h"
#include "run/segments/lacking_device_testing.h"

namespace sparkle {
namespace {

using testing::Bytes;
using testing::cpu_of_tests;
using testing::device_without;
using testing::host_of_tests;
using testing::refusal;
using testing::replaced;
using testing::section_of;
using testing::with_section;

SessionOptions with_host(Fallback fallback = Fallback::allow, const Device& host = cpu_of_tests()) {
  SessionOptions options;
  options.fallback = fallback;
  options.open_host = [host](const std::shared_ptr<Backend>&) -> Result<std::shared_ptr<Backend>> {
    return cpu::make_cpu_backend(host, std::make_shared<ThreadPool>(2));
  };
  return options;
}

class CompiledSegments : public testing::FolderTest {
 protected:
  // A file of the network on a device that lacks these; its bytes.
  Bytes compiled(const Graph& graph, const std::vector<Family>& missing, const SessionOptions& options = with_host()) {
    std::vector<Dims> shapes;
    for (TensorId id : graph.inputs) shapes.push_back(graph.tensor(id).shape);
    const auto done = compile_model(graph, device_without(missing), options, shapes, path("net.sparkle"));
    EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().message);
    return done.ok() ? testing::bytes_of(path("net.sparkle")) : Bytes();
  }
  Result<std::unique_ptr<Session>> open(std::shared_ptr<Backend> device, const SessionOptions& options) {
    SPARKLE_TRY(model, CompiledModel::open(path("net.sparkle")));
    return Session::open(model, std::move(device), options);
  }
};

std::string texts_of(const std::vector<FallbackEvent>& events) {
  std::string text;
  for (const FallbackEvent& e : events)
    text += e.what + " " + e.from + " " + e.to + " " + std::string(code_of(e.reason)) + " " + e.message + "\n";
  return text;
}

// Products, whose weights are packed, on either side; steps of few bytes in between, which go to the host for the link's sake.
TEST_F(CompiledSegments, GiveWhatTheSessionPlannedLiveGives) {
  const std::vector<std::vector<Family>> draws = {
      {Family::pool},
      {Family::pointwise},
      {Family::softmax, Family::reduce},
      {Family::gemm, Family::depthwise, Family::winograd, Family::grouped, Family::direct, Family::inverted, Family::fft},
      {Family::copy, Family::normalize, Family::resize}};
  size_t mixed = 0, moved = 0;
  for (const char* name : {"tiny_chain", "tiny_residual", "tiny_depthwise", "tiny_unet", "tiny_detector", "tiny_attention"})
    for (const auto& missing : draws) {
      SCOPED_TRACE(std::string(name) + " without " + std::string(name_of(missing[0])));
      const Graph graph = std::move(*zoo_network(name));
      ASSERT_FALSE(compiled(graph, missing).empty());
      auto live = Session::open(graph, device_without(missing), with_host());
      auto opened = open(device_without(missing), with_host());
      ASSERT_TRUE(live.ok() && opened.ok());
      for (uint64_t seed = 1; seed < 3; ++seed) {
        const auto inputs = testing::random_inputs(**live, seed);
        const auto want = (*live)->run(inputs), have = (*opened)->run(inputs);
        ASSERT_TRUE(want.ok() && have.ok()) << (have.ok() ? want : have).error().message;
        for (size_t o = 0; o < want->size(); ++o) {
          const auto bytes = static_cast<size_t>((*want)[o].size_bytes());
          EXPECT_EQ(std::memcmp((*have)[o].bytes.get(), (*want)[o].bytes.get(), bytes), 0) << o;
        }
        EXPECT_TRUE((*opened)->run_wiped(inputs, std::byte{0xff}).ok());
      }
      const Plan& plan = **(*opened)->prepare(testing::random_inputs(**opened));
      EXPECT_EQ(plan.predicted_seconds(), (**(*live)->prepare(testing::random_inputs(**live))).predicted_seconds());
      EXPECT_EQ(texts_of((*opened)->events().all()), texts_of((*live)->events().all()));
      EXPECT_TRUE(plan.host.empty() || (*CompiledModel::open(path("net.sparkle")))->host());
      EXPECT_TRUE((*CompiledModel::open(path("net.sparkle")))->check_weights().ok());
      mixed += !plan.host.empty();
      for (const PlanStep& step : plan.steps) moved += step.host_reason == Reason::cheaper_on_host;
    }
  EXPECT_GE(mixed, 15u);
  EXPECT_GE(moved, 5u);
}

TEST_F(CompiledSegments, WhereFallingBackIsForbiddenTheStepIsNamed) {
  const Graph graph = std::move(*zoo_network("tiny_chain"));
  ASSERT_FALSE(compiled(graph, {Family::pool}).empty());
  SessionOptions alone = with_host();
  alone.open_host = {};
  for (const SessionOptions& options : {with_host(Fallback::forbid), alone}) {
    auto session = open(device_without({Family::pool}), options);
    ASSERT_TRUE(session.ok());
    const auto refused = (*session)->run(testing::random_inputs(**session));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().reason, Reason::no_kernel);
    EXPECT_NE(refused.error().message.find("(pool) has no kernel on"), std::string::npos) << refused.error().message;
  }
  const auto refused = compile_model(graph, device_without({Family::pool}), with_host(Fallback::forbid),
                                     {graph.tensor(graph.inputs[0]).shape}, path("other.sparkle"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().reason, Reason::no_kernel);
}

TEST_F(CompiledSegments, AnotherHostIsRefused) {
  ASSERT_FALSE(compiled(std::move(*zoo_network("tiny_chain")), {Family::pool}).empty());
  const auto said = [&](const Device& host) {
    auto session = open(device_without({Family::pool}), with_host(Fallback::allow, host));
    EXPECT_TRUE(session.ok());
    const auto got = (*session)->run(testing::random_inputs(**session));
    if (!got.ok()) {
      EXPECT_EQ(got.error().reason, Reason::device_unusable);
    }
    return got.ok() ? std::string() : got.error().message;
  };
  Device host = cpu_of_tests();
  EXPECT_EQ(said(host), "");
  host.clock_hz *= 2, host.calibrated = true;  // rates are measured anew at any time
  host.paces.push_back({"gemm tile6x2", "avx2", 1.5});
  EXPECT_EQ(said(host), "");
  host.cores += 1;
  EXPECT_NE(said(host).find("--threads"), std::string::npos);
  host = cpu_of_tests();
  host.name = "another processor";
  EXPECT_NE(said(host).find("this is 'another processor'"), std::string::npos);
  host = cpu_of_tests();
  host.units.clear();
  EXPECT_NE(said(host).find("math units"), std::string::npos);
}

// Hashes do not make a file true: whoever changes it can repair them.
TEST_F(CompiledSegments, NothingIsBelievedThatIsOnlyHashed) {
  const Bytes file = compiled(std::move(*zoo_network("tiny_chain")), {Family::pool});
  ASSERT_FALSE(file.empty());
  const auto device = device_without({Family::pool});
  const auto said = [&](CompiledSection section, const std::string& text) {
    return refusal(with_section(file, section, text), device, with_host());
  };
  const std::string host = section_of(file, CompiledSection::host), plan = section_of(file, CompiledSection::plan);
  ASSERT_FALSE(host.empty());
  ASSERT_EQ(said(CompiledSection::host, host), "");
  for (const std::string& wrong :
       {std::string(), std::string("{}"), std::string("nonsense"),
        device_to_json(*load_device(SPARKLE_SOURCE_DIR "/devices/h200.json")), replaced(host, "\"cores\": ", "\"cores\": 1"),
        replaced(host, "\"name\": \"", "\"name\": \"x"), replaced(host, "\"bytes\": ", "\"bytes\": 9"), host + host})
    EXPECT_NE(said(CompiledSection::host, wrong), "") << wrong.substr(0, 200);
  EXPECT_NE(said(CompiledSection::host, device_to_json(*load_device(SPARKLE_SOURCE_DIR "/devices/h200.json"))).find("no CPU"),
            std::string::npos);
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{{"host_arena ", "host_arena 9"},
                                                                                 {"  on host\n", ""},
                                                                                 {"  on host\n", "  on device\n"},
                                                                                 {"  on host\n", "  on host cheaper_on_host\n"},
                                                                                 {"  on link\n", "  on host\n"},
                                                                                 {"\nhost ", "\nhost x"},
                                                                                 {"in=host", "in=arena"}})
    EXPECT_NE(said(CompiledSection::plan, replaced(plan, from, to)), "") << from;
  // The device's own description may not grow kernels; a host that a plan has no steps for is not even opened.
  EXPECT_NE(said(CompiledSection::device, replaced(section_of(file, CompiledSection::device), "pool/", "pool/x")), "");
  const Bytes whole = compiled(std::move(*zoo_network("tiny_chain")), {});
  ASSERT_TRUE(section_of(whole, CompiledSection::host).empty());
  const auto able = device_without({});
  ASSERT_EQ(refusal(whole, able, with_host()), "");
  EXPECT_EQ(refusal(with_section(whole, CompiledSection::host, host), able), "");
}

// Packed forms of one side do not pass for the other's, nor do sizes.
TEST_F(CompiledSegments, ConstantsOfTheHostAreItsKernels) {
  const Bytes file = compiled(std::move(*zoo_network("tiny_attention")), {Family::gemm});
  ASSERT_FALSE(file.empty());
  const auto device = device_without({Family::gemm});
  ASSERT_EQ(refusal(file, device, with_host()), "");
  const std::string constants = section_of(file, CompiledSection::constants);
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{{"key=gemm", "key=gemn"},
                                                                                 {"constant at=", "constant at=64000000000000"},
                                                                                 {"bytes=", "bytes=9"},
                                                                                 {"constant ", ""}}) {
    const Bytes changed = with_section(file, CompiledSection::constants, replaced(constants, from, to));
    EXPECT_NE(refusal(changed, device, with_host()), "") << from;
  }
}

TEST_F(CompiledSegments, EveryBitOfTheHostsSectionCounts) {
  Bytes file = compiled(std::move(*zoo_network("tiny_chain")), {Family::pool, Family::pointwise});
  ASSERT_FALSE(file.empty());
  const auto header = *read_compiled_header(file, "file");
  const SectionPlace place = header[CompiledSection::host];
  ASSERT_GT(place.bytes, 0u);
  for (size_t i = 0; i < place.bytes; i += 1 + place.bytes / 100) {
    file[place.at + i] ^= std::byte{4};
    EXPECT_FALSE(CompiledModel::from_memory(file, "file").ok()) << i;
    file[place.at + i] ^= std::byte{4};
  }
}

}  // namespace
}  // namespace sparkle
