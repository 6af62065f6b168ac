// Sparkle in C++: items through a session in order, several under way at once. See sparkle_pipeline_open.
//
//   sparkle::Pipeline pipeline(session);
//   auto first = pipeline.submit({image}), second = pipeline.submit({other});
//   std::vector<sparkle::Tensor> outputs = first.get();
#ifndef SPARKLE_PIPELINE_HPP
#define SPARKLE_PIPELINE_HPP

#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "sparkle/sparkle.hpp"

namespace sparkle {

// One run by a thread of its own: a future of its outputs, or of what it throws. For many items there is the pipeline below.
inline std::future<std::vector<Tensor>> run_async(Session session, std::vector<Tensor> inputs) {
  return std::async(std::launch::async,
                    [session = std::move(session), inputs = std::move(inputs)] { return session.run(inputs); });
}

struct PipelineOptions {
  int32_t depth = 0;    // items that the device has at once; 0: 3
  int32_t waiting = 0;  // items that wait for one of these before submit() waits; 0: four times as many
};

class Pipeline {
 public:
  using Outputs = std::vector<Tensor>;

  explicit Pipeline(const Session& session, const PipelineOptions& options = {}) {
    sparkle_pipeline_options given{};
    given.size = sizeof given;
    given.depth = options.depth;
    given.waiting = options.waiting;
    sparkle_pipeline* pipeline = nullptr;
    detail::check(sparkle_pipeline_open(session.c(), &given, &pipeline));
    handle_.reset(pipeline);
  }

  // One tensor per input, in the model's order; their memory may not change before the result is there. Waits while the
  // pipeline is full. The future has the outputs, or throws what was wrong with this item.
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
  void close() { handle_.reset(); }

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
};

}  // namespace sparkle

#endif  // SPARKLE_PIPELINE_HPP
