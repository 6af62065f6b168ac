# cmake --install: the command with its manual page and completion, libsparkle.so, its headers, and what find_package(sparkle) and
# pkg-config read.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS sparkle_library EXPORT sparkle-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET sparkle)
  install(TARGETS sparkle RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  if(SPARKLE_SHARED_COMMAND)  # it finds the library wherever the whole folder was moved
    file(RELATIVE_PATH library_from_command /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
    set_target_properties(sparkle PROPERTIES INSTALL_RPATH $ORIGIN/${library_from_command})
  endif()
  if(NOT CMAKE_CROSSCOMPILING)  # the command itself writes them: they say what it takes
    set(SPARKLE_PAGES "share/man/man1/sparkle.1=man" "share/bash-completion/completions/sparkle=completion bash"
      "share/zsh/site-functions/_sparkle=completion zsh" "share/fish/vendor_completions.d/sparkle.fish=completion fish")
    install(CODE "set(pages \"${SPARKLE_PAGES}\")\nset(command \"$<TARGET_FILE:sparkle>\")")
    install(SCRIPT cmake/install/pages.cmake)
  endif()
endif()
# What libsparkle.so loads where a picture is read: beside it.
install(TARGETS sparkle_pictures LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_SKIP)
if(SPARKLE_WITH_GRPC)  # what the command loads where it serves over gRPC
  install(TARGETS sparkle_grpc LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_SKIP)
endif()
install(DIRECTORY include/sparkle DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/sparkle RENAME copyright)
install(EXPORT sparkle-targets NAMESPACE sparkle:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sparkle)

configure_package_config_file(cmake/install/sparkle-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/sparkle-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sparkle)
# As 0.x promises: a minor version may break what the one before it had.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/sparkle-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/sparkle-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/sparkle-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sparkle)

# The prefix as seen from the file, so that the folder can be moved.
file(RELATIVE_PATH SPARKLE_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/install/sparkle.pc.in ${CMAKE_CURRENT_BINARY_DIR}/sparkle.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/sparkle.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# cpack -G DEB: the Debian package, of what is installed (scripts/release).
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME sparkle-cnn)
set(CPACK_PACKAGE_VENDOR Sparkle)
set(CPACK_PACKAGE_CONTACT "Sparkle maintainers <maintainers@users.noreply.a-seed-e2f02d17.example>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Convolution and CNN inference: command, library and headers")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "Runs convolutional networks from ONNX files on CPUs, and on GPUs through Vulkan and CUDA.
 The command sparkle runs, serves, measures, checks and explains models; the library has interfaces for C and C++.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libvulkan1, mesa-vulkan-drivers")
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/deb/triggers CONTENT "activate-noawait ldconfig\n" @ONLY)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_BINARY_DIR}/deb/triggers)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
