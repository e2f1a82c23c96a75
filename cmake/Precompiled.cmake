# Precompiled headers. Parsing headers is most of the time that a file takes here: 15 of 21 s for an autograd function. GCC does
# not store instantiated templates in a precompiled header, so each compiler run instantiates again what the inline functions
# of the set's headers use. For an empty file that is 0.3 s with plain, 1.1 s with json, 0.8 s with torch and 4.6 s with
# torch_ops. Give a target the smallest set that its files need.
#
#   temposcope_add_library(NAME ... SOURCES ... PRECOMPILED torch)
#
# set        headers                               level  code that it is for
# ---------  ------------------------------------  -----  ----------------------------------------------------------------------
# plain      data model, fmt                       -O2    loops over events
# json       the same, JSON                        -O1    what runs once a command or once a frame
# tests      json and GoogleTest                   -O0    tests: they compile in half the time, and the libraries under test are
#                                                         optimized
# torch      data model, tensors                   -O1    calls of torch and of kernels, which are optimized themselves
# torch_ops  autograd functions and the dispatcher -O1    the same
#
# The set decides the level because GCC refuses a precompiled header in a file with other settings: -O0 has other macros, and
# -O1 of g++ 14 has other target flags (-munroll-only-small-loops, -mvzeroupper) than -O2.
#
# Every file still includes what it uses: tests/tidy compiles each header alone, and -DTEMPOSCOPE_PRECOMPILED_HEADERS=OFF
# builds without these sets.
option(TEMPOSCOPE_PRECOMPILED_HEADERS "precompile what many files include" ON)

set(_temposcope_precompiled_std
  <algorithm> <chrono> <filesystem> <functional> <map> <memory> <optional> <string> <unordered_map> <vector>)
set(_temposcope_precompiled_plain ${_temposcope_precompiled_std} <fmt/format.h> <profiler/trace/trace.h>)
set(_temposcope_precompiled_json ${_temposcope_precompiled_plain} <nlohmann/json.hpp>)
set(_temposcope_precompiled_tests ${_temposcope_precompiled_json} <gmock/gmock.h> <gtest/gtest.h>)
set(_temposcope_precompiled_torch ${_temposcope_precompiled_std} <fmt/format.h> <ATen/core/Tensor.h>
  <profiler/trace/trace.h>)
set(_temposcope_precompiled_torch_ops ${_temposcope_precompiled_std}
  <ATen/core/Tensor.h> <ATen/core/dispatch/Dispatcher.h> <torch/csrc/autograd/custom_function.h> <torch/library.h>)
set(_temposcope_precompiled_plain_libraries fmt::fmt tl::expected)
set(_temposcope_precompiled_json_libraries ${_temposcope_precompiled_plain_libraries} nlohmann_json::nlohmann_json)
set(_temposcope_precompiled_tests_libraries ${_temposcope_precompiled_json_libraries} GTest::gmock)
set(_temposcope_precompiled_torch_libraries temposcope_torch fmt::fmt tl::expected)
set(_temposcope_precompiled_torch_ops_libraries temposcope_torch)
# GTEST_HAS_PTHREAD is the macro that GTest::gtest defines: given here for programs of the tests that do not link GoogleTest.
set(_temposcope_precompiled_json_options $<$<CONFIG:Release>:-O1>)
set(_temposcope_precompiled_torch_options $<$<CONFIG:Release>:-O1>)
set(_temposcope_precompiled_torch_ops_options ${_temposcope_precompiled_torch_options})
set(_temposcope_precompiled_tests_options $<$<CONFIG:Release>:-O0> -DGTEST_HAS_PTHREAD=1)

# The target that owns a set's precompiled header. The first target that uses the set makes it.
function(_temposcope_precompiled_owner set result)
  set(owner temposcope_precompiled_${set})
  set(${result} ${owner} PARENT_SCOPE)
  if(TARGET ${owner})
    return()
  endif()
  if(NOT DEFINED _temposcope_precompiled_${set})
    message(FATAL_ERROR "PRECOMPILED ${set}: there is no such set; see cmake/Precompiled.cmake")
  endif()
  set(source "${PROJECT_BINARY_DIR}/${owner}.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "// Carries a precompiled header.\n")
  add_library(${owner} OBJECT EXCLUDE_FROM_ALL "${source}")
  target_include_directories(${owner} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${owner} PRIVATE ${_temposcope_precompiled_${set}_libraries} temposcope_options)
  target_compile_options(${owner} PRIVATE ${_temposcope_precompiled_${set}_options})
  target_precompile_headers(${owner} PRIVATE ${_temposcope_precompiled_${set}})
endfunction()

function(_temposcope_precompile target set separate)
  if(NOT set OR set STREQUAL "none")
    return()
  endif()
  target_compile_options(${target} PRIVATE ${_temposcope_precompiled_${set}_options})
  if(NOT separate)
    _temposcope_compile_in_batches(${target})
  endif()
  if(NOT TEMPOSCOPE_PRECOMPILED_HEADERS)
    return()
  endif()
  _temposcope_precompiled_owner(${set} owner)
  target_precompile_headers(${target} REUSE_FROM ${owner})
endfunction()
