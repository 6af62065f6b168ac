# Files compiled as one, up to eight: reading headers is most of a compiler's work, and takes a third of the time so. Tests and the
# command are built that way wherever there is Python, the library in builds that are made whole and once, to check (presets gcc,
# sanitize, threads, aarch64). In the release build each file of the library shows that it includes what it needs.
option(SPARKLE_GROUP_SOURCES "Compile several files of the library as one" OFF)
find_package(Python3 COMPONENTS Interpreter QUIET)

function(group_sources target)
  if(NOT Python3_FOUND)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "^/.*\\.cc$")
  execute_process(COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/cmake/group_sources.py 8 ${sources}
    OUTPUT_VARIABLE lines COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" lines "${lines}")
  foreach(line ${lines})
    string(REGEX MATCH "^([0-9]+) (.*)$" line "${line}")
    set_source_files_properties(${CMAKE_MATCH_2} PROPERTIES UNITY_GROUP ${CMAKE_MATCH_1})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/group_sources.py ${sources})
endfunction()
