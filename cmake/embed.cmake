# SPDX-License-Identifier: Apache-2.0
# Embeds text files in the library.
#
# hlo_embed(OUT NAME HEADER [PREFIX PREFIX] [HASH] FILES FILE...)
#   OUT     the generated C file: const char *const NAME[], one text per file
#   HEADER  declares NAME
#   PREFIX  the text of an-id.ext has the index <PREFIX>AN_ID; without it, NAME has the texts in the
#           order of the files, followed by NULL
#   HASH    also generates const char *const NAME_sha256[], the SHA-256 hash of each file in base64
function(hlo_embed out name header)
  cmake_parse_arguments(E "HASH" "PREFIX" "FILES" ${ARGN})
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed.cmake)
  string(REPLACE ";" "|" files "${E_FILES}")
  add_custom_command(OUTPUT ${out} DEPENDS ${E_FILES} ${script}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DNAME=${name} -DHEADER=${header} -DPREFIX=${E_PREFIX}
    -DHASH=${E_HASH} -DFILES=${files} -P ${script} COMMENT "Embedding ${name}" VERBATIM)
endfunction()

# Three hexadecimal digits are two digits of base64. Of the 64, the last one has two zeros appended.
function(hlo_sha256 out file)
  set(digits ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  file(SHA256 ${file} hex)
  string(REGEX MATCHALL "..?.?" triples "${hex}00")
  set(base64 "")
  foreach(triple ${triples})
    foreach(shift 6 0)
      math(EXPR digit "(0x${triple} >> ${shift}) & 63")
      string(SUBSTRING ${digits} ${digit} 1 digit)
      string(APPEND base64 ${digit})
    endforeach()
  endforeach()
  string(SUBSTRING ${base64} 0 43 base64)
  set(${out} ${base64}= PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
  set(text "/* Made by cmake/embed.cmake. */\n#include \"${HEADER}\"\n\nconst char *const ${NAME}[] = {\n")
  string(REPLACE "|" ";" FILES "${FILES}")
  foreach(file ${FILES})
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    set(index "")
    if(PREFIX)
      get_filename_component(id ${file} NAME_WE)
      string(TOUPPER ${id} id)
      string(REPLACE "-" "_" id ${id})
      set(index "[${PREFIX}${id}] = ")
    endif()
    string(APPEND text "    ${index}(const char[]){${bytes}0},\n")
    hlo_sha256(hash ${file})
    string(APPEND hashes "    ${index}\"${hash}\",\n")
  endforeach()
  if(NOT PREFIX)
    string(APPEND text "    NULL,\n")
  endif()
  string(APPEND text "};\n")
  if(HASH)
    string(APPEND text "\nconst char *const ${NAME}_sha256[] = {\n${hashes}};\n")
  endif()
  file(WRITE ${OUT} "${text}")
endif()
