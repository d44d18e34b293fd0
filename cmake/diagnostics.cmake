# Writes OUT, which is docs/diagnostics.md or what it should be: its head, then every page.
execute_process(COMMAND ${OPT} --explain=all OUTPUT_VARIABLE pages COMMAND_ERROR_IS_FATAL ANY)
file(READ ${SOURCE}/passes/reason/HEAD.md head)
file(WRITE ${OUT} "${head}\n${pages}")
