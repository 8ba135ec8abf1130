# pteryx_component(NAME name LABEL host|gpu DEPS component... [NATIVE file.cpp...])
#
# Makes the folder it is called in a library pteryx_<name> that may include, and links, only its DEPS and theirs.
#   *_test.cpp       become the executable pteryx_<name>_test
#   testing/*.cpp    become pteryx_<name>_testing: what the tests of this component and of those above it share
#   other *.cpp      become the library; of NAME_posix.cpp and NAME_portable.cpp the one that fits the system.
# NAME_native.cpp, native/ and the files of NATIVE are left out of the web build, which has no file system either and so neither of
# those two; NAME_web.cpp and web/ are in that build only, which compiles NAME_fast.cpp for speed.
function(pteryx_component)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;LABEL" "DEPS;NATIVE")
  set(target pteryx_${arg_NAME})
  file(GLOB_RECURSE files CONFIGURE_DEPENDS *.cpp *.h)
  if(PTERYX_WEB)
    set(unfit "_(native|posix|portable)\\.cpp$|/native/")
    foreach(file IN LISTS arg_NATIVE)
      string(REPLACE "." "\\." file "${file}")
      string(APPEND unfit "|/${file}$")
    endforeach()
  elseif(UNIX)
    set(unfit "_(web|portable)\\.cpp$|/web/")
  else()
    set(unfit "_(web|posix)\\.cpp$|/web/")
  endif()
  set(sources ${files})
  set(tests ${files})
  set(testing ${files})
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$|/testing/|\\.h$|${unfit}")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER testing INCLUDE REGEX "/testing/[^/]*\\.cpp$")
  list(FILTER testing EXCLUDE REGEX "_test\\.cpp$")

  set(below)
  foreach(dep IN LISTS arg_DEPS)
    get_property(more GLOBAL PROPERTY PTERYX_BELOW_${dep})
    list(APPEND below ${dep} ${more})
  endforeach()
  list(REMOVE_DUPLICATES below)
  set_property(GLOBAL PROPERTY PTERYX_BELOW_${arg_NAME} "${below}")

  list(TRANSFORM arg_DEPS PREPEND pteryx_ OUTPUT_VARIABLE libraries)
  if(PTERYX_WEB)
    set(fast ${sources})
    list(FILTER fast INCLUDE REGEX "_fast\\.cpp$")
    set_source_files_properties(${fast} PROPERTIES COMPILE_OPTIONS "${PTERYX_FAST_OPTIONS}")
  endif()
  if(sources)
    add_library(${target} STATIC ${sources})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE pteryx_library_options)
    set_property(GLOBAL APPEND PROPERTY PTERYX_COMPONENTS ${target})
    pteryx_check_includes(${target} "${arg_NAME}" "${below}" ${files})
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} ${scope} "${PROJECT_SOURCE_DIR}")
  target_include_directories(${target} SYSTEM ${scope} "${PROJECT_BINARY_DIR}/generated")
  target_link_libraries(${target} ${scope} ${libraries} fmt::fmt)

  if(NOT PTERYX_BUILD_TESTS)
    return()
  endif()
  get_property(with_testing GLOBAL PROPERTY PTERYX_TESTING)
  set(libraries ${target})
  foreach(component IN LISTS below)
    if(component IN_LIST with_testing)
      list(PREPEND libraries pteryx_${component}_testing)
    endif()
  endforeach()
  if(testing)
    add_library(${target}_testing STATIC ${testing})
    target_link_libraries(${target}_testing PRIVATE pteryx_options PUBLIC ${libraries} GTest::gtest)
    set_property(GLOBAL APPEND PROPERTY PTERYX_TESTING ${arg_NAME})
    list(PREPEND libraries ${target}_testing)
  endif()
  if(tests)
    pteryx_add_gtest(${target}_test NAME ${arg_NAME} LABEL ${arg_LABEL} SOURCES ${tests} LIBRARIES ${libraries})
  endif()
endfunction()

# Fails the build of a component that includes a header of a folder it does not depend on.
function(pteryx_check_includes target name below)
  list(JOIN below "," allowed)
  set(stamp "${CMAKE_CURRENT_BINARY_DIR}/${name}_includes.stamp")
  add_custom_command(
    OUTPUT "${stamp}"
    COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tools/check_includes.py" --component ${name}
            --allowed "${allowed}" --stamp "${stamp}" "${CMAKE_CURRENT_SOURCE_DIR}"
    DEPENDS "${PROJECT_SOURCE_DIR}/tools/check_includes.py" ${ARGN}
    COMMENT "Checking what pteryx/${name} includes"
    VERBATIM)
  target_sources(${target} PRIVATE "${stamp}")
endfunction()
