# CUDA kernels. Where nvcc 13 is - a system toolkit, else the one that `scripts/setup cuda` brings - each file of
# src/backends/cuda/kernels/**/*.cu becomes a fatbin: machine code of 8.0, which all of 8.x run, and of 9.0, and 9.0's PTX for what comes
# later; files *_sm90a.cu have code for 9.0 alone. Packed by zstd, which drivers of CUDA 12.4 and later unpack as they load a module. They
# lie in the library as they are (images.h), each with the names of its kernels; nothing links against CUDA.
set(SPARKLE_CUDA AUTO CACHE STRING "CUDA: AUTO (code for cards where nvcc is found), ON (with it), MODEL (without it: for tests) or OFF")
set_property(CACHE SPARKLE_CUDA PROPERTY STRINGS AUTO ON MODEL OFF)
set(SPARKLE_WITH_CUDA_KERNELS OFF)
file(GLOB_RECURSE cuda_kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/cuda/kernels/*.cu)
file(GLOB_RECURSE cuda_includes CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/cuda/*.cuh
  ${PROJECT_SOURCE_DIR}/src/backends/cuda/kernels/*.h ${PROJECT_SOURCE_DIR}/src/backends/cuda/kernels/*.inc)
set(cuda_folder ${PROJECT_BINARY_DIR}/cuda)
set(CUDA_IMAGES "")
set(CUDA_FATBINS "")
if(NOT SPARKLE_CUDA MATCHES "^(OFF|MODEL)$" AND NOT CMAKE_CROSSCOMPILING)
  file(GLOB cuda_wheels ${PROJECT_SOURCE_DIR}/build/venv-cuda/lib/python3*/site-packages/nvidia/cu13)
  find_program(SPARKLE_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin ${cuda_wheels}/bin)
  mark_as_advanced(SPARKLE_NVCC)
  if(SPARKLE_NVCC)
    execute_process(COMMAND ${SPARKLE_NVCC} --version OUTPUT_VARIABLE text ERROR_QUIET)
    string(REGEX MATCH "V([0-9.]+)" unused "${text}")
    set(SPARKLE_NVCC_VERSION "${CMAKE_MATCH_1}")
    if(SPARKLE_NVCC_VERSION VERSION_GREATER_EQUAL 13)
      set(SPARKLE_WITH_CUDA_KERNELS ON)
    endif()
  endif()
  if(NOT SPARKLE_WITH_CUDA_KERNELS AND SPARKLE_CUDA STREQUAL ON)
    message(FATAL_ERROR "SPARKLE_CUDA=ON needs nvcc 13 or newer: install a CUDA toolkit or run scripts/setup cuda.")
  endif()
endif()
if(SPARKLE_WITH_CUDA_KERNELS)
  message(STATUS "Sparkle: CUDA kernels by ${SPARKLE_NVCC} (${SPARKLE_NVCC_VERSION})")
  file(WRITE ${cuda_folder}/nvcc_version "${SPARKLE_NVCC_VERSION}\n")
  foreach(source ${cuda_kernels})
    get_filename_component(name ${source} NAME_WE)
    set(architectures -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90])
    if(name MATCHES "_sm90a$")
      set(architectures -gencode arch=compute_90a,code=sm_90a)
    endif()
    # The interpreter of programs rounds as NVRTC is told to (src/backends/cuda/nvrtc/nvrtc.cc): products and sums each. So do boxes
    # that overlap by the very limit on CPUs.
    set(rounding "")
    if(name MATCHES "^(pointwise|pointwise_narrow|non_max)$")
      set(rounding -fmad=false)
    endif()
    # -v tells registers, spills and shared memory of each kernel: scripts/sass reads them beside the code. It names them too: a kernel
    # that is asked for is found by these names, so that no other file's module is loaded for it.
    add_custom_command(OUTPUT ${cuda_folder}/${name}.fatbin
      COMMAND sh -c "\"$@\" 2> '${cuda_folder}/${name}.log' || { cat '${cuda_folder}/${name}.log'; exit 1; }" nvcc
        ${SPARKLE_NVCC} -fatbin --compress-mode=size -std=c++20 -O3 ${rounding} --expt-relaxed-constexpr -Xptxas -v,-warn-spills,-warn-lmem-usage ${architectures} -I${PROJECT_SOURCE_DIR}/src
        -o ${cuda_folder}/${name}.fatbin ${source}
      COMMAND sh -c "sed -n \"s/.*Compiling entry function '\\([A-Za-z0-9_]*\\)'.*/\\1/p\" '${cuda_folder}/${name}.log' | sort -u > '${cuda_folder}/${name}.names' && test -s '${cuda_folder}/${name}.names'"
      BYPRODUCTS ${cuda_folder}/${name}.names
      DEPENDS ${source} ${cuda_includes} COMMENT "nvcc ${name}.cu" VERBATIM)
    list(APPEND CUDA_FATBINS ${cuda_folder}/${name}.fatbin)
    string(APPEND CUDA_IMAGES "CUDA_IMAGE(${name}, \"${cuda_folder}/${name}.fatbin\", \"${cuda_folder}/${name}.names\")\n")
  endforeach()
else()
  message(STATUS "Sparkle: no nvcc 13 was found, so there is no binary code for NVIDIA's cards in this build "
                 "(scripts/setup cuda brings it); kernels are tested in the functional model all the same")
endif()
add_custom_target(sparkle_cuda_kernels DEPENDS ${CUDA_FATBINS})
file(CONFIGURE OUTPUT ${cuda_folder}/cuda_images.inc CONTENT "${CUDA_IMAGES}" @ONLY)
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/backends/cuda/images.cc PROPERTIES INCLUDE_DIRECTORIES ${cuda_folder}
  OBJECT_DEPENDS "${CUDA_FATBINS}" SKIP_UNITY_BUILD_INCLUSION ON)
