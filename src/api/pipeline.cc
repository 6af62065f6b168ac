// Pipelines of sparkle.h.
#include "run/pipeline/pipeline.h"

#include "api/handles.h"

using sparkle::Error;
using sparkle::HostTensor;
using sparkle::Reason;
using sparkle::Status;
using sparkle::api::guarded;

struct sparkle_pipeline {
  sparkle_pipeline(std::shared_ptr<sparkle::Session> session, const sparkle::PipelineOptions& options)
      : pipeline(std::move(session), options) {}
  sparkle::Pipeline pipeline;
};

namespace {

sparkle::Pipeline::Done hand_to(sparkle_done_function done, void* user) {
  return [done, user](sparkle::Pipeline::Outputs outputs) {
    if (!outputs.ok()) {
      const sparkle_status status = sparkle::api::fail(outputs.error());
      done(user, status, outputs.error().message.c_str(), nullptr, 0);
      return;
    }
    std::vector<sparkle_value*> values;
    for (HostTensor& t : *outputs) values.push_back(new sparkle_value{std::move(t)});
    done(user, SPARKLE_OK, "", values.data(), values.size());
  };
}

Status put(sparkle_pipeline* pipeline, const sparkle_tensor* inputs, size_t count, sparkle_done_function done, void* user,
           int32_t* taken) {
  if (!pipeline || !done) return Error{Reason::bad_usage, "An item needs a pipeline and a function for its result."};
  SPARKLE_TRY(tensors, sparkle::api::borrow(inputs, count, "input"));
  if (!taken) return pipeline->pipeline.submit(std::move(tensors), hand_to(done, user));
  SPARKLE_TRY(room, pipeline->pipeline.try_submit(tensors, hand_to(done, user)));
  *taken = room;
  return sparkle::ok();
}

}  // namespace

sparkle_status sparkle_pipeline_open(sparkle_session* session, const sparkle_pipeline_options* options,
                                     sparkle_pipeline** pipeline) {
  return guarded([&]() -> Status {
    if (!session || !pipeline)
      return Error{Reason::bad_usage, "sparkle_pipeline_open needs a session and a place for the pipeline."};
    SPARKLE_CHECK(session->session->has_single_plan());
    sparkle_pipeline_options whole{};
    if (options) {
      SPARKLE_CHECK(sparkle::api::check_size("sparkle_pipeline_options", options->size, sizeof whole));
      whole = *options;
    }
    // All there are: one more does not compile before it is looked at here.
    const auto& [size, depth, waiting] = whole;
    (void)size;
    if (depth < 0 || depth > 64 || waiting < 0)
      return Error{Reason::bad_usage, "A pipeline has 1 to 64 items under way (0: 3), and 0 or more that wait."};
    sparkle::PipelineOptions given;
    if (depth > 0) given.depth = depth;
    given.waiting = waiting;
    *pipeline = new sparkle_pipeline(session->session, given);
    return sparkle::ok();
  });
}

sparkle_status sparkle_pipeline_submit(sparkle_pipeline* pipeline, const sparkle_tensor* inputs, size_t input_count,
                                       sparkle_done_function done, void* user) {
  return guarded([&] { return put(pipeline, inputs, input_count, done, user, nullptr); });
}

sparkle_status sparkle_pipeline_try_submit(sparkle_pipeline* pipeline, const sparkle_tensor* inputs, size_t input_count,
                                           sparkle_done_function done, void* user, int32_t* taken) {
  return guarded([&]() -> Status {
    if (!taken) return Error{Reason::bad_usage, "sparkle_pipeline_try_submit needs a place for whether there was room."};
    return put(pipeline, inputs, input_count, done, user, taken);
  });
}

void sparkle_pipeline_close(sparkle_pipeline* pipeline) { delete pipeline; }
