#include "serve/metrics.h"

#include <algorithm>
#include <cstdio>
#include <limits>

namespace sparkle::serve {
namespace {

// A label's value: what ends or breaks one is escaped.
std::string label(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') out += "\\n";
    else if (c == '"' || c == '\\') out += '\\', out += c;
    else out += c;
  }
  return out;
}

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

class PrometheusText {
 public:
  void head(const char* name, const char* type, const char* help) {
    name_ = name;
    text += std::string("# HELP ") + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
  }
  void line(const MetricsRow& row, const std::string& value, const std::string& labels = "", const char* suffix = "") {
    text += name_ + suffix + "{model=\"" + label(row.name) + "\",version=\"" + label(row.version) + "\"" + labels + "} " +
            value + "\n";
  }
  std::string text;

 private:
  std::string name_;
};

}  // namespace

void LatencyHistogram::add(double seconds) {
  const auto at = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
  ++in_[static_cast<size_t>(at - kBounds.begin())];
  nanoseconds_ += static_cast<uint64_t>(std::max(0.0, seconds) * 1e9);
}

LatencyHistogram::Counts LatencyHistogram::counts() const {
  Counts c;
  for (size_t i = 0; i < in_.size(); ++i) c.count += c.in[i] = in_[i];
  c.seconds = static_cast<double>(nanoseconds_) * 1e-9;
  return c;
}

double LatencyHistogram::Counts::quantile(double share) const {
  uint64_t below = 0;
  for (size_t i = 0; i < kBounds.size(); ++i) {
    below += in[i];
    if (count > 0 && static_cast<double>(below) >= share * static_cast<double>(count)) return kBounds[i];
  }
  return count > 0 ? std::numeric_limits<double>::infinity() : 0;
}

uint64_t ModelMetrics::failures() const {
  uint64_t sum = 0;
  for (const auto& n : failed) sum += n;
  return sum;
}

const char* name_of(Failure why) {
  switch (why) {
    case Failure::invalid: return "invalid";
    case Failure::unauthorised: return "unauthorised";
    case Failure::forbidden: return "forbidden";
    case Failure::unknown: return "unknown";
    case Failure::wrong_method: return "wrong_method";
    case Failure::length_missing: return "length_missing";
    case Failure::too_large: return "too_large";
    case Failure::encoding: return "encoding";
    case Failure::queue_full: return "queue_full";
    case Failure::internal: return "internal";
    case Failure::unavailable: return "unavailable";
    case Failure::too_late: return "too_late";
  }
  return "internal";
}

std::string print_metrics(const std::vector<MetricsRow>& rows) {
  PrometheusText page;
  page.head("sparkle_requests_total", "counter", "Inference requests that were answered with tensors.");
  for (const MetricsRow& row : rows) page.line(row, std::to_string(row.metrics->answered));
  page.head("sparkle_request_failures_total", "counter", "Inference requests that were answered with an error, by its reason.");
  for (const MetricsRow& row : rows)
    for (int i = 0; i < kFailures; ++i)
      if (const uint64_t n = row.metrics->failed[static_cast<size_t>(i)]; n > 0)
        page.line(row, std::to_string(n), std::string(",reason=\"") + name_of(static_cast<Failure>(i)) + "\"");
  page.head("sparkle_batches_total", "counter", "Runs of the model.");
  for (const MetricsRow& row : rows) page.line(row, std::to_string(row.metrics->batches));
  page.head("sparkle_batched_requests_total", "counter", "Requests in these runs.");
  for (const MetricsRow& row : rows) page.line(row, std::to_string(row.metrics->batched_requests));
  page.head("sparkle_queue_length", "gauge", "Requests that wait for a run.");
  for (const MetricsRow& row : rows) page.line(row, std::to_string(row.waiting));
  page.head("sparkle_request_seconds", "histogram", "From a request's last byte to its answer, of answered ones.");
  for (const MetricsRow& row : rows) {
    const auto counts = row.metrics->latency.counts();
    uint64_t below = 0;
    for (size_t i = 0; i < LatencyHistogram::kBounds.size(); ++i) {
      below += counts.in[i];
      page.line(row, std::to_string(below), ",le=\"" + number(LatencyHistogram::kBounds[i]) + "\"", "_bucket");
    }
    page.line(row, std::to_string(counts.count), ",le=\"+Inf\"", "_bucket");
    page.line(row, number(counts.seconds), "", "_sum");
    page.line(row, std::to_string(counts.count), "", "_count");
  }
  return std::move(page.text);
}

}  // namespace sparkle::serve
