#!/bin/bash
# A project that takes Sparkle in by add_subdirectory: it configures, gets the library as sparkle::sparkle and nothing that it
# did not ask for, and its files find the headers; where packages are missing, one sentence names them all. The library is not
# built once more for it. tests/added_subdirectory.sh CXX CC
set -euo pipefail
cxx=$1 cc=$2
source=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/CMakeLists.txt" <<TEXT
cmake_minimum_required(VERSION 3.25)
project(outer LANGUAGES C CXX)
add_subdirectory($source sparkle)
add_executable(app app.c)
target_link_libraries(app PRIVATE sparkle::sparkle)
TEXT
cp "$source/examples/c/run_model.c" "$work/app.c"
# Kernels for GPUs are made before anything that is linked with the library: they are left out, wherever nvcc may be.
compilers=(-DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" -DSPARKLE_CUDA=OFF -DSPARKLE_VULKAN=OFF)
cmake -S "$work" -B "$work/build" -G Ninja "${compilers[@]}" >"$work/log" || { cat "$work/log"; exit 1; }
targets=$(ninja -C "$work/build" -t targets all)
if grep -E '(_test|_fuzz|^sparkle/sparkle|/bench/[a-z_]+): ' <<<"$targets"; then
  echo "the outer project gets tests, tools or the command"
  exit 1
fi
grep -q '^sparkle/libsparkle\.so.*: ' <<<"$targets"
ninja -C "$work/build" CMakeFiles/app.dir/app.c.o >"$work/log" || { tail -n 20 "$work/log"; exit 1; }
ninja -C "$work/build" -t commands app | grep 'libsparkle\.so' >/dev/null

# The same by FetchContent, also where a part of the project asks by find_package.
mkdir "$work/fetching"
cp "$work/app.c" "$work/fetching"
cat >"$work/fetching/CMakeLists.txt" <<TEXT
cmake_minimum_required(VERSION 3.25)
project(fetching LANGUAGES C CXX)
include(FetchContent)
FetchContent_Declare(sparkle SOURCE_DIR $source OVERRIDE_FIND_PACKAGE)
find_package(sparkle 0.1 REQUIRED)
add_executable(app app.c)
target_link_libraries(app PRIVATE sparkle::sparkle)
TEXT
cmake -S "$work/fetching" -B "$work/fetched" -G Ninja "${compilers[@]}" >"$work/log" || { cat "$work/log"; exit 1; }
ninja -C "$work/fetched" CMakeFiles/app.dir/app.c.o >"$work/log" || { tail -n 20 "$work/log"; exit 1; }
ninja -C "$work/fetched" -t commands app | grep 'libsparkle\.so' >/dev/null

if cmake -S "$source" -B "$work/without" -G Ninja "${compilers[@]}" -DCMAKE_IGNORE_PATH=/usr/include >"$work/log" 2>&1; then
  echo "configured without headers"
  exit 1
fi
tr -s ' \n' ' ' <"$work/log" |
  grep "without Highway's headers (Debian: libhwy-dev), nlohmann/json.hpp (Debian: nlohmann-json3-dev), .*install" >/dev/null
echo "added subdirectory: the outer projects build against sparkle::sparkle"
