// Stage: one call of a kernel family on operands whose shapes and layouts are known. Device-free.
// Schedule: how a Stage runs on a device. Both hold records of types that families define and that this file does not know:
// get<GemmParams>(stage.params), get_if<TileSchedule>(&schedule).
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/any_record.h"
#include "base/result.h"
#include "base/tensor.h"

namespace sparkle {

struct Epilogue;
struct Window;

#define FAMILY(name, params) struct params;
#include "families/families.inc"
#undef FAMILY

enum class Family : uint8_t {
#define FAMILY(name, params) name,
#include "families/families.inc"
#undef FAMILY
};
inline constexpr int kFamilies = 0
#define FAMILY(name, params) +1
#include "families/families.inc"
#undef FAMILY
    ;
std::string_view name_of(Family family);
bool parse_name(std::string_view text, Family& family);

// The family whose parameters a type holds; -1: of none.
template <class P>
inline constexpr int kFamilyOf = -1;
#define FAMILY(name, params) \
  template <>                \
  inline constexpr int kFamilyOf<params> = static_cast<int>(Family::name);
#include "families/families.inc"
#undef FAMILY

class StageParams;
class Schedule;

// What is known of a family's parameters without knowing the family.
struct ParamsType : RecordType {
  Family family;
  Result<StageParams> (*parse)(std::string_view text);
  const Epilogue* (*epilogue)(const void* params);  // nullptr where there is none
  const Window* (*window)(const void* params);      // nullptr where there is none

  template <class P>
  static const ParamsType of;
};

class StageParams : public AnyRecord<ParamsType> {
 public:
  StageParams() = default;
  template <class P>
    requires(kFamilyOf<std::remove_cvref_t<P>> >= 0)
  StageParams(P&& params) : AnyRecord(ParamsType::of<std::remove_cvref_t<P>>, std::forward<P>(params)) {}

  Family family() const { return type() ? type()->family : Family{}; }
};
std::string to_text(const StageParams& params);
// nullptr where the family's parameters have none.
const Epilogue* epilogue_of(const StageParams& params);
Epilogue* epilogue_of(StageParams& params);
const Window* window_of(const StageParams& params);

template <class P>
inline constexpr ParamsType ParamsType::of = {record_type<P>(), static_cast<Family>(kFamilyOf<P>),
                                              [](std::string_view text) -> Result<StageParams> {
                                                SPARKLE_TRY(params, from_text<P>(text));
                                                return StageParams(std::move(params));
                                              },
                                              [](const void* params) -> const Epilogue* {
                                                if constexpr (requires(const P& p) { p.epilogue.residuals(); })
                                                  return &static_cast<const P*>(params)->epilogue;
                                                return nullptr;
                                              },
                                              [](const void* params) -> const Window* {
                                                if constexpr (requires(const P& p) { p.window.stride; })
                                                  return &static_cast<const P*>(params)->window;
                                                return nullptr;
                                              }};

struct Stage {
  StageParams params;
  std::vector<TensorDesc> inputs, outputs;

  Family family() const { return params.family(); }
};

// The schedule of every family without searched tiles: which variant and unit, and how much work a task takes.
struct LoopSchedule {
  std::string variant = "plain";
  std::string unit;
  // CPUs: elements per task, of the output or, where the family folds its input, of that (families/loops/grain.h); 0 in
  // schedules that no family made. GPUs: keys per part of an attention, or queries of a block; 0 elsewhere.
  int64_t grain = 0;

  template <class V>
  void visit(V& v) {
    v("variant", variant), v("unit", unit), v("grain", grain);
  }
  friend bool operator==(const LoopSchedule&, const LoopSchedule&) = default;
};

// What is known of a schedule without knowing its type.
struct ScheduleType : RecordType {
  const std::string& (*variant)(const void* schedule);
  const std::string& (*unit)(const void* schedule);
  Result<Schedule> (*parse)(std::string_view text);
  int (*fields_in)(std::string_view text);  // how many of its fields a text has

  template <class S>
  static const ScheduleType of;
};

class Schedule : public AnyRecord<ScheduleType> {
 public:
  Schedule() : Schedule(LoopSchedule{}) {}
  template <class S>
    requires requires(S& s) {
      { s.variant } -> std::same_as<std::string&>;
      { s.unit } -> std::same_as<std::string&>;
    }
  Schedule(S schedule) : AnyRecord(ScheduleType::of<S>, std::move(schedule)) {}
};
const std::string& variant_of(const Schedule& schedule);
const std::string& unit_of(const Schedule& schedule);
std::string to_text(const Schedule& schedule);

template <class S>
inline constexpr ScheduleType ScheduleType::of = {
    record_type<S>(), [](const void* schedule) -> const std::string& { return static_cast<const S*>(schedule)->variant; },
    [](const void* schedule) -> const std::string& { return static_cast<const S*>(schedule)->unit; },
    [](std::string_view text) -> Result<Schedule> {
      SPARKLE_TRY(schedule, from_text<S>(text));
      return Schedule(std::move(schedule));
    },
    [](std::string_view text) {
      int count = 0;
      const auto look = [&](std::string_view name, auto&) { count += record_detail::find_field(text, name).has_value(); };
      S{}.visit(look);
      return count;
    }};

}  // namespace sparkle
