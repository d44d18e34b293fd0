# SPDX-License-Identifier: Apache-2.0
# cmake -DOPT=PROGRAM -DOUT=FOLDER -DNAMES="NAME NAME ..." -P reasons.cmake
# Writes the output of `hlo-fp8-opt --explain=NAME` to FOLDER/NAME.md for each reason NAME, and a
# list of all reasons to FOLDER/README.md.
set(index "# Reasons\n\nWhy a matmul is not FP8, or not the cheapest FP8. Each page has the smallest fix, with a module before and after it.\n\n")
string(REPLACE " " ";" NAMES "${NAMES}")
foreach(name ${NAMES})
  execute_process(COMMAND ${OPT} --explain=${name} OUTPUT_VARIABLE page COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCH "\nMeaning: ([^\n]*)" line "${page}")
  string(APPEND index "- [${name}](${name}.md): ${CMAKE_MATCH_1}\n")
  file(WRITE ${OUT}/${name}.md "${page}")
endforeach()
file(WRITE ${OUT}/README.md "${index}")
