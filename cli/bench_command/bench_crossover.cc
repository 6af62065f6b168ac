#include "bench_command/bench_crossover.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench_command/certificate.h"
#include "report/bench_rows.h"

namespace sparkle::cli {
namespace {

constexpr std::string_view kTransforms = "fft";

// The layer with filters of another length; the same number of outputs where its padding allowed that before.
Problem with_length(Problem p, int64_t length) {
  for (size_t i = 0; i < 3; ++i) {
    Window& w = p.window;
    if (w.filter[i] == 1) continue;
    w.filter[i] = length;
    const int64_t reach = (length - 1) * w.dilation[i] + 1;
    if (w.pad_begin[i] + w.pad_end[i] > 0) w.pad_begin[i] = (reach - 1) / 2, w.pad_end[i] = reach - 1 - w.pad_begin[i];
    p.out[i] = (p.in[i] + w.pad_begin[i] + w.pad_end[i] - reach) / w.stride[i] + 1;
  }
  return p;
}

struct Point {
  int64_t length = 0;
  std::string other, chosen;     // the cheapest algorithm beside fft; what the planner takes
  double predicted[2] = {0, 0};  // seconds: fft, other
  double measured[2] = {0, 0};
  RoofVerdict verdict[2];
  Checked checked[2];
};

Result<Point> measure_point(Backend& backend, const Problem& problem, int64_t length, LayerBenchOptions options) {
  Point point;
  point.length = length;
  options.plan.algorithm.clear();
  const Problem p = with_length(problem, length);
  const ProblemOperands operands = operands_of(p);
  SPARKLE_TRY(choice, plan_layer(backend, {p, operands.inputs, operands.output}, options.plan));
  point.chosen = choice.algorithm;
  for (const Candidate& c : choice.candidates) {
    if (!c.cost || c.schedule.find("variant=plain") != std::string::npos) continue;
    const bool other = c.algorithm != kTransforms;
    double& best = point.predicted[other];
    if (best != 0 && best <= c.cost->seconds) continue;
    best = c.cost->seconds;
    if (other) point.other = c.algorithm;
  }
  for (int i = 0; i < 2; ++i) {
    if (point.predicted[i] == 0) continue;
    options.plan.algorithm = i == 0 ? std::string(kTransforms) : point.other;
    SPARKLE_TRY(measured, measure_layer(backend, p, options));
    point.measured[i] = measured.median_seconds;
    point.verdict[i] = measured.verdict;
    point.checked[i] = measured.checked;
  }
  return point;
}

// The shortest filter from which on transforms always win; 0: never.
int64_t wins_from(const std::vector<Point>& points, double (Point::*seconds)[2]) {
  int64_t from = 0;
  for (const Point& p : points) {
    const double* s = p.*seconds;
    const bool wins = s[0] > 0 && (s[1] == 0 || s[0] < s[1]);
    if (!wins) from = 0;
    if (wins && from == 0) from = p.length;
  }
  return from;
}

}  // namespace

int bench_crossover(const CommonOptions& common, const std::vector<NamedProblem>& problems, LayerBenchOptions options) {
  auto device = open_device(common, Roofs::measured);
  if (!device.ok()) return fail(device.error(), common);
  auto session = session_options(common, device->backend->device());
  if (!session.ok()) return fail(session.error());
  options.plan = session->plan();
  nlohmann::json layers = nlohmann::json::array();
  std::vector<Checked> checks;
  std::vector<RoofVerdict> roofs;
  std::string above;
  for (const NamedProblem& named : problems) {
    const Problem& problem = named.problem;
    const int64_t longest = *std::max_element(problem.window.filter.begin(), problem.window.filter.end());
    if (!common.json)
      std::printf("%s\n%7s %12s %10s %9s   %-10s %10s %10s   %s\n", short_name(problem).c_str(), "filter", "fft us",
                  "predicted", "speed-up", "other", "us", "predicted", "planned");
    std::vector<Point> points;
    nlohmann::json rows = nlohmann::json::array();
    for (int64_t length = 5; length <= longest; length += std::max<int64_t>(2, length / 3)) {
      auto point = measure_point(*device->backend, problem, length, options);
      if (!point.ok()) return fail(point.error());
      const Point& p = *point;
      if (!common.json) {
        std::printf("%7lld %12.1f %10.1f %8.2fx   %-10s %10.1f %10.1f   %s\n", static_cast<long long>(p.length),
                    1e6 * p.measured[0], 1e6 * p.predicted[0], p.measured[0] > 0 ? p.measured[1] / p.measured[0] : 0.0,
                    p.other.c_str(), 1e6 * p.measured[1], 1e6 * p.predicted[1], p.chosen.c_str());
        std::fflush(stdout);
      }
      rows.push_back({{"filter", p.length},
                      {"fft_seconds", p.measured[0]},
                      {"fft_predicted", p.predicted[0]},
                      {"other", p.other},
                      {"other_seconds", p.measured[1]},
                      {"other_predicted", p.predicted[1]},
                      {"fft_checked", to_text(p.checked[0])},
                      {"other_checked", to_text(p.checked[1])},
                      {"planned", p.chosen}});
      for (int i = 0; i < 2; ++i) {
        if (p.measured[i] <= 0) continue;
        checks.push_back(p.checked[i]), roofs.push_back(p.verdict[i]);
        if (above.empty())
          above = p.verdict[i].error_text(short_name(with_length(problem, p.length)) + " by " +
                                          (i == 0 ? std::string(kTransforms) : p.other));
      }
      points.push_back(*point);
    }
    const int64_t predicted = wins_from(points, &Point::predicted), measured = wins_from(points, &Point::measured);
    const auto text = [](int64_t length) {
      return length > 0 ? "from " + std::to_string(length) + " on" : std::string("nowhere");
    };
    if (!common.json)
      std::printf("transforms win %s as predicted, %s as measured\n\n", text(predicted).c_str(), text(measured).c_str());
    layers.push_back(
        {{"layer", short_name(problem)}, {"points", rows}, {"wins_from_predicted", predicted}, {"wins_from", measured}});
  }
  const uint64_t seed = base_seed(options.seed);
  if (common.json)
    std::printf("%s\n",
                certified({{"device", device->backend->device().name}, {"layers", layers}, {"seed", seed}}).dump(2).c_str());
  else std::fputs((probes_summary(roofs) + checks_summary(checks, seed)).c_str(), stdout);
  return end_of_bench(above);
}

}  // namespace sparkle::cli
