# Cross build for 64-bit Arm Linux with Debian's g++-aarch64-linux-gnu; tests run under qemu-user-static with every extension
# that the emulator knows (SVE included, with vectors of 256 bits: twice those of NEON).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
foreach(version -12 "")
  find_program(AARCH64_CXX aarch64-linux-gnu-g++${version})
  find_program(AARCH64_CC aarch64-linux-gnu-gcc${version})
endforeach()
set(CMAKE_C_COMPILER ${AARCH64_CC})
set(CMAKE_CXX_COMPILER ${AARCH64_CXX})
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static;-L;/usr/aarch64-linux-gnu;-cpu;max,sve-default-vector-length=32)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# Headers that are the same for every machine (Highway, nlohmann-json) come from /usr/include, where the compiler looks too.
