// The rule by which measurements choose among candidates to do one thing, whatever is measured. Candidates come in the model's
// order, its own choice first, and the first one that is not certainly slower than the fastest is taken: so the model's choice
// stays unless the measurements speak against it, and equally fast candidates do not take turns.
//
// Certain is what a sign test says: in each round all candidates that are left are measured once, beginning with another one
// each time, so that what disturbs one disturbs its neighbours; of the quotients of two candidates' times the median lies
// beyond an order statistic with a known probability, whatever the noise is like. Rounds go on until the question is settled or
// nothing is left to spend. Whatever the noise, a candidate that is not certainly faster than the model's choice is never taken
// in its place.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"

namespace sparkle {

// Where times come from: a machine, or a test.
class TuneClock {
 public:
  virtual ~TuneClock() = default;
  // One sample of a candidate, in seconds. An error takes the candidate out where its reason is out of the question for good
  // (memory, wrong results), and ends the tuning elsewhere.
  virtual Result<double> seconds(size_t candidate) = 0;
  virtual void drop(size_t) {}  // the candidate is not asked for again
  virtual double spent() const = 0;
};

struct TuneRule {
  double margin = 0.03;     // slower than the fastest by less than about this share is as good as it: see Tuning::limit
  double screen = 1.3;      // slower than the fastest by more than this factor at first sight needs no closer look
  int first_looks = 3;      // samples of that first sight; the shortest counts
  double deviations = 3.7;  // of the sign test: one error in 9,000 at each look
  int first_rounds = 16, most_rounds = 8192;
  double most_seconds = 10;  // by the clock's own count
};

enum class TuneOutcome : uint8_t {
  confirmed,     // the model's choice is as fast as any, within the margin
  within_noise,  // another one looked faster, but not for certain
  changed,
  out_of_time,  // nothing was decided
};
std::string_view name_of(TuneOutcome outcome);

struct TuneVerdict {
  TuneOutcome outcome = TuneOutcome::out_of_time;
  size_t chosen = 0;
  size_t finalists = 0;         // candidates that got a closer look
  int rounds = 0;               // of that look
  std::vector<double> seconds;  // per candidate: the median, of screened ones the shortest; 0 where there is none
};

// `errors`: the error bound of each candidate. Of two algorithms the one with larger errors must be worth it (kWorth of
// plan/choose/choose.h), as in planning.
Result<TuneVerdict> tune(std::span<const double> errors, TuneClock& clock, const TuneRule& rule);

}  // namespace sparkle
