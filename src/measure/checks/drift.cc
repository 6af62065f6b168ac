#include "measure/checks/drift.h"

#include <algorithm>
#include <cmath>

#include "base/system/out_of_memory.h"
#include "families/values/element.h"
#include "prepare/random_inputs.h"

namespace sparkle {
namespace {

constexpr uint64_t kSeeds = 1000;  // away from those of a first pass's inputs

double value_at(const HostTensor& t, int64_t i) { return load_element(t.dtype, t.bytes.get() + i * size_of(t.dtype)); }

// A copy of mean 0 and deviation 1, in double precision until it is stored; nothing where there is no such thing.
Result<std::optional<HostTensor>> standardised(const HostTensor& x, const std::string& name) {
  const double count = static_cast<double>(x.elements());
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < x.elements(); ++i) sum += value_at(x, i);
  const double mean = sum / count;
  for (int64_t i = 0; i < x.elements(); ++i) squares += (value_at(x, i) - mean) * (value_at(x, i) - mean);
  const double deviation = std::sqrt(squares / count);
  if (!std::isfinite(deviation) || deviation == 0) return std::optional<HostTensor>();
  SPARKLE_TRY(y, allocate_tensor(x.dtype, x.shape, "Output '" + name + "'"));
  for (int64_t i = 0; i < x.elements(); ++i)
    store_element(x.dtype, (value_at(x, i) - mean) / deviation, y.bytes.get() + i * size_of(x.dtype));
  return std::optional(std::move(y));
}

// Which output each input reads in the next pass; -1: none.
std::vector<int> readers(const std::vector<HostTensor>& outputs, const std::vector<HostTensor>& inputs) {
  std::vector<int> reads;
  for (const HostTensor& input : inputs) {
    const auto fits = std::find_if(outputs.begin(), outputs.end(), [&](const HostTensor& output) {
      return is_float(output.dtype) && output.dtype == input.dtype && output.shape == input.shape;
    });
    reads.push_back(fits == outputs.end() ? -1 : static_cast<int>(fits - outputs.begin()));
  }
  return reads;
}

// The output in its deviation, with `noise` of that from normal values.
void mix(const HostTensor& output, double noise, HostTensor& normal) {
  const double kept = std::sqrt(1 - noise * noise);
  for (int64_t i = 0; i < normal.elements(); ++i)
    store_element(normal.dtype, kept * value_at(output, i) + noise * value_at(normal, i),
                  normal.bytes.get() + i * size_of(normal.dtype));
}

}  // namespace

Result<std::vector<std::vector<HostTensor>>> passes_of(Session& session, std::vector<HostTensor> inputs, int passes,
                                                       double noise) {
  std::vector<std::vector<HostTensor>> all;
  for (int pass = 1; pass <= passes; ++pass) {
    SPARKLE_TRY(outputs, session.run(inputs));
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!is_float(outputs[i].dtype)) continue;
      const std::string& name = session.outputs()[i].name;
      SPARKLE_TRY(next, standardised(outputs[i], name));
      if (!next)
        return Error{Reason::internal, "Output '" + name + "' of pass " + std::to_string(pass) +
                                           " holds NaN, infinities or one number everywhere, so that no pass can read it."};
      outputs[i] = std::move(*next);
    }
    const std::vector<int> reads = readers(outputs, inputs);
    if (std::all_of(reads.begin(), reads.end(), [](int output) { return output < 0; }))
      return Error{Reason::bad_usage,
                   "No output of the model has the type and shape of an input; there is nothing to feed back."};
    for (size_t i = 0; i < inputs.size(); ++i)
      if (reads[i] >= 0) inputs[i].bytes = nullptr;
    SPARKLE_CHECK(fill_inputs(session.inputs(), inputs, kSeeds + static_cast<uint64_t>(pass)));
    for (size_t i = 0; i < inputs.size(); ++i)
      if (reads[i] >= 0) mix(outputs[static_cast<size_t>(reads[i])], noise, inputs[i]);
    all.push_back(std::move(outputs));
  }
  return all;
}

Result<std::vector<Drift>> drift_of(const std::vector<std::vector<HostTensor>>& passes,
                                    const std::vector<std::vector<HostTensor>>& exact) {
  std::vector<Drift> drifts;
  for (size_t p = 0; p < exact.size(); ++p) {
    Drift drift;
    for (size_t i = 0; i < exact[p].size(); ++i) {
      const HostTensor& want = exact[p][i];
      if (!is_float(want.dtype)) continue;
      if (p >= passes.size() || i >= passes[p].size() || !(passes[p][i].shape == want.shape) || !is_float(passes[p][i].dtype))
        return Error{Reason::bad_input, "The models have outputs of other shapes and cannot be compared."};
      double squares = 0, difference = 0, largest = 0;
      for (int64_t e = 0; e < want.elements(); ++e) {
        const double apart = std::abs(value_at(passes[p][i], e) - value_at(want, e));
        squares += apart * apart;
        difference = std::max(difference, apart);
        largest = std::max(largest, std::abs(value_at(want, e)));
      }
      drift.error = std::max(drift.error, std::sqrt(squares / static_cast<double>(want.elements())));
      drift.largest = std::max(drift.largest, difference / largest);
    }
    drifts.push_back(drift);
  }
  return drifts;
}

}  // namespace sparkle
