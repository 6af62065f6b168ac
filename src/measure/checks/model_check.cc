#include "measure/checks/model_check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "algorithms/algorithm.h"
#include "backends/reference/reference_backend.h"
#include "families/values/element.h"
#include "base/record.h"
#include "measure/choice_errors.h"
#include "run/wipe.h"

namespace sparkle {
namespace {

// n roundings of f32, each of up to 2^-24, have together a deviation of 0.6 sqrt(n) 2^-24; seven of these are allowed.
constexpr double kRounding = 0x1p-23;
constexpr double kOthersInAStep = 8;  // operations of a step beside its sum's

// Whole numbers that stand for steps of floats.
bool counts_steps(DType type) { return type == DType::i8 || type == DType::u8 || is_narrow_integer(type); }
bool reads_floats(const PlanStep& step) {
  return std::any_of(step.stage.inputs.begin(), step.stage.inputs.end(), [](const TensorDesc& d) { return is_float(d.dtype); });
}
bool makes_steps(const PlanStep& step) {
  return reads_floats(step) && std::any_of(step.stage.outputs.begin(), step.stage.outputs.end(),
                                           [](const TensorDesc& d) { return counts_steps(d.dtype); });
}

// The bound that its algorithm was chosen by; of weights in 16 bits four deviations, as in choice_errors.h.
double promised(const PlanStep& step) {
  const Algorithm* algorithm = algorithm_named(step.algorithm);
  const auto problem = from_text<Problem>(step.problem);
  if (!algorithm || !problem.ok()) return 0;
  Choice choice;
  choice.error = algorithm->error_of({*problem, {}, {}, {}});
  choice.schedules = {step.schedule};
  return bound_on_random(choice, *problem);
}

double value_at(const HostTensor& t, int64_t i) { return load_element(t.dtype, t.bytes.get() + i * size_of(t.dtype)); }

}  // namespace

double error_of_plan(const Plan& plan) {
  double error = 0, step_of_numbers = 0;
  const PlanStep* last = nullptr;
  for (const PlanStep& step : plan.steps) {
    // A candidate of several steps errs once.
    if (!last || last->name != step.name || last->problem != step.problem) error += promised(step);
    last = &step;
    int64_t elements = 1;
    double place = 0;
    for (const TensorDesc& d : step.stage.outputs) {
      elements = std::max(elements, d.elements());
      if (d.dtype == DType::f16) place = std::max(place, 0x1p-11);
      if (d.dtype == DType::bf16) place = std::max(place, 0x1p-8);
      if (counts_steps(d.dtype) && makes_steps(step))
        step_of_numbers = std::max(step_of_numbers, std::exp2(1 - static_cast<double>(stored_bits(d.dtype))));
    }
    const double terms = std::max(1.0, step.footprint.nominal_flops / 2 / static_cast<double>(elements));
    error += kRounding * (kOthersInAStep + 2 * std::sqrt(terms)) + place;
  }
  return error + step_of_numbers;
}

Result<ModelCheck> ModelCheck::make(ModelFile model, const Plan& plan, const std::vector<HostTensor>& inputs,
                                    const SessionOptions& options, std::shared_ptr<Backend> judge) {
  ModelCheck check;
  if (model.compiled) return check;
  if (judge) check.judge_ = "the CPU's kernels";
  SessionOptions plain;
  plain.accuracy = options.accuracy;
  SPARKLE_TRY(session, Session::open(std::move(model.graph), judge ? judge : make_reference_backend(), plain));
  SPARKLE_TRY(wanted, session->run_wiped(inputs, kWipedToNan));
  for (const SessionInput& output : session->outputs()) check.names_.push_back(output.name);
  check.wanted_ = std::move(wanted);
  SPARKLE_TRY(plain_plan, session->prepare(inputs));
  check.allowed_ = error_of_plan(plan) + error_of_plan(*plain_plan);
  check.rounds_to_steps_ = std::any_of(plan.steps.begin(), plan.steps.end(), makes_steps);
  check.possible_ = true;
  return check;
}

Status ModelCheck::accept(const std::vector<HostTensor>& outputs, const std::string& when) {
  const auto wrong = [&](size_t i, const std::string& what) {
    return Error{Reason::internal, "Output '" + names_[i] + "' of the model is wrong " + when + ": " + what};
  };
  if (outputs.size() != wanted_.size())
    return Error{Reason::internal, "The model gave " + std::to_string(outputs.size()) + " outputs instead of " +
                                       std::to_string(wanted_.size()) + " " + when + "."};
  for (size_t i = 0; i < outputs.size(); ++i) {
    const HostTensor &got = outputs[i], &want = wanted_[i];
    if (got.dtype != want.dtype || !(got.shape == want.shape))
      return wrong(i, "it is " + got.shape.to_string() + " instead of " + want.shape.to_string() + ".");
    if (!is_float(got.dtype)) {
      if (std::memcmp(got.bytes.get(), want.bytes.get(), static_cast<size_t>(got.size_bytes())) == 0) continue;
      for (int64_t e = 0; e < want.elements(); ++e) {
        const double apart = std::abs(value_at(got, e) - value_at(want, e));
        const bool same = std::memcmp(got.bytes.get() + e * size_of(got.dtype), want.bytes.get() + e * size_of(got.dtype),
                                      static_cast<size_t>(size_of(got.dtype))) == 0;
        if (!same && !(apart <= 1 && rounds_to_steps_ && counts_steps(got.dtype)))
          return wrong(i, "element " + std::to_string(e) + " is " + std::to_string(value_at(got, e)) + " where " + judge_ +
                              " give " + std::to_string(value_at(want, e)) + ".");
      }
      continue;
    }
    double largest = 0, worst = 0;
    for (int64_t e = 0; e < want.elements(); ++e)
      if (const double v = std::abs(value_at(want, e)); std::isfinite(v)) largest = std::max(largest, v);
    for (int64_t e = 0; e < want.elements(); ++e) {
      const double a = value_at(got, e), b = value_at(want, e);
      if ((std::isnan(a) && std::isnan(b)) || a == b) continue;
      const double difference = std::abs(a - b);
      if (!(difference <= allowed_ * largest))
        return wrong(i, "element " + std::to_string(e) + " is " + std::to_string(a) + " where " + judge_ + " give " +
                            std::to_string(b) + ".");
      worst = std::max(worst, difference);
    }
    largest_error_ = std::max(largest_error_, largest > 0 ? worst / largest : worst);
  }
  ++times_;
  return ok();
}

std::string ModelCheck::text() const {
  if (!possible_) return "not compared: a compiled file has no weights to compute them from by other means";
  int64_t values = 0;
  for (const HostTensor& t : wanted_) values += t.elements();
  char text[200];
  std::snprintf(text, sizeof text, "all %lld values of %zu output%s within %.1e of the largest (found %.1e) of %s, %d times",
                static_cast<long long>(values), wanted_.size(), wanted_.size() == 1 ? "" : "s", allowed_, largest_error_,
                judge_, times_);
  return text;
}

}  // namespace sparkle
