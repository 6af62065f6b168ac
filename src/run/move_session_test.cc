// Sessions that go on with another backend: the numbers of the reference before and after, whatever went wrong before the move,
// and errors that leave the session where it was.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"
#include "base/folder_testing.h"
#include "base/system/thread_pool.h"
#include "device/probe_cpu.h"
#include "networks/writer.h"
#include "networks/zoo.h"
#include "prepare/compile_model.h"
#include "run/opening/open_model.h"
#include "run/session_testing.h"

namespace sparkle {
namespace {

namespace fs = std::filesystem;

// The reference, which is lost or out of memory when a test says so.
class FailingBackend final : public Backend {
 public:
  std::atomic<bool> lost{false}, full{false};

  const Device& device() const override { return under_->device(); }
  Result<std::shared_ptr<Buffer>> allocate(int64_t bytes, MemoryKind kind) override {
    if (full) return Error{Reason::out_of_memory, "The device has no memory left."};
    return under_->allocate(bytes, kind);
  }
  Result<std::shared_ptr<Buffer>> import(void* memory, int64_t bytes) override { return under_->import(memory, bytes); }
  Result<std::unique_ptr<Kernel>> compile(const Stage& stage, const Schedule& schedule, uint32_t constants) override {
    return under_->compile(stage, schedule, constants);
  }
  Result<std::unique_ptr<Program>> record(std::span<const Launch> launches) override { return under_->record(launches); }
  Result<Token> submit(const Program& program, std::span<Buffer* const> slots, const SubmitOptions& options) override {
    if (lost) return gone();
    return under_->submit(program, slots, options);
  }
  Result<Token> copy(std::span<const CopyRegion> regions, Token after) override {
    if (lost) return gone();
    return under_->copy(regions, after);
  }
  bool done(Token token) override { return under_->done(token); }
  Status wait(Token token, std::chrono::nanoseconds timeout) override {
    if (lost) return gone();
    return under_->wait(token, timeout);
  }
  Result<std::vector<StepTime>> timestamps(Token token) override { return under_->timestamps(token); }
  Executor& executor() override { return under_->executor(); }

 private:
  static Error gone() { return {Reason::device_lost, "The device is lost."}; }
  std::shared_ptr<Backend> under_ = make_reference_backend();
};

std::shared_ptr<Backend> cpu() { return cpu::make_cpu_backend(probe_cpu(), std::make_shared<ThreadPool>(2)); }

Graph zoo(std::string_view name) { return std::move(*zoo_network(name)); }

std::unique_ptr<Session> open(std::string_view name, std::shared_ptr<Backend> backend, bool can_be_read_again) {
  GraphSource again;
  if (can_be_read_again) again = [name] { return zoo_network(name); };
  auto session = Session::open(zoo(name), std::move(backend), {}, again);
  EXPECT_TRUE(session.ok()) << (session.ok() ? "" : session.error().message);
  return session.ok() ? std::move(*session) : nullptr;
}

// What is wrong with the results of a run; the empty text: nothing.
std::string difference(Session& session, const std::vector<HostTensor>& inputs, const std::vector<HostTensor>& wanted) {
  const auto got = session.run(inputs);
  if (!got.ok()) return got.error().message;
  for (size_t o = 0; o < wanted.size(); ++o) {
    if (wanted[o].dtype != DType::f32) continue;
    if (!((*got)[o].shape == wanted[o].shape)) return "another shape";
    float largest = 0;
    for (int64_t i = 0; i < wanted[o].elements(); ++i) largest = std::max(largest, std::abs(wanted[o].data<float>()[i]));
    for (int64_t i = 0; i < wanted[o].elements(); ++i) {
      const float a = (*got)[o].data<float>()[i], b = wanted[o].data<float>()[i];
      if (!(std::abs(a - b) <= 1e-4f * largest + 1e-3f * std::abs(b)))
        return "output " + std::to_string(o) + ": " + std::to_string(a) + " instead of " + std::to_string(b);
    }
  }
  return "";
}
std::vector<HostTensor> wanted_of(std::string_view name, const std::vector<HostTensor>& inputs) {
  return std::move(*open(name, make_reference_backend(), false)->run(inputs));
}

class MoveSession : public testing::FolderTest {};

TEST_F(MoveSession, GivesTheSameNumbersAndDropsWhatWasThere) {
  for (const char* name : {"tiny_chain", "tiny_unet", "tiny_detector", "tiny_attention"}) {
    SCOPED_TRACE(name);
    std::shared_ptr<Backend> first = make_reference_backend();
    const std::weak_ptr<Backend> gone = first;
    const auto session = open(name, first, true);
    const auto inputs = testing::random_inputs(*session), wanted = wanted_of(name, inputs);
    EXPECT_EQ(difference(*session, inputs, wanted), "");
    EXPECT_GT(session->cached_bytes(), 0);
    first = cpu();
    ASSERT_TRUE(session->move_to(first).ok());
    EXPECT_TRUE(gone.expired());
    EXPECT_EQ(session->backend(), first);
    EXPECT_EQ(session->cached_bytes(), 0);
    EXPECT_EQ(session->constant_bytes(), 0);
    EXPECT_EQ(difference(*session, inputs, wanted), "");
    ASSERT_TRUE(session->move_to(make_reference_backend()).ok());
    EXPECT_EQ(difference(*session, inputs, wanted), "");
  }
}

TEST_F(MoveSession, GoesOnAfterALostDeviceAndAfterOutOfMemory) {
  for (const bool lost : {true, false})
    for (const bool packed_before : {true, false}) {
      SCOPED_TRACE(std::string(lost ? "lost" : "out of memory") + (packed_before ? " after a run" : " while packing"));
      const auto failing = std::make_shared<FailingBackend>();
      const auto session = open("tiny_chain", failing, true);
      const auto inputs = testing::random_inputs(*session), wanted = wanted_of("tiny_chain", inputs);
      if (packed_before) {
        EXPECT_EQ(difference(*session, inputs, wanted), "");
      }
      (lost ? failing->lost : failing->full) = true;
      for (int i = 0; i < 2; ++i) {  // nobody moves it but the caller
        const auto failed = session->run(inputs);
        ASSERT_FALSE(failed.ok());
        EXPECT_EQ(failed.error().reason, lost ? Reason::device_lost : Reason::out_of_memory) << failed.error().message;
      }
      ASSERT_TRUE(session->move_to(cpu()).ok());
      for (int i = 0; i < 2; ++i) EXPECT_EQ(difference(*session, inputs, wanted), "");
    }
}

// A session that may go on elsewhere does so within the run that failed, once, and says so.
TEST_F(MoveSession, GoesOnByItselfWhereItMay) {
  for (const Reason reason : {Reason::device_lost, Reason::out_of_memory}) {
    const auto device = std::make_shared<FailingBackend>();
    SessionOptions options;
    int asked = 0;
    bool fails = false;
    options.next_device = [&](const Error& error) -> Result<std::shared_ptr<Backend>> {
      EXPECT_EQ(error.reason, reason);
      ++asked;
      if (fails) return Error{Reason::device_unusable, "There is none."};
      return cpu();
    };
    auto session = Session::open(zoo("tiny_chain"), device, options, [] { return zoo_network("tiny_chain"); });
    ASSERT_TRUE(session.ok());
    const auto inputs = testing::random_inputs(**session, 3);
    const auto wanted = (*session)->run(inputs);
    ASSERT_TRUE(wanted.ok());
    EXPECT_EQ((*session)->events().size(), 0u);
    (reason == Reason::device_lost ? device->lost : device->full) = true;
    fails = true;
    const auto stays = (*session)->run(inputs);
    ASSERT_FALSE(stays.ok());
    EXPECT_EQ(stays.error().reason, reason);
    EXPECT_NE(stays.error().message.find("It cannot go on with another device: There is none."), std::string::npos);
    EXPECT_EQ((*session)->backend(), device);
    fails = false;
    for (int i = 0; i < 2; ++i) EXPECT_EQ(difference(**session, inputs, *wanted), "");
    EXPECT_EQ(asked, 2);
    ASSERT_EQ((*session)->events().size(), 1u);
    const FallbackEvent& event = *(*session)->events().at(0);
    EXPECT_EQ(event.what, "device");
    EXPECT_EQ(event.from, "reference");
    EXPECT_EQ(event.to, (*session)->backend()->device().name);
    EXPECT_EQ(event.reason, reason);
    EXPECT_NE(event.message.find("The session goes on with " + event.to + "."), std::string::npos) << event.message;
    EXPECT_EQ((*session)->events().at(1), nullptr);
  }
}

TEST_F(MoveSession, LayersOnPlainLoopsAreEventsOrRefused) {
  SessionOptions options;
  options.variant = "plain";
  auto session = Session::open(zoo("tiny_chain"), cpu(), options);
  ASSERT_TRUE(session.ok());
  const auto inputs = testing::random_inputs(**session, 3);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE((*session)->run(inputs).ok());
  const auto events = (*session)->events().all();
  const auto plan = (*session)->prepare(inputs);
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(events.size(), (*plan)->steps.size());  // each once
  EXPECT_EQ(events[0].what, "operator");
  EXPECT_EQ(events[0].layer, (*plan)->steps[0].name);
  EXPECT_GT(events[0].cost, 0);
  options.fallback = Fallback::forbid;
  session = Session::open(zoo("tiny_chain"), cpu(), options);
  ASSERT_TRUE(session.ok());
  const auto refused = (*session)->run(inputs);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().reason, Reason::no_kernel);
  EXPECT_NE(refused.error().message.find("'" + events[0].layer + "'"), std::string::npos) << refused.error().message;
}

TEST_F(MoveSession, RunsOnOtherThreadsEndWhereTheyBegan) {
  const std::shared_ptr<Backend> places[] = {cpu(), make_reference_backend()};
  const auto session = open("tiny_residual", places[0], true);
  const auto inputs = testing::random_inputs(*session), wanted = wanted_of("tiny_residual", inputs);
  std::atomic<bool> stop{false};
  std::atomic<int> runs{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      while (!stop) {
        const std::string said = difference(*session, inputs, wanted);
        if (!said.empty() && ++wrong == 1) ADD_FAILURE() << said;
        ++runs;
      }
    });
  for (int i = 1; i <= 12; ++i) {
    const int before = runs;
    while (runs < before + 4) std::this_thread::yield();
    EXPECT_TRUE(session->move_to(places[i % 2]).ok());
  }
  stop = true;
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(MoveSession, BuffersOfTheBackendBeforeAreRefused) {
  const std::shared_ptr<Backend> before = make_reference_backend();
  const auto session = open("tiny_chain", before, true);
  const auto inputs = testing::random_inputs(*session);
  auto in = *before->allocate(inputs[0].size_bytes(), MemoryKind::device), out = *before->allocate(1 << 20, MemoryKind::device);
  const auto token = session->submit(inputs, {in}, {out}, before.get());
  ASSERT_TRUE(token.ok());
  ASSERT_TRUE(session->move_to(cpu()).ok());
  EXPECT_TRUE(before->wait(*token).ok());  // it ends where it began
  const auto late = session->submit(inputs, {in}, {out}, before.get());
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().reason, Reason::bad_usage);
}

TEST_F(MoveSession, ModelsFromMemoryMoveAsLongAsTheyHaveTheirWeights) {
  const auto session = open("tiny_chain", cpu(), false);
  const auto inputs = testing::random_inputs(*session), wanted = wanted_of("tiny_chain", inputs);
  ASSERT_TRUE(session->move_to(cpu()).ok());  // nothing is packed yet
  EXPECT_EQ(difference(*session, inputs, wanted), "");
  const Status refused = session->move_to(make_reference_backend());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().reason, Reason::bad_usage);
  EXPECT_NE(refused.error().message.find("open a session of it"), std::string::npos);
  EXPECT_EQ(difference(*session, inputs, wanted), "");
}

TEST_F(MoveSession, ModelsFromFilesAreReadAgain) {
  ASSERT_TRUE(write_onnx(zoo("tiny_unet"), path("m.onnx")).ok());
  auto session = std::move(*open_session(std::move(*read_model(path("m.onnx"))), make_reference_backend(), {}));
  const auto inputs = testing::random_inputs(*session), wanted = wanted_of("tiny_unet", inputs);
  EXPECT_EQ(difference(*session, inputs, wanted), "");
  ASSERT_TRUE(session->move_to(cpu()).ok());
  EXPECT_EQ(difference(*session, inputs, wanted), "");
  // Another model under the same name is not this one.
  ASSERT_TRUE(write_onnx(zoo("tiny_chain"), path("m.onnx")).ok());
  const Status changed = session->move_to(make_reference_backend());
  ASSERT_FALSE(changed.ok());
  EXPECT_EQ(changed.error().reason, Reason::file_unreadable);
  EXPECT_EQ(difference(*session, inputs, wanted), "");
  fs::remove(path("m.onnx"));
  EXPECT_FALSE(session->move_to(make_reference_backend()).ok());
  EXPECT_EQ(difference(*session, inputs, wanted), "");
}

TEST_F(MoveSession, CompiledModelsStayOnTheirMachine) {
  const std::shared_ptr<Backend> first = cpu();
  const Graph graph = zoo("tiny_chain");
  ASSERT_TRUE(compile_model(graph, first, {}, {graph.tensor(graph.inputs[0]).shape}, path("m.sparkle")).ok());
  auto session = std::move(*open_session(std::move(*read_model(path("m.sparkle"))), first, {}));
  const auto inputs = testing::random_inputs(*session), wanted = wanted_of("tiny_chain", inputs);
  EXPECT_EQ(difference(*session, inputs, wanted), "");
  const Status elsewhere = session->move_to(make_reference_backend());
  ASSERT_FALSE(elsewhere.ok());
  EXPECT_EQ(elsewhere.error().reason, Reason::device_unusable);
  EXPECT_NE(elsewhere.error().message.find("compile the model"), std::string::npos);
  EXPECT_EQ(difference(*session, inputs, wanted), "");
  ASSERT_TRUE(session->move_to(cpu()).ok());  // the machine is the same
  EXPECT_EQ(difference(*session, inputs, wanted), "");
}

}  // namespace
}  // namespace sparkle
