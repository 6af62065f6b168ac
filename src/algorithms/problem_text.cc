// Reading problems: benchmark strings and layer lists.
#include <algorithm>
#include <map>
#include <sstream>

#include "algorithms/problem.h"
#include "base/printable.h"
#include "base/files/read_file.h"

namespace sparkle {
namespace {

Error usage(const std::string& sentence) { return {Reason::bad_usage, sentence}; }

// Sizes so large that products could overflow are refused here, before anyone multiplies them.
constexpr int64_t kLargest = int64_t{1} << 28;

struct Sides {  // begin and end padding or one size, per D,H,W
  std::map<std::string, int64_t, std::less<>> values;
  int64_t get(std::initializer_list<std::string_view> names, int64_t otherwise) const {
    for (std::string_view name : names)
      if (auto at = values.find(name); at != values.end()) return at->second;
    return otherwise;
  }
  bool has(std::string_view name) const { return values.find(name) != values.end(); }
};

Status finish(Problem& p, const Triple& given_out, const Triple& given_end) {
  if (p.n < 1 || p.c < 1 || p.k < 1 || p.groups < 1) return usage("A convolution needs n, c, k and groups of at least 1.");
  if (p.c % p.groups != 0 || p.k % p.groups != 0)
    return usage("The groups (" + std::to_string(p.groups) + ") must divide the channels (" + std::to_string(p.c) +
                 ") and the filters (" + std::to_string(p.k) + ").");
  double x = static_cast<double>(p.n) * static_cast<double>(p.c), y = static_cast<double>(p.n) * static_cast<double>(p.k);
  double weights = static_cast<double>(p.k) * static_cast<double>(p.c / p.groups);
  for (size_t i = 0; i < 3; ++i) {
    const Window& w = p.window;
    if (p.in[i] < 1 || w.filter[i] < 1 || w.stride[i] < 1 || w.dilation[i] < 1)
      return usage("Sizes, filter, stride and dilation must be at least 1.");
    const int64_t reach = w.dilation[i] * (w.filter[i] - 1) + 1;
    if (given_out[i] > 0) {
      p.out[i] = given_out[i];
      p.window.pad_end[i] = std::max<int64_t>(0, (p.out[i] - 1) * w.stride[i] + reach - p.in[i] - w.pad_begin[i]);
    } else {
      p.window.pad_end[i] = given_end[i] >= 0 ? given_end[i] : w.pad_begin[i];
      const int64_t room = p.in[i] + w.pad_begin[i] + p.window.pad_end[i] - reach;
      if (room < 0) return usage("The filter reaches beyond the padded input, so there is no output.");
      p.out[i] = room / w.stride[i] + 1;
    }
    x *= static_cast<double>(p.in[i]);
    y *= static_cast<double>(p.out[i]);
    weights *= static_cast<double>(w.filter[i]);
  }
  for (const auto& [name, elements] : {std::pair("input", x), std::pair("output", y), std::pair("filter", weights)})
    if (elements > 1e12) return usage("The " + std::string(name) + " of the convolution would have more than 1e12 elements.");
  return ok();
}

}  // namespace

Result<Problem> parse_conv(std::string_view text) {
  Problem p;
  Sides sides;
  size_t at = 0;
  static constexpr std::array<std::string_view, 27> known = {"g",  "mb", "ic", "id", "ih",  "iw",  "oc",  "od", "oh",
                                                             "ow", "kd", "kh", "kw", "sd",  "sh",  "sw",  "pd", "ph",
                                                             "pw", "dd", "dh", "dw", "ped", "peh", "pew", "k",  "p"};
  while (at < text.size()) {
    if (text[at] == '_' || text[at] == ' ') {
      ++at;
      continue;
    }
    size_t letters = at;
    while (letters < text.size() && text[letters] >= 'a' && text[letters] <= 'z') ++letters;
    const std::string name(text.substr(at, letters - at));
    if (name == "n" && letters < text.size() && text[letters] == '"') break;  // the problem's own name ends the text
    size_t digits = letters;
    while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
    int64_t value = 0;
    if (std::find(known.begin(), known.end(), name) == known.end() || digits == letters ||
        !record_detail::parse_number(text.substr(letters, digits - letters), value) || value > kLargest)
      return usage("'" + std::string(text.substr(at, 12)) + "' is not part of a convolution such as ic64ih56oc64oh56kh3ph1.");
    sides.values[name] = value;
    at = digits;
  }
  // Of one dimension: a row of pixels.
  if (!sides.has("ih") && sides.has("iw") && !sides.has("kh") && sides.has("kw") && !sides.has("id"))
    for (const auto& [name, value] :
         {std::pair("ih", 1), std::pair("kh", 1), std::pair("sh", 1), std::pair("ph", 0), std::pair("dh", 0)})
      sides.values.emplace(name, value);
  if (!sides.has("ic") || !sides.has("oc") || !sides.has("ih") || !sides.has("kh"))
    return usage("A convolution needs at least ic, ih, oc and kh (of one dimension iw and kw), as in ic64ih56oc64oh56kh3ph1.");
  p.n = sides.get({"mb"}, 1), p.c = sides.get({"ic"}, 1), p.k = sides.get({"oc"}, 1), p.groups = sides.get({"g"}, 1);
  const bool three = sides.has("id") || sides.has("kd");
  p.rank = three ? 3 : 2;
  p.in = {three ? sides.get({"id", "ih"}, 1) : 1, sides.get({"ih"}, 1), sides.get({"iw", "ih"}, 1)};
  p.window.filter = {three ? sides.get({"kd", "kh"}, 1) : 1, sides.get({"kh"}, 1), sides.get({"kw", "kh"}, 1)};
  p.window.stride = {three ? sides.get({"sd", "sh"}, 1) : 1, sides.get({"sh"}, 1), sides.get({"sw", "sh"}, 1)};
  p.window.dilation = {three ? sides.get({"dd", "dh"}, 0) + 1 : 1, sides.get({"dh"}, 0) + 1, sides.get({"dw", "dh"}, 0) + 1};
  p.window.pad_begin = {three ? sides.get({"pd", "ph"}, 0) : 0, sides.get({"ph"}, 0), sides.get({"pw", "ph"}, 0)};
  const Triple out{three ? sides.get({"od", "oh"}, 0) : 0, sides.get({"oh"}, 0), sides.get({"ow", "oh"}, 0)};
  const Triple end{three ? sides.get({"ped"}, -1) : 0, sides.get({"peh"}, -1), sides.get({"pew"}, -1)};
  SPARKLE_CHECK(finish(p, out, end));
  return p;
}

namespace {

Result<Problem> product(int64_t rows, int64_t columns, int64_t depth) {
  if (rows < 1 || columns < 1 || depth < 1) return usage("A product needs sizes of at least 1.");
  const double m = static_cast<double>(rows), n = static_cast<double>(columns), k = static_cast<double>(depth);
  if (std::max({m * k, k * n, m * n}) > 1e12) return usage("A matrix of the product would have more than 1e12 elements.");
  Problem p;
  p.kind = ProblemKind::matmul;
  p.rows = rows, p.columns = columns, p.depth = depth;
  return p;
}

}  // namespace

Result<Problem> parse_gemm(std::string_view text) {
  std::array<int64_t, 3> sizes{};
  size_t at = 0;
  for (size_t i = 0; i < 3; ++i) {
    const size_t end = i < 2 ? text.find('x', at) : text.size();
    if (end == std::string_view::npos || !record_detail::parse_number(text.substr(at, end - at), sizes[i]) ||
        sizes[i] > kLargest)
      return usage("'" + std::string(text) + "' is not a matrix product such as 64x12544x147 (m x n x k).");
    at = end + 1;
  }
  return product(sizes[0], sizes[1], sizes[2]);
}

Result<std::vector<NamedProblem>> parse_layers(std::string_view text, std::string_view where) {
  const auto bad = [&](int line, const std::string& what) {
    return Error{Reason::bad_format, std::string(where) + ":" + std::to_string(line) + ": " + what};
  };
  std::vector<std::string> columns;
  std::vector<NamedProblem> layers;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> cells;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
    if (columns.empty()) {
      columns = cells;
      for (std::string_view need : {"name", "c", "h", "w", "k", "r", "s"})
        if (std::find(columns.begin(), columns.end(), need) == columns.end())
          return bad(number, "the header lacks the column '" + std::string(need) + "'.");
      continue;
    }
    if (cells.size() > columns.size()) return bad(number, "more cells than the header has columns.");
    NamedProblem layer;
    Sides sides;
    bool gemm = false;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (columns[i] == "name") {
        layer.name = cells[i];
        if (printable(layer.name) != layer.name)
          return bad(number, "the name '" + layer.name + "' holds control characters or more than 200 bytes.");
      } else if (columns[i] == "dtype") {
        if (!dtype_from(cells[i])) return bad(number, "'" + cells[i] + "' is not an element type.");
        layer.problem.dtype = cells[i];
      } else if (columns[i] == "kind") {
        if (cells[i] != "conv" && cells[i] != "gemm" && !cells[i].empty())
          return bad(number, "'" + cells[i] + "' is not a kind of layer; write conv or gemm.");
        gemm = cells[i] == "gemm";
      } else if (columns[i] == "old_what") {
        layer.old_what = cells[i];
      } else if (columns[i] == "old_ms") {
        if (!cells[i].empty() && (!record_detail::parse_number(cells[i], layer.old_ms) || !(layer.old_ms > 0)))
          return bad(number, "column 'old_ms' holds '" + cells[i] + "', which is not a time.");
      } else {
        int64_t value = 0;
        if (!record_detail::parse_number(cells[i], value) || value < 0 || value > kLargest)
          return bad(number, "column '" + columns[i] + "' holds '" + cells[i] + "', which is not a size.");
        sides.values[columns[i]] = value;
      }
    }
    Problem& p = layer.problem;
    if (gemm) {
      auto made = product(sides.get({"k"}, 0), sides.get({"h"}, 0) * sides.get({"w"}, 0), sides.get({"c"}, 0));
      if (!made.ok()) return bad(number, made.error().message);
      const std::string dtype = p.dtype;
      p = std::move(*made), p.dtype = dtype;
      layers.push_back(std::move(layer));
      continue;
    }
    p.n = sides.get({"n"}, 1), p.c = sides.get({"c"}, 0), p.k = sides.get({"k"}, 0), p.groups = sides.get({"groups"}, 1);
    p.in = {1, sides.get({"h"}, 0), sides.get({"w"}, 0)};
    p.window.filter = {1, sides.get({"r"}, 0), sides.get({"s"}, 0)};
    p.window.stride = {1, sides.get({"stride_h"}, 1), sides.get({"stride_w", "stride_h"}, 1)};
    p.window.pad_begin = {0, sides.get({"pad_h"}, 0), sides.get({"pad_w", "pad_h"}, 0)};
    p.window.dilation = {1, sides.get({"dil_h"}, 1), sides.get({"dil_w", "dil_h"}, 1)};
    const Triple end{0, sides.get({"pad_h_end"}, -1), sides.get({"pad_w_end"}, -1)};
    if (auto status = finish(p, {0, 0, 0}, end); !status.ok()) return bad(number, status.error().message);
    layers.push_back(std::move(layer));
  }
  if (columns.empty()) return bad(1, "the list is empty; the first line names the columns.");
  return layers;
}

Result<std::vector<NamedProblem>> read_layers(const std::string& path) {
  SPARKLE_TRY(text, read_file(path, {"layer list", int64_t{16} << 20, true}));
  return parse_layers(text, path);
}

}  // namespace sparkle
