# SPDX-License-Identifier: Apache-2.0
# HLO text, and rewrite rules: two lexers, two parsers. Binary modules: one schema.
set(hlo_generated_dir ${PROJECT_BINARY_DIR}/generated/grammar)
file(MAKE_DIRECTORY ${hlo_generated_dir}/text ${hlo_generated_dir}/rules)
foreach(language text/hlo rules/rules)
  get_filename_component(folder ${language} DIRECTORY)
  set(to ${hlo_generated_dir}/${language})
  flex_target(${folder}_lexer ${PROJECT_SOURCE_DIR}/grammar/${language}.l ${to}.lex.c
    DEFINES_FILE ${to}.lex.h)
  bison_target(${folder}_parser ${PROJECT_SOURCE_DIR}/grammar/${language}.y ${to}.tab.c
    COMPILE_FLAGS "-Werror -Wcounterexamples" DEFINES_FILE ${to}.tab.h)
  add_flex_bison_dependency(${folder}_lexer ${folder}_parser)
  set(hlo_${folder}_generated ${to}.lex.c ${to}.tab.c)
endforeach()
hlo_schema(hlo_proto_generated grammar/proto/hlo)
hlo_generated(${hlo_text_generated} ${hlo_rules_generated})
