# SPDX-License-Identifier: Apache-2.0
# Builds the generated sources of passes/: the rules, which rulec compiles into const tables, and
# the pages about reasons.
set(hlo_rules_dir ${PROJECT_SOURCE_DIR}/passes/rules)
file(GLOB hlo_rule_files CONFIGURE_DEPENDS ${hlo_rules_dir}/*.rules)
set(hlo_rules_c ${PROJECT_BINARY_DIR}/generated/passes/rules/rules.c)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/generated/passes/rules)

# The rule compiler includes headers of ir, grammar and the vocabulary. It runs on the build
# machine.
function(hlo_rulec)
  set(objects ${ARGN})
  list(FILTER objects INCLUDE REGEX "^hlo_(ir|grammar)(_|$)")
  list(TRANSFORM objects REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>")
  add_executable(rulec tools/rulec.c passes/rules/vocabulary.c ${objects})
  target_include_directories(rulec PRIVATE ${PROJECT_BINARY_DIR}/rooms/passes_rules ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(rulec PRIVATE hlo_flags ${hlo_libraries})
endfunction()
add_custom_command(OUTPUT ${hlo_rules_c} DEPENDS rulec ${hlo_rule_files}
  COMMAND rulec ${hlo_rules_c} ${hlo_rule_files} COMMENT "Compiling rewrite rules" VERBATIM)
set_source_files_properties(${hlo_rules_c} PROPERTIES COMPILE_OPTIONS "-Wno-overlength-strings")

# Embed the pages about reasons.
set(hlo_pages_dir ${PROJECT_SOURCE_DIR}/passes/reason/pages)
file(GLOB hlo_page_files CONFIGURE_DEPENDS ${hlo_pages_dir}/*.md)
set(hlo_pages_c ${PROJECT_BINARY_DIR}/generated/passes/reason/pages.c)
hlo_embed(${hlo_pages_c} hlo_reason_pages passes/reason/reason.h PREFIX HLO_REASON_
  FILES ${hlo_page_files})
