#include "backends/self_tests/self_tests.h"

#include <algorithm>

#include "backends/self_tests/sample_run.h"
#include "families/gemm/gemm.h"
#include "families/gemm/gemm_tiles.h"
#include "families/values/epilogue.h"
#include "families/registry.h"
#include "families/values/post_ops.h"

namespace sparkle {
namespace {

std::string types_text(const std::vector<DType>& types) {
  std::string text;
  for (const DType t : types) text += (text.empty() ? "" : ",") + std::string(name_of(t));
  return text;
}

Result<std::vector<DType>> types_from(std::string_view text) {
  std::vector<DType> types;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const auto type = dtype_from(text.substr(0, comma));
    if (!type) return Error{Reason::bad_format, "'" + std::string(text) + "' is no list of element types."};
    types.push_back(*type);
    text.remove_prefix(std::min(text.size(), comma + 1));
  }
  return types;
}

}  // namespace

SelfTest self_test_of(const Stage& stage, const Schedule& schedule) {
  SelfTest t{schedule, stage.params, {}, {}};
  for (const TensorDesc& d : stage.inputs) t.inputs.push_back(d.dtype);
  for (const TensorDesc& d : stage.outputs) t.outputs.push_back(d.dtype);
  return t;
}

std::string SelfTest::variant() const {
  const Epilogue* e = epilogue_of(params);
  return std::string(name_of(family())) + "/" + (e && e->has_post_op() ? post_op_name(e->post_op) : variant_of(schedule));
}

std::string SelfTest::to_text() const {
  return std::string(name_of(family())) + "\t" + sparkle::to_text(schedule) + "\t" + sparkle::to_text(params) + "\t" +
         types_text(inputs) + "\t" + types_text(outputs);
}

Result<SelfTest> SelfTest::from_text(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find('\t', begin), line.size());
    fields.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  Family family{};
  if (fields.size() != 5 || !parse_name(fields[0], family))
    return Error{Reason::bad_format, "'" + std::string(line.substr(0, 60)) + "' is no self-test of a kernel."};
  SPARKLE_TRY(schedule, schedule_from_text(family, fields[1]));
  SPARKLE_TRY(params, params_from_text(family, fields[2]));
  SPARKLE_TRY(inputs, types_from(fields[3]));
  SPARKLE_TRY(outputs, types_from(fields[4]));
  return SelfTest{std::move(schedule), std::move(params), std::move(inputs), std::move(outputs)};
}

std::vector<Stage> stages_of(const SelfTest& t) {
  const auto samples = info(t.family()).samples;
  if (variant_of(t.schedule) == "no_kernel" || !samples) return {};
  return samples({t.params, t.schedule, t.inputs, t.outputs});
}

Status run_self_test(Backend& backend, const SelfTest& self_test, std::chrono::nanoseconds timeout) {
  SampleRun how;
  how.timeout = timeout;
  if (variant_of(self_test.schedule) == "half_sums") how.more = kShortSumsError;
  const bool sums = self_test.family() == Family::gemm && !self_test.inputs.empty();
  if (sums && is_narrow_float(self_test.inputs[0])) how.more = kFloat8SumsError;
  for (const Stage& stage : stages_of(self_test))
    for (const uint32_t constants : {0u, 2u})
      if (constants == 0 || stage.inputs.size() > 1)
        SPARKLE_CHECK(run_sample(backend, stage, self_test.schedule, constants, how));
  return ok();
}

}  // namespace sparkle
