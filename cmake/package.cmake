# SPDX-License-Identifier: Apache-2.0
# Describes the Debian packages that `tools/dev release` builds from the components of install.cmake.
# A package of a shared library has the name and version of the SONAME, so that programs linked to
# different minor releases can be installed on one system. HLO_NOTICES is a file with the licenses of
# the libraries that the packages contain, if any.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME hlofp8)
set(CPACK_PACKAGE_VENDOR hlo-fp8)
set(CPACK_PACKAGE_CONTACT "the developers of hlo-fp8 <hlo-fp8@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "rewrites the matmuls of XLA HLO modules to fused FP8 calls")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ
  GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL programs ffi runtime development documentation)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_HLO_NOTICES "${HLO_NOTICES}")
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian.cmake)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")

file(WRITE ${PROJECT_BINARY_DIR}/debian/triggers "activate-noawait ldconfig\n")

set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME hlofp8)
set(CPACK_DEBIAN_PROGRAMS_DESCRIPTION "The programs hlo-fp8-opt and hlo-fp8-run, and the functions that
XLA calls, libhlofp8_ffi.")
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/triggers)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SUGGESTS libopenblas0) # LAPACK, which hlo-fp8-run loads at run time

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libhlofp8-${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "The shared library.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/triggers)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)

# Linking the static library requires the development packages of its dependencies.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libhlofp8-dev)
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "Headers, the static library, files for CMake and pkg-config, and
the documentation.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${CPACK_DEBIAN_LIBRARY_PACKAGE_NAME} (= ${PROJECT_VERSION}-1), \
libjansson-dev, libxxhash-dev, libzip-dev, zlib1g-dev")

include(CPack)
cpack_add_component_group(programs)
cpack_add_component_group(library)
cpack_add_component_group(development)
cpack_add_component(ffi GROUP programs)
cpack_add_component(programs GROUP programs)
cpack_add_component(runtime GROUP library)
cpack_add_component(development GROUP development)
cpack_add_component(documentation GROUP development)
