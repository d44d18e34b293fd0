# Fails when docs/diagnostics.md is not what passes/reason/HEAD.md and the pages about reasons are.
set(OUT ${BINARY}/diagnostics.md)
include(${SOURCE}/cmake/diagnostics.cmake)
execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${OUT} ${SOURCE}/docs/diagnostics.md
  RESULT_VARIABLE differ)
if(differ)
  message(FATAL_ERROR "docs/diagnostics.md is not up to date: build the target diagnostics-doc")
endif()
