# SPDX-License-Identifier: Apache-2.0
# CPack runs this script before it creates the packages. Adds the files that Debian requires of each
# package, and compresses manual pages.
set(copyright "Copyright 2026 the authors of hlo-fp8. License: Apache-2.0, which is in
/usr/share/common-licenses/Apache-2.0 on Debian systems.\n")
if(CPACK_HLO_NOTICES)
  file(READ ${CPACK_HLO_NOTICES} notices)
  string(APPEND copyright "\nThe programs and libraries contain the following libraries.\n\n${notices}")
endif()
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
# The static program starts faster. XLA loads libhlofp8_ffi.so by this name.
file(WRITE ${CPACK_TEMPORARY_DIRECTORY}/programs/usr/share/lintian/overrides/${CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME}
  "statically-linked-binary\nembedded-library zlib *\npackage-name-doesnt-match-sonames libhlofp8-ffi\n\
shared-library-lacks-version *\n")
foreach(group PROGRAMS LIBRARY DEVELOPMENT)
  string(TOLOWER ${group} folder)
  set(package ${CPACK_DEBIAN_${group}_PACKAGE_NAME})
  set(share ${CPACK_TEMPORARY_DIRECTORY}/${folder}/usr/share)
  file(WRITE ${share}/doc/${package}/copyright "${copyright}")
  file(WRITE ${share}/doc/${package}/changelog.Debian
    "${CPACK_PACKAGE_NAME} (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n\
  * CHANGELOG.md in libhlofp8-dev lists the changes.\n\n -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  file(GLOB compressed ${share}/doc/${package}/changelog.Debian ${share}/man/man1/*)
  execute_process(COMMAND gzip -9n ${compressed} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
