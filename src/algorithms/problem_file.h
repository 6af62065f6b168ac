// Problem files of oneDNN's benchdnn, driver conv, read as they are: what whoever tunes convolutions has lying about.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/problem.h"

namespace sparkle {

// What the command line says for all that a file leaves unsaid; empty: f32, and FWD_B.
struct ProblemFileOptions {
  std::string dt, dir;
};

struct ProblemFile {
  std::vector<NamedProblem> problems;  // with a bias or a ReLU where the file says so
  std::vector<std::string> notes;      // what a file says and nobody does here, a sentence each
};

// Words between blanks, "#" begins a comment: problems, and options that hold for what follows. --dt=f32, f16, bf16 or several;
// --dir=FWD_B (a bias), FWD_D, FWD_I; --mb=N in the place of each problem's own; --attr-post-ops=relu; --reset; --batch=FILE,
// beside the file that names it. n"name" is the problem's name. Other types, directions and options become notes. Errors:
// bad_format naming file and line; bad_usage where no problem is left; those of reading files.
Result<ProblemFile> read_problem_file(const std::string& path, const ProblemFileOptions& options);

// The same of a text; `read`: the text of a file by its path.
using ReadText = std::function<Result<std::string>(const std::string& path)>;
Result<ProblemFile> parse_problem_file(std::string_view text, const std::string& where, const ProblemFileOptions& options,
                                       const ReadText& read);

}  // namespace sparkle
