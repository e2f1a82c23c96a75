# The functions with which a folder of tests/ declares its tests. tests/run_test.py runs each of them.
#
#   temposcope_add_test(NAME trace_test SOURCES trace_test.cpp LIBRARIES temposcope_trace
#                       [PRECOMPILED none] [WITHOUT "Suite.*"] [LONG "Suite.Case:..."] [THOROUGH "Suite.*"] [SHARDS 2]
#                       [LABELS gpu] [TIMEOUT 120] [ENVIRONMENT A=1 B=2])
#       A GoogleTest program whose cases run in one process; with SHARDS, in several side by side. It has two macros:
#       TEMPOSCOPE_SOURCE_DIR is the repository's root, TEMPOSCOPE_BINARY_DIR the folder of the programs and modules (build/bin).
#       WITHOUT, LONG and THOROUGH are filters of GoogleTest.
#   temposcope_add_script_test(NAME python.run COMMAND python3 record_test.py [DISPLAY] [LABELS long] [TIMEOUT 600]
#                              [ENVIRONMENT A=1] [PROPERTIES PASS_REGULAR_EXPRESSION ...])
#       A command that succeeds. Exit code 77: skipped. DISPLAY gives it an X server of its own.
#
# long      takes more than 10 s of processor time. Without this label more than 15 s are a failure (for a program of cases, of
#           one case).
# thorough  `scripts/test` leaves it out, `scripts/test --all` runs it.

find_package(Python3 3.10 QUIET COMPONENTS Interpreter)
temposcope_require(Python3_FOUND "python3 3.10 or newer was not found; run scripts/setup, or: apt-get install python3")
set(_temposcope_run_test Python3::Interpreter "${PROJECT_SOURCE_DIR}/tests/run_test.py")

# add_test, and what all tests have.
function(_temposcope_register name)
  cmake_parse_arguments(PARSE_ARGV 1 registered "" "TIMEOUT" "COMMAND;LABELS;ENVIRONMENT;PROPERTIES")
  add_test(NAME ${name} COMMAND ${registered_COMMAND})
  # Small shapes: a second thread of OpenMP only waits, and on a busy machine it waits long.
  list(PREPEND registered_ENVIRONMENT OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1)
  set_tests_properties(${name} PROPERTIES TIMEOUT ${registered_TIMEOUT} SKIP_RETURN_CODE 77
    LABELS "${registered_LABELS}" ENVIRONMENT "${registered_ENVIRONMENT}")
  if(registered_PROPERTIES)
    set_tests_properties(${name} PROPERTIES ${registered_PROPERTIES})
  endif()
endfunction()

function(temposcope_add_script_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "DISPLAY" "NAME;TIMEOUT" "COMMAND;LABELS;ENVIRONMENT;PROPERTIES")
  _temposcope_check_arguments(temposcope_add_script_test)
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  set(options "")
  if("long" IN_LIST arg_LABELS)
    list(APPEND options --long)
  endif()
  if(arg_DISPLAY)
    list(APPEND options --display)
  endif()
  _temposcope_register(${arg_NAME} COMMAND ${_temposcope_run_test} ${options} ${arg_COMMAND} TIMEOUT ${arg_TIMEOUT}
    LABELS ${arg_LABELS} ENVIRONMENT ${arg_ENVIRONMENT} PROPERTIES ${arg_PROPERTIES})
endfunction()

# The entries of ctest for the cases that `only` and `without` leave. A macro: it reads what temposcope_add_test was given.
macro(_temposcope_add_cases name shards only without labels)
  set(common --program-of-cases "--only=${only}" "--without=${without}")
  set(labels_of_cases "${labels}")
  if("long" IN_LIST labels_of_cases)
    list(APPEND common --long)
  endif()
  foreach(shard RANGE 1 ${shards})
    set(entry ${name})
    set(environment ${arg_ENVIRONMENT})
    if(${shards} GREATER 1)
      set(entry ${name}.${shard})
      math(EXPR index "${shard} - 1")
      list(APPEND environment GTEST_TOTAL_SHARDS=${shards} GTEST_SHARD_INDEX=${index})
    endif()
    _temposcope_register(${entry} TIMEOUT ${arg_TIMEOUT} LABELS ${labels_of_cases} ENVIRONMENT ${environment}
      COMMAND ${_temposcope_run_test} ${common}
        --record "${PROJECT_BINARY_DIR}/Testing/cases/${entry}.json" $<TARGET_FILE:${arg_NAME}>)
  endforeach()
endmacro()

function(temposcope_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "SEPARATE" "NAME;TIMEOUT;PRECOMPILED;WITHOUT;LONG;THOROUGH;SHARDS"
    "SOURCES;LIBRARIES;LABELS;ENVIRONMENT;PROPERTIES")
  _temposcope_check_arguments(temposcope_add_test)
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 900)  # of all cases together, on a loaded machine
  endif()
  if(NOT arg_SHARDS)
    set(arg_SHARDS 1)
  endif()
  add_executable(${arg_NAME} ${arg_SOURCES})
  _temposcope_set_up(${arg_NAME} "" "${arg_LIBRARIES};temposcope_case_times;GTest::gmock;GTest::gtest_main")
  if(NOT arg_PRECOMPILED)
    set(arg_PRECOMPILED tests)
  endif()
  _temposcope_precompile(${arg_NAME} "${arg_PRECOMPILED}" "${arg_SEPARATE}")
  target_compile_definitions(${arg_NAME} PRIVATE
    TEMPOSCOPE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" TEMPOSCOPE_BINARY_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  set_target_properties(${arg_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/tests")

  string(JOIN ":" without ${arg_WITHOUT} ${arg_LONG} ${arg_THOROUGH})
  _temposcope_add_cases(${arg_NAME} ${arg_SHARDS} "*" "${without}" "${arg_LABELS}")
  if(arg_LONG)
    _temposcope_add_cases(${arg_NAME}.long 1 "${arg_LONG}" "${arg_WITHOUT}" "${arg_LABELS};long")
  endif()
  if(arg_THOROUGH)
    _temposcope_add_cases(${arg_NAME}.thorough 1 "${arg_THOROUGH}" "${arg_WITHOUT}" "${arg_LABELS};long;thorough")
  endif()
endfunction()
