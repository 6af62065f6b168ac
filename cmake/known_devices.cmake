# devices/*.json as known_devices.inc, so that an installed program has them: KNOWN_DEVICE(file's name, its text).
file(GLOB KNOWN_DEVICES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/devices/*.json)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${KNOWN_DEVICES})
set(known_devices "")
foreach(device ${KNOWN_DEVICES})
  get_filename_component(name ${device} NAME_WE)
  file(READ ${device} text)
  string(APPEND known_devices "KNOWN_DEVICE(\"${name}\", R\"json(${text})json\")\n")
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/known/known_devices.inc CONTENT "${known_devices}" @ONLY)
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/device/known/known_devices.cc PROPERTIES INCLUDE_DIRECTORIES
  ${PROJECT_BINARY_DIR}/known)
