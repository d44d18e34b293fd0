# SPDX-License-Identifier: Apache-2.0
# The programs with their manual pages and completions, and the pages of reasons.

# hlo-fp8-opt is linked statically, because loading shared libraries takes as long as reading a
# module of a thousand instructions. hlo-fp8-run needs libzip and CUDA, which are only available as
# shared libraries.
set(archives)
if(HLOFP8_WITH_ZLIB)
  set(zlib z)
endif()
if(HLOFP8_STATIC)
  foreach(name jansson xxhash ${zlib} m c)
    find_library(HLO_STATIC_${name} lib${name}.a NO_CACHE)
    list(APPEND archives ${HLO_STATIC_${name}})
  endforeach()
  if("${archives}" MATCHES NOTFOUND)
    message(STATUS "hlo-fp8-opt is linked to shared libraries: ${archives}")
    set(archives)
  endif()
endif()

if(NOT HLOFP8_WITH_PJRT)
  set(no_pjrt tools/no_pjrt.c)
endif()
foreach(program hlo-fp8-opt hlo-fp8-run)
  add_executable(${program} tools/${program}.c tools/options.c tools/output.c)
  target_include_directories(${program} PRIVATE include)
  target_compile_definitions(${program} PRIVATE HLO_VERSION="${PROJECT_VERSION}")
  if(archives AND program STREQUAL hlo-fp8-opt)
    add_dependencies(${program} hlo_internal)
    target_link_libraries(${program} PRIVATE $<TARGET_FILE:hlo_internal> ${archives} hlo_flags)
    target_link_options(${program} PRIVATE -static)
  else()
    target_link_libraries(${program} PRIVATE hlo_internal hlo_flags)
  endif()
endforeach()
target_sources(hlo-fp8-run PRIVATE ${no_pjrt})

add_executable(generate tools/generate.c tools/options.c tools/output.c)
target_compile_definitions(generate PRIVATE HLO_VERSION="${PROJECT_VERSION}")
target_link_libraries(generate PRIVATE hlo_internal hlo_flags)
foreach(program hlo-fp8-opt hlo-fp8-run)
  set(page ${PROJECT_BINARY_DIR}/man/${program}.1)
  add_custom_command(OUTPUT ${page} COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/man
    COMMAND generate man ${program} > ${page} DEPENDS generate VERBATIM)
  list(APPEND pages ${page})
endforeach()
add_custom_target(man ALL DEPENDS ${pages})

foreach(script bash/hlo-fp8-opt bash/hlo-fp8-run zsh/_hlo-fp8-opt zsh/_hlo-fp8-run
        fish/hlo-fp8-opt.fish fish/hlo-fp8-run.fish)
  set(file ${PROJECT_BINARY_DIR}/completions/${script})
  get_filename_component(folder ${file} DIRECTORY)
  get_filename_component(shell ${folder} NAME)
  string(REGEX MATCH "hlo-fp8-(opt|run)" program ${script})
  add_custom_command(OUTPUT ${file} COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
    COMMAND generate ${shell} ${program} > ${file} DEPENDS generate VERBATIM)
  list(APPEND completions ${file})
endforeach()
add_custom_target(completions ALL DEPENDS ${completions})

# Generate the page of each reason for installation.
set(names ${hlo_page_files})
list(TRANSFORM names REPLACE ".*/([^/]+)[.]md" "\\1")
list(JOIN names " " names)
add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/doc/reasons/README.md
  DEPENDS hlo-fp8-opt ${hlo_page_files} cmake/reasons.cmake
  COMMAND ${CMAKE_COMMAND} -DOPT=$<TARGET_FILE:hlo-fp8-opt> -DOUT=${PROJECT_BINARY_DIR}/doc/reasons
  -DNAMES=${names} -P ${PROJECT_SOURCE_DIR}/cmake/reasons.cmake COMMENT "Writing pages of reasons" VERBATIM)
add_custom_target(doc ALL DEPENDS ${PROJECT_BINARY_DIR}/doc/reasons/README.md)
