# The Vulkan backend: built where its headers, volk and glslang are installed. Kernels are compiled to SPIR-V here: each line
# "// build: NAME [-DMACRO=...]" of a .comp file is one.
option(SPARKLE_VULKAN "Build the Vulkan backend where its libraries are installed" ON)
set(SPARKLE_WITH_VULKAN OFF)
find_path(VOLK_HEADERS volk.h)
find_path(VULKAN_HEADERS vulkan/vulkan.h)
find_program(GLSLANG_VALIDATOR glslangValidator)
# glslang's libraries, for programs that are printed to GLSL at run time. Newer versions have fewer of them.
find_path(GLSLANG_HEADERS glslang/SPIRV/GlslangToSpv.h)
set(GLSLANG_LIBRARIES "")
foreach(library glslang MachineIndependent GenericCodeGen OSDependent OGLCompiler SPIRV HLSL SPIRV-Tools-opt SPIRV-Tools
    glslang-default-resource-limits)
  find_library(GLSLANG_${library} NAMES lib${library}.a)
  mark_as_advanced(GLSLANG_${library})
  if(GLSLANG_${library})
    list(APPEND GLSLANG_LIBRARIES ${GLSLANG_${library}})
  endif()
endforeach()
if(SPARKLE_VULKAN AND VOLK_HEADERS AND VULKAN_HEADERS AND GLSLANG_VALIDATOR AND GLSLANG_HEADERS AND GLSLANG_glslang AND GLSLANG_SPIRV
    AND NOT CMAKE_CROSSCOMPILING)
  set(SPARKLE_WITH_VULKAN ON)
else()
  message(STATUS "The Vulkan backend is not built: volk, Vulkan's headers or glslang are missing, or this is a cross build")
  return()
endif()

set(words ${CMAKE_BINARY_DIR}/shaders)
file(MAKE_DIRECTORY ${words})
file(GLOB_RECURSE shader_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/backends/vulkan/*.comp)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${shader_files})
set(SHADER_INCLUDES "")
set(SHADER_TABLE "")
set(SHADER_OUTPUTS "")
foreach(file ${shader_files})
  file(STRINGS ${file} builds REGEX "^// build: ")
  foreach(build ${builds})
    string(REGEX REPLACE "^// build: " "" build "${build}")
    separate_arguments(build UNIX_COMMAND "${build}")
    list(POP_FRONT build name)
    add_custom_command(OUTPUT ${words}/${name}.inc
      COMMAND ${GLSLANG_VALIDATOR} --quiet --target-env vulkan1.3 -I${CMAKE_SOURCE_DIR}/src/backends/vulkan/glsl ${build}
        --vn k_${name} -o ${words}/${name}.inc --depfile ${words}/${name}.d ${file}
      DEPENDS ${file} DEPFILE ${words}/${name}.d COMMENT "Compiling shader ${name}" VERBATIM)
    list(APPEND SHADER_OUTPUTS ${words}/${name}.inc)
    string(APPEND SHADER_INCLUDES "#include \"${name}.inc\"\n")
    string(APPEND SHADER_TABLE "{\"${name}\", k_${name}},\n")
  endforeach()
endforeach()
file(CONFIGURE OUTPUT ${words}/shader_words.inc CONTENT "${SHADER_INCLUDES}" @ONLY)
file(CONFIGURE OUTPUT ${words}/shader_table.inc CONTENT "${SHADER_TABLE}" @ONLY)
add_custom_target(sparkle_shaders DEPENDS ${SHADER_OUTPUTS})

# Functions that programs printed at run time are put together from, as text.
file(GLOB text_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/backends/vulkan/glsl/pointwise_*.glsl)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${text_files})
set(GLSL_TEXTS "")
foreach(file ${text_files})
  file(READ ${file} text)
  string(APPEND GLSL_TEXTS "R\"glsl(${text})glsl\",\n")
endforeach()
file(CONFIGURE OUTPUT ${words}/glsl_texts.inc CONTENT "@GLSL_TEXTS@" @ONLY)

# Shaders that programs become a part of at run time: the texts of their files, by name.
file(GLOB source_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/backends/vulkan/glsl/*.glsl
  ${CMAKE_SOURCE_DIR}/src/backends/vulkan/glsl/gemm_*.comp ${CMAKE_SOURCE_DIR}/src/backends/vulkan/glsl/winograd_output.comp
  ${CMAKE_SOURCE_DIR}/src/backends/vulkan/glsl/depthwise_*.comp ${CMAKE_SOURCE_DIR}/src/backends/vulkan/glsl/fft_whole.comp
  ${CMAKE_SOURCE_DIR}/src/backends/vulkan/glsl/fft_output.comp)
list(FILTER source_files EXCLUDE REGEX "/glsl/(pointwise_|integer_|quantize|tail)[^/]*$")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source_files})
set(GLSL_SOURCES "")
foreach(file ${source_files})
  file(READ ${file} text)
  get_filename_component(name ${file} NAME)
  string(APPEND GLSL_SOURCES "{\"${name}\", R\"glsl(${text})glsl\"},\n")
endforeach()
file(CONFIGURE OUTPUT ${words}/glsl_sources.inc CONTENT "@GLSL_SOURCES@" @ONLY)
