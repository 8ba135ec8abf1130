# Installs Pteryx into a fresh folder and builds the examples against it, as a project that uses Pteryx would.
# cmake -D BUILD=folder -D EXAMPLES=folder -D WORK=folder -P check_package.cmake
file(REMOVE_RECURSE "${WORK}")

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(status)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command}\n${output}")
  endif()
endfunction()

run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/prefix")
run("${CMAKE_COMMAND}" -G Ninja -S "${EXAMPLES}" -B "${WORK}/build" "-DCMAKE_PREFIX_PATH=${WORK}/prefix")
run("${CMAKE_COMMAND}" --build "${WORK}/build" --parallel 2)
message(STATUS "the examples build against the installed package")
