# onnx_proto: C++ classes of the ONNX format, generated from Debian's onnx.proto (package libonnx-dev) for protobuf's lite runtime.
# A cross build without protobuf for its target goes on without it: then there is no onnx_proto.
if(CMAKE_CROSSCOMPILING)
  find_library(PROTOBUF_LITE NAMES libprotobuf-lite.a protobuf-lite)
  if(NOT PROTOBUF_LITE)
    message(STATUS "Sparkle: no protobuf for ${CMAKE_SYSTEM_PROCESSOR}: built without src/onnx and what needs it "
                   "(report, the command, tools and integration tests)")
    return()
  endif()
endif()
find_program(PROTOC protoc REQUIRED)  # these three: cmake/dependencies.cmake has said what is missing
find_file(ONNX_PROTO_FILE onnx/onnx.proto REQUIRED)
find_library(PROTOBUF_LITE NAMES libprotobuf-lite.a protobuf-lite REQUIRED)
if(SPARKLE_PRIVATE_SOURCES)
  include(cmake/private_protobuf.cmake)  # target private_protobuf
endif()
find_library(PROTOBUF_LITE_SHARED NAMES protobuf-lite REQUIRED)

set(ONNX_PROTO_DIR ${PROJECT_BINARY_DIR}/generated/onnx_proto)
file(MAKE_DIRECTORY ${ONNX_PROTO_DIR})
file(READ ${ONNX_PROTO_FILE} ONNX_PROTO_TEXT)
string(REGEX REPLACE "option optimize_for *= *[A-Z_]+;" "" ONNX_PROTO_TEXT "${ONNX_PROTO_TEXT}")
file(CONFIGURE OUTPUT ${ONNX_PROTO_DIR}/onnx.proto CONTENT "${ONNX_PROTO_TEXT}\noption optimize_for = LITE_RUNTIME;\n" @ONLY)

add_custom_command(
  OUTPUT ${ONNX_PROTO_DIR}/onnx.pb.cc ${ONNX_PROTO_DIR}/onnx.pb.h
  COMMAND ${PROTOC} --cpp_out=${ONNX_PROTO_DIR} -I${ONNX_PROTO_DIR} ${ONNX_PROTO_DIR}/onnx.proto
  DEPENDS ${ONNX_PROTO_DIR}/onnx.proto)
add_library(onnx_proto STATIC ${ONNX_PROTO_DIR}/onnx.pb.cc)
target_include_directories(onnx_proto SYSTEM PUBLIC ${ONNX_PROTO_DIR})
# Debian's static protobuf cannot go into a shared library (its thread-local storage is that of a program), so what is linked
# last decides by its property SHARED_PROTOBUF.
if(TARGET private_protobuf)
  target_link_libraries(onnx_proto PUBLIC private_protobuf Threads::Threads)
  return()
endif()
target_link_libraries(onnx_proto PUBLIC
  $<IF:$<BOOL:$<TARGET_PROPERTY:SHARED_PROTOBUF>>,${PROTOBUF_LITE_SHARED},${PROTOBUF_LITE}> Threads::Threads)
