# Which commit a build is of, for the certificates of results (cli/bench_command/certificate.h). git is asked at every build, not when CMake
# configures; the file changes only when the answer does, and only the command holds it: a commit compiles one small file.
find_package(Git QUIET)
add_custom_target(build_stamp BYPRODUCTS ${PROJECT_BINARY_DIR}/build_stamp.cc COMMENT ""
  COMMAND ${CMAKE_COMMAND} -D GIT=${GIT_EXECUTABLE} -D SOURCE=${PROJECT_SOURCE_DIR} -D FILE=${PROJECT_BINARY_DIR}/build_stamp.cc
    -P ${PROJECT_SOURCE_DIR}/cmake/write_build_stamp.cmake)
