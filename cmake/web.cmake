# What the library takes from others in the web build. All of it is headers, which are linked to a folder of their own: the rest of
# /usr/include is another system's. {fmt} would be a tenth of a module: what the library uses of it is in pteryx/base/web.
set(headers "${PROJECT_BINARY_DIR}/headers")
file(MAKE_DIRECTORY "${headers}")
foreach(folder flatbuffers hwy)
  find_path(PTERYX_WEB_${folder} ${folder} REQUIRED)
  mark_as_advanced(PTERYX_WEB_${folder})
  file(CREATE_LINK "${PTERYX_WEB_${folder}}/${folder}" "${headers}/${folder}" SYMBOLIC)
endforeach()

add_library(fmt::fmt INTERFACE IMPORTED GLOBAL)
target_include_directories(fmt::fmt INTERFACE "${PROJECT_SOURCE_DIR}/pteryx/base/web/include")
add_library(hwy INTERFACE)
target_include_directories(hwy SYSTEM INTERFACE "${headers}")
