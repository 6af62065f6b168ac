// Pipelines of sparkle.h.
#include "api/handles.h"
#include "run/pipeline/shared_pipeline.h"

using sparkle::Error;
using sparkle::HostTensor;
using sparkle::Reason;
using sparkle::Status;
using sparkle::api::guarded;

// One of both.
struct sparkle_pipeline {
  std::unique_ptr<sparkle::Pipeline> single;
  std::unique_ptr<sparkle::SharedPipeline> shared;
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
  const auto put_into = [&](auto& items) -> Status {
    if (!taken) return items.submit(std::move(tensors), hand_to(done, user));
    SPARKLE_TRY(room, items.try_submit(tensors, hand_to(done, user)));
    *taken = room;
    return sparkle::ok();
  };
  return pipeline->shared ? put_into(*pipeline->shared) : put_into(*pipeline->single);
}

Status check(const sparkle_pipeline_options* options, bool shared, sparkle::SharedPipelineOptions& given) {
  sparkle_pipeline_options whole{};
  if (options) {
    SPARKLE_CHECK(sparkle::api::check_size("sparkle_pipeline_options", options->size, sizeof whole));
    whole = *options;
  }
  // All there are: one more does not compile before it is looked at here.
  const auto& [size, depth, waiting, split, fallback, items] = whole;
  (void)size;
  if (depth < 0 || depth > 64 || waiting < 0)
    return Error{Reason::bad_usage, "A pipeline has 1 to 64 items under way (0: 3), and 0 or more that wait."};
  if (!shared && (split || fallback || items != 0))
    return Error{Reason::bad_usage, "split, fallback and items are of sparkle_pipeline_open_shared; leave them NULL and 0."};
  const std::string how = split ? split : "auto";
  if ((how != "auto" && how != "always") || items < 0)
    return Error{Reason::bad_usage, "A shared pipeline has split \"auto\" or \"always\", and 0 or more items that will come."};
  SPARKLE_TRY(allowed, sparkle::api::fallback_of(fallback));
  given.fallback = allowed;
  if (depth > 0) given.depth = depth;
  given.waiting = waiting;
  if (items > 0) given.items = items;
  if (how == "always") given.split = sparkle::Split::always;
  return sparkle::ok();
}
Status is_shared(const sparkle_pipeline* pipeline) {
  if (pipeline && pipeline->shared) return sparkle::ok();
  return Error{Reason::bad_usage, "This is asked of a pipeline that sparkle_pipeline_open_shared has opened."};
}

}  // namespace

sparkle_status sparkle_pipeline_open(sparkle_session* session, const sparkle_pipeline_options* options,
                                     sparkle_pipeline** pipeline) {
  return guarded([&]() -> Status {
    if (!session || !pipeline)
      return Error{Reason::bad_usage, "sparkle_pipeline_open needs a session and a place for the pipeline."};
    SPARKLE_CHECK(session->session->has_single_plan());
    sparkle::SharedPipelineOptions checked;
    SPARKLE_CHECK(check(options, false, checked));
    sparkle::PipelineOptions given;
    given.depth = checked.depth, given.waiting = checked.waiting;
    *pipeline = new sparkle_pipeline{std::make_unique<sparkle::Pipeline>(session->session, given), nullptr};
    return sparkle::ok();
  });
}

sparkle_status sparkle_pipeline_open_shared(sparkle_session* const* sessions, size_t session_count,
                                            const sparkle_pipeline_options* options, sparkle_pipeline** pipeline) {
  return guarded([&]() -> Status {
    if (!sessions || session_count == 0 || !pipeline)
      return Error{Reason::bad_usage, "sparkle_pipeline_open_shared needs sessions and a place for the pipeline."};
    std::vector<std::shared_ptr<sparkle::Session>> all;
    for (size_t i = 0; i < session_count; ++i) {
      if (!sessions[i]) return Error{Reason::bad_usage, "Session " + std::to_string(i) + " of a shared pipeline is NULL."};
      SPARKLE_CHECK(sessions[i]->session->has_single_plan());
      const sparkle::Session& first = *sessions[0]->session;
      const sparkle::Session& own = *sessions[i]->session;
      if (own.inputs().size() != first.inputs().size() || own.outputs().size() != first.outputs().size())
        return Error{Reason::bad_usage, "Session " + std::to_string(i) +
                                            " of a shared pipeline is of another model than the first: they have other inputs "
                                            "or outputs."};
      all.push_back(sessions[i]->session);
    }
    sparkle::SharedPipelineOptions given;
    SPARKLE_CHECK(check(options, true, given));
    *pipeline = new sparkle_pipeline{nullptr, std::make_unique<sparkle::SharedPipeline>(std::move(all), given)};
    return sparkle::ok();
  });
}

sparkle_status sparkle_pipeline_get_share(sparkle_pipeline* pipeline, size_t session, sparkle_pipeline_share* share) {
  return guarded([&]() -> Status {
    SPARKLE_CHECK(is_shared(pipeline));
    if (!share) return Error{Reason::bad_usage, "sparkle_pipeline_get_share needs a place for the share."};
    SPARKLE_CHECK(sparkle::api::check_size("sparkle_pipeline_share", share->size, sizeof *share));
    const auto shares = pipeline->shared->shares();
    if (session >= shares.size())
      return Error{Reason::bad_usage, "The pipeline has " + std::to_string(shares.size()) + " sessions; there is no number " +
                                          std::to_string(session) + "."};
    const sparkle::DeviceShare& own = shares[session];
    *share = {sizeof *share, own.used, own.lost, own.items, own.predicted, own.seconds};
    return sparkle::ok();
  });
}

sparkle_status sparkle_pipeline_why(sparkle_pipeline* pipeline, char** text) {
  return guarded([&]() -> Status {
    SPARKLE_CHECK(is_shared(pipeline));
    if (!text) return Error{Reason::bad_usage, "sparkle_pipeline_why needs a place for the line."};
    *text = sparkle::api::new_text(pipeline->shared->why());
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

sparkle_status sparkle_pipeline_drain(sparkle_pipeline* pipeline) {
  return guarded([&]() -> Status {
    if (!pipeline) return Error{Reason::bad_usage, "sparkle_pipeline_drain needs a pipeline."};
    if (pipeline->shared) pipeline->shared->close();
    else pipeline->single->close();
    return sparkle::ok();
  });
}

void sparkle_pipeline_close(sparkle_pipeline* pipeline) { delete pipeline; }
