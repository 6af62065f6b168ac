#include "check/precisions.h"

#include <algorithm>
#include <cmath>

#include "families/common.h"

namespace sparkle {
namespace {

// Root mean square of the relative error that rounding both factors of each product leaves in a sum of products of no preferred
// sign: u / sqrt(3) for each factor and the result, so u. Errors of layers add up as their squares do. Bytes over a range of
// eight deviations have steps of 8/255 of one, off by 1/sqrt(12) of that: 0.9 % for each factor.
double error_of_layer(Precision precision) {
  switch (precision) {
    case Precision::fp32: return std::ldexp(1.0, -24);
    case Precision::tf32:
    case Precision::fp16: return std::ldexp(1.0, -11);
    case Precision::bf16: return std::ldexp(1.0, -8);
    case Precision::int8: return std::sqrt(2.0) * 8 / 255 / std::sqrt(12.0);
  }
  return 0;
}

double bytes_of_element(Precision precision) { return static_cast<double>(size_of(stored_type(precision))); }

// Bytes of an element as the row is now.
double own_bytes(const Subject& s) {
  const auto& outputs = s.step.stage.outputs;
  return outputs.empty() ? 4 : static_cast<double>(size_of(outputs[0].dtype));
}

double streamed(const CheckRow& row, const Device& device, double share) {
  const double launch = std::min(row.seconds, device.launch_seconds * row.launches());
  return row.bound == "compute" || row.bound == "launch" ? row.seconds : launch + (row.seconds - launch) * share;
}

struct Form {
  const char* name;
  Precision precision;
  bool fixed;
};
constexpr Form kForms[] = {{"fp32", Precision::fp32, false},           {"tf32", Precision::tf32, false},
                           {"fp16, as it is", Precision::fp16, false}, {"fp16, fixed", Precision::fp16, true},
                           {"bf16", Precision::bf16, false},           {"int8", Precision::int8, false}};

PrecisionRow row_in(const Form& form, const Verdict& v, const std::vector<Subject>& subjects) {
  PrecisionRow out;
  out.name = form.name, out.precision = form.precision;
  if (!fastest_unit(v.device, form.precision)) {
    out.note = "no unit multiplies it";
    return out;
  }
  double layers = 0, without = 0, matrix_flops = 0, elements_now = 0;
  std::string widened;  // the unit that computes some in another type all the same
  double wider = 0;
  for (size_t i = 0; i < v.rows.size(); ++i) {
    const CheckRow& row = v.rows[i];
    const Subject& s = subjects[i];
    const double share = std::min(4.0, bytes_of_element(form.precision) / own_bytes(s));
    elements_now += own_bytes(s) * row.seconds;
    if (!s.problem) {
      out.seconds += streamed(row, v.device, share);
      continue;
    }
    ++layers;
    const Problem problem = form.fixed ? s.as_fixed(form.precision) : *s.problem;
    const bool as_now = !form.fixed && s.precision == form.precision;
    const auto e = as_now ? std::nullopt : estimate(problem, form.precision, v.device);
    if (as_now || !e) {
      out.seconds += row.seconds, without += as_now ? 0 : 1;
      if (as_now && row.unit_kind == UnitKind::matrix) matrix_flops += row.flops;
      continue;
    }
    out.seconds += s.seconds_if(problem, form.precision);
    const MathUnit* unit = v.device.unit(e->unit);
    if (unit && unit->kind == UnitKind::matrix) matrix_flops += row.flops;
    if (unit && !multiplies(*unit, form.precision)) widened = unit->name, ++wider;
  }
  if (form.fixed && !subjects.empty() && subjects[0].asked && subjects[0].asked->known())
    out.seconds += subjects[0].asked->in(form.precision).border_seconds;
  double weights = v.packed_bytes, arena = v.arena_bytes;
  const double own = v.seconds > 0 && elements_now > 0 ? elements_now / v.seconds : 4;
  out.bytes = (weights + arena) * bytes_of_element(form.precision) / own;
  out.error = error_of_layer(form.precision) * std::sqrt(std::max(1.0, layers));
  out.on_matrix = v.flops > 0 ? matrix_flops / v.flops : 0;
  if (layers > 0 && without == layers) {
    out.seconds = 0;
    out.note = "no kernel here computes in it";
  } else if (!widened.empty()) {
    out.note = wider == layers ? "stored in it, multiplied on " + widened
                               : in_digits(wider, 0) + " of " + in_digits(layers, 0) + " products on " + widened;
  } else if (without > 0) {
    out.note = in_digits(without, 0) + " of " + in_digits(layers, 0) + " products stay as they are";
  }
  return out;
}

}  // namespace

std::vector<PrecisionRow> precisions_of(const Verdict& verdict, const std::vector<Subject>& subjects) {
  std::vector<PrecisionRow> rows;
  for (const Form& form : kForms) rows.push_back(row_in(form, verdict, subjects));
  return rows;
}

}  // namespace sparkle
