# Toolchain of the preset 'web': Debian's clang, wasi-libc and libc++ for wasm32.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(CMAKE_CXX_COMPILER clang++-22)
set(CMAKE_CXX_COMPILER_TARGET wasm32-wasi)
# This clang would rather be told wasm32-wasip1, but Debian's libraries are where the old name leads.
set(CMAKE_CXX_FLAGS_INIT "-Wno-deprecated -ffunction-sections -fdata-sections")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-mexec-model=reactor -Wl,--gc-sections -Wl,--strip-debug")  # names stay: web/build.mjs sorts by them
set(CMAKE_PREFIX_PATH /usr)  # where headers and tools are looked for
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)

# Objects hold bitcode, of which Debian's archivers know nothing: no index is written, and the linker looks for symbols itself.
set(CMAKE_AR /usr/bin/ar CACHE FILEPATH "")
set(CMAKE_CXX_ARCHIVE_CREATE "<CMAKE_AR> qcS <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_APPEND "<CMAKE_AR> qS <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_FINISH "")
