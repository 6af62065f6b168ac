// sparkle_check of sparkle.h.
#include <nlohmann/json.hpp>

#include "base/text/listed.h"
#include "api/handles.h"
#include "device/known/known_devices.h"
#include "report/check_page.h"
#include "report/check_text.h"
#include "fix/paddings.h"

using namespace sparkle;
using sparkle::api::guarded;

sparkle_status sparkle_check(const char* path, const char* targets, const char* const* names, const sparkle_tensor* shapes,
                             size_t count, char** json, char** html) {
  return guarded([&]() -> Status {
    if (!path || !targets || !json || (count > 0 && !names))
      return Error{Reason::bad_usage, "sparkle_check needs a path, targets, a name for each shape and a place."};
    std::vector<std::pair<std::string, Device>> devices;
    for (const std::string& name : comma_separated(targets)) {
      SPARKLE_TRY(device, described_device(name));
      devices.emplace_back(name, std::move(device));
    }
    SPARKLE_TRY(borrowed, api::borrow(shapes, count, "shape"));
    std::vector<std::pair<std::string, Dims>> given;
    for (size_t i = 0; i < count; ++i) {
      if (!names[i]) return Error{Reason::bad_usage, "The name of shape " + std::to_string(i) + " is NULL."};
      given.emplace_back(names[i], borrowed[i].shape);
    }
    SPARKLE_TRY(model, fix::model_to_check(path, [&](Graph graph) { return bound_by_name(std::move(graph), given); }));
    nlohmann::json all = nlohmann::json::array();
    Page page{model.graph.name, "sparkle check", {}};
    for (const auto& [name, device] : devices) {
      SPARKLE_TRY(verdict, check_model(model.graph, device, model.options));
      all.push_back(check_json(verdict, name));
      if (html) page.targets.push_back(check_page(verdict, name));
    }
    const std::string text = nlohmann::json{{"model", model.graph.name}, {"targets", all}}.dump(
        2, ' ', false, nlohmann::json::error_handler_t::replace);
    std::unique_ptr<char, void (*)(char*)> copy(api::new_text(text), sparkle_string_free);
    if (html) *html = api::new_text(page_html(page));
    *json = copy.release();
    return ok();
  });
}
