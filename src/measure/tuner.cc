#include "measure/tuner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/median.h"
#include "plan/choose/choose.h"

namespace sparkle {
namespace {

constexpr std::array<std::string_view, 4> kOutcomes = {"confirmed", "within_noise", "changed", "out_of_time"};

// The interval that holds the median of what `values` were drawn from, except once in so many cases: as many signs in a row as
// that would take are as likely as tosses of a coin (normal approximation of the binomial distribution).
struct Interval {
  double low = 0, high = HUGE_VAL;
};
Interval median_interval(std::vector<double> values, double deviations) {
  const auto n = static_cast<double>(values.size());
  const double rank = std::floor((n - deviations * std::sqrt(n)) / 2);
  if (rank < 0) return {};
  std::sort(values.begin(), values.end());
  const auto at = static_cast<size_t>(rank);
  return {values[at], values[values.size() - 1 - at]};
}

// Errors that speak against one candidate alone.
bool takes_out(Reason reason) {
  return reason == Reason::over_memory_budget || reason == Reason::failed_probe || reason == Reason::out_of_memory ||
         reason == Reason::device_unusable;
}

class Tuning {
 public:
  Tuning(std::span<const double> errors, TuneClock& clock, const TuneRule& rule)
      : errors_(errors), clock_(clock), rule_(rule), samples_(errors.size()), worth_(errors.size(), 1), left_(errors.size()) {
    for (size_t i = 0; i < left_.size(); ++i) left_[i] = i;
    verdict_.seconds.assign(errors.size(), 0);
  }

  Result<TuneVerdict> run() {
    SPARKLE_TRY(screened, screen());
    if (!screened || left_.empty()) return verdict_;
    verdict_.finalists = left_.size();
    for (int look = rule_.first_rounds;; look += std::max(1, look / 2)) {
      for (; verdict_.rounds < std::min(look, rule_.most_rounds); ++verdict_.rounds) {
        if (left_.size() > 1 && clock_.spent() > rule_.most_seconds) break;
        for (size_t i = 0; i < left_.size(); ++i) {
          const size_t candidate = left_[(i + static_cast<size_t>(verdict_.rounds)) % left_.size()];
          SPARKLE_TRY(seconds, clock_.seconds(candidate));
          samples_[candidate].push_back(seconds);
        }
      }
      if (verdict_.rounds == rule_.first_rounds) weigh();
      const bool over = verdict_.rounds >= rule_.most_rounds || clock_.spent() > rule_.most_seconds;
      if (verdict_.rounds > 0 && settled()) break;
      if (over) break;
    }
    return conclude();
  }

 private:
  // A first sight of every candidate; false where there was no time for it.
  Result<bool> screen() {
    double least = HUGE_VAL;
    for (const size_t candidate : left_) {
      double best = HUGE_VAL;
      for (int i = 0; i < rule_.first_looks; ++i) {
        if (clock_.spent() > rule_.most_seconds) return false;
        auto seconds = clock_.seconds(candidate);
        if (!seconds.ok() && takes_out(seconds.error().reason)) break;
        if (!seconds.ok()) return seconds.take_error();
        best = std::min(best, *seconds);
        if (best > 4 * rule_.screen * least) break;  // hopeless, and slow to ask again
      }
      verdict_.seconds[candidate] = std::isfinite(best) ? best : 0;
      least = std::min(least, best);
      if (candidate != 0 && !(best <= rule_.screen * least)) clock_.drop(candidate);
    }
    // Some moments of load can make anything look slow: the model's choice goes by the sign test alone.
    std::erase_if(left_, [&](size_t candidate) {
      const double seconds = verdict_.seconds[candidate];
      const bool out = seconds == 0 || (candidate != 0 && seconds > rule_.screen * least);
      if (out) clock_.drop(candidate);
      return out;
    });
    return true;
  }

  // What each candidate's time counts for: candidates of larger error count as slower, by one step more than those they would
  // replace. With the margin that makes kWorth. No error is small enough to make up for more time than the model's choice
  // takes.
  void weigh() {
    const auto bound = [&](size_t candidate) { return std::max(errors_[candidate], errors_[0]); };
    std::map<double, double> least;  // per error bound, ascending
    for (const size_t candidate : left_) {
      const auto [at, added] = least.try_emplace(bound(candidate), HUGE_VAL);
      at->second = std::min(at->second, median(samples_[candidate]));
    }
    double best = HUGE_VAL, step = 1;
    std::map<double, double> worth;
    for (const auto& [error, seconds] : least) {
      worth[error] = step;
      if (seconds * step >= best) continue;
      best = seconds * step;
      step /= kWorth * (1 + rule_.margin);
    }
    for (const size_t candidate : left_) worth_[candidate] = worth[bound(candidate)];
  }

  double weighed(size_t candidate) const { return median(samples_[candidate]) * worth_[candidate]; }

  std::vector<double> quotients(size_t candidate, size_t other) const {
    std::vector<double> list;
    for (size_t i = 0; i < samples_[candidate].size(); ++i)
      list.push_back(samples_[candidate][i] * worth_[candidate] / (samples_[other][i] * worth_[other]));
    return list;
  }
  Interval against(size_t candidate, size_t other) const {
    return median_interval(quotients(candidate, other), rule_.deviations);
  }
  // Below the first every candidate is as good as the fastest, beyond the second none is.
  double nearest_limit() const { return 1 + rule_.margin / 2; }
  double farthest_limit() const { return 1 + 2.5 * rule_.margin; }

  // Takes out what is certainly too slow; true once the first of the others is certainly as good as the fastest.
  bool settled() {
    fastest_ = *std::min_element(left_.begin(), left_.end(), [&](size_t a, size_t b) { return weighed(a) < weighed(b); });
    first_out_ = false;
    std::erase_if(left_, [&](size_t candidate) {
      if (candidate == fastest_ || against(candidate, fastest_).low <= farthest_limit()) return false;
      if (candidate == 0) {  // what takes its place must be faster than it: it is measured on
        first_out_ = true;
        return false;
      }
      verdict_.seconds[candidate] = median(samples_[candidate]);
      clock_.drop(candidate);
      return true;
    });
    const size_t first = left_[first_out_ ? 1 : 0];
    if (first_out_ && !beats_first(first)) return false;
    return std::all_of(left_.begin(), left_.end(), [&](size_t other) {
      return other == first || (other == 0 && first_out_) || against(first, other).high <= nearest_limit();
    });
  }

  // Where the candidates that are as good as the fastest end: in the middle of the widest gap about the margin, so that no
  // candidate lies so near to it that chance would decide. Of two gaps about as wide the faster candidates' is taken.
  double limit() const {
    constexpr double kWider = 1.25;
    std::vector<double> at = {nearest_limit(), farthest_limit()};
    for (const size_t candidate : left_)
      if (const double q = median(quotients(candidate, fastest_)); q > at[0] && q < at[1]) at.push_back(q);
    std::sort(at.begin(), at.end());
    size_t widest = 1;
    for (size_t i = 2; i < at.size(); ++i)
      if (at[i] - at[i - 1] > kWider * (at[widest] - at[widest - 1])) widest = i;
    return (at[widest] + at[widest - 1]) / 2;
  }
  bool as_good(size_t candidate, double limit) const {
    return candidate == fastest_ || median(quotients(candidate, fastest_)) <= limit ||
           against(candidate, fastest_).low <= nearest_limit();
  }

  // Whether a candidate takes less time than the model's choice, for certain and in the medians that are shown: being as good
  // as the fastest is not enough, on a loaded machine much looks as good.
  bool beats_first(size_t candidate) const {
    const size_t rounds = std::min(samples_[0].size(), samples_[candidate].size());
    if (samples_[0].empty()) return true;  // it cannot run
    std::vector<double> list;
    for (size_t i = 0; i < rounds; ++i) list.push_back(samples_[0][i] / samples_[candidate][i]);
    return median_interval(list, rule_.deviations).low > 1 && median(samples_[candidate]) < median(samples_[0]);
  }

  TuneVerdict conclude() {
    for (const size_t candidate : left_)
      if (!samples_[candidate].empty()) verdict_.seconds[candidate] = median(samples_[candidate]);
    if (verdict_.rounds < rule_.first_rounds && left_.size() > 1) return verdict_;
    const double until = samples_[left_[0]].empty() ? HUGE_VAL : limit();
    const auto chosen = std::find_if(left_.begin(), left_.end(), [&](size_t candidate) {
      return candidate == 0 ? !first_out_ && as_good(candidate, until) : as_good(candidate, until) && beats_first(candidate);
    });
    verdict_.chosen = chosen != left_.end() ? *chosen : samples_[0].empty() ? left_[0] : 0;
    const bool slower = left_.size() > 1 && weighed(verdict_.chosen) > (1 + rule_.margin) * weighed(fastest_);
    verdict_.outcome = verdict_.chosen != 0 ? TuneOutcome::changed
                       : slower             ? TuneOutcome::within_noise
                                            : TuneOutcome::confirmed;
    return verdict_;
  }

  std::span<const double> errors_;
  TuneClock& clock_;
  const TuneRule& rule_;
  std::vector<std::vector<double>> samples_;
  std::vector<double> worth_;
  std::vector<size_t> left_;  // candidates in play, in the model's order
  size_t fastest_ = 0;
  bool first_out_ = false;  // the model's choice is certainly slower than the fastest by far
  TuneVerdict verdict_;
};

}  // namespace

std::string_view name_of(TuneOutcome outcome) { return kOutcomes[static_cast<size_t>(outcome)]; }

Result<TuneVerdict> tune(std::span<const double> errors, TuneClock& clock, const TuneRule& rule) {
  return Tuning(errors, clock, rule).run();
}

}  // namespace sparkle
