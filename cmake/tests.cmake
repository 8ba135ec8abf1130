# Registering tests. A label says what a test needs: host (nothing) or gpu (an adapter); lint, package, fuzz and wasm are stages of their
# own. A gpu test is registered once for each of PTERYX_TEST_PROVIDERS, on the software GPU; one of the command line tool is labelled
# cli as well.
if(PTERYX_BUILD_TESTS OR PTERYX_FUZZ OR PTERYX_WEB)
  enable_testing()
endif()
if(PTERYX_BUILD_TESTS)
  find_package(GTest REQUIRED)
  add_custom_target(pteryx_tests COMMENT "All test executables")
endif()

# Whether this build folder has tests of one of the labels.
function(pteryx_has_label labels out)
  set(${out} FALSE PARENT_SCOPE)
  foreach(label IN LISTS labels)
    if(NOT PTERYX_TEST_LABELS OR label IN_LIST PTERYX_TEST_LABELS)
      set(${out} TRUE PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# pteryx_add_test(NAME name LABEL label... COMMAND command... [PROVIDERS provider...] [PROPERTIES property value...])
# A test that skips itself, or runs nothing, has failed.
function(pteryx_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "LABEL;COMMAND;PROVIDERS;PROPERTIES")
  pteryx_has_label("${arg_LABEL}" wanted)
  if(NOT wanted)
    return()
  endif()
  list(GET arg_COMMAND 0 program)
  if(TARGET pteryx_tests AND TARGET ${program})
    get_target_property(imported ${program} IMPORTED)
    if(NOT imported)
      add_dependencies(pteryx_tests ${program})
    endif()
  endif()
  set(name "${PTERYX_TEST_PREFIX}${arg_NAME}")
  if("gpu" IN_LIST arg_LABEL)
    if(NOT arg_PROVIDERS)
      set(arg_PROVIDERS ${PTERYX_TEST_PROVIDERS})
    endif()
    foreach(provider IN LISTS arg_PROVIDERS)
      add_test(NAME "${name}/${provider}" COMMAND ${arg_COMMAND})
      set_tests_properties("${name}/${provider}" PROPERTIES
        ENVIRONMENT "PTERYX_ADAPTER=software;PTERYX_PROVIDER=${provider}")
      list(APPEND names "${name}/${provider}")
    endforeach()
  else()
    add_test(NAME "${name}" COMMAND ${arg_COMMAND})
    set(names "${name}")
  endif()
  set_tests_properties(${names} PROPERTIES
    LABELS "${arg_LABEL}"
    TIMEOUT 1800
    FAIL_REGULAR_EXPRESSION "\\[  SKIPPED \\];DISABLED TEST;\\] 0 tests from;Ran 0 tests;\\(skipped="
    ${arg_PROPERTIES})
endfunction()

# pteryx_add_gtest(target LABEL label NAME name SOURCES file... LIBRARIES target...)
function(pteryx_add_gtest target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAME;LABEL" "SOURCES;LIBRARIES")
  pteryx_has_label(${arg_LABEL} wanted)
  if(NOT wanted)
    return()
  endif()
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE pteryx_options ${arg_LIBRARIES} GTest::gtest_main)
  pteryx_add_test(NAME "${arg_NAME}" LABEL ${arg_LABEL} COMMAND ${target} --gtest_brief=1)
endfunction()
