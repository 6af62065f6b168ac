#include "fix/prediction.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "check/check.h"
#include "check/rules.h"

namespace sparkle::fix {
namespace {

std::string basis_of(const Device& device) {
  return device.calibrated ? "predicted by rates measured on it" : "bound, not calibrated";
}

struct Planned {
  std::vector<CheckRow> rows;
  std::map<std::string, size_t> row_of;  // by node, of products
  double seconds = 0;
};

Result<Planned> planned(const Document& doc, const std::vector<InputBinding>& inputs, const Device& device) {
  SPARKLE_TRY(graph, doc.to_graph());
  SPARKLE_CHECK(simplify(graph));
  SPARKLE_TRY(bound, sparkle::bind(graph, inputs));
  SPARKLE_CHECK(simplify(bound));
  assume_rounded_weights(bound);
  Planned p;
  SPARKLE_TRY(rows, predicted_rows(bound, device));
  p.rows = std::move(rows);
  for (size_t i = 0; i < p.rows.size(); ++i) {
    p.seconds += p.rows[i].seconds;
    if (!is_product(p.rows[i])) continue;
    for (const std::string& node : p.rows[i].nodes) p.row_of.emplace(node, i);
  }
  return p;
}

std::string change_of(const std::vector<const CheckRow*>& before, const std::vector<const CheckRow*>& after) {
  const auto said = [](const std::vector<const CheckRow*>& rows) {
    std::string text;
    for (const CheckRow* row : rows) text += (text.empty() ? "" : "; ") + row->what + " " + row->types + " on " + row->unit;
    return text;
  };
  const std::string from = said(before), to = said(after);
  return from == to ? "" : from + " -> " + to;
}

}  // namespace

Prediction predict_padding(const PadPlan& plan, const PadTarget& target) {
  Prediction p;
  p.device = target.device.name, p.basis = basis_of(target.device), p.precision = target.precision;
  for (const auto& product : plan.products) {
    if (!plan.grows(product)) continue;
    const Problem after = plan.padded(product);
    p.layers.push_back({product.name, short_name(product.problem) + " -> " + short_name(after), product.before_seconds,
                        product.after_seconds});
    p.before_seconds += product.before_seconds, p.after_seconds += product.after_seconds;
  }
  for (const auto& chain : plan.chains) p.after_seconds += chain.border_seconds;
  return p;
}

Result<Prediction> predict_layers(const Document& before, const Document& after, const std::vector<InputBinding>& inputs,
                                  const PadTarget& target) {
  SPARKLE_TRY(a, planned(before, inputs, target.device));
  SPARKLE_TRY(b, planned(after, inputs, target.device));
  // Rows of both that share a node, directly or through others, are one layer.
  std::vector<size_t> layer(a.rows.size() + b.rows.size());
  std::iota(layer.begin(), layer.end(), size_t{0});
  const auto root = [&](size_t i) {
    while (layer[i] != i) i = layer[i];
    return i;
  };
  for (const auto& [node, i] : a.row_of)
    if (const auto j = b.row_of.find(node); j != b.row_of.end()) layer[root(a.rows.size() + j->second)] = root(i);
  struct Rows {
    std::vector<const CheckRow*> before, after;
  };
  std::map<size_t, Rows> layers;
  for (size_t i = 0; i < a.rows.size(); ++i)
    if (is_product(a.rows[i])) layers[root(i)].before.push_back(&a.rows[i]);
  for (size_t j = 0; j < b.rows.size(); ++j)
    if (is_product(b.rows[j])) layers[root(a.rows.size() + j)].after.push_back(&b.rows[j]);
  Prediction p;
  p.device = target.device.name, p.basis = basis_of(target.device), p.precision = target.precision;
  p.before_seconds = a.seconds, p.after_seconds = b.seconds;
  for (const auto& [key, rows] : layers) {
    if (rows.before.empty() || rows.after.empty()) continue;
    const std::string change = change_of(rows.before, rows.after);
    if (change.empty()) continue;
    Prediction::Layer one{rows.before[0]->name, change, 0, 0};
    for (const CheckRow* row : rows.before) one.before_seconds += row->seconds;
    for (const CheckRow* row : rows.after) one.after_seconds += row->seconds;
    p.layers.push_back(std::move(one));
  }
  return p;
}

std::vector<std::string> to_lines(const Prediction& p) {
  if (p.layers.empty()) return {};
  std::vector<std::string> lines{"predicted for " + p.device + " in " + std::string(name_of(p.precision)) + " (" + p.basis +
                                 "): " + in_time(p.before_seconds) + " -> " + in_time(p.after_seconds)};
  for (const auto& layer : p.layers)
    lines.push_back("  " + layer.name + ": " + in_time(layer.before_seconds) + " -> " + in_time(layer.after_seconds) + "  (" +
                    layer.change + ")");
  return lines;
}

}  // namespace sparkle::fix
