// The certificate of a result: by what command, commit, machine and versions it came about, and when. `bench` puts it into all
// that it prints as JSON or keeps, and the tools of bench/ and scripts/ ask the command for theirs ('sparkle certificate'), so
// that there is one writer. scripts/check holds the files of bench/results to it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace sparkle::cli {

// What was built: asked of git at each build by cmake/build_stamp.cmake. "unknown" where there is no repository of this
// project. Clean: nothing differed from the commit but texts (docs, *.md) and bench/results, which no measurement can feel.
struct BuildStamp {
  const char* commit;
  bool clean;
};
extern const BuildStamp kBuildStamp;

// The words of this process's command line, quoted for a shell; the certificate names them as its command.
void remember_command(int argc, char** argv);

// {"command", "commit", "clean", "date", "cpu", "versions", "load_average"}. `versions`: of other engines, {"NAME": "VERSION"}.
nlohmann::json certificate_of(const std::string& command, const nlohmann::json& versions);

// `result` with the certificate of this process in front of it; its member "versions" moves into the certificate.
nlohmann::json certified(nlohmann::json result);

}  // namespace sparkle::cli
