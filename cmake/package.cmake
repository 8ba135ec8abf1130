# The one library that others link: every component's objects in libpteryx.a, with the public headers and a CMake package.
get_property(components GLOBAL PROPERTY PTERYX_COMPONENTS)
if(NOT components OR NOT EXISTS "${PROJECT_SOURCE_DIR}/pteryx/pteryx.h")
  return()
endif()

set(objects)
foreach(component IN LISTS components)
  list(APPEND objects $<TARGET_OBJECTS:${component}>)
endforeach()
add_library(pteryx STATIC ${objects})
add_library(pteryx::pteryx ALIAS pteryx)
set_target_properties(pteryx PROPERTIES LINKER_LANGUAGE CXX)
target_compile_features(pteryx PUBLIC cxx_std_20)
target_include_directories(pteryx PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(pteryx PUBLIC fmt::fmt Threads::Threads pcre2-8 utf8proc hwy ${CMAKE_DL_LIBS})

# The public headers are these and whatever they include, directly or not.
function(pteryx_header_closure header out)
  set(queue "${header}")
  set(found)
  while(queue)
    list(POP_FRONT queue current)
    if(NOT current IN_LIST found)
      list(APPEND found "${current}")
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${current}")
      file(STRINGS "${PROJECT_SOURCE_DIR}/${current}" lines REGEX "^#include \"pteryx/")
      foreach(line IN LISTS lines)
        string(REGEX REPLACE "^#include \"([^\"]*)\".*" "\\1" included "${line}")
        list(APPEND queue "${included}")
      endforeach()
    endif()
  endwhile()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

set(headers)
foreach(header pteryx/pteryx.h pteryx/llm.h pteryx/profile.h pteryx/gpu/device.h pteryx/gpu/cpu_device.h)
  pteryx_header_closure(${header} more)
  list(APPEND headers ${more})
endforeach()
list(REMOVE_DUPLICATES headers)
foreach(header IN LISTS headers)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES "${PROJECT_SOURCE_DIR}/${header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/${folder}")
endforeach()

include(CMakePackageConfigHelpers)
set(package "${CMAKE_INSTALL_LIBDIR}/cmake/pteryx")
install(TARGETS pteryx EXPORT pteryx ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT pteryx NAMESPACE pteryx:: FILE pteryxTargets.cmake DESTINATION "${package}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/pteryxConfig.cmake.in"
  "${CMAKE_CURRENT_BINARY_DIR}/pteryxConfig.cmake" INSTALL_DESTINATION "${package}")
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/pteryxConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/pteryxConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/pteryxConfigVersion.cmake"
  DESTINATION "${package}")

# Where an installed command looks for them; programs that link the library get the folder as a runtime path.
install(FILES "${PTERYX_PROVIDER_DIR}/dawn/libwebgpu_dawn.so" "${PTERYX_PROVIDER_DIR}/wgpu/libwgpu_native.so"
  DESTINATION lib/pteryx)

pteryx_add_test(NAME package LABEL package
  COMMAND "${CMAKE_COMMAND}" -D "BUILD=${PROJECT_BINARY_DIR}" -D "EXAMPLES=${PROJECT_SOURCE_DIR}/examples"
          -D "PROGRAM=${PROJECT_SOURCE_DIR}/tests/fixtures/ops/add.pte" -D "GGUF=${PROJECT_SOURCE_DIR}/tests/fixtures/convert/llama.gguf"
          -D "DRIVER=${PTERYX_SOFTWARE_ICD}" -D "WORK=${PROJECT_BINARY_DIR}/package" -P "${PROJECT_SOURCE_DIR}/cmake/check_package.cmake")
