// The devices of this machine by the names that sparkle_device_open takes, and which of them runs a model fastest.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "api/handles.h"
#include "base/log.h"
#include "run/choice/choice_inputs.h"
#include "run/choice/offers_here.h"
#include "run/opening/open_backend.h"
#include "run/opening/open_cuda.h"

namespace sparkle::api {
namespace {

// What of a session decides which device is the fastest, as text.
std::string text_of(const sparkle_session_options& s) {
  std::string text;
  for (const char* word : {s.precision, s.algorithm, s.variant, s.tuning, s.nonfinite, s.fusion, s.fallback})
    text += (word ? word : "") + std::string(" ");
  return text + std::to_string(s.memory_budget) + " " + std::to_string(s.accuracy);
}

Result<ChoiceRequest> request_of(const char* model, const sparkle_choice_options& given) {
  ChoiceRequest request;
  request.model = model;
  if (given.threads < 0 || given.threads > 1024)
    return Error{Reason::bad_usage,
                 "sparkle_choice_options.threads is " + std::to_string(given.threads) + "; 0 to 1024 can be."};
  if (given.rows < 0) return Error{Reason::bad_usage, "sparkle_choice_options.rows is a number of rows, 0 (for 1) or more."};
  request.backend.threads = given.threads;
  SPARKLE_TRY(shapes, named_shapes(given.shape_names, given.shapes, given.shape_count));
  const int64_t rows = given.rows > 0 ? given.rows : 1;
  request.shapes = "rows " + std::to_string(rows);
  for (const auto& [name, shape] : shapes) request.shapes += ";" + name + "=" + shape.to_string();
  sparkle_session_options session{};
  if (given.session) {
    SPARKLE_CHECK(check_size("sparkle_session_options", given.session->size, sizeof session));
    session = *given.session;
    request.shapes += " " + text_of(session);
  }
  const bool asks = given.session != nullptr;
  request.options = [session, asks](const Device& device) { return session_options(asks ? &session : nullptr, device); };
  request.inputs = [shapes, rows](const std::vector<SessionInput>& wanted) { return choice_inputs(wanted, shapes, rows); };
  return request;
}

}  // namespace
}  // namespace sparkle::api

using namespace sparkle;
using sparkle::api::guarded;

namespace {

// "vulkan:0  NAME, DRIVER; cannot be used: WHY", or "vulkan    none: WHY", as the openers say it.
void add_line(nlohmann::json& list, const std::string& line) {
  const size_t end = std::min(line.find(' '), line.size()), text = std::min(line.find_first_not_of(' ', end), line.size());
  const std::string name = line.substr(0, end);
  if (name.find(':') == std::string::npos) return;
  const std::string but = "; cannot be used: ";
  const size_t why = std::min(line.find(but, text), line.size());
  list.push_back({{"name", name},
                  {"device", line.substr(text, why - text)},
                  {"unusable", why < line.size() ? line.substr(why + but.size()) : ""}});
}

}  // namespace

sparkle_status sparkle_device_list(char** json) {
  return guarded([&]() -> Status {
    if (!json) return sparkle::Error{sparkle::Reason::bad_usage, "sparkle_device_list needs a place for the text."};
    nlohmann::json list = nlohmann::json::array();
    list.push_back({{"name", "cpu"}, {"device", ""}, {"unusable", ""}});
    for (const std::string& line : sparkle::cuda_devices()) add_line(list, line);
    for (const std::string& line : sparkle::vulkan_devices()) add_line(list, line);
    *json = sparkle::api::new_text(list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return sparkle::ok();
  });
}

sparkle_status sparkle_device_choose(const char* model, const sparkle_choice_options* options, char** json) {
  return guarded([&]() -> Status {
    if (!model || !json) return Error{Reason::bad_usage, "sparkle_device_choose needs a path and a place for the text."};
    sparkle_choice_options given{};
    if (options) {
      SPARKLE_CHECK(sparkle::api::check_size("sparkle_choice_options", options->size, sizeof given));
      given = *options;
    }
    SPARKLE_TRY(request, sparkle::api::request_of(model, given));
    SPARKLE_TRY(decision, choose_device_here(request));
    log(LogLevel::info, "device " + decision.why);
    *json = sparkle::api::new_text(to_json(decision));
    return ok();
  });
}
