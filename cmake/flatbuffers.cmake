# pteryx_flatbuffers(target file.fbs...): generates the C++ reader of each schema into the build folder.
find_program(PTERYX_FLATC flatc REQUIRED)
find_path(PTERYX_FLATBUFFERS_INCLUDE flatbuffers/flatbuffers.h REQUIRED)

function(pteryx_flatbuffers target)
  file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}")
  set(output "${PROJECT_BINARY_DIR}/generated/${folder}")
  foreach(schema IN LISTS ARGN)
    cmake_path(GET schema STEM stem)
    # A schema may include another, so each is generated again when any of them changes.
    add_custom_command(
      OUTPUT "${output}/${stem}_generated.h"
      COMMAND "${PTERYX_FLATC}" --cpp --scoped-enums -I "${CMAKE_CURRENT_SOURCE_DIR}" -o "${output}" "${schema}"
      DEPENDS ${ARGN}
      COMMENT "Generating ${folder}/${stem}_generated.h"
      VERBATIM)
    target_sources(${target} PRIVATE "${output}/${stem}_generated.h")
  endforeach()
endfunction()
