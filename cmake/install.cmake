# SPDX-License-Identifier: Apache-2.0
# Installs the programs with their manual pages and completions, the static and the shared library with headers, CMake and pkg-config files,
# the library that XLA loads, and the documentation.
# The component `python` is the Python package, for the wheel of pyproject.toml; only --component installs it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(config ${CMAKE_INSTALL_LIBDIR}/cmake/hlofp8)

# Installs the completions below `share` and the manual pages in `man`. ARGN: further options of
# install().
function(install_manuals share man)
  install(FILES ${pages} DESTINATION ${man}/man1 ${ARGN})
  install(DIRECTORY ${CMAKE_BINARY_DIR}/completions/bash/
    DESTINATION ${share}/bash-completion/completions ${ARGN})
  install(DIRECTORY ${CMAKE_BINARY_DIR}/completions/zsh/
    DESTINATION ${share}/zsh/site-functions ${ARGN})
  install(DIRECTORY ${CMAKE_BINARY_DIR}/completions/fish/
    DESTINATION ${share}/fish/vendor_completions.d ${ARGN})
endfunction()

install(TARGETS hlofp8 hlofp8_shared EXPORT hlofp8 ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS hlofp8_ffi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS hlo-fp8-opt hlo-fp8-run RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install_manuals(${CMAKE_INSTALL_DATADIR} ${CMAKE_INSTALL_MANDIR})
install(DIRECTORY include/hlo DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h PATTERN *.hpp)
install(FILES LICENSE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ ${CMAKE_BINARY_DIR}/doc/ DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY passes/rules DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN *.rules)
install(EXPORT hlofp8 NAMESPACE hlofp8:: DESTINATION ${config} FILE hlofp8-targets.cmake)

configure_package_config_file(cmake/hlofp8-config.cmake.in ${CMAKE_BINARY_DIR}/hlofp8-config.cmake
  INSTALL_DESTINATION ${config})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/hlofp8-config-version.cmake
  COMPATIBILITY SameMinorVersion)
file(RELATIVE_PATH HLO_PREFIX_FROM_PKGCONFIG ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
  ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/hlofp8.pc.in ${CMAKE_BINARY_DIR}/hlofp8.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/hlofp8-config.cmake ${CMAKE_BINARY_DIR}/hlofp8-config-version.cmake
  DESTINATION ${config})
install(FILES ${CMAKE_BINARY_DIR}/hlofp8.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(package COMPONENT python EXCLUDE_FROM_ALL)
set(scripts bin)
set(data .)
if(SKBUILD)
  set(scripts ${SKBUILD_SCRIPTS_DIR})
  set(data ${SKBUILD_DATA_DIR})
endif()
install(DIRECTORY bindings/python/hlofp8 bindings/python/jax_plugins DESTINATION . ${package} PATTERN __pycache__ EXCLUDE)
install(DIRECTORY include/hlo DESTINATION hlofp8/include ${package} FILES_MATCHING PATTERN *.h PATTERN *.hpp)
# A wheel cannot contain links, so the wheel has one library file, with the name that the Python
# package loads.
install(FILES $<TARGET_FILE:hlofp8_shared> DESTINATION hlofp8 RENAME libhlofp8.so ${package})
install(TARGETS hlofp8_ffi LIBRARY DESTINATION hlofp8 ${package})
install(TARGETS hlo-fp8-opt hlo-fp8-run RUNTIME DESTINATION ${scripts} ${package})
install_manuals(${data}/share ${data}/share/man ${package})
