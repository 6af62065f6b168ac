// Sharing on simulated devices, up to 64 of them: never slower than the best alone by more than 3 %, near the sum of all where
// there is work enough, whatever one of them does.
#include "run/choice/work_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace sparkle {
namespace {

struct Outcome {
  double seconds = 0;
  int64_t done = 0;
  std::vector<int64_t> of;
};

// Devices that take `seconds[i]` an item, one after another; what they are said to take errs by `errors[i]`. Device `lost`
// stops after `after` items, and its last one is done again by others.
Outcome simulate(const std::vector<double>& seconds, const std::vector<double>& errors, int64_t items, int lost = -1,
                 int64_t after = 0) {
  std::vector<Worker> workers(seconds.size());
  for (size_t i = 0; i < seconds.size(); ++i) workers[i].seconds = seconds[i] * errors[i];
  std::vector<double> free_at(seconds.size(), 0);
  Outcome o;
  o.of.resize(seconds.size());
  double now = 0;
  while (o.done < items || std::any_of(workers.begin(), workers.end(), [](const Worker& w) { return w.under_way > 0; })) {
    const int64_t under_way = std::count_if(workers.begin(), workers.end(), [](const Worker& w) { return w.under_way > 0; });
    int64_t left = items - o.done - under_way;
    for (size_t i = 0; i < workers.size() && left > 0; ++i) {
      if (workers[i].under_way > 0 || !takes_next(workers, i, left)) continue;
      workers[i].under_way = 1, free_at[i] = now + seconds[i];
      --left;
    }
    double next = INFINITY;
    size_t who = 0;
    for (size_t i = 0; i < workers.size(); ++i)
      if (workers[i].under_way > 0 && free_at[i] < next) next = free_at[i], who = i;
    if (!std::isfinite(next)) {
      ADD_FAILURE() << "nobody takes what is left";
      return o;
    }
    now = next;
    workers[who].under_way = 0;
    if (static_cast<int>(who) == lost && o.of[who] == after) {
      workers[who].gone = true;  // this item was not done
      continue;
    }
    ++o.of[who], ++o.done;
    o.seconds = now;
  }
  return o;
}

TEST(WorkShare, IsNeverMuchSlowerThanTheBestAlone) {
  std::mt19937 random(11);
  for (int draw = 0; draw < 400; ++draw) {
    const size_t count = 1 + random() % 64;
    std::vector<double> seconds, errors;
    for (size_t i = 0; i < count; ++i) {
      seconds.push_back(std::exp2(std::uniform_real_distribution<double>(-6, 6)(random)));
      errors.push_back(std::uniform_real_distribution<double>(0.95, 1.05)(random));
    }
    const int64_t items = 1 + static_cast<int64_t>(random() % 2000);
    const Outcome o = simulate(seconds, errors, items);
    const double alone = *std::min_element(seconds.begin(), seconds.end()) * static_cast<double>(items);
    EXPECT_EQ(o.done, items);
    EXPECT_LE(o.seconds, 1.03 * alone) << count << " devices, " << items << " items";
    if (items > 500) {
      EXPECT_GT(efficiency(seconds, items, o.seconds), 0.8) << count << " devices, " << items << " items";
    }
  }
}

TEST(WorkShare, TheEndDoesNotWaitForTheSlowest) {
  // One takes a second an item, the other a minute: of ten items the slow one takes none.
  const Outcome few = simulate({1, 60}, {1, 1}, 10);
  EXPECT_EQ(few.of[1], 0);
  EXPECT_DOUBLE_EQ(few.seconds, 10);
  const Outcome many = simulate({1, 60}, {1, 1}, 610);
  EXPECT_EQ(many.of[1], 10);
  EXPECT_LE(many.seconds, 601);
}

TEST(WorkShare, ALostDeviceLosesNothing) {
  for (int64_t after = 0; after < 20; ++after) {
    const Outcome o = simulate({1, 1.5, 2}, {1, 1, 1}, 50, 0, after);
    EXPECT_EQ(o.done, 50);
    EXPECT_EQ(o.of[0], after);
  }
}

}  // namespace
}  // namespace sparkle
