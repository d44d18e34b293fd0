# HLO text, and rewrite rules: two lexers, two parsers. Binary modules: one schema.
set(hlo_generated_dir ${CMAKE_BINARY_DIR}/generated/grammar)
file(MAKE_DIRECTORY ${hlo_generated_dir}/text ${hlo_generated_dir}/rules ${hlo_generated_dir}/proto)
foreach(language text/hlo rules/rules)
  get_filename_component(folder ${language} DIRECTORY)
  set(to ${hlo_generated_dir}/${language})
  flex_target(${folder}_lexer ${CMAKE_SOURCE_DIR}/grammar/${language}.l ${to}.lex.c
    DEFINES_FILE ${to}.lex.h)
  bison_target(${folder}_parser ${CMAKE_SOURCE_DIR}/grammar/${language}.y ${to}.tab.c
    COMPILE_FLAGS "-Werror -Wcounterexamples" DEFINES_FILE ${to}.tab.h)
  add_flex_bison_dependency(${folder}_lexer ${folder}_parser)
  set(hlo_${folder}_generated ${to}.lex.c ${to}.tab.c)
endforeach()
set(to ${hlo_generated_dir}/proto/hlo.pb-c)
add_custom_command(OUTPUT ${to}.c ${to}.h
  COMMAND ${HLO_PROTOC_C} -I ${CMAKE_SOURCE_DIR}/grammar/proto --c_out=${hlo_generated_dir}/proto
    ${CMAKE_SOURCE_DIR}/grammar/proto/hlo.proto
  DEPENDS ${CMAKE_SOURCE_DIR}/grammar/proto/hlo.proto VERBATIM)
set(hlo_proto_generated ${to}.c ${to}.h)
hlo_generated(${hlo_text_generated} ${hlo_rules_generated} ${to}.c)
