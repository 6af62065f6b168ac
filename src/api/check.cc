// sparkle_check of sparkle.h.
#include <nlohmann/json.hpp>

#include "base/text/listed.h"
#include "api/handles.h"
#include "fix/paddings.h"
#include "measure/check_targets.h"
#include "report/check_page.h"
#include "report/check_text.h"

using namespace sparkle;
using sparkle::api::guarded;

sparkle_status sparkle_check(const char* path, const char* targets, const sparkle_check_options* given, char** json,
                             char** html) {
  return guarded([&]() -> Status {
    if (!path || !targets || !json)
      return Error{Reason::bad_usage, "sparkle_check needs a path, targets and a place for what it finds."};
    sparkle_check_options whole{};
    if (given) {
      SPARKLE_CHECK(api::check_size("sparkle_check_options", given->size, sizeof whole));
      whole = *given;
    }
    const auto& [size, shape_names, shapes, shape_count, threads, measure] = whole;  // all there are
    (void)size;
    if (threads < 0 || threads > 1024)
      return Error{Reason::bad_usage, "sparkle_check_options.threads is " + std::to_string(threads) + "; 0 to 1024 can be."};
    SPARKLE_TRY(named, api::named_shapes(shape_names, shapes, shape_count));
    SPARKLE_TRY(devices, check_targets(comma_separated(targets), {threads, measure != 0, {}}));
    SPARKLE_TRY(model, fix::model_to_check(path, [&](Graph graph) { return bound_by_name(std::move(graph), named); }));
    nlohmann::json all = nlohmann::json::array();
    Page page{model.graph.name, "sparkle check", {}};
    for (const CheckTarget& device : devices) {
      SPARKLE_TRY(verdict, check_target(device, model, path, measure != 0));
      all.push_back(check_json(verdict, device.called));
      if (html) page.targets.push_back(check_page(verdict, device.called));
    }
    const std::string text = nlohmann::json{{"model", model.graph.name}, {"targets", all}}.dump(
        2, ' ', false, nlohmann::json::error_handler_t::replace);
    std::unique_ptr<char, void (*)(char*)> copy(api::new_text(text), sparkle_string_free);
    if (html) *html = api::new_text(page_html(page));
    *json = copy.release();
    return ok();
  });
}
