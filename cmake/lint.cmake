# Formatting and clang-tidy as tests, so that one ctest run speaks for them too.
pteryx_add_test(NAME lint/format LABEL lint COMMAND "${PROJECT_SOURCE_DIR}/scripts/format" --check)
pteryx_add_test(NAME lint/tidy LABEL tidy
  COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tools/tidy.py" --build "${PROJECT_BINARY_DIR}" --jobs 2 pteryx cli
  PROPERTIES PROCESSORS 2 TIMEOUT 3600)
