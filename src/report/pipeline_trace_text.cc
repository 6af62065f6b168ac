#include "report/chrome_trace.h"
#include "report/report_text.h"
#include "run/pipeline/pipeline_trace.h"

namespace sparkle {

std::string pipeline_trace_text(const PipelineTrace& pipeline) {
  constexpr const char* kTold[kPipelineLanes] = {"host: hand over", "upload", "compute", "download", "host: bring back"};
  ChromeTrace trace;
  const std::vector<std::string> devices = pipeline.devices();
  for (size_t d = 0; d < devices.size(); ++d) {
    const int process = static_cast<int>(d) + 1;
    trace.process("sparkle: " + devices[d], process);
    for (size_t lane = 0; lane < kPipelineLanes; ++lane) trace.name(static_cast<int>(lane), kTold[lane], process);
  }
  for (const PipelineSpan& span : pipeline.spans())
    trace.span(static_cast<int>(span.lane), name_of(span.lane) + (" " + std::to_string(span.item)), "pipeline", span.begin,
               span.end, {{"item", span.item}, {"device", devices[static_cast<size_t>(span.device)]}}, span.device + 1);
  return trace.text("spans left out", pipeline.left_out());
}

}  // namespace sparkle
