// Runs of sparkle.h on memory of the device: buffers, and device tensors.
#include <algorithm>
#include <iterator>
#include <span>

#include "api/handles.h"

namespace sparkle::api {
namespace {

// Buffers are of one device; a run reads and writes none of another.
Status collect(const Backend& backend, sparkle_buffer* const* from, size_t count, std::vector<std::shared_ptr<Buffer>>& to) {
  for (size_t i = 0; i < count; ++i) {
    if (!from || !from[i]) return Error{Reason::bad_usage, "Buffer " + std::to_string(i) + " is NULL."};
    if (from[i]->backend.get() != &backend)
      return Error{Reason::bad_usage, "Buffer " + std::to_string(i) +
                                          " belongs to another device than the session; allocate or " +
                                          "wrap it on the session's."};
    to.push_back(from[i]->buffer);
  }
  return ok();
}

Result<Token> submit(sparkle_session& session, const Backend& backend, const std::vector<HostTensor>& shapes,
                     std::span<sparkle_buffer* const> inputs, std::span<sparkle_buffer* const> outputs) {
  std::vector<std::shared_ptr<Buffer>> in, out;
  SPARKLE_CHECK(collect(backend, inputs.data(), inputs.size(), in));
  SPARKLE_CHECK(collect(backend, outputs.data(), outputs.size(), out));
  SPARKLE_TRY(token, session.session->submit(shapes, std::move(in), std::move(out), &backend));
  for (const auto& list : {inputs, outputs})
    for (sparkle_buffer* buffer : list) buffer->last_token = token.value;
  return token;
}

std::vector<sparkle_tensor> host_tensors(const sparkle_device_tensor* tensors, size_t count) {
  std::vector<sparkle_tensor> list;
  for (size_t i = 0; i < count && tensors; ++i) {
    sparkle_tensor t{tensors[i].type, tensors[i].rank, {}, const_cast<void*>(tensors[i].values)};
    std::copy(std::begin(tensors[i].shape), std::end(tensors[i].shape), std::begin(t.shape));
    list.push_back(t);
  }
  return list;
}

// Starts a run, or does one whole where `token` is nullptr. Outputs without a buffer get one, unless something goes wrong.
Status run_tensors(sparkle_session* session, const sparkle_device_tensor* inputs, size_t input_count,
                   sparkle_device_tensor* outputs, size_t output_count, uint64_t* token) {
  if (!session || (!inputs && input_count > 0) || (!outputs && output_count > 0))
    return Error{Reason::bad_usage, "A run on device tensors needs a session and lists of tensors."};
  const std::vector<sparkle_tensor> given = host_tensors(inputs, input_count);
  SPARKLE_TRY(shapes, borrow(given.data(), given.size(), "input"));
  const std::shared_ptr<Backend> backend = session->session->backend();
  SPARKLE_TRY(plan, session->session->prepare(shapes));
  SPARKLE_CHECK(same_count(output_count, plan->outputs.size(), "output"));
  const auto wanted = [&](size_t i) -> const TensorDesc& { return plan->tensors[static_cast<size_t>(plan->outputs[i])].desc; };
  std::vector<sparkle_buffer*> in, out;
  std::vector<std::unique_ptr<sparkle_buffer>> made(output_count);
  for (size_t i = 0; i < input_count; ++i) in.push_back(inputs[i].buffer);
  for (size_t i = 0; i < output_count; ++i) {
    if (outputs[i].buffer) {
      const std::vector<sparkle_tensor> place = host_tensors(outputs + i, 1);
      SPARKLE_TRY(borrowed, borrow(place.data(), 1, "output"));
      SPARKLE_CHECK(same_tensor(i, wanted(i), borrowed[0]));
      out.push_back(outputs[i].buffer);
    } else {
      SPARKLE_TRY(buffer, backend->allocate(std::max<int64_t>(wanted(i).bytes(), 1), MemoryKind::device));
      made[i].reset(new sparkle_buffer{backend, std::move(buffer)});
      out.push_back(made[i].get());
    }
  }
  SPARKLE_TRY(submitted, submit(*session, *backend, shapes, in, out));
  if (token) {
    *token = submitted.value;
  } else {
    SPARKLE_CHECK(backend->wait(submitted));
  }
  for (size_t i = 0; i < output_count; ++i) {
    if (!made[i]) continue;
    const sparkle_tensor t = describe(wanted(i), nullptr);
    outputs[i].type = t.type;
    outputs[i].rank = t.rank;
    std::copy(std::begin(t.shape), std::end(t.shape), std::begin(outputs[i].shape));
    outputs[i].buffer = made[i].release();
  }
  return ok();
}

}  // namespace
}  // namespace sparkle::api

using sparkle::Error;
using sparkle::Reason;
using sparkle::Status;
using sparkle::api::guarded;

sparkle_status sparkle_session_submit(sparkle_session* session, const sparkle_tensor* inputs,
                                      sparkle_buffer* const* input_buffers, size_t input_count,
                                      sparkle_buffer* const* output_buffers, size_t output_count, uint64_t* token) {
  return guarded([&]() -> Status {
    if (!session || !token)
      return Error{Reason::bad_usage, "sparkle_session_submit needs a session and a place for the token."};
    if ((!input_buffers && input_count > 0) || (!output_buffers && output_count > 0))
      return Error{Reason::bad_usage, "The list of buffers is NULL."};
    SPARKLE_TRY(shapes, sparkle::api::borrow(inputs, input_count, "input"));
    const std::shared_ptr<sparkle::Backend> backend = session->session->backend();
    SPARKLE_TRY(submitted,
                sparkle::api::submit(*session, *backend, shapes, {input_buffers, input_count}, {output_buffers, output_count}));
    *token = submitted.value;
    return sparkle::ok();
  });
}

sparkle_status sparkle_session_run_on_device(sparkle_session* session, const sparkle_device_tensor* inputs, size_t input_count,
                                             sparkle_device_tensor* outputs, size_t output_count) {
  return guarded([&] { return sparkle::api::run_tensors(session, inputs, input_count, outputs, output_count, nullptr); });
}

sparkle_status sparkle_session_submit_on_device(sparkle_session* session, const sparkle_device_tensor* inputs,
                                                size_t input_count, sparkle_device_tensor* outputs, size_t output_count,
                                                uint64_t* token) {
  return guarded([&]() -> Status {
    if (!token) return Error{Reason::bad_usage, "sparkle_session_submit_on_device needs a place for the token."};
    return sparkle::api::run_tensors(session, inputs, input_count, outputs, output_count, token);
  });
}
