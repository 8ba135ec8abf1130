# pteryx_shaders(target): embeds every .wgsl of the current folder, less common/, as C++ in the build folder.
function(pteryx_shaders target)
  file(GLOB_RECURSE shaders CONFIGURE_DEPENDS *.wgsl)
  list(FILTER shaders EXCLUDE REGEX "/common/")
  set(tool "${PROJECT_SOURCE_DIR}/tools/embed_wgsl.py")
  set(output "${PROJECT_BINARY_DIR}/generated/pteryx/ops/shaders")
  set(seen)
  foreach(shader IN LISTS shaders)
    cmake_path(GET shader STEM stem)
    if(stem IN_LIST seen)
      message(FATAL_ERROR "${shader}: there is another ${stem}.wgsl, and both would be shaders::${stem}")
    endif()
    list(APPEND seen ${stem})
    add_custom_command(
      OUTPUT "${output}/${stem}.h" "${output}/${stem}.cpp"
      COMMAND Python3::Interpreter "${tool}" --root "${CMAKE_CURRENT_SOURCE_DIR}" --out "${output}"
              --depfile "${CMAKE_CURRENT_BINARY_DIR}/${stem}.wgsl.d" "${shader}"
      DEPENDS "${tool}" "${shader}"
      DEPFILE "${CMAKE_CURRENT_BINARY_DIR}/${stem}.wgsl.d"
      COMMENT "Embedding ${stem}.wgsl"
      VERBATIM)
    target_sources(${target} PRIVATE "${output}/${stem}.h" "${output}/${stem}.cpp")
  endforeach()
endfunction()
