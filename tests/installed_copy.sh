#!/bin/bash
# Installs the build into an empty folder, moves it, builds the examples against it by find_package and by pkg-config, and runs
# them. tests/installed_copy.sh BUILD_FOLDER CXX CC
set -euo pipefail
build=$1 cxx=$2 cc=$3
source=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/prefix"  # nothing may remember where it was installed
library=$(dirname "$(find "$work/prefix" -name 'libsparkle.so')")
export LD_LIBRARY_PATH=$library

for language in c cpp; do
  cmake -S "$source/examples/$language" -B "$work/$language" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_C_FLAGS='-Wall -Wextra -Werror' -DCMAKE_CXX_FLAGS='-Wall -Wextra -Werror' \
    --no-warn-unused-cli >/dev/null
  cmake --build "$work/$language" >/dev/null
done

# The command needs nothing beside it; what it says of itself is beside it.
"$work/prefix/bin/sparkle" --version >/dev/null
cmp "$work/prefix/share/man/man1/sparkle.1" <("$work/prefix/bin/sparkle" man)
for page in bash:bash-completion/completions/sparkle zsh:zsh/site-functions/_sparkle \
  fish:fish/vendor_completions.d/sparkle.fish; do
  cmp "$work/prefix/share/${page#*:}" <("$work/prefix/bin/sparkle" completion "${page%%:*}")
done
[ -s "$work/prefix/share/doc/sparkle/copyright" ]

# A minor version of 0.x is compatible with itself alone.
cat >"$work/versions.cmake" <<'TEXT'
set(CMAKE_SIZEOF_VOID_P 8)
foreach(wanted 0.1 0.1.0 0.2 0.0 1.0)
  set(PACKAGE_FIND_VERSION ${wanted})
  string(REPLACE "." ";" parts ${wanted})
  list(GET parts 0 PACKAGE_FIND_VERSION_MAJOR)
  list(GET parts 1 PACKAGE_FIND_VERSION_MINOR)
  unset(PACKAGE_VERSION_COMPATIBLE)
  include(${FILE})
  message("${wanted}: ${PACKAGE_VERSION_COMPATIBLE}")
endforeach()
TEXT
said=$(cmake "-DFILE=$library/cmake/sparkle/sparkle-config-version.cmake" -P "$work/versions.cmake" 2>&1 | tr '\n' ' ')
[ "$said" = "0.1: TRUE 0.1.0: TRUE 0.2: FALSE 0.0: FALSE 1.0: FALSE " ] || { echo "versions: $said"; exit 1; }

picture=$work/in.ppm
printf 'P6\n7 5\n255\n' >"$picture"
head -c 105 "$source/models/upscale2x.onnx" >>"$picture"
"$work/cpp/upscale" "$source/models/upscale2x.onnx" "$picture" "$work/out.ppm"
[ "$(head -c 13 "$work/out.ppm" | tr '\n' ' ')" = "P6 14 10 255 " ] && [ "$(stat -c %s "$work/out.ppm")" = $((13 + 3 * 140)) ]
"$work/c/run_model" "$source/models/upscale2x.onnx" | grep -q 'is the largest of 12:'
# With buffers of the program's own, where there is a device: nothing is moved, or a sentence says why it cannot be used.
if [ -x "$work/cpp/vulkan_tensors" ]; then
  if XDG_CACHE_HOME=$work "$work/cpp/vulkan_tensors" "$source/models/upscale2x.onnx" >"$work/said" 2>&1; then
    grep -q '; 0 copies, 0 transfers$' "$work/said"
  else
    grep -q 'vkCreateInstance failed\|no Vulkan device\|no Vulkan backend\|cannot be used' "$work/said"
  fi
fi
if "$work/c/run_model" "$picture" 2>"$work/error"; then exit 1; fi
grep -q '^bad_format: \|^bad_model: ' "$work/error"

if command -v pkg-config >/dev/null; then
  export PKG_CONFIG_PATH=$library/pkgconfig
  # shellcheck disable=SC2046
  "$cc" -std=c99 -pedantic -Wall -Werror "$source/examples/c/run_model.c" $(pkg-config --cflags --libs sparkle) \
    -o "$work/by_pkg_config"
  "$work/by_pkg_config" "$source/models/upscale2x.onnx" >/dev/null
fi
# Nothing but the interface is visible.
if nm -D --defined-only "$library/libsparkle.so" | awk '{ print $3 }' | grep -v '^sparkle_'; then exit 1; fi
echo "installed copy: the examples run"
