#include "families/stage.h"

#include <array>

namespace sparkle {
namespace {

constexpr std::array<std::string_view, kFamilies> kNames = {
#define FAMILY(name, params) #name,
#include "families/families.inc"
#undef FAMILY
};

const std::string kNone;

}  // namespace

std::string_view name_of(Family family) { return kNames[static_cast<size_t>(family)]; }

bool parse_name(std::string_view text, Family& family) {
  const auto at = std::find(kNames.begin(), kNames.end(), text);
  if (at == kNames.end()) return false;
  family = static_cast<Family>(at - kNames.begin());
  return true;
}

const std::string& variant_of(const Schedule& schedule) {
  return schedule.type() ? schedule.type()->variant(schedule.record()) : kNone;
}
const std::string& unit_of(const Schedule& schedule) {
  return schedule.type() ? schedule.type()->unit(schedule.record()) : kNone;
}
std::string to_text(const Schedule& schedule) { return schedule.text(); }
std::string to_text(const StageParams& params) { return params.text(); }

const Epilogue* epilogue_of(const StageParams& params) {
  return params.type() ? params.type()->epilogue(params.record()) : nullptr;
}
Epilogue* epilogue_of(StageParams& params) { return const_cast<Epilogue*>(epilogue_of(std::as_const(params))); }
const Window* window_of(const StageParams& params) { return params.type() ? params.type()->window(params.record()) : nullptr; }

}  // namespace sparkle
