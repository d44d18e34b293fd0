# The helpers of generated kernels as text in the library.
set(hlo_helpers_c ${CMAKE_BINARY_DIR}/generated/runtime/cuda/codegen/helpers.c)
set(helper_texts ${CMAKE_SOURCE_DIR}/runtime/cuda/codegen/device.cuh
  ${CMAKE_SOURCE_DIR}/ir/float/encode.h ${CMAKE_SOURCE_DIR}/runtime/cuda/codegen/helpers.cuh)
set(embed ${CMAKE_SOURCE_DIR}/runtime/cuda/codegen/embed.cmake)
add_custom_command(OUTPUT ${hlo_helpers_c} COMMAND ${CMAKE_COMMAND} -DNAME=cuda_helpers
  -DOUTPUT=${hlo_helpers_c} "-DINPUTS=${helper_texts}" -P ${embed} DEPENDS ${helper_texts} ${embed} VERBATIM)
