#include "fix/fix.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "backends/reference/reference_backend.h"
#include "base/system/out_of_memory.h"
#include "fix/precision/wide_search.h"
#include "fix/precision/widen.h"
#include "fix/rewrites/exact.h"
#include "fix/rewrites/raise_opset.h"

namespace sparkle::fix {
namespace {

constexpr double kMostByLoops = 2e9;  // multiplications of all samples that plain loops are asked for: some ten seconds
constexpr double kOtherSums = 1e-3;   // of the largest output: what kernels that cut sums otherwise may differ by in a network
constexpr int64_t kScalesPerChannel = 13;  // the opset
constexpr double kSpare = 0.9;             // what the search leaves to other engines, which round otherwise

std::string text(const char* format, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

template <class T, size_t N>
bool parse(std::string_view given, T& value, const T (&all)[N]) {
  for (const T v : all)
    if (name_of(v) == given) return value = v, true;
  return false;
}

// What `sparkle check` finds, and the rule that mends it.
struct Mends {
  Reason found;
  std::string_view by;
};
constexpr Mends kMends[] = {{Reason::channels_unaligned, "pad_channels"},
                            {Reason::features_unaligned, "pad_channels"},
                            {Reason::head_unaligned, "pad_channels"},
                            {Reason::batchnorm_apart, "fold_batch_normalization"},
                            {Reason::layout_change, "merge_layouts"}};

// Of the weights of the products.
Precision own_precision(const Document& model) {
  std::map<std::string, int> type_of;
  for (const auto& initializer : model.graph().initializer()) type_of[initializer.name()] = initializer.data_type();
  for (const auto& node : model.graph().node()) {
    if (node.op_type() != "Conv" && node.op_type() != "ConvTranspose" && node.op_type() != "Gemm" && node.op_type() != "MatMul")
      continue;
    const auto weights = type_of.find(input_of(node, 1));
    if (weights == type_of.end()) continue;
    if (weights->second == ::onnx::TensorProto::FLOAT16) return Precision::fp16;
    if (weights->second == ::onnx::TensorProto::BFLOAT16) return Precision::bf16;
  }
  return Precision::fp32;
}

class Fixer {
 public:
  Fixer(const Document& original, const FixOptions& options, std::shared_ptr<Backend> backend)
      : original_(original), options_(options), backend_(std::move(backend)), doc_(original), shown_(original) {}

  Result<Fixed> fix() {
    SPARKLE_TRY(graph, original_.to_graph());
    samples_ = options_.samples;
    report_.random = samples_.empty();
    std::map<std::string, Dims> shapes = options_.shapes;
    if (!report_.random)
      for (size_t i = 0; i < graph.inputs.size() && i < samples_[0].size(); ++i)
        shapes[graph.tensor(graph.inputs[i]).name] = samples_[0][i].shape;
    SPARKLE_TRY(bindings, bindings_of(graph, shapes));
    bindings_ = std::move(bindings);
    for (int i = 0; report_.random && i < options_.random_samples; ++i)
      samples_.push_back(random_inputs(graph, bindings_, 1 + static_cast<uint64_t>(i)));
    SPARKLE_CHECK(refresh());
    SPARKLE_CHECK(rewrite());
    SPARKLE_CHECK(prove_rewrites());
    if (options_.precision == Precision::fp32) return Fixed{std::move(doc_), std::move(report_)};
    if (is_quantized()) {
      report_.notes.push_back("precision: the model computes in 8-bit integers already and keeps its types");
    } else {
      SPARKLE_CHECK(change_precision());
      predict();
    }
    return Fixed{std::move(doc_), std::move(report_)};
  }

 private:
  bool is_quantized() const {
    const auto& nodes = doc_.graph().node();
    return std::any_of(nodes.begin(), nodes.end(), [](const auto& node) {
      return node.op_type() == "QuantizeLinear" || node.op_type() == "DequantizeLinear" ||
             node.op_type().starts_with("QLinear") || node.op_type() == "ConvInteger" || node.op_type() == "MatMulInteger";
    });
  }

  Status refresh() {
    SPARKLE_TRY(tensors, infer_tensors(doc_, bindings_));
    tensors_ = std::move(tensors);
    return ok();
  }

  bool wants(std::string_view rule) const {
    // Integers want weights and biases as they are used.
    if (options_.precision == Precision::int8 && (rule == "fold_constants" || rule == "fold_batch_normalization")) return true;
    return options_.only.empty() || std::find(options_.only.begin(), options_.only.end(), rule) != options_.only.end();
  }

  Status rewrite() {
    for (const std::string_view rule : kRules) {
      if (!wants(rule)) continue;
      std::vector<std::string> lines;
      if (rule == "fold_constants") {
        SPARKLE_TRY(values, constants_of(doc_, bindings_));
        lines = fold_constants(doc_, values);
      } else if (rule == "fold_batch_normalization") {
        lines = fold_batch_normalization(doc_);
        folded_norms_ = !lines.empty();
      } else if (rule == "merge_layouts") {
        lines = merge_layouts(doc_);
      } else {
        const PadPlan plan =
            plan_padding(doc_, tensors_, {options_.multiple, options_.max_extra, options_.target, !options_.only.empty()});
        SPARKLE_CHECK(apply_padding(doc_, plan, tensors_));
        lines = to_lines(plan);
        for (const auto& h : plan.heads)
          if (const int64_t size = plan.channels.grown(h.runs); size % options_.head_multiple != 0)
            lines.push_back(h.name + ": heads of " + std::to_string(size) +
                            " elements, where kernels of attention want a multiple of " +
                            std::to_string(options_.head_multiple));
        changed_ = changed_ || !plan.empty();
        if (options_.target && !plan.empty()) report_.predicted = predict_padding(plan, *options_.target);
      }
      if (rule != "pad_channels") changed_ = changed_ || !lines.empty();
      if (!lines.empty()) report_.rewrites.push_back({std::string(rule), std::move(lines)});
      SPARKLE_CHECK(refresh());
    }
    return ok();
  }

  // What the target takes for the layers of the whole result. A plan that it has none for leaves this unsaid.
  void predict() {
    if (!options_.target) return;
    auto predicted = predict_layers(original_, doc_, bindings_, *options_.target);
    if (predicted.ok()) report_.predicted = std::move(*predicted);
    else report_.notes.push_back("not predicted: " + predicted.error().message);
  }

  Error too_far(const std::string& what, const std::vector<Entrance>& entrances) const {
    std::string where;
    if (!entrances.empty())
      where = "; the error enters at '" + entrances[0].layer + "' (" + text("%.2g", entrances[0].before) + " before it, " +
              text("%.2g", entrances[0].error) + " behind)";
    return {Reason::too_inaccurate, "'" + original_.name() + "': " + what + where + "; nothing was written."};
  }

  Status prove_rewrites() {
    if (!changed_ || options_.proof == ProofBy::none) return ok();
    double macs = 0;
    for (const auto& p : products_of(doc_, tensors_)) macs += p.macs;
    const bool loops = options_.proof == ProofBy::reference ||
                       (options_.proof == ProofBy::best && macs * static_cast<double>(samples_.size()) < kMostByLoops);
    const std::shared_ptr<Backend> backend = loops ? make_reference_backend() : backend_;
    SPARKLE_TRY(proof, prove(original_, doc_, samples_, backend));
    report_.exact_by = loops ? "plain loops" : "kernels, which may cut sums otherwise";
    report_.exact = proof;
    const bool good = loops && !folded_norms_ ? proof.same_bits() : proof.largest() <= kOtherSums;
    if (good) return ok();
    SPARKLE_TRY(entrances, where_errors_enter(original_, doc_, samples_[0], backend));
    return too_far(
        "the rewritten model does not give the answers of the original (" + text("%.2g", proof.largest()) + " of the largest)",
        entrances);
  }

  double least_cosine() const {
    return options_.least_cosine > 0 ? options_.least_cosine : options_.precision == Precision::int8 ? 0.99 : 0.999;
  }

  // `spare`: of the error that is allowed, what counts.
  bool good(const Proof& proof, double spare = 1) const {
    if (proof.classifies() && !report_.random) return proof.agreement() >= options_.least_agreement;
    return 1 - proof.cosine() <= spare * (1 - least_cosine());
  }

  Status change_precision() {
    const Status changed = narrow();
    note_plan();
    note_shares();
    return changed;
  }

  Status narrow() {
    const bool integers = options_.precision == Precision::int8;
    if (has_narrow_products(doc_, tensors_)) {
      if (options_.precision == Precision::fp16)
        return report_.notes.push_back("precision: the model is in 16-bit floats already"), ok();
      make_wide(doc_, tensors_);
      SPARKLE_CHECK(refresh());
    }
    if (integers) {
      SPARKLE_CHECK(raise_opset(doc_, kScalesPerChannel, tensors_));
      SPARKLE_CHECK(doc_.normalize());
      SPARKLE_CHECK(refresh());
    }
    const RangeOptions wanted = integers ? ranges_for(doc_, tensors_, options_.quantize) : RangeOptions();
    SPARKLE_TRY(ranges, measure_ranges(doc_, backend_, samples_, wanted));
    before_ = doc_;
    if (integers) note_scales();
    SPARKLE_CHECK(keep_given(ranges));
    if (options_.proof == ProofBy::none) return convert(ranges, {});
    SPARKLE_TRY(prover, Prover::open(original_, samples_, backend_));
    // In 16-bit floats both as devices compute that round each result, and as plans for this one do.
    const auto attempt = [&](const Layers& more) -> Result<Proof> {
      SPARKLE_CHECK(convert(ranges, more));
      SPARKLE_TRY(proof, prover.prove(shown_));
      if (integers || !good(proof, kSpare)) return proof;
      SPARKLE_TRY(as_planned, prover.prove(doc_));
      return good(as_planned, kSpare) ? proof : as_planned;
    };
    SPARKLE_TRY(proof, attempt({}));
    bool enough = good(proof, kSpare);
    if (!enough && options_.most_tries > 0) {
      std::vector<LayerGroup> groups = layer_groups(before_, tensors_);
      SPARKLE_CHECK(measure_sensitivity(
          before_, groups, worst(proof), [&](const Layers& layers) { return converted(ranges, layers, nullptr); }, backend_));
      SPARKLE_TRY(choice, choose_wide(groups, {attempt, [&](const Proof& p) { return good(p, kSpare); }, options_.most_tries}));
      SPARKLE_CHECK(convert(ranges, layers_of(choice.groups)));
      for (const LayerGroup* g : choice.groups)
        if (!g->tensors.empty() && !wide_.contains(g->tensors[0]))
          keep(g->tensors[0], "alone it moves the outputs by " + text("%.2g", g->error));
      proof = std::move(choice.proof), enough = good(proof);
    }
    report_.whole = proof;
    report_.whole_by = "kernels of " + backend_->device().name + (integers ? "" : ", each layer rounded");
    if (!enough) return refuse(proof);
    SPARKLE_TRY(entrances, where_errors_enter(before_, shown_, worst(proof)[0], backend_));
    report_.entrances.assign(entrances.begin(), entrances.begin() + static_cast<long>(std::min<size_t>(3, entrances.size())));
    return ok();
  }

  // Samples of another scale than the others (pictures of bytes beside normalised ones) share the steps of the largest.
  void note_scales() {
    constexpr float kTimes = 8;
    for (size_t i = 0; !report_.random && !samples_.empty() && i < samples_[0].size(); ++i) {
      float least = INFINITY, most = 0;
      for (const Sample& sample : samples_) {
        if (sample[i].dtype != DType::f32) continue;
        float largest = 0;
        for (int64_t e = 0; e < sample[i].elements(); ++e) largest = std::max(largest, std::abs(sample[i].data<float>()[e]));
        if (largest > 0) least = std::min(least, largest), most = std::max(most, largest);
      }
      if (most <= kTimes * least) continue;
      report_.notes.push_back("precision: some samples of input '" + before_.graph().input(static_cast<int>(i)).name() +
                              "' reach " + text("%.3g", static_cast<double>(least)) + ", others " +
                              text("%.3g", static_cast<double>(most)) +
                              ": in 8 bits those have a few steps of these; give samples that were prepared alike");
    }
  }

  // Layers that stay wide whatever the others do: those asked for, and those that leave the type's range.
  Status keep_given(const Ranges& ranges) {
    std::set<std::string> met;
    for (int n = 0; n < before_.graph().node_size(); ++n) {
      const auto& node = before_.graph().node(n);
      if (node.output_size() == 0) continue;
      for (const std::string& name : options_.wide)
        if (name == label_of(node, n) || name == node.output(0)) {
          met.insert(name);
          if (wide_.insert(node.output(0)).second) keep(node.output(0), "asked for");
        }
      note_range(ranges, node, n);
    }
    for (const std::string& name : options_.wide)
      if (!met.contains(name))
        return Error{Reason::bad_usage, "'" + original_.name() + "' has no layer '" + name +
                                            "' to keep wide; give a node's name or that of its output."};
    if (options_.precision == Precision::int8) return ok();
    for (const auto& [layer, why] : must_stay_wide(before_, to(), ranges))
      if (wide_.insert(layer).second) keep(layer, why);
    return ok();
  }

  void keep(const std::string& layer, const std::string& why) {
    const int n = before_.producer(layer);
    report_.wide.push_back({n < 0 ? layer : label_of(before_.graph().node(n), n), why});
  }

  // Few of the samples, which the search looks at again and again.
  std::vector<Sample> worst(const Proof& proof) const {
    constexpr size_t kMost = 4;
    std::vector<Sample> samples;
    for (const size_t s : proof.worst_samples(kMost)) samples.push_back(samples_[s]);
    return samples;
  }

  DType to() const { return options_.precision == Precision::fp16 ? DType::f16 : DType::bf16; }

  Error refuse(const Proof& proof) {
    const std::string measure = proof.classifies() && !report_.random
                                    ? "the first class stays in " + text("%.1f", 100 * proof.agreement()) + " % of the samples"
                                    : "the cosine to the original's outputs is " + text("%.5f", proof.cosine()) + ", " +
                                          text("%g", least_cosine()) + " is wanted";
    auto entrances = where_errors_enter(before_, shown_, worst(proof)[0], backend_);
    return too_far("in " + std::string(name_of(options_.precision)) + " " + measure + ", with " +
                       std::to_string(report_.wide.size()) + " layers kept wide",
                   entrances.ok() ? *entrances : std::vector<Entrance>());
  }

  // doc_ and shown_ become the model with these layers wide beside those that stay so in any case.
  Status convert(const Ranges& ranges, const Layers& more) {
    QuantizePlan plan;
    SPARKLE_TRY(doc, converted(ranges, more, &plan));
    doc_ = std::move(doc);
    if (options_.precision == Precision::int8) {
      shown_ = doc_;
      report_.integer_share = plan.share();
      plan_ = std::move(plan);
      return ok();
    }
    // Plans for this machine may keep f32 between layers in 16 bits; what counts is the device that does not.
    Layers wide = wide_;
    wide.insert(more.begin(), more.end());
    shown_ = rounded(before_, to(), wide, tensors_);
    return ok();
  }

  Result<Document> converted(const Ranges& ranges, const Layers& more, QuantizePlan* plan) const {
    Document doc = before_;
    Layers wide = wide_;
    wide.insert(more.begin(), more.end());
    if (options_.precision != Precision::int8) {
      SPARKLE_CHECK(make_narrow(doc, to(), wide, tensors_));
      return doc;
    }
    QuantizePlan made = plan_quantization(doc, tensors_, ranges, wide, options_.quantize);
    SPARKLE_CHECK(apply_quantization(doc, made));
    if (plan) *plan = std::move(made);
    return doc;
  }

  void note_range(const Ranges& ranges, const ::onnx::NodeProto& node, int n) {
    if (node.op_type() != "Conv" && node.op_type() != "ConvTranspose" && node.op_type() != "Gemm" && node.op_type() != "MatMul")
      return;
    const auto at = ranges.find(node.output(0));
    if (at == ranges.end()) return;
    report_.ranges.push_back(label_of(node, n) + ": " + text("%.4g", static_cast<double>(at->second.low)) + " .. " +
                             text("%.4g", static_cast<double>(at->second.high)));
  }

  // Layers that the plan leaves wide, beside those that were kept so.
  void note_plan() {
    for (const auto& p : plan_.products) {
      if (p.integer || p.why == "kept wide") continue;
      const bool known =
          std::any_of(report_.wide.begin(), report_.wide.end(), [&](const auto& w) { return w.layer == p.name; });
      if (!known) report_.wide.push_back({p.name, p.why});
    }
  }

  void note_shares() {
    const auto products = products_of(before_, tensors_);
    double all = 0;
    for (const auto& p : products) all += p.macs;
    for (auto& w : report_.wide)
      for (const auto& p : products)
        if (w.layer == p.name && all > 0) w.share = p.macs / all;
  }

  const Document& original_;
  const FixOptions& options_;
  std::shared_ptr<Backend> backend_;
  Document doc_, shown_, before_;  // shown_: what the proof runs; before_: what is converted
  Layers wide_;                    // that stay so in any case
  QuantizePlan plan_;              // of doc_
  FixReport report_;
  std::vector<InputBinding> bindings_;
  std::vector<Sample> samples_;
  std::map<std::string, TensorInfo> tensors_;
  bool changed_ = false, folded_norms_ = false;
};

}  // namespace

std::string_view name_of(ProofBy by) {
  switch (by) {
    case ProofBy::best: return "best";
    case ProofBy::reference: return "reference";
    case ProofBy::planned: return "planned";
    case ProofBy::none: return "none";
  }
  return "?";
}
bool parse_name(std::string_view given, ProofBy& by) {
  return parse(given, by, {ProofBy::best, ProofBy::reference, ProofBy::planned, ProofBy::none});
}

Result<Fixed> fix_model(const Document& original, const FixOptions& options, std::shared_ptr<Backend> backend) {
  return guard_memory("Fixing the model", [&] { return Fixer(original, options, std::move(backend)).fix(); });
}

void take_sizes(const Device& device, const Document& model, int64_t multiple, FixOptions& options) {
  Precision precision = options.precision;
  if (precision == Precision::fp32) precision = own_precision(model);
  if (precision == Precision::fp32) precision = narrow_precision(device).value_or(precision);
  const PadOptions padding = default_padding(device, precision);
  options.target = padding.target;
  options.multiple = multiple > 0 ? multiple : padding.multiple;
  options.head_multiple = channel_multiple(device, precision);
}

Status check_rules(FixOptions& options) {
  for (std::string& rule : options.only) {
    if (std::find(std::begin(kRules), std::end(kRules), rule) != std::end(kRules)) continue;
    const auto mended =
        std::find_if(std::begin(kMends), std::end(kMends), [&](const Mends& m) { return code_of(m.found) == rule; });
    if (mended != std::end(kMends)) {
      rule = mended->by;
      continue;
    }
    std::string known;
    for (const std::string_view name : kRules) known += (known.empty() ? "" : ", ") + std::string(name);
    for (const Mends& m : kMends) known += ", " + std::string(code_of(m.found));
    return Error{Reason::bad_usage, "There is no rule '" + rule + "'; there are " + known + "."};
  }
  return ok();
}

std::vector<std::string> to_lines(const FixReport& report) {
  std::vector<std::string> lines;
  for (const auto& part : report.rewrites) {
    lines.push_back(part.rule + ":");
    for (const std::string& line : part.lines) lines.push_back("  " + line);
  }
  lines.insert(lines.end(), report.notes.begin(), report.notes.end());
  if (lines.empty() && !report.whole) lines.push_back("nothing to mend: the target wants nothing that the model has not");
  if (report.predicted)
    for (const std::string& line : to_lines(*report.predicted)) lines.push_back(line);
  if (!report.ranges.empty()) lines.push_back("ranges:");
  for (const std::string& line : report.ranges) lines.push_back("  " + line);
  if (!report.wide.empty()) lines.push_back("kept wide:");
  for (const auto& w : report.wide)
    lines.push_back("  " + w.layer + (w.share > 0 ? ", " + text("%.2g", 100 * w.share) + " % of the multiplications: " : ": ") +
                    w.why);
  if (report.integer_share > 0)
    lines.push_back("integers: " + text("%.1f", 100 * report.integer_share) + " % of the multiplications");
  const auto proof = [&](const Proof& p, const std::string& what, const std::string& by) {
    for (const Difference& d : p.outputs) {
      std::string line = what + " '" + d.name + "', " + std::to_string(d.samples) + (report.random ? " random" : "") +
                         (d.samples == 1 ? " sample" : " samples") + ", by " + by + ": ";
      if (d.same_bits) line += "the same to the bit";
      else line += "largest error " + text("%.2g", d.largest) + " of the largest value, cosine " + text("%.6f", d.cosine);
      if (d.classes && !d.same_bits)
        line += ", first class the same in " + std::to_string(d.same_top1) + " of " + std::to_string(d.samples);
      lines.push_back(line);
    }
  };
  if (report.exact) proof(*report.exact, "rewrites, output", report.exact_by);
  if (report.whole) proof(*report.whole, "output", report.whole_by);
  for (const Entrance& e : report.entrances)
    if (e.error > e.before)
      lines.push_back("error enters at '" + e.layer + "': " + text("%.2g", e.before) + " -> " + text("%.2g", e.error));
  return lines;
}

}  // namespace sparkle::fix
