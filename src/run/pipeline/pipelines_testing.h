// For tests of pipelines: a session, items with the outputs that they must have, and what came of each.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "backends/cpu/cpu_backend.h"
#include "base/system/thread_pool.h"
#include "device/probe_cpu.h"
#include "networks/zoo.h"
#include "run/host_tensors.h"
#include "run/pipeline/pipeline.h"
#include "run/session_testing.h"

namespace sparkle::testing {

inline std::shared_ptr<Session> open_tiny(std::shared_ptr<Backend> backend, const SessionOptions& options = {}) {
  const auto network = [] { return zoo_network("tiny_chain"); };
  auto session = Session::open(std::move(*network()), std::move(backend), options, network);
  EXPECT_TRUE(session.ok()) << (session.ok() ? "" : session.error().message);
  return session.ok() ? std::shared_ptr<Session>(std::move(*session)) : nullptr;
}
inline std::shared_ptr<Backend> two_threads() { return cpu::make_cpu_backend(probe_cpu(), std::make_shared<ThreadPool>(2)); }

// As devices differ, whose sums have another order.
inline bool nearly_same(const std::vector<HostTensor>& a, const std::vector<HostTensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(a[i].shape == b[i].shape)) return false;
    for (int64_t e = 0; e < a[i].elements(); ++e)
      if (!(std::abs(a[i].data<float>()[e] - b[i].data<float>()[e]) < 1e-3f)) return false;
  }
  return true;
}

struct PipelineWork {
  std::vector<std::vector<HostTensor>> items, wanted;
};
inline PipelineWork work_for(Session& session, int count) {
  PipelineWork work;
  for (int i = 0; i < count; ++i) {
    work.items.push_back(random_inputs(session, static_cast<uint64_t>(100 * i + 1)));
    auto wanted = session.run(work.items.back());
    EXPECT_TRUE(wanted.ok()) << wanted.error().message;
    work.wanted.push_back(std::move(*wanted));
  }
  return work;
}

// What each item got, in the order in which results came.
struct PipelineResults {
  std::vector<int> order;
  std::vector<Result<std::vector<HostTensor>>> of;

  void expect_in_order(size_t count) const {
    ASSERT_EQ(order.size(), count);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(order[i], static_cast<int>(i));
  }
};
template <class P>
PipelineResults run_all(P& pipeline, const PipelineWork& work) {
  PipelineResults results;
  for (size_t i = 0; i < work.items.size(); ++i)
    EXPECT_TRUE(pipeline
                    .submit(work.items[i],
                            [&results, i](Pipeline::Outputs outputs) {
                              results.order.push_back(static_cast<int>(i));
                              results.of.push_back(std::move(outputs));
                            })
                    .ok());
  pipeline.close();
  return results;
}

}  // namespace sparkle::testing
