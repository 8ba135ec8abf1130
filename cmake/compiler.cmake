# How every file is compiled. pteryx_options is for all code, pteryx_library_options adds what holds inside pteryx/.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
if(NOT PTERYX_WEB)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(PTERYX_CCACHE ccache)
if(PTERYX_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths count from the source folder, so that another clone of the same sources finds what this one compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${PTERYX_CCACHE}")
endif()

add_library(pteryx_options INTERFACE)
# A designated initializer leaves out what keeps its default; g++ would call each of those a missing one.
target_compile_options(pteryx_options INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Werror -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(pteryx_options INTERFACE -Wno-restrict)  # g++ 12 sees overlaps in std::string's operator+
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(pteryx_options INTERFACE -Wno-deprecated-declarations)  # libstdc++ 12's own stable_sort
endif()

if(PTERYX_WEB)
  # A page's memory has 32-bit sizes. Sizes of files and buffers have 64, and are compared with the former before they become one.
  target_compile_options(pteryx_options INTERFACE -Wno-shorten-64-to-32)
  # The CPU's kernels: for speed, and apart from what is optimised as a whole for size. Atomics are for the module with threads, which has
  # the same library; where memory is not shared they are plain accesses.
  set(PTERYX_FAST_OPTIONS -O3 -fno-lto -msimd128 -matomics -mbulk-memory)
endif()

# Errors are values inside the library: no exception can be thrown there or cross its boundary.
add_library(pteryx_library_options INTERFACE)
target_link_libraries(pteryx_library_options INTERFACE pteryx_options)
target_compile_options(pteryx_library_options INTERFACE -fno-exceptions -fno-rtti)

if(PTERYX_SANITIZE)
  # vptr needs the type information that the library does without.
  set(flags -fsanitize=${PTERYX_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_compile_options(${flags})
  add_link_options(${flags})
endif()
