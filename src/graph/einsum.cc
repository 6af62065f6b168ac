#include "graph/einsum.h"

#include <algorithm>
#include <map>

namespace sparkle {
namespace {

// Letters stand for themselves, the axes of an ellipsis for -1 (the last one), -2, ...
using Labels = std::vector<int>;

bool has(const Labels& labels, int label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

// A tensor on its way, one label per axis.
struct Operand {
  TensorId id = kAbsent;
  Labels labels;
  std::vector<int64_t> sizes;

  int64_t size_of_label(int label) const {
    for (size_t i = 0; i < labels.size(); ++i)
      if (labels[i] == label) return sizes[i];
    return 1;
  }
};

class Expansion {
 public:
  Expansion(Graph& graph, const Op& op) : graph_(graph), op_(op), equation_(std::get<EinsumOp>(op.params).equation) {}

  Result<std::vector<Op>> run() {
    SPARKLE_CHECK(parse());
    for (Operand& operand : operands_) take_diagonals(operand);
    for (size_t i = 0; i < operands_.size(); ++i) sum_alone(i);
    Operand all = operands_[0];
    for (size_t i = 1; i < operands_.size(); ++i) SPARKLE_CHECK(multiply(all, operands_[i], i + 1));
    arrange(all, output_);
    if (steps_.empty()) reshape(all, all.labels, all.sizes);  // nothing to do but to hand the tensor on
    steps_.back().outputs = op_.outputs;
    return std::move(steps_);
  }

 private:
  Error fail(Reason reason, const std::string& what) const {
    return {reason, "Node '" + op_.name + "' (" + op_.type + "): its equation '" + equation_ + "' " + what + "."};
  }

  // -- reading

  // "ab...c" for a tensor with `ellipsis` axes at the dots.
  Status parse_term(const std::string& term, int ellipsis, Labels& labels) const {
    bool dots = false;
    for (size_t i = 0; i < term.size(); ++i) {
      const char c = term[i];
      if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
        labels.push_back(c);
      } else if (term.compare(i, 3, "...") == 0 && !dots) {
        for (int k = ellipsis; k >= 1; --k) labels.push_back(-k);
        dots = true;
        i += 2;
      } else {
        return fail(Reason::bad_model, "is not made of letters, commas, one arrow and one '...' per term");
      }
    }
    return ok();
  }

  Status parse() {
    std::string text;
    for (char c : equation_)
      if (c != ' ' && c != '\t') text += c;
    const size_t arrow = text.find("->");
    const std::string left = text.substr(0, arrow);
    std::vector<std::string> terms{""};
    for (char c : left) {
      if (c == ',') {
        terms.emplace_back();
      } else {
        terms.back() += c;
      }
    }
    if (terms.size() != op_.inputs.size())
      return fail(Reason::bad_model,
                  "has " + std::to_string(terms.size()) + " terms for " + std::to_string(op_.inputs.size()) + " inputs");
    int most = 0;  // axes of the longest ellipsis
    std::map<int, int> count;
    for (size_t i = 0; i < terms.size(); ++i) {
      SPARKLE_TRY(operand, parse_operand(terms[i], op_.inputs[i]));
      for (int label : operand.labels) {
        most = std::max(most, -label);
        ++count[label];
      }
      operands_.push_back(std::move(operand));
    }
    if (arrow == std::string::npos) {
      for (int k = most; k >= 1; --k) output_.push_back(-k);
      for (const auto& [label, times] : count)
        if (label > 0 && times == 1) output_.push_back(label);
    } else {
      SPARKLE_CHECK(parse_term(text.substr(arrow + 2), most, output_));
    }
    for (size_t i = 0; i < output_.size(); ++i)
      if (!count.contains(output_[i]) || std::count(output_.begin(), output_.end(), output_[i]) > 1)
        return fail(Reason::bad_model, "has an output whose letters are not all different letters of its inputs");
    if (output_.size() > kMaxRank) return fail(Reason::operator_not_served, "has an output of more than 8 axes");
    return check_sizes();
  }

  Result<Operand> parse_operand(const std::string& term, TensorId id) const {
    if (id == kAbsent) return fail(Reason::bad_model, "has a term without an input");
    const Dims& shape = graph_.tensor(id).shape;
    const auto letters = std::count_if(term.begin(), term.end(), [](char c) { return c != '.'; });
    const bool dots = term.find("...") != std::string::npos;
    const int ellipsis = dots ? shape.size() - static_cast<int>(letters) : 0;
    Operand operand{id, {}, {shape.begin(), shape.end()}};
    if (ellipsis >= 0) SPARKLE_CHECK(parse_term(term, ellipsis, operand.labels));
    if (operand.labels.size() != operand.sizes.size())
      return fail(Reason::bad_shape, "does not fit its input '" + graph_.tensor(id).name + "' of shape " + shape.to_string());
    return operand;
  }

  // A letter has one size everywhere; axes of an ellipsis broadcast.
  Status check_sizes() const {
    std::map<int, int64_t> sizes;
    for (const Operand& operand : operands_)
      for (size_t i = 0; i < operand.labels.size(); ++i) {
        const int label = operand.labels[i];
        const auto [at, fresh] = sizes.emplace(label, operand.sizes[i]);
        if (label < 0 && at->second == 1) at->second = operand.sizes[i];
        if (at->second != operand.sizes[i] && !(label < 0 && operand.sizes[i] == 1))
          return fail(Reason::bad_shape,
                      "gives one axis the sizes " + std::to_string(at->second) + " and " + std::to_string(operand.sizes[i]));
      }
    return ok();
  }

  // -- steps

  void step(OpParams params, std::vector<TensorId> inputs, Operand& result) {
    GraphTensor tensor;
    tensor.name = op_.name + ":" + std::to_string(steps_.size() + 1);
    const TensorId id = graph_.add(std::move(tensor));
    steps_.push_back({op_.name, op_.type, std::move(params), std::move(inputs), {id}});
    result.id = id;
  }

  void reshape(Operand& x, const Labels& labels, const std::vector<int64_t>& sizes) {
    ReshapeOp op;
    op.target = Dims(std::span<const int64_t>(sizes));
    op.allow_zero = op.target_given = true;
    step(op, {x.id}, x);
    x.labels = labels, x.sizes = sizes;
  }

  // Brings the axes into this order of labels.
  void arrange(Operand& x, const Labels& labels) {
    if (x.labels == labels) return;
    TransposeOp op;
    std::vector<int64_t> sizes;
    for (int label : labels) {
      const auto axis = std::find(x.labels.begin(), x.labels.end(), label) - x.labels.begin();
      op.permutation.push_back(axis);
      sizes.push_back(x.sizes[static_cast<size_t>(axis)]);
    }
    step(op, {x.id}, x);
    x.labels = labels, x.sizes = sizes;
  }

  // A label that comes twice in a term: the two axes become one of n * n elements, of which every (n + 1)-th stays.
  void take_diagonals(Operand& x) {
    for (;;) {
      size_t first = 0, second = 0;
      for (size_t i = 0; i < x.labels.size() && second == 0; ++i)
        for (size_t j = i + 1; j < x.labels.size() && second == 0; ++j)
          if (x.labels[i] == x.labels[j]) first = i, second = j;
      if (second == 0) return;
      // Stand-ins for the pair while axes are moved: the label may come a third time.
      constexpr int kFirst = 1, kSecond = 2;
      const int label = x.labels[first];
      const int64_t n = x.sizes[first];
      x.labels[first] = kFirst, x.labels[second] = kSecond;
      Labels order;
      for (int l : x.labels)
        if (l != kFirst && l != kSecond) order.push_back(l);
      order.push_back(kFirst), order.push_back(kSecond);
      arrange(x, order);
      std::vector<int64_t> sizes(x.sizes.begin(), x.sizes.end() - 1);
      sizes.back() = n * n;
      order.pop_back();
      order.back() = label;
      reshape(x, order, sizes);
      const auto axis = static_cast<int64_t>(order.size()) - 1;
      step(SliceOp{{0}, {n * n}, {axis}, {n + 1}}, {x.id}, x);
      x.sizes.back() = n;
    }
  }

  bool needed(int label, size_t first) const {
    if (has(output_, label)) return true;
    for (size_t i = first; i < operands_.size(); ++i)
      if (has(operands_[i].labels, label)) return true;
    return false;
  }

  // Sums over the labels that nothing but this operand has.
  void sum_alone(size_t index) {
    Operand& x = operands_[index];
    ReduceOp op;
    op.keep_dims = false;
    Labels labels;
    std::vector<int64_t> sizes;
    for (size_t i = 0; i < x.labels.size(); ++i) {
      bool alone = !has(output_, x.labels[i]);
      for (size_t j = 0; j < operands_.size(); ++j) alone = alone && (j == index || !has(operands_[j].labels, x.labels[i]));
      if (alone) {
        op.axes.push_back(static_cast<int64_t>(i));
      } else {
        labels.push_back(x.labels[i]), sizes.push_back(x.sizes[i]);
      }
    }
    if (op.axes.empty()) return;
    step(op, {x.id}, x);
    x.labels = labels, x.sizes = sizes;
  }

  // An axis of an ellipsis of size 1 that the other operand has longer is left away: it broadcasts as if it were missing.
  void drop_broadcast(Operand& x, const Operand& other) {
    Labels labels;
    std::vector<int64_t> sizes;
    for (size_t i = 0; i < x.labels.size(); ++i) {
      if (x.sizes[i] == 1 && has(other.labels, x.labels[i]) && other.size_of_label(x.labels[i]) != 1) continue;
      labels.push_back(x.labels[i]), sizes.push_back(x.sizes[i]);
    }
    if (labels.size() != x.labels.size()) reshape(x, labels, sizes);
  }

  // all = all * next, summed over what both have and neither the output nor the operands from `later` on need: matrices
  // [left, summed] times [summed, right] in a batch.
  Status multiply(Operand& all, Operand next, size_t later) {
    drop_broadcast(all, next);
    drop_broadcast(next, all);
    Labels batch, summed, left, right;
    for (int label : all.labels) (!has(next.labels, label) ? left : needed(label, later) ? batch : summed).push_back(label);
    for (int label : next.labels)
      if (!has(all.labels, label)) right.push_back(label);
    if (batch.size() + left.size() + right.size() > kMaxRank)
      return fail(Reason::operator_not_served, "multiplies into more than 8 axes");
    Labels result;
    std::vector<int64_t> sizes;
    const auto volume = [](const Operand& x, const Labels& labels) {
      int64_t product = 1;
      for (int label : labels) product *= x.size_of_label(label);
      return product;
    };
    for (const auto& [operand, labels] : {std::pair{&all, &batch}, {&all, &left}, {&next, &right}})
      for (int label : *labels) result.push_back(label), sizes.push_back(operand->size_of_label(label));
    const int64_t b = volume(all, batch), m = volume(all, left), k = volume(all, summed), n = volume(next, right);
    const auto joined = [](std::initializer_list<const Labels*> lists) {
      Labels labels;
      for (const Labels* list : lists) labels.insert(labels.end(), list->begin(), list->end());
      return labels;
    };
    arrange(all, joined({&batch, &left, &summed}));
    arrange(next, joined({&batch, &summed, &right}));
    reshape(all, {}, {b, m, k});
    reshape(next, {}, {b, k, n});
    // Without a sum the product of [b, m, 1] and [b, 1, n] is element-wise.
    const TensorId inputs[2] = {all.id, next.id};
    if (summed.empty()) {
      step(PointwiseNode{PointwiseOp::mul, 0, 0}, {inputs[0], inputs[1]}, all);
    } else {
      step(MatMulOp{}, {inputs[0], inputs[1]}, all);
    }
    reshape(all, result, sizes);
    return ok();
  }

  Graph& graph_;
  const Op& op_;
  const std::string& equation_;
  std::vector<Operand> operands_;
  Labels output_;
  std::vector<Op> steps_;
};

}  // namespace

Result<std::vector<Op>> expand_einsum(Graph& graph, const Op& op) { return Expansion(graph, op).run(); }

}  // namespace sparkle
