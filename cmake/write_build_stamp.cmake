# Writes FILE with the commit of SOURCE as git knows it, where that has changed. What no measurement can feel - texts and results -
# may differ from the commit.
set(commit unknown)
set(clean false)
if(GIT)
  execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse --show-prefix HEAD OUTPUT_VARIABLE answer RESULT_VARIABLE status
    ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  # The prefix is empty where SOURCE is the top of the repository: a copy inside of another project has no commit of its own.
  if(status EQUAL 0 AND answer MATCHES "^\n?([0-9a-f]+)$")
    set(commit ${CMAKE_MATCH_1})
    execute_process(COMMAND ${GIT} -C ${SOURCE} status --porcelain -- . ":(exclude)bench/results" ":(exclude)docs" ":(exclude)*.md"
      OUTPUT_VARIABLE changes RESULT_VARIABLE status ERROR_QUIET)
    if(status EQUAL 0 AND changes STREQUAL "")
      set(clean true)
    endif()
  endif()
endif()
set(text "#include \"bench_command/certificate.h\"

namespace sparkle::cli {
const BuildStamp kBuildStamp{\"${commit}\", ${clean}};
}  // namespace sparkle::cli
")
set(before "")
if(EXISTS ${FILE})
  file(READ ${FILE} before)
endif()
if(NOT before STREQUAL text)
  file(WRITE ${FILE} "${text}")
endif()
