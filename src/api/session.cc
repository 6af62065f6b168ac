// Sessions of sparkle.h.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/files/new_file.h"
#include "api/handles.h"
#include "onnx/metadata.h"
#include "plan/explain.h"
#include "prepare/compile_model.h"
#include "report/report_text.h"
#include "run/opening/open_backend.h"
#include "run/opening/open_model.h"

namespace sparkle::api {
namespace {

// As long as the structure was before it had one of its last fields, or as it is now.
Result<sparkle_session_options> whole_options(const sparkle_session_options& given) {
  static_assert(sizeof(void*) == 8, "the field before may end in padding, which would be read as this one");
  sparkle_session_options whole{};
  if (given.size != offsetof(sparkle_session_options, fusion) && given.size != offsetof(sparkle_session_options, fallback))
    SPARKLE_CHECK(check_size("sparkle_session_options", given.size, sizeof given));
  std::memcpy(&whole, &given, given.size);
  return whole;
}

}  // namespace

Result<SessionOptions> session_options(const sparkle_session_options* outside, const Device& device) {
  SessionOptions options;
  if (!outside) return options;
  SPARKLE_TRY(whole, whole_options(*outside));
  // All there are: one more does not compile before it is looked at here.
  const auto& [size, precision, algorithm, variant, tuning, memory_budget, plan_cache_bytes, accuracy, nonfinite, fusion,
               fallback] = whole;
  (void)size;
  if (precision && std::string_view(precision) != "fp32")
    return Error{Reason::type_not_served, "The precision '" + std::string(precision) + "' is not supported yet; use fp32."};
  if (algorithm) options.algorithm = algorithm;
  if (variant) options.variant = variant;
  if (fusion) options.fusion = fusion;
  if (options.fusion != "" && options.fusion != "inverted" && options.fusion != "none")
    return Error{Reason::bad_usage, "fusion is 'inverted' or 'none', not '" + options.fusion + "'."};
  if (memory_budget < 0 || plan_cache_bytes < 0)
    return Error{Reason::bad_usage, "memory_budget and plan_cache_bytes are numbers of bytes, 0 or more."};
  if (!(accuracy >= 0) || std::isinf(accuracy))
    return Error{Reason::bad_usage, "accuracy is a share of the largest output, 0 (the default) or more."};
  if (accuracy > 0) options.accuracy = accuracy;
  const std::string_view values = nonfinite ? nonfinite : "fast";
  if (values != "fast" && values != "exact")
    return Error{Reason::bad_usage, "nonfinite is 'fast' or 'exact', not '" + std::string(values) + "'."};
  options.exact_nonfinite = values == "exact";
  SPARKLE_TRY(wanted, fallback_of(fallback));
  options.fallback = wanted;
  options.memory_budget = memory_budget;
  if (plan_cache_bytes > 0) options.plan_cache_bytes = plan_cache_bytes;
  if (tuning) {
    SPARKLE_TRY(store, TuningStore::open(tuning, device));
    options.tuning = std::make_shared<TuningStore>(std::move(store));
  }
  return options;
}

namespace {

Status open_model(sparkle_device* device, Result<ModelFile> model, const sparkle_session_options* given,
                  sparkle_session** session) {
  if (!model.ok()) return model.take_error();
  SPARKLE_TRY(options, session_options(given, device->backend->device()));
  options.events = device->events;
  if (options.fallback == Fallback::allow && device->options.name != "cpu" && device->options.name != "auto")
    options.next_device = [cpu = device->options](const Error&) mutable -> Result<std::shared_ptr<Backend>> {
      cpu.name = "cpu";
      SPARKLE_TRY(opened, open_backend(cpu));
      return opened.backend;
    };
  const bool compiled = model->compiled != nullptr;
  sparkle::FileStamp onnx = model->onnx;
  SPARKLE_TRY(opened, open_session(std::move(*model), device->backend, options));
  *session = new sparkle_session{std::move(opened), std::move(onnx), compiled, options.accuracy, {}};
  return ok();
}

Result<std::vector<Dims>> compiled_shapes(const Graph& graph, const std::vector<HostTensor>& given) {
  if (!given.empty() && given.size() != graph.inputs.size())
    return Error{Reason::bad_usage, "The model has " + std::to_string(graph.inputs.size()) + " inputs, " +
                                        std::to_string(given.size()) + " were given."};
  std::vector<Dims> shapes;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const GraphTensor& t = graph.tensor(graph.inputs[i]);
    shapes.push_back(given.empty() ? t.shape : given[i].shape);
    if (!given.empty()) continue;
    if (!shapes[i].empty() && shapes[i][0] < 0) shapes[i][0] = 1;
    if (!t.rank_known || std::any_of(shapes[i].begin(), shapes[i].end(), [](int64_t d) { return d < 0; }))
      return Error{Reason::bad_usage,
                   "The model leaves sizes of input '" + t.name + "' open; give inputs of the shapes to compile for."};
  }
  return shapes;
}

sparkle_status info_of(const std::vector<SessionInput>& list, size_t index, const char* what, sparkle_tensor_info* info) {
  return guarded([&]() -> Status {
    if (!info || index >= list.size())
      return Error{Reason::bad_usage, "The model has " + std::to_string(list.size()) + " " + what + "s; there is no number " +
                                          std::to_string(index) + "."};
    const SessionInput& t = list[index];
    *info = {};
    info->name = t.name.c_str();
    info->type = static_cast<sparkle_type>(t.dtype);
    info->rank = t.rank_known ? t.shape.size() : -1;
    for (int a = 0; a < t.shape.size(); ++a) {
      const auto at = static_cast<size_t>(a);
      info->shape[a] = t.shape[a];
      info->axis_names[a] = at < t.axis_names.size() ? t.axis_names[at].c_str() : "";
    }
    return ok();
  });
}

// Plans for the shapes of `inputs` and calls use(plan).
template <class Use>
sparkle_status with_plan(sparkle_session* session, const sparkle_tensor* inputs, size_t count, const void* place, Use&& use) {
  return guarded([&]() -> Status {
    if (!session || !place) return Error{Reason::bad_usage, "The call needs a session and a place for its result."};
    SPARKLE_TRY(borrowed, borrow(inputs, count, "input"));
    SPARKLE_TRY(plan, session->session->prepare(borrowed));
    return use(*plan, borrowed);
  });
}

Status needs_data(const std::vector<HostTensor>& tensors, const char* what) {
  for (size_t i = 0; i < tensors.size(); ++i)
    if (!tensors[i].bytes.get() && tensors[i].elements() > 0)
      return Error{Reason::bad_usage, std::string("The data of ") + what + " " + std::to_string(i) + " is NULL."};
  return ok();
}

Result<ReportOptions> report_options(const sparkle_measure_options* given) {
  sparkle_measure_options whole{};
  if (given) {
    SPARKLE_CHECK(check_size("sparkle_measure_options", given->size, sizeof whole));
    whole = *given;
  }
  const auto& [size, seconds, runs, check] = whole;
  (void)size;
  if (!(seconds >= 0) || std::isinf(seconds) || runs < 0)
    return Error{Reason::bad_usage, "seconds is how long to measure, runs how often, 0 (the default) or more."};
  ReportOptions options;
  if (seconds > 0) options.seconds = seconds;
  if (runs > 0) options.least = runs, options.seconds = 0;
  options.check = OutputCheck::automatic;
  if (check && !parse_name(check, options.check))
    return Error{Reason::bad_usage, "check is 'auto', 'always' or 'never', not '" + std::string(check) + "'."};
  return options;
}

// Texts into the places that are given, or none of them.
Status measure(const sparkle_session& session, const sparkle_tensor* inputs, size_t count, ReportOptions options, char** json,
               char** html, char** trace) {
  if (!session.onnx.path.empty())
    options.model = [&]() -> Result<ModelFile> {
      ModelFile model;
      SPARKLE_TRY(graph, read_again(session.onnx));
      model.graph = std::move(graph);
      return model;
    };
  options.no_model = session.compiled ? "a compiled file has no weights to compute them from by other means"
                                      : "the model was given in memory, and its weights are packed";
  options.accuracy = session.accuracy;
  SPARKLE_TRY(borrowed, borrow(inputs, count, "input"));
  SPARKLE_CHECK(needs_data(borrowed, "input"));
  SPARKLE_TRY(report, report_model(*session.session, borrowed, options));
  using Text = std::unique_ptr<char, void (*)(char*)>;
  const auto text = [](bool wanted, auto&& make) { return Text(wanted ? new_text(make()) : nullptr, sparkle_string_free); };
  Text made_json =
      text(json, [&] { return model_report_json(report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace); });
  Text made_html = text(html, [&] { return model_report_html(report); });
  Text made_trace = text(trace, [&] { return model_report_trace(report); });
  if (json) *json = made_json.release();
  if (html) *html = made_html.release();
  if (trace) *trace = made_trace.release();
  return ok();
}

}  // namespace

Status same_count(size_t given, size_t wanted, const char* what) {
  if (given == wanted) return ok();
  return Error{Reason::bad_usage,
               "The model has " + std::to_string(wanted) + " " + what + "s; there is place for " + std::to_string(given) + "."};
}

Status same_tensor(size_t output, const TensorDesc& want, const HostTensor& place) {
  if (place.dtype == want.dtype && place.shape == want.shape) return ok();
  return Error{Reason::bad_input, "Output " + std::to_string(output) + " is " + std::string(name_of(want.dtype)) + " " +
                                      want.shape.to_string() + ", its place is " + std::string(name_of(place.dtype)) + " " +
                                      place.shape.to_string() + "."};
}

}  // namespace sparkle::api

using namespace sparkle;
using sparkle::api::guarded;

sparkle_status sparkle_session_open(sparkle_device* device, const char* path, const sparkle_session_options* options,
                                    sparkle_session** session) {
  return guarded([&]() -> Status {
    if (!device || !path || !session)
      return Error{Reason::bad_usage, "sparkle_session_open needs a device, a path and a place."};
    return api::open_model(device, read_model(path), options, session);
  });
}

sparkle_status sparkle_session_open_memory(sparkle_device* device, const void* model, size_t bytes,
                                           const sparkle_session_options* options, sparkle_session** session) {
  return guarded([&]() -> Status {
    if (!device || !model || !session)
      return Error{Reason::bad_usage, "sparkle_session_open_memory needs a device, a model and a place."};
    const std::span file(static_cast<const std::byte*>(model), bytes);
    SPARKLE_CHECK(api::open_model(device, read_model_bytes(file, "model in memory"), options, session));
    (*session)->metadata = read_metadata_bytes(file);
    return ok();
  });
}

sparkle_status sparkle_session_move_to(sparkle_session* session, sparkle_device* device) {
  return guarded([&]() -> Status {
    if (!session || !device) return Error{Reason::bad_usage, "sparkle_session_move_to needs a session and a device."};
    return session->session->move_to(device->backend);
  });
}

sparkle_status sparkle_compile(sparkle_device* device, const char* path, const sparkle_session_options* options,
                               const sparkle_tensor* inputs, size_t input_count, const char* output) {
  return guarded([&]() -> Status {
    if (!device || !path || !output)
      return Error{Reason::bad_usage, "sparkle_compile needs a device, a path and the path of its output."};
    SPARKLE_CHECK(check_apart(output, path));
    SPARKLE_TRY(wanted, api::session_options(options, device->backend->device()));
    SPARKLE_TRY(graph, read_onnx_model(path));
    SPARKLE_TRY(borrowed, api::borrow(inputs, input_count, "input"));
    SPARKLE_TRY(shapes, api::compiled_shapes(graph, borrowed));
    wanted.open_host = open_host;
    EventList told;  // logged: there is no session that keeps them
    const auto tell = [&](const Plan& plan) {
      for (FallbackEvent& event : fallbacks_of(plan, wanted)) told.add(std::move(event), wanted.fallback);
      return ok();
    };
    SPARKLE_TRY(done, compile_model(std::move(graph), device->backend, wanted, shapes, output, tell));
    return ok();
  });
}

size_t sparkle_session_event_count(const sparkle_session* session) { return session ? session->session->events().size() : 0; }
sparkle_status sparkle_session_event(const sparkle_session* session, size_t index, sparkle_event* event) {
  return guarded([&]() -> Status {
    if (!session || !event) return Error{Reason::bad_usage, "sparkle_session_event needs a session and a place."};
    const FallbackEvent* found = session->session->events().at(index);
    if (!found)
      return Error{Reason::bad_usage, "The session has " + std::to_string(session->session->events().size()) +
                                          " events; there is no number " + std::to_string(index) + "."};
    *event = {found->what.c_str(), found->from.c_str(),  found->to.c_str(),     code_of(found->reason).data(),
              found->cost,         found->layer.c_str(), found->message.c_str()};
    return ok();
  });
}

void sparkle_session_release(sparkle_session* session) { delete session; }

size_t sparkle_session_input_count(const sparkle_session* session) { return session ? session->session->inputs().size() : 0; }
size_t sparkle_session_output_count(const sparkle_session* session) { return session ? session->session->outputs().size() : 0; }
sparkle_status sparkle_session_input(const sparkle_session* session, size_t index, sparkle_tensor_info* info) {
  if (!session) return api::fail(Reason::bad_usage, "The session is NULL.");
  return api::info_of(session->session->inputs(), index, "input", info);
}
sparkle_status sparkle_session_output(const sparkle_session* session, size_t index, sparkle_tensor_info* info) {
  if (!session) return api::fail(Reason::bad_usage, "The session is NULL.");
  return api::info_of(session->session->outputs(), index, "output", info);
}

sparkle_status sparkle_session_run(sparkle_session* session, const sparkle_tensor* inputs, size_t input_count,
                                   sparkle_value** outputs, size_t output_count) {
  return guarded([&]() -> Status {
    if (!session || (!outputs && output_count > 0))
      return Error{Reason::bad_usage, "sparkle_session_run needs a session and a place for each output."};
    SPARKLE_CHECK(api::same_count(output_count, session->session->outputs().size(), "output"));
    SPARKLE_TRY(borrowed, api::borrow(inputs, input_count, "input"));
    SPARKLE_CHECK(api::needs_data(borrowed, "input"));
    SPARKLE_TRY(results, session->session->run(borrowed));
    std::vector<std::unique_ptr<sparkle_value>> values;
    for (HostTensor& t : results) values.push_back(std::make_unique<sparkle_value>(sparkle_value{std::move(t)}));
    for (size_t i = 0; i < values.size(); ++i) outputs[i] = values[i].release();
    return ok();
  });
}

sparkle_status sparkle_session_run_into(sparkle_session* session, const sparkle_tensor* inputs, size_t input_count,
                                        const sparkle_tensor* outputs, size_t output_count) {
  if (session && session->session->in_parts())
    return guarded([&]() -> Status {
      SPARKLE_TRY(borrowed, api::borrow(inputs, input_count, "input"));
      SPARKLE_TRY(results, api::borrow(outputs, output_count, "output"));
      SPARKLE_CHECK(api::needs_data(results, "output"));
      return session->session->run_into(borrowed, results);
    });
  return api::with_plan(session, inputs, input_count, session,
                        [&](const Plan& plan, std::vector<HostTensor>& borrowed) -> Status {
                          SPARKLE_CHECK(api::same_count(output_count, plan.outputs.size(), "output"));
                          SPARKLE_CHECK(api::needs_data(borrowed, "input"));
                          SPARKLE_TRY(results, api::borrow(outputs, output_count, "output"));
                          SPARKLE_CHECK(api::needs_data(results, "output"));
                          for (size_t i = 0; i < results.size(); ++i) {
                            const TensorDesc& want = plan.tensors[static_cast<size_t>(plan.outputs[i])].desc;
                            SPARKLE_CHECK(api::same_tensor(i, want, results[i]));
                          }
                          return session->session->run_into(borrowed, results);
                        });
}

sparkle_status sparkle_session_output_shapes(sparkle_session* session, const sparkle_tensor* inputs, size_t input_count,
                                             sparkle_tensor* outputs, size_t output_count) {
  return api::with_plan(session, inputs, input_count, outputs, [&](const Plan& plan, auto&) -> Status {
    SPARKLE_CHECK(api::same_count(output_count, plan.outputs.size(), "output"));
    for (size_t i = 0; i < output_count; ++i)
      outputs[i] = api::describe(plan.tensors[static_cast<size_t>(plan.outputs[i])].desc, nullptr);
    return ok();
  });
}

sparkle_status sparkle_session_peak_bytes(sparkle_session* session, const sparkle_tensor* inputs, size_t input_count,
                                          int64_t* bytes) {
  return api::with_plan(session, inputs, input_count, bytes, [&](const Plan& plan, auto&) -> Status {
    *bytes = session->session->peak_bytes(plan);
    return ok();
  });
}

sparkle_status sparkle_session_explain(sparkle_session* session, const sparkle_tensor* inputs, size_t input_count,
                                       int32_t as_json, char** text) {
  return api::with_plan(session, inputs, input_count, text, [&](const Plan& plan, auto&) -> Status {
    const std::shared_ptr<Backend> backend = session->session->backend();
    const Device& device = backend->device();
    *text = api::new_text(as_json ? explain_json(plan, device) : explain(plan, device));
    return ok();
  });
}

sparkle_status sparkle_session_plan(sparkle_session* session, const sparkle_tensor* inputs, size_t input_count, char** text) {
  return api::with_plan(session, inputs, input_count, text, [&](const Plan& plan, auto&) -> Status {
    *text = api::new_text(to_text(plan));
    return ok();
  });
}

sparkle_status sparkle_session_report(sparkle_session* session, const sparkle_tensor* inputs, size_t input_count, char** json) {
  return guarded([&]() -> Status {
    if (!session || !json) return Error{Reason::bad_usage, "sparkle_session_report needs a session and a place for the text."};
    ReportOptions options;
    options.seconds = 0, options.least = 1, options.probe = false;
    return api::measure(*session, inputs, input_count, std::move(options), json, nullptr, nullptr);
  });
}

sparkle_status sparkle_session_measure(sparkle_session* session, const sparkle_tensor* inputs, size_t input_count,
                                       const sparkle_measure_options* given, char** json, char** html, char** trace) {
  return guarded([&]() -> Status {
    if (!session) return Error{Reason::bad_usage, "sparkle_session_measure needs a session."};
    SPARKLE_TRY(options, api::report_options(given));
    return api::measure(*session, inputs, input_count, std::move(options), json, html, trace);
  });
}
