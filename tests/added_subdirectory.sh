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
compilers=(-DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx")
cmake -S "$work" -B "$work/build" -G Ninja "${compilers[@]}" >"$work/log" || { cat "$work/log"; exit 1; }
targets=$(ninja -C "$work/build" -t targets all)
if grep -E '(_test|_fuzz|^sparkle/sparkle|/bench/[a-z_]+): ' <<<"$targets"; then
  echo "the outer project gets tests, tools or the command"
  exit 1
fi
grep -q '^sparkle/libsparkle\.so.*: ' <<<"$targets"
ninja -C "$work/build" CMakeFiles/app.dir/app.c.o >"$work/log" || { tail -n 20 "$work/log"; exit 1; }
ninja -C "$work/build" -t commands app | grep 'libsparkle\.so' >/dev/null

if cmake -S "$source" -B "$work/without" -G Ninja "${compilers[@]}" -DCMAKE_IGNORE_PATH=/usr/include >"$work/log" 2>&1; then
  echo "configured without headers"
  exit 1
fi
tr -s ' \n' ' ' <"$work/log" |
  grep "without Highway's headers (Debian: libhwy-dev), nlohmann/json.hpp (Debian: nlohmann-json3-dev), .*install" >/dev/null
echo "added subdirectory: the outer project builds against sparkle::sparkle"
