# Precompiled headers: parsing headers is most of what a file here costs (of 21 s for an autograd function 15 s). GCC keeps
# no instantiated templates in them: each file instantiates again what the inline functions of all the headers in its set
# use. An empty file costs 0.3 s with plain, 1.1 s with json, 0.8 s with torch and 4.6 s with torch_ops: a target takes the
# smallest set that its files need.
#
#   temposcope_add_library(NAME ... SOURCES ... PRECOMPILED torch)
#
# plain      the data model and text
# json       the same and JSON
# tests      the same as json and GoogleTest; not optimized, which halves what a test costs to compile: tests wait for
#            the libraries that they test, and those are optimized
# torch      tensors and the data model; -O1, which takes a third off: this code hands over to kernels and to torch, which are optimized, and
#            its own loops are over ops and blocks
# torch_ops  the same, autograd functions and the dispatcher
#
# Every file still includes what it uses: tests/tidy compiles each header alone, and -DTEMPOSCOPE_PRECOMPILED_HEADERS=OFF
# builds without.
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
# A precompiled header serves only files with its own macros and language options: -O0 has other macros than -O1 to -O3. GTEST_HAS_PTHREAD is what GTest::gtest says: here for
# the tests' programs that do not link it.
set(_temposcope_precompiled_json_options $<$<CONFIG:Release>:-O1>)
set(_temposcope_precompiled_torch_options $<$<CONFIG:Release>:-O1>)
set(_temposcope_precompiled_torch_ops_options ${_temposcope_precompiled_torch_options})
set(_temposcope_precompiled_tests_options $<$<CONFIG:Release>:-O0> -DGTEST_HAS_PTHREAD=1)

# The target that owns a set's precompiled header; made when it is first asked for.
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
