# SPDX-License-Identifier: Apache-2.0
# The rooms of the library. A room is a folder that is compiled separately, with a list of the
# folders whose headers it may include.
#
# hlo_room(FOLDER [PART PART] [SEES FOLDER...] [SOURCES FILE...] [LINK TARGET...])
#   PART     the room is only built if HLOFP8_WITH_<PART> is on
#   SEES     the folders whose headers the room may include. The room also sees the folders that
#            these folders see. Subfolders must be listed separately
#   SOURCES  generated files, in addition to the *.c of the folder
#   LINK     libraries whose headers it includes
#
# A room is compiled against links to the headers that it sees, so an include that is not declared
# does not compile. tests/lint/rooms.py checks the references between object files.
set_property(GLOBAL PROPERTY HLO_ROOMS)

# Optimizing all rooms in these ways doubles the time of a release build, and makes neither program
# faster. HLO_LINKED_ROOMS: link-time optimization inlines small functions of these rooms in others.
# HLO_FAST_ROOMS: rooms with the loops in which the programs spend their time.
set(HLO_LINKED_ROOMS "^(ir(/(module|text))?|grammar/(text|scan)|matmul|passes(/(engine|analysis))?)$")
set(HLO_FAST_ROOMS "^(ir(/(kernel|eval|float|error))?|passes/engine|runtime/(cpu|group))$")

function(hlo_room folder)
  cmake_parse_arguments(R "" "PART" "SEES;SOURCES;LINK" ${ARGN})
  string(REPLACE "/" "_" name ${folder})
  set(seen ${R_SEES})
  foreach(room ${R_SEES})
    get_property(further GLOBAL PROPERTY HLO_SEEN_BY_${room})
    list(APPEND seen ${further})
  endforeach()
  list(REMOVE_DUPLICATES seen)
  set_property(GLOBAL PROPERTY HLO_SEEN_BY_${folder} ${seen})
  if(R_PART AND NOT HLOFP8_WITH_${R_PART})
    return()
  endif()
  set(view ${PROJECT_BINARY_DIR}/rooms/${name})
  file(REMOVE_RECURSE ${view})
  foreach(room ${folder} ${seen})
    file(MAKE_DIRECTORY ${view}/${room})
    file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${room}/*.h ${PROJECT_SOURCE_DIR}/${room}/*.def)
    foreach(header ${headers})
      get_filename_component(base ${header} NAME)
      file(CREATE_LINK ${header} ${view}/${room}/${base} SYMBOLIC)
    endforeach()
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.c)
  if(NOT sources AND NOT R_SOURCES)
    return() # the folder has only tables and headers
  endif()
  add_library(hlo_${name} OBJECT ${sources} ${R_SOURCES})
  target_include_directories(hlo_${name} PRIVATE ${view} ${PROJECT_SOURCE_DIR}/include
    ${PROJECT_BINARY_DIR}/generated/${folder})
  target_link_libraries(hlo_${name} PRIVATE hlo_flags ${R_LINK})
  set_target_properties(hlo_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON
    C_VISIBILITY_PRESET hidden)
  if(HLOFP8_LTO AND folder MATCHES "${HLO_LINKED_ROOMS}")
    target_compile_options(hlo_${name} PRIVATE -flto -ffat-lto-objects)
  endif()
  if(folder MATCHES "${HLO_FAST_ROOMS}")
    target_compile_options(hlo_${name} PRIVATE $<$<CONFIG:Release>:-O3>)
  endif()
  set_property(GLOBAL APPEND PROPERTY HLO_ROOMS hlo_${name})
endfunction()
