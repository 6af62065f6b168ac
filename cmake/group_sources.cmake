# Builds that are made whole and once, to check (presets gcc, sanitize, threads, aarch64), compile up to eight files as one: reading
# headers is most of the work, and takes a third of the time so. The release build does not: there each file shows that it
# includes what it needs, and changes are built soonest.
option(SPARKLE_GROUP_SOURCES "Compile several files as one" OFF)
if(SPARKLE_GROUP_SOURCES)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
endif()

function(group_sources target)
  if(NOT SPARKLE_GROUP_SOURCES)
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
