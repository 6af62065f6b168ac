#include "run/model_check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "backends/reference/reference_backend.h"
#include "families/element.h"

namespace sparkle {
namespace {

// Errors of layers add up: of this many, each as large as one may be.
constexpr double kLayersInARow = 20;

double value_at(const HostTensor& t, int64_t i) { return load_element(t.dtype, t.bytes.get() + i * size_of(t.dtype)); }

}  // namespace

Result<ModelCheck> ModelCheck::make(ModelFile model, const std::vector<HostTensor>& inputs, const SessionOptions& options) {
  ModelCheck check;
  if (model.compiled) return check;
  SessionOptions plain;
  plain.accuracy = options.accuracy;
  SPARKLE_TRY(session, open_session(std::move(model), make_reference_backend(), plain));
  SPARKLE_TRY(wanted, session->run_wiped(inputs));
  for (const SessionInput& output : session->outputs()) check.names_.push_back(output.name);
  check.wanted_ = std::move(wanted);
  check.allowed_ = kLayersInARow * std::max(options.accuracy, SessionOptions{}.accuracy);
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
      return wrong(i, "its values are not those that plain loops give.");
    }
    double largest = 0, worst = 0;
    for (int64_t e = 0; e < want.elements(); ++e)
      if (const double v = std::abs(value_at(want, e)); std::isfinite(v)) largest = std::max(largest, v);
    for (int64_t e = 0; e < want.elements(); ++e) {
      const double a = value_at(got, e), b = value_at(want, e);
      if ((std::isnan(a) && std::isnan(b)) || a == b) continue;
      const double difference = std::abs(a - b);
      if (!(difference <= allowed_ * largest))
        return wrong(i, "element " + std::to_string(e) + " is " + std::to_string(a) + " where plain loops give " +
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
  std::snprintf(
      text, sizeof text, "all %lld values of %zu output%s within %.1e of the largest (found %.1e) of plain loops, %d times",
      static_cast<long long>(values), wanted_.size(), wanted_.size() == 1 ? "" : "s", allowed_, largest_error_, times_);
  return text;
}

}  // namespace sparkle
