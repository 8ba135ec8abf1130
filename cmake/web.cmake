# What the library takes from others in the web build. All of it is headers, which are linked to a folder of their own: the rest of
# /usr/include is another system's. The compiled part of {fmt} is pteryx/base/fmt_web.cpp.
set(headers "${PROJECT_BINARY_DIR}/headers")
file(MAKE_DIRECTORY "${headers}")
foreach(folder fmt nlohmann flatbuffers hwy)
  find_path(PTERYX_WEB_${folder} ${folder} REQUIRED)
  mark_as_advanced(PTERYX_WEB_${folder})
  file(CREATE_LINK "${PTERYX_WEB_${folder}}/${folder}" "${headers}/${folder}" SYMBOLIC)
endforeach()

add_library(fmt::fmt INTERFACE IMPORTED GLOBAL)
target_include_directories(fmt::fmt SYSTEM INTERFACE "${headers}")
target_compile_definitions(fmt::fmt INTERFACE FMT_STATIC_THOUSANDS_SEPARATOR=',')  # no std::locale
add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED GLOBAL)
target_include_directories(nlohmann_json::nlohmann_json SYSTEM INTERFACE "${headers}")
add_library(hwy INTERFACE)
target_include_directories(hwy SYSTEM INTERFACE "${headers}")
