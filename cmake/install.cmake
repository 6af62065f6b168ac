# cmake --install: the command, libsparkle.so, its headers, and what find_package(sparkle) and pkg-config read.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS sparkle_library EXPORT sparkle-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET sparkle)
  install(TARGETS sparkle RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
# What libsparkle.so loads where a picture is read: beside it.
install(TARGETS sparkle_pictures LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_SKIP)
install(DIRECTORY include/sparkle DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT sparkle-targets NAMESPACE sparkle:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sparkle)

configure_package_config_file(cmake/sparkle-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/sparkle-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sparkle)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/sparkle-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/sparkle-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/sparkle-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sparkle)

# The prefix as seen from the file, so that the folder can be moved.
file(RELATIVE_PATH SPARKLE_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/sparkle.pc.in ${CMAKE_CURRENT_BINARY_DIR}/sparkle.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/sparkle.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
