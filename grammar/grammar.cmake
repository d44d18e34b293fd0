# HLO text, and rewrite rules: two lexers, two parsers. Binary modules: one schema.
set(hlo_generated_dir ${CMAKE_BINARY_DIR}/generated/grammar)
file(MAKE_DIRECTORY ${hlo_generated_dir})
set(hlo_grammar_generated)
foreach(language hlo rules)
  flex_target(${language}_lexer ${CMAKE_SOURCE_DIR}/grammar/${language}.l
    ${hlo_generated_dir}/${language}.lex.c
    DEFINES_FILE ${hlo_generated_dir}/${language}.lex.h)
  bison_target(${language}_parser ${CMAKE_SOURCE_DIR}/grammar/${language}.y
    ${hlo_generated_dir}/${language}.tab.c COMPILE_FLAGS "-Werror -Wcounterexamples"
    DEFINES_FILE ${hlo_generated_dir}/${language}.tab.h)
  add_flex_bison_dependency(${language}_lexer ${language}_parser)
  list(APPEND hlo_grammar_generated ${hlo_generated_dir}/${language}.lex.c
    ${hlo_generated_dir}/${language}.tab.c)
endforeach()
add_custom_command(OUTPUT ${hlo_generated_dir}/hlo.pb-c.c ${hlo_generated_dir}/hlo.pb-c.h
  COMMAND ${HLO_PROTOC_C} -I ${CMAKE_SOURCE_DIR}/grammar --c_out=${hlo_generated_dir}
    ${CMAKE_SOURCE_DIR}/grammar/hlo.proto
  DEPENDS ${CMAKE_SOURCE_DIR}/grammar/hlo.proto VERBATIM)
list(APPEND hlo_grammar_generated ${hlo_generated_dir}/hlo.pb-c.c)
hlo_generated(${hlo_grammar_generated})
hlo_sources(grammar grammar)
hlo_room(grammar SEES ir SOURCES ${grammar} ${hlo_grammar_generated}
  ${hlo_generated_dir}/hlo.pb-c.h LINK PkgConfig::ZLIB PkgConfig::PROTOBUF_C)
