# Each tests/fuzz/NAME_fuzz.cpp becomes the libFuzzer executable NAME_fuzz and the test fuzz/NAME, which runs it for FUZZ_SECONDS.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "PTERYX_FUZZ needs Clang: use the preset 'asan'")
endif()

add_custom_target(pteryx_fuzzers COMMENT "All fuzz targets")

file(GLOB fuzzers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fuzz/*_fuzz.cpp")
foreach(source IN LISTS fuzzers)
  cmake_path(GET source STEM target)
  string(REGEX REPLACE "_fuzz$" "" name ${target})
  add_executable(${target} "${source}" "${PROJECT_SOURCE_DIR}/tests/fuzz/check.cpp")
  target_link_libraries(${target} PRIVATE pteryx_options pteryx_convert pteryx_llm pteryx_session)
  target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  add_dependencies(pteryx_fuzzers ${target})
  pteryx_add_test(NAME fuzz/${name} LABEL fuzz
    COMMAND "${PROJECT_SOURCE_DIR}/scripts/fuzz" $<TARGET_FILE:${target}> ${name} "${PROJECT_BINARY_DIR}/fuzz"
    PROPERTIES TIMEOUT 36000)
endforeach()
target_sources(npy_fuzz PRIVATE "${PROJECT_SOURCE_DIR}/cli/npy.cpp")
