# Passes: the engine, and the rules that rulec compiles into const tables.
hlo_sources(passes passes)
hlo_room(passes SEES ir grammar matmul SOURCES ${passes} LINK PkgConfig::XXHASH)
