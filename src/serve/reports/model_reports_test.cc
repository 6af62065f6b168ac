// Reports of a loaded model: made once, one at a time, for the shapes of the latest request, and never beside requests.
#include "serve/reports/model_reports.h"

#include <gtest/gtest.h>

#include <thread>

#include "serve/reports/changes.h"
#include "serve/serve_testing.h"

namespace sparkle::serve {
namespace {

using ::sparkle::testing::open_rows;

std::shared_ptr<const KeptReport> kept(const ModelReports::Answer& answer) {
  const auto* report = std::get_if<std::shared_ptr<const KeptReport>>(&answer);
  EXPECT_TRUE(report) << std::get<Refusal>(answer).message;
  return report ? *report : nullptr;
}
Refusal refusal(const ModelReports::Answer& answer) {
  const auto* refused = std::get_if<Refusal>(&answer);
  EXPECT_TRUE(refused);
  return refused ? *refused : Refusal{};
}
const ModelReports::Between go_on = []() -> std::optional<Refusal> { return {}; };

TEST(ModelReports, IsMadeOnceForTheLatestShapes) {
  ModelReports reports("m", stamp_of("no file"), open_rows());
  std::mutex one;
  const auto first = kept(reports.get(one));
  ASSERT_TRUE(first);
  EXPECT_FALSE(first->report.measured);
  EXPECT_EQ(first->report.model, "m");
  EXPECT_DOUBLE_EQ(first->report.seconds, first->report.predicted_seconds);
  EXPECT_EQ(first->inputs[0].shape, (Dims{1, 4}));
  EXPECT_EQ(kept(reports.get(one)), first);
  int asked = 0;
  const auto measured = kept(reports.measure(one, [&]() -> std::optional<Refusal> { return ++asked, std::nullopt; }));
  ASSERT_TRUE(measured);
  EXPECT_TRUE(measured->report.measured);
  EXPECT_GE(measured->report.runs, 5);
  EXPECT_GE(asked, 10) << "it was not asked between runs";
  EXPECT_FALSE(measured->inputs[0].bytes) << "values of the runs were kept";
  EXPECT_EQ(kept(reports.measure(one, go_on)), measured);
  EXPECT_EQ(kept(reports.get(one)), measured);
  reports.note({HostTensor::zeros(DType::f32, {5, 4})});
  const auto other = kept(reports.get(one));
  ASSERT_TRUE(other);
  EXPECT_EQ(other->inputs[0].shape, (Dims{5, 4}));
  EXPECT_FALSE(other->inputs[0].bytes) << "a client's values were kept";
  EXPECT_FALSE(other->report.measured);
}

TEST(ModelReports, OneAtATime) {
  ModelReports reports("m", stamp_of("no file"), open_rows());
  std::mutex one;
  {
    const std::lock_guard somebody(one);
    std::thread([&] {
      EXPECT_EQ(refusal(reports.get(one)).failure, Failure::queue_full);
      EXPECT_EQ(refusal(reports.measure(one, go_on)).failure, Failure::queue_full);
    }).join();
  }
  const auto first = kept(reports.get(one));
  const std::lock_guard somebody(one);
  std::thread([&] { EXPECT_EQ(kept(reports.get(one)), first); }).join();  // what is kept needs nobody
}

TEST(ModelReports, GivesWayWhileItMeasures) {
  ModelReports reports("m", stamp_of("no file"), open_rows());
  std::mutex one;
  int asked = 0;
  const auto after_three = [&]() -> std::optional<Refusal> {
    return ++asked < 4 ? std::nullopt : std::optional(Refusal{Failure::queue_full, "others came"});
  };
  const Refusal refused = refusal(reports.measure(one, after_three));
  EXPECT_EQ(refused.failure, Failure::queue_full);
  EXPECT_EQ(refused.message, "others came");
  EXPECT_EQ(asked, 4) << "it went on";
  EXPECT_TRUE(kept(reports.measure(one, go_on)));  // nothing is held any more
}

TEST(ModelReports, OpenSizesComeFromARequest) {
  NetworkBuilder net("open", 7, false);
  const TensorId x = net.input("x", {-1, -1});
  net.output(net.add("twice", x, x, false), "y", {-1, -1});
  auto session = Session::open(net.finish(), make_reference_backend(), {});
  ASSERT_TRUE(session.ok()) << session.error().message;
  ModelReports reports("m", stamp_of("no file"), std::move(*session));
  std::mutex one;
  const Refusal refused = refusal(reports.get(one));
  EXPECT_EQ(refused.failure, Failure::unavailable);
  EXPECT_NE(refused.message.find("input 'x'"), std::string::npos);
  reports.note({HostTensor::zeros(DType::f32, {2, 7})});
  const auto told = kept(reports.get(one));
  ASSERT_TRUE(told);
  EXPECT_EQ(told->inputs[0].shape, (Dims{2, 7}));
  EXPECT_FALSE(told->changes);
  EXPECT_NE(told->no_changes.find("no file"), std::string::npos);  // which is said, and no report is lost for it
}

}  // namespace
}  // namespace sparkle::serve
