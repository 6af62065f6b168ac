// Sparkle in C++: items through a session in order, several under way at once. See sparkle_pipeline_open.
//
//   sparkle::Pipeline pipeline(session);
//   auto first = pipeline.submit({image}), second = pipeline.submit({other});
//   std::vector<sparkle::Tensor> outputs = first.get();
#ifndef SPARKLE_PIPELINE_HPP
#define SPARKLE_PIPELINE_HPP

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sparkle/sparkle.hpp"

namespace sparkle {

// One run by a thread of its own: a future of its outputs, or of what it throws. For many items there is the pipeline below.
inline std::future<std::vector<Tensor>> run_async(Session session, std::vector<Tensor> inputs) {
  return std::async(std::launch::async,
                    [session = std::move(session), inputs = std::move(inputs)] { return session.run(inputs); });
}

// How many items are under way, and how devices share them; see sparkle_pipeline_options.
struct PipelineOptions {
  int32_t depth = 0;       // items that the device has at once; 0: 3
  int32_t waiting = 0;     // items that wait for one of these before submit() waits; 0: four times as many
  bool always = false;     // of several sessions alone: all devices take items, also those predicted to bring next to nothing
  std::string fallback{};  // of several: "warn", "allow" or "forbid", what a lost device had; empty: warn
  int64_t items = 0;       // of several: that will come; 0: nobody knows
};

// What a device of a shared pipeline has done; see sparkle_pipeline_share.
struct PipelineShare {
  bool used = false;     // it takes items
  bool lost = false;     // it failed, and takes no more
  uint64_t items = 0;    // whose results it gave
  double predicted = 0;  // seconds for an item; 0: unknown
  double seconds = 0;    // the same as measured of late; 0: not yet
};

// Items through a session, or several, in order; may be used by several threads. See sparkle_pipeline_open.
class Pipeline {
 public:
  // One tensor per output, in the model's order.
  using Outputs = std::vector<Tensor>;

  // Over one session, which it keeps.
  explicit Pipeline(const Session& session, const PipelineOptions& options = {}) {
    sparkle_pipeline_options given{};
    given.size = sizeof given;
    given.depth = options.depth;
    given.waiting = options.waiting;
    sparkle_pipeline* pipeline = nullptr;
    detail::check(sparkle_pipeline_open(session.c(), &given, &pipeline));
    handle_.reset(pipeline);
  }
  // One queue over several sessions of the same model, each on a device of its own; see sparkle_pipeline_open_shared.
  explicit Pipeline(const std::vector<Session>& sessions, const PipelineOptions& options = {}) {
    sparkle_pipeline_options given{};
    given.size = sizeof given;
    given.depth = options.depth, given.waiting = options.waiting, given.items = options.items;
    given.split = options.always ? "always" : nullptr;
    given.fallback = options.fallback.empty() ? nullptr : options.fallback.c_str();
    std::vector<sparkle_session*> list;
    for (const Session& session : sessions) list.push_back(session.c());
    sparkle_pipeline* pipeline = nullptr;
    detail::check(sparkle_pipeline_open_shared(list.data(), list.size(), &given, &pipeline));
    handle_.reset(pipeline), sessions_ = list.size();
  }
  // Of several sessions: what each has done so far, in their order.
  std::vector<PipelineShare> shares() const {
    std::vector<PipelineShare> list;
    for (size_t i = 0; i < sessions_; ++i) {
      sparkle_pipeline_share share{};
      share.size = sizeof share;
      detail::check(sparkle_pipeline_get_share(handle_.get(), i, &share));
      list.push_back({share.used != 0, share.lost != 0, share.items, share.predicted, share.seconds});
    }
    return list;
  }
  // Which of several devices work and why, one line; empty before the first item.
  std::string why() const {
    char* text = nullptr;
    detail::check(sparkle_pipeline_why(handle_.get(), &text));
    return detail::take_text(text);
  }

  // One tensor per input, in the model's order; their memory may not change before the result is there. Waits while the
  // pipeline is full. The future has the outputs, or throws what was wrong with this item. Throws where the inputs are none of
  // the model's.
  std::future<Outputs> submit(std::vector<Tensor> inputs) {
    auto item = std::make_unique<Item>(std::move(inputs));
    std::future<Outputs> result = item->result.get_future();
    const std::vector<sparkle_tensor> list = item->list();
    Item* const raw = item.release();  // the result may be there before this returns
    const sparkle_status status = sparkle_pipeline_submit(handle_.get(), list.data(), list.size(), &done, raw);
    if (status != SPARKLE_OK) delete raw;
    detail::check(status);
    return result;
  }
  // The same without waiting; a future that is not valid where the pipeline is full.
  std::future<Outputs> try_submit(std::vector<Tensor> inputs) {
    auto item = std::make_unique<Item>(std::move(inputs));
    std::future<Outputs> result = item->result.get_future();
    const std::vector<sparkle_tensor> list = item->list();
    Item* const raw = item.release();
    int32_t taken = 0;
    const sparkle_status status = sparkle_pipeline_try_submit(handle_.get(), list.data(), list.size(), &done, raw, &taken);
    if (status != SPARKLE_OK || !taken) delete raw;
    detail::check(status);
    return taken ? std::move(result) : std::future<Outputs>();
  }
  // Returns when each item has its result; nothing may be submitted any more.
  void close() { detail::check(sparkle_pipeline_drain(handle_.get())); }

 private:
  struct Item {
    explicit Item(std::vector<Tensor> given) : inputs(std::move(given)) {}
    std::vector<sparkle_tensor> list() const {
      std::vector<sparkle_tensor> tensors;
      for (const Tensor& t : inputs) tensors.push_back(t.c());
      return tensors;
    }
    std::vector<Tensor> inputs;  // kept until then
    std::promise<Outputs> result;
  };
  static void done(void* user, sparkle_status status, const char* sentence, sparkle_value** outputs, size_t count) {
    const std::unique_ptr<Item> item(static_cast<Item*>(user));
    if (status != SPARKLE_OK) {
      item->result.set_exception(std::make_exception_ptr(Exception(status, sentence)));
      return;
    }
    Outputs tensors;
    for (size_t i = 0; i < count; ++i) tensors.emplace_back(outputs[i]);
    item->result.set_value(std::move(tensors));
  }
  struct Close {
    void operator()(sparkle_pipeline* pipeline) const { sparkle_pipeline_close(pipeline); }
  };
  std::unique_ptr<sparkle_pipeline, Close> handle_;
  size_t sessions_ = 0;  // of a shared one
};

}  // namespace sparkle

#endif  // SPARKLE_PIPELINE_HPP
