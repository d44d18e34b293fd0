# SPDX-License-Identifier: Apache-2.0
# Installs the project in six components:
#   runtime        the shared library
#   development    headers, the static library, CMake and pkg-config files
#   ffi            the library that XLA loads
#   programs       the programs with their manual pages and completions
#   documentation  docs/, the pages of reasons and the rules
#   python         the Python package, for the wheel of pyproject.toml; only --component installs it
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(config ${CMAKE_INSTALL_LIBDIR}/cmake/hlofp8)

# Installs the completions below `share` and the manual pages in `man`. ARGN: further options of
# install().
function(install_manuals share man)
  install(FILES ${pages} DESTINATION ${man}/man1 ${ARGN})
  install(DIRECTORY ${PROJECT_BINARY_DIR}/completions/bash/
    DESTINATION ${share}/bash-completion/completions ${ARGN})
  install(DIRECTORY ${PROJECT_BINARY_DIR}/completions/zsh/
    DESTINATION ${share}/zsh/site-functions ${ARGN})
  install(DIRECTORY ${PROJECT_BINARY_DIR}/completions/fish/
    DESTINATION ${share}/fish/vendor_completions.d ${ARGN})
endfunction()

install(TARGETS hlofp8 hlofp8_shared EXPORT hlofp8
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development)
# The headers of parts that are not built are not installed.
set(hlo_headers_RUNTIME bisect.h buffer.h runtime.h)
set(hlo_headers_REPORTS dump.h report.h)
set(hlo_headers_FFI ffi.h)
set(hlo_headers_PJRT pjrt.h)
foreach(part ${hlo_parts})
  if(NOT HLOFP8_WITH_${part})
    list(APPEND hlo_not_installed ${hlo_headers_${part}})
  endif()
endforeach()
list(TRANSFORM hlo_not_installed REPLACE "(.+)" "PATTERN;\\1;EXCLUDE")
install(DIRECTORY include/hlo DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
  ${hlo_not_installed})
install(EXPORT hlofp8 NAMESPACE hlofp8:: DESTINATION ${config} COMPONENT development
  FILE hlofp8-targets.cmake)
if(HLOFP8_WITH_FFI)
  install(TARGETS hlofp8_ffi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ffi)
endif()
if(HLOFP8_BUILD_PROGRAMS)
  install(TARGETS hlo-fp8-opt hlo-fp8-run RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT programs)
  install_manuals(${CMAKE_INSTALL_DATADIR} ${CMAKE_INSTALL_MANDIR} COMPONENT programs)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/doc/ DESTINATION ${CMAKE_INSTALL_DOCDIR}
    COMPONENT documentation)
endif()
install(FILES LICENSE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documentation)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documentation
  PATTERN reference EXCLUDE)
# The installed pages do not link to files that are not installed.
install(CODE "set(docs \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DOCDIR}\")"
  COMPONENT documentation)
install(CODE [==[
  file(GLOB pages ${docs}/*.md)
  foreach(page ${pages})
    file(READ ${page} text)
    string(REPLACE "](../passes/reason/pages/" "](reasons/" text "${text}")
    string(REGEX REPLACE "\\]\\(docs/([^)]*)\\)" "](\\1)" text "${text}")
    string(REGEX REPLACE "\\[([^]]*)\\]\\((\\.\\./|reference/)[^)]*\\)" "\\1" text "${text}")
    file(WRITE ${page} "${text}")
  endforeach()]==] COMPONENT documentation)
install(DIRECTORY passes/rules DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documentation
  FILES_MATCHING PATTERN *.rules)

configure_package_config_file(cmake/hlofp8-config.cmake.in ${PROJECT_BINARY_DIR}/hlofp8-config.cmake
  INSTALL_DESTINATION ${config})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hlofp8-config-version.cmake
  COMPATIBILITY SameMinorVersion)
list(TRANSFORM hlo_link_options PREPEND -l)
list(JOIN hlo_link_options " " HLO_LINK_OPTIONS)
file(RELATIVE_PATH HLO_PREFIX_FROM_PKGCONFIG ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
  ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/hlofp8.pc.in ${PROJECT_BINARY_DIR}/hlofp8.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/hlofp8-config.cmake ${PROJECT_BINARY_DIR}/hlofp8-config-version.cmake
  DESTINATION ${config} COMPONENT development)
install(FILES ${PROJECT_BINARY_DIR}/hlofp8.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
  COMPONENT development)

if(NOT HLOFP8_BUILD_PROGRAMS OR NOT HLOFP8_WITH_FFI)
  return() # the Python package needs both
endif()
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
