// What a measured run did, as text for people, as JSON, as a page and as a trace.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "measure/model_report.h"
#include "report/page/page.h"

namespace sparkle {

class PipelineTrace;

// Totals, then a row for each step in the order of the plan.
std::string model_report_text(const ModelReport& report);

// {"model", "device", "measured", "measured_ms", "predicted_ms", "matrix_share", "peak_bytes" ..., "steps": [{"name",
// "measured_ms", ...}]}. Where nothing was run, "measured_ms" are null and shares and rates come of what is predicted.
nlohmann::json model_report_json(const ModelReport& report);

PageTarget model_report_page(const ModelReport& report);
// The page whole.
std::string model_report_html(const ModelReport& report);

// The traced run as a Chrome trace, which Perfetto and chrome://tracing open: tracks of the caller, of the device's queue and
// of each thread, and the memory in use.
std::string model_report_trace(const ModelReport& report);
// The items of a pipeline as one: a process for each device, tracks for handing over, upload, compute, download and bringing
// back, a span for each item on each.
std::string pipeline_trace_text(const PipelineTrace& trace);

}  // namespace sparkle
