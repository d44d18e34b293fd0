# Fails when docs/rules.md is not what rulec makes of passes/rules/.
file(GLOB files ${SOURCE}/passes/rules/*.rules)
set(made ${BINARY}/rules.md)
execute_process(COMMAND ${RULEC} --doc ${made} ${SOURCE}/passes/rules/HEAD.md ${files}
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${made} ${SOURCE}/docs/rules.md
  RESULT_VARIABLE differ)
if(differ)
  message(FATAL_ERROR "docs/rules.md is not up to date: build the target rules-doc")
endif()
