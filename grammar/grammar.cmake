# HLO text, and rewrite rules: two lexers, two parsers.
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
hlo_generated(${hlo_grammar_generated})
hlo_sources(grammar grammar)
hlo_room(grammar SEES ir SOURCES ${grammar} ${hlo_grammar_generated} LINK PkgConfig::ZLIB)
