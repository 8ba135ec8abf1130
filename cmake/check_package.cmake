# Installs Pteryx into a fresh folder, builds the examples against it as a project that uses Pteryx would, and runs what came of it.
# cmake -D BUILD=folder -D EXAMPLES=folder -D PROGRAM=file -D GGUF=file -D DRIVER=file -D WORK=folder -P check_package.cmake
file(REMOVE_RECURSE "${WORK}")
set(prefix "${WORK}/prefix")

# Leaves what the command printed in output.
macro(run)
  execute_process(COMMAND ${ARGV} WORKING_DIRECTORY / RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(status)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command}\n${output}")
  endif()
endmacro()

function(expect text)
  string(FIND "${output}" "${text}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "expected \"${text}\" in\n${output}")
  endif()
endfunction()

run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${prefix}")
run("${CMAKE_COMMAND}" -G Ninja -S "${EXAMPLES}" -B "${WORK}/build" "-DCMAKE_PREFIX_PATH=${prefix}")
run("${CMAKE_COMMAND}" --build "${WORK}/build" --parallel 2)

set(ENV{VK_ICD_FILENAMES} "${DRIVER}")  # the software GPU
run("${prefix}/bin/pteryx" doctor)
expect("${prefix}/lib/pteryx/libwebgpu_dawn.so")
expect("${prefix}/lib/pteryx/libwgpu_native.so")
expect("Pteryx would use")
foreach(file man/man1/pteryx.1 bash-completion/completions/pteryx zsh/site-functions/_pteryx fish/vendor_completions.d/pteryx.fish)
  file(READ "${prefix}/share/${file}" output)
  expect("generate")
endforeach()
run("${WORK}/build/example_hello" "${PROGRAM}")
expect("f32 [7, 33]: 0 2 4 6 8 10 12 14 ...")
run("${prefix}/bin/pteryx" convert "${GGUF}" -o "${WORK}/model.pte")
file(WRITE "${WORK}/said" "hello\nand again\n")
execute_process(COMMAND "${WORK}/build/example_chat" "${WORK}/model.pte" INPUT_FILE "${WORK}/said"
  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE error)
string(REGEX MATCHALL "> " prompts "${output}")
list(LENGTH prompts count)
if(status OR count LESS 3)
  message(FATAL_ERROR "example_chat: status ${status}, expected two answers in\n${output}${error}")
endif()
run(readelf --dynamic "${WORK}/build/example_hello")
expect("[${prefix}/lib/pteryx]")
message(STATUS "the installed command runs, and the examples build and run against the installed package")
