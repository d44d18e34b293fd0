# SPDX-License-Identifier: Apache-2.0
# The options of the project. docs/building.md lists them; tests/embed/options.py compares the two.

# As a part of another project, only the library is built, and nothing is installed.
option(HLOFP8_BUILD_PROGRAMS "build hlo-fp8-opt and hlo-fp8-run" ${PROJECT_IS_TOP_LEVEL})
option(HLOFP8_BUILD_TESTS "build the tests" ${PROJECT_IS_TOP_LEVEL})
option(HLOFP8_INSTALL "generate install rules" ${PROJECT_IS_TOP_LEVEL})

# Optional parts of the library.
set(hlo_parts ZLIB REPORTS RUNTIME NPZ CUDA FFI PJRT)
option(HLOFP8_WITH_ZLIB "read gzip-compressed files; requires zlib" ON)
option(HLOFP8_WITH_REPORTS "remarks, HTML reports, gates and dump folders" ON)
option(HLOFP8_WITH_RUNTIME "execute modules on the CPU" ON)
option(HLOFP8_WITH_NPZ "read and write arrays in .npz files; requires libzip" ON)
option(HLOFP8_WITH_CUDA "execute modules on CUDA devices" ON)
option(HLOFP8_WITH_FFI "functions that XLA calls, in libhlofp8_ffi" ON)
option(HLOFP8_WITH_PJRT "execute modules in PJRT plugins" ON)

option(HLOFP8_LTO "link hlo-fp8-opt with link-time optimization" OFF)
option(HLOFP8_STATIC "link hlo-fp8-opt statically if all libraries are available as archives" OFF)
option(HLOFP8_WERROR "treat warnings as errors" OFF)
option(HLOFP8_CHECKS "check that a step that reports no change did not change the module" OFF)
option(HLOFP8_FUZZ "build the fuzz targets; requires clang" OFF)
set(HLOFP8_HOMEPAGE_URL "" CACHE STRING "public home page, to which SARIF files link; a reason has the page URL#REASON")
set(HLOFP8_SANITIZE "" CACHE STRING "sanitizers, such as address,undefined")
set(HLOFP8_HOMEPAGE_URL "" CACHE STRING
  "public home page; SARIF files link to it, and to URL#REASON for each reason (default: no links)")
set(HLOFP8_PYTHON "" CACHE FILEPATH "Python for the tests; default: build/venv, or python3")

# hlo_requires(OPTION REQUIRED...)
function(hlo_requires option)
  foreach(required ${ARGN})
    if(${option} AND NOT ${required})
      message(FATAL_ERROR "${option} requires ${required}")
    endif()
  endforeach()
endfunction()
hlo_requires(HLOFP8_WITH_NPZ HLOFP8_WITH_RUNTIME)
hlo_requires(HLOFP8_WITH_CUDA HLOFP8_WITH_RUNTIME)
hlo_requires(HLOFP8_WITH_FFI HLOFP8_WITH_CUDA)
hlo_requires(HLOFP8_WITH_PJRT HLOFP8_WITH_FFI)
hlo_requires(HLOFP8_BUILD_PROGRAMS HLOFP8_WITH_RUNTIME HLOFP8_WITH_REPORTS)
list(TRANSFORM hlo_parts REPLACE "(.+)" "HLOFP8_WITH_\\1" OUTPUT_VARIABLE parts)
hlo_requires(HLOFP8_BUILD_TESTS HLOFP8_BUILD_PROGRAMS HLOFP8_INSTALL ${parts})
