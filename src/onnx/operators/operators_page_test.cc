// docs/operators.md is printed from the tables that models are read by: which operators of which opsets are supported, where
// the page of element types has them, and which forms are left.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "families/types.h"
#include "onnx/node.h"
#include "onnx/operators/operators.h"
#include "onnx/reader.h"

namespace sparkle {
namespace {

// What is refused of an operator that is supported else, or how it runs where that is worth knowing.
const std::map<std::string_view, std::string_view> kNotes = {
    {"BatchNormalization",
     "of the training form, `training_mode` 1, what it finds and moves on; no saved statistics before opset 14"},
    {"BitCast", "the model runs in parts: the host reads the bits"},
    {"BitShift", "the model runs in parts: the host computes bits"},
    {"BitwiseAnd", "the model runs in parts: the host computes bits"},
    {"BitwiseNot", "the model runs in parts: the host computes bits"},
    {"BitwiseOr", "the model runs in parts: the host computes bits"},
    {"BitwiseXor", "the model runs in parts: the host computes bits"},
    {"Col2Im", "images of up to three axes; a transposed convolution"},
    {"Compress", "the model runs in parts: its results have sizes that only data tell"},
    {"DFT", "a product with a matrix of up to 2^24 elements"},
    {"Det", "the model runs in parts: the host computes it, in double precision"},
    {"Dropout", "as in inference; `training_mode` has to be known to be false"},
    {"GRU", "written out step by step, up to 4,096 steps of all directions"},
    {"GridSample", "images and volumes"},
    {"If", "a condition known before the run takes its branch into the graph; else the model runs in parts"},
    {"LSTM",
     "written out step by step, up to 4,096 steps of all directions; `clip` bounds what each activation is given, the cell "
     "too"},
    {"LinearAttention", "written out step by step, up to 4,096 steps"},
    {"Loop", "the model runs in parts; the body is planned once for each set of shapes"},
    {"LpNormalization", "`p` 1 and 2"},
    {"LpPool", "`p` 1, 2 and 3; others by plain loops"},
    {"NonMaxSuppression", "its rows are padded where their count is not asked for, else the model runs in parts"},
    {"NonZero", "the model runs in parts: its results have sizes that only data tell"},
    {"Optional", "of tensors, with an element"},
    {"OptionalGetElement", "of tensors, with an element"},
    {"OptionalHasElement", "where the model itself tells"},
    {"RNN", "written out step by step, up to 4,096 steps of all directions"},
    {"STFT", "a convolution with a matrix of up to 2^24 elements"},
    {"Scan", "from opset 9 on; the model runs in parts"},
    {"Unique", "the model runs in parts: its results have sizes that only data tell"},
};

// Rows of the table of element types by the operators that they name.
std::map<std::string, std::set<std::string>> families_by_operator() {
  std::map<std::string, std::set<std::string>> rows;
  for (int i = 0; i < kFamilies; ++i)
    for (const TypeRow& row : info(static_cast<Family>(i)).types) {
      std::istringstream names{std::string(row.operators)};
      for (std::string name; names >> name;) {
        if (name.back() == ',') name.pop_back();
        if (versions_of(name)) rows[name].insert(std::string(info(static_cast<Family>(i)).name));
      }
    }
  return rows;
}

std::string forms_of(const OperatorVersions& versions, const OperatorRow& row) {
  std::string text;
  for (const OperatorForm& form : versions.forms) {
    if (form.opset == 0) continue;
    const std::string most = form.most_inputs == kAny ? "any" : std::to_string(form.most_inputs);
    const bool range = form.most_inputs != row.min_inputs;
    text += (text.empty() ? "" : "; from " + std::to_string(form.opset) + " on ") +
            (range ? std::to_string(row.min_inputs) + " to " + most : most);
  }
  return text;
}

std::string operators_page() {
  std::map<std::string_view, const OperatorRow*> supported;
  for (const auto& theme : operator_themes())
    for (const OperatorRow& row : theme) supported[row.type] = &row;
  const auto families = families_by_operator();

  std::string table, missing;
  int count = 0, all = 0;
  for (const OperatorVersions& versions : all_operators()) {
    const std::string name(versions.type);
    ++all;
    const auto row = supported.find(versions.type);
    if (row == supported.end()) {
      missing += (missing.empty() ? "" : ", ") + name;
      continue;
    }
    ++count;
    std::string opsets = std::to_string(versions.since());
    if (name.find('.') != std::string::npos) {
      opsets = "com.microsoft 1";
    } else if (versions.withdrawn) {
      opsets += " to " + std::to_string(versions.withdrawn - 1);
    } else {
      opsets += " to " + std::to_string(kNewestOpset);
    }
    std::string types;
    if (const auto found = families.find(name); found != families.end())
      for (const std::string& family : found->second) types += (types.empty() ? "" : ", ") + family;
    const auto note = kNotes.find(versions.type);
    table += "| " + name + " | " + opsets + " | " + forms_of(versions, *row->second) + " | " + types + " | " +
             std::string(note == kNotes.end() ? "" : note->second) + " |\n";
  }
  return "# Operators\n\n"
         "Printed from the tables in `src/onnx/operators` (`SPARKLE_UPDATE_DOCS=1` and the test "
         "`OperatorsPage.IsPrintedFromTheTables`).\n\n" +
         std::to_string(count) + " of " + std::to_string(all) +
         " operators of ONNX and of com.microsoft are supported, in every opset that has them and with all of their attributes "
         "but\n"
         "where a note says less; functions of a model are inlined, whatever their domain. Opening a model names every node "
         "that\n"
         "cannot run, counted by operator, and says why; `sparkle check` does so for models that it cannot open as well.\n\n"
         "The column *family* tells which rows of [element_types.md](element_types.md) say in which types the operator "
         "computes;\n"
         "an operator without one is written with others when a model is read, or folded before it runs.\n\n"
         "| operator | opsets | inputs | family | note |\n|---|---|---|---|---|\n" +
         table + "\n## Not supported\n\n" + missing + ".\n";
}

TEST(OperatorsPage, IsPrintedFromTheTables) {
  const std::string path = SPARKLE_SOURCE_DIR "/docs/operators.md";
  if (std::getenv("SPARKLE_UPDATE_DOCS")) std::ofstream(path) << operators_page();
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), operators_page()) << path << " is older than the operators; run this test with SPARKLE_UPDATE_DOCS=1.";
}

TEST(OperatorsPage, NotesAreOfOperatorsThatAreSupported) {
  for (const auto& [name, note] : kNotes) EXPECT_TRUE(find_operator("", std::string(name))) << name << ": " << note;
}

}  // namespace
}  // namespace sparkle
