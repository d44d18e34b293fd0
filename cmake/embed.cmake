# SPDX-License-Identifier: Apache-2.0
# Embeds text files in the library.
#
# hlo_embed(OUT NAME HEADER [PREFIX PREFIX] [JOIN] FILES FILE...)
#   OUT     the generated C file: const char *const NAME[], one text per file
#   HEADER  declares NAME
#   PREFIX  the text of an-id.ext has the index <PREFIX>AN_ID; without it, NAME has the texts in the
#           order of the files, followed by NULL
#   JOIN    removes line ends and the indentation after them
function(hlo_embed out name header)
  cmake_parse_arguments(E "JOIN" "PREFIX" "FILES" ${ARGN})
  set(script ${CMAKE_SOURCE_DIR}/cmake/embed.cmake)
  string(REPLACE ";" "|" files "${E_FILES}")
  add_custom_command(OUTPUT ${out} DEPENDS ${E_FILES} ${script}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DNAME=${name} -DHEADER=${header} -DPREFIX=${E_PREFIX}
    -DJOIN=${E_JOIN} -DFILES=${files} -P ${script} COMMENT "Embedding ${name}" VERBATIM)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
  set(text "/* Made by cmake/embed.cmake. */\n#include \"${HEADER}\"\n\nconst char *const ${NAME}[] = {\n")
  string(REPLACE "|" ";" FILES "${FILES}")
  foreach(file ${FILES})
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    if(JOIN)
      string(REGEX REPLACE "0x0a,(0x20,)*" "" bytes "${bytes}")
    endif()
    set(index "")
    if(PREFIX)
      get_filename_component(id ${file} NAME_WE)
      string(TOUPPER ${id} id)
      string(REPLACE "-" "_" id ${id})
      set(index "[${PREFIX}${id}] = ")
    endif()
    string(APPEND text "    ${index}(const char[]){${bytes}0},\n")
  endforeach()
  if(NOT PREFIX)
    string(APPEND text "    NULL,\n")
  endif()
  file(WRITE ${OUT} "${text}};\n")
endif()
