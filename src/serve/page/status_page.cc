// One page of HTML that asks no other server; every name on it is escaped. What it does in a browser is in try.js.
#include <cmath>
#include <cstdio>

#include "report/page/page.h"
#include "serve/datatypes.h"
#include "serve/router.h"

namespace sparkle::serve {
namespace {

constexpr const char* kScript =
#include "page_try.inc"
    ;
constexpr const char* kReports =
#include "page_reports.inc"
    ;
constexpr const char* kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>sparkle serve</title>
<style>
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: break-word; }
.scroll { overflow-x: auto; }
details { border-top: 1px solid #8884; padding: .4rem 0; }
summary { cursor: pointer; }
#reports td.words { min-width: 14rem; }
select, input { max-width: 100%; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #8884; vertical-align: top; }
#seen { max-width: 20rem; height: auto; display: block; margin: .5rem 0; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
</style></head><body>
)";

std::string tensors_text(const std::vector<SessionInput>& tensors) {
  std::string text;
  for (const SessionInput& t : tensors) {
    text += (text.empty() ? "" : ", ") + t.name + " " + std::string(protocol_name(t.dtype)) + " [";
    for (int a = 0; a < t.shape.size(); ++a) text += (a ? "," : "") + std::to_string(t.shape[a]);
    text += t.rank_known ? "]" : "...]";
  }
  return text;
}

std::string milliseconds(double seconds) {
  if (std::isinf(seconds)) return "&gt; 10000";
  char text[40];
  std::snprintf(text, sizeof text, "%.3g", seconds * 1e3);
  return text;
}

// JSON inside of a script: what would end that is written otherwise.
std::string inside_script(const std::string& json) {
  std::string text;
  for (const char c : json) c == '<' ? text += "\\u003c" : text += c;
  return text;
}

std::string cell(const std::string& html, bool number = false) {
  return (number ? "<td class=\"n\">" : "<td>") + html + "</td>";
}

}  // namespace

std::string status_page(const std::string& version, const Repository& repository) {
  std::string html = kHead;
  html += "<h1>sparkle serve " + escaped(version) +
          "</h1>\n<div class=\"scroll\"><table id=\"models\"><tr><th>model</th><th>version</th><th>inputs</th><th>outputs</th>"
          "<th class=\"n\">answered</th><th class=\"n\">failed</th><th class=\"n\">waiting</th><th class=\"n\">mean, ms</th>"
          "<th class=\"n\">half below, ms</th><th class=\"n\">99 % below, ms</th></tr>\n";
  std::string forms, reports;
  for (const auto& model : repository.loaded()) {
    if (!model->form.empty()) forms += (forms.empty() ? "" : ",\n") + inside_script(model->form);
    const ModelDescription& d = model->description;
    reports += "<details data-model=\"" + escaped(d.name) + "\" data-version=\"" + escaped(d.version) + "\"><summary>" +
               escaped(d.name) + ", version " + escaped(d.version) + " <span class=\"short\"></span></summary></details>\n";
    const auto counts = model->metrics->latency.counts();
    const double mean = counts.count > 0 ? counts.seconds / static_cast<double>(counts.count) : 0;
    html += "<tr>" + cell(escaped(d.name)) + cell(escaped(d.version)) + cell(escaped(tensors_text(d.inputs))) +
            cell(escaped(tensors_text(d.outputs))) + cell(std::to_string(model->metrics->answered), true) +
            cell(std::to_string(model->metrics->failures()), true) + cell(std::to_string(model->batcher->waiting()), true) +
            cell(milliseconds(mean), true) + cell(milliseconds(counts.quantile(0.5)), true) +
            cell(milliseconds(counts.quantile(0.99)), true) + "</tr>\n";
  }
  return html +
         "</table></div>\n<p>Counts for Prometheus: <code>/metrics</code>. Endpoints of the Open Inference Protocol: "
         "<code>/v2</code>.</p>\n<section id=\"reports\"><h2>Roofline</h2>\n"
         "<p>What each layer takes, how much of what its roof allows that is, and what bounds it.</p>\n" +
         reports +
         "</section>\n<section id=\"try\" hidden><h2>Try a picture</h2>\n"
         "<p><select id=\"model\" aria-label=\"model\"></select> <input id=\"file\" type=\"file\" accept=\"image/*\" "
         "aria-label=\"picture\"></p>\n<p>Preprocessing, guessed from the model: <span id=\"how\"></span></p>\n"
         "<canvas id=\"seen\" width=\"0\" height=\"0\"></canvas>\n<div id=\"answer\"></div></section>\n"
         "<script type=\"application/json\" id=\"forms\">[" +
         forms + "]</script>\n<script>\n" + kScript + "</script>\n<script>\n" + kReports + "</script></body></html>\n";
}

}  // namespace sparkle::serve
