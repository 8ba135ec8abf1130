# pteryx_shaders(target): embeds every .wgsl of the current folder as C++ in the build folder. The web build keeps the texts out of the
# modules, in generated/pteryx/ops/shaders/kernels.txt: only who has a GPU needs them.
function(pteryx_shaders target)
  file(GLOB_RECURSE shaders CONFIGURE_DEPENDS *.wgsl)
  set(tool "${PROJECT_SOURCE_DIR}/tools/embed_wgsl.py")
  set(output "${PROJECT_BINARY_DIR}/generated/pteryx/ops/shaders")
  if(PTERYX_WEB)
    set(packed --packed)
    set(generated "${output}/kernels.txt")
  else()
    set(packed)
    set(generated "${output}/kernel_files.cpp")
  endif()
  foreach(shader IN LISTS shaders)
    cmake_path(GET shader STEM stem)
    if(NOT shader MATCHES "/common/")
      list(APPEND generated "${output}/${stem}.h")
    endif()
  endforeach()
  add_custom_command(
    OUTPUT ${generated}
    COMMAND Python3::Interpreter "${tool}" --root "${CMAKE_CURRENT_SOURCE_DIR}" --out "${output}" ${packed} ${shaders}
    DEPENDS "${tool}" ${shaders}
    COMMENT "Embedding kernels"
    VERBATIM)
  target_sources(${target} PRIVATE ${generated})
endfunction()
