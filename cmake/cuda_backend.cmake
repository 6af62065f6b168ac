# The CUDA backend: built wherever libraries can be opened at run time, with nvcc's kernels in it where cmake/cuda.cmake found nvcc. The
# families with kernels: a file NAME.cc below stages/ that is called as a family makes that family's.
set(SPARKLE_WITH_CUDA OFF)
if(NOT SPARKLE_CUDA STREQUAL OFF AND UNIX)
  set(SPARKLE_WITH_CUDA ON)
endif()
file(GLOB_RECURSE stage_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/cuda/stages/*.cc)
file(STRINGS ${PROJECT_SOURCE_DIR}/src/families/families.inc families REGEX "^FAMILY")
set(KERNELS "")
foreach(family ${families})
  string(REGEX REPLACE "^FAMILY.([a-z_0-9]+),.*" "\\1" name ${family})
  if("${stage_files}" MATCHES "/${name}\\.cc(;|$)")
    string(APPEND KERNELS "KERNEL(${name})\n")
  endif()
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/cuda/cuda_stages.inc CONTENT "${KERNELS}" @ONLY)

# Texts that NVRTC is given at run time with programs that come with a model (src/backends/cuda/nvrtc/program_headers.h).
set(folder ${PROJECT_SOURCE_DIR}/src)
set(PROGRAM_HEADERS "")
set(header_files backends/cuda/ptx/target.cuh backends/cuda/ptx/operand.h backends/cuda/ptx/memory.cuh backends/cuda/ptx/matrix.cuh
  backends/cuda/ptx/threads.cuh backends/cuda/kernels/elements/cells.cuh backends/cuda/kernels/elements/cell_chunks.cuh
  backends/cuda/kernels/elements/operations.cuh backends/cuda/kernels/elements/compiled_record.h families/pointwise/ops.inc
  families/pointwise/integer_ops.inc cmath=backends/cuda/nvrtc/standard_cmath.h cstdint=backends/cuda/nvrtc/standard_cstdint.h)
foreach(header ${header_files})
  string(REGEX REPLACE "=.*" "" name ${header})
  string(REGEX REPLACE ".*=" "" file ${header})
  file(READ ${folder}/${file} text)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/${file})
  string(APPEND PROGRAM_HEADERS "{\"${name}\", R\"cuda(${text})cuda\"},\n")
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/cuda/program_headers.inc CONTENT "@PROGRAM_HEADERS@" @ONLY)
