# SPDX-License-Identifier: Apache-2.0
# Describes the Debian package that `tools/dev package` builds. The package contains the files that
# install.cmake installs. Linking the static library needs the development packages of its
# dependencies, so the package depends on them.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME hlo-fp8)
set(CPACK_PACKAGE_VENDOR "hlo-fp8")
set(CPACK_PACKAGE_CONTACT "the developers of hlo-fp8 <hlo-fp8@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "rewrites the matmuls of XLA HLO modules to fused FP8 calls")
set(CPACK_PACKAGE_DESCRIPTION "The programs hlo-fp8-opt and hlo-fp8-run, the library libhlofp8 with its headers, and the
functions that XLA calls, libhlofp8_ffi.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON) # also generates a postinst script that calls ldconfig
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libjansson-dev, libprotobuf-c-dev, libxxhash-dev, libzip-dev, zlib1g-dev")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS libopenblas0) # LAPACK, which hlo-fp8-run loads at run time
include(CPack)
