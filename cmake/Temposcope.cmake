# The functions with which a folder declares its libraries and programs. Tests: cmake/Tests.cmake.
#
#   temposcope_add_library(NAME temposcope_trace SOURCES trace.cpp trace.h PUBLIC fmt::fmt PRIVATE SQLite::SQLite3)
#       A static library. TYPE SHARED or MODULE makes a library that is opened at run time. SOURCES may hold .cu files.
#   temposcope_add_executable(NAME temposcope SOURCES main.cpp PRIVATE temposcope_view)
#   temposcope_embed_assets(NAME temposcope_fonts ASSETS ui_font=assets/fonts/Roboto-Regular.ttf ...)
#       A static library that holds files, and a header "embedded/temposcope_fonts.h" with one function per file:
#       std::string_view embedded::ui_font(). With HASHED there is one more per file, its SHA-256 in hexadecimal digits:
#       std::string_view embedded::ui_font_sha256().
#
# PRECOMPILED  plain, json, tests, torch or torch_ops: the precompiled header and the optimization level of its files
#              (cmake/Precompiled.cmake)
# SEPARATE     compiles each file alone, even if TEMPOSCOPE_UNITY is on
# Include paths start at the repository's root.

# Files with the same precompiled header instantiate the same templates. A batch does that once: the planner's 25 files take
# 108 s of processor time alone and 50 s in four batches. The files of a batch share their anonymous namespace. If two of them
# use one name for different things, the compiler reports a redefinition: rename one, or take its file out of the batch with
#   set_source_files_properties(FILE PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
option(TEMPOSCOPE_UNITY "compile the files of a target in batches: faster from nothing, slower after a change of one file" OFF)
set(_temposcope_batch 8)  # the most files in a batch: a change of one file compiles its whole batch again

function(_temposcope_set_up target public private)
  target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${target} PUBLIC ${public} PRIVATE ${private} temposcope_options)
endfunction()

# Batches of equal size, so that none takes much longer than the others.
function(_temposcope_compile_in_batches target)
  if(NOT TEMPOSCOPE_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  list(LENGTH sources files)
  if(files LESS 2)
    return()
  endif()
  math(EXPR batches "(${files} + ${_temposcope_batch} - 1) / ${_temposcope_batch}")
  math(EXPR size "(${files} + ${batches} - 1) / ${batches}")
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${size})
endfunction()

function(temposcope_add_folder folder)
  if(TEMPOSCOPE_FOLDERS AND NOT folder IN_LIST TEMPOSCOPE_FOLDERS)
    return()
  endif()
  if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/CMakeLists.txt")
    add_subdirectory(${folder})
  endif()
endfunction()

# `ninja product` builds what a user runs, without tests and benchmarks.
add_custom_target(product)
set(_temposcope_tests "${PROJECT_SOURCE_DIR}/tests")

function(_temposcope_add_to_product target)
  cmake_path(IS_PREFIX _temposcope_tests "${CMAKE_CURRENT_SOURCE_DIR}" in_tests)
  if(NOT in_tests)
    add_dependencies(product ${target})
  endif()
endfunction()

function(temposcope_add_library)
  cmake_parse_arguments(PARSE_ARGV 0 arg "SEPARATE" "NAME;TYPE;PRECOMPILED" "SOURCES;PUBLIC;PRIVATE")
  _temposcope_check_arguments(temposcope_add_library)
  if(NOT arg_TYPE)
    set(arg_TYPE STATIC)
  endif()
  if(NOT arg_SOURCES MATCHES "\\.(cpp|cu|S)(;|$)")  # headers only
    add_library(${arg_NAME} INTERFACE)
    target_sources(${arg_NAME} PRIVATE ${arg_SOURCES})
    target_include_directories(${arg_NAME} INTERFACE "${PROJECT_SOURCE_DIR}")
    target_link_libraries(${arg_NAME} INTERFACE ${arg_PUBLIC})
    return()
  endif()
  add_library(${arg_NAME} ${arg_TYPE} ${arg_SOURCES})
  _temposcope_set_up(${arg_NAME} "${arg_PUBLIC}" "${arg_PRIVATE}")
  _temposcope_precompile(${arg_NAME} "${arg_PRECOMPILED}" "${arg_SEPARATE}")
  if(NOT arg_TYPE STREQUAL "STATIC")
    _temposcope_add_to_product(${arg_NAME})
  endif()
endfunction()

function(temposcope_add_executable)
  cmake_parse_arguments(PARSE_ARGV 0 arg "SEPARATE" "NAME;PRECOMPILED" "SOURCES;PUBLIC;PRIVATE")
  _temposcope_check_arguments(temposcope_add_executable)
  add_executable(${arg_NAME} ${arg_SOURCES})
  _temposcope_set_up(${arg_NAME} "${arg_PUBLIC}" "${arg_PRIVATE}")
  _temposcope_precompile(${arg_NAME} "${arg_PRECOMPILED}" "${arg_SEPARATE}")
  _temposcope_add_to_product(${arg_NAME})
endfunction()

function(temposcope_embed_assets)
  cmake_parse_arguments(PARSE_ARGV 0 arg "HASHED" "NAME" "ASSETS")
  _temposcope_check_arguments(temposcope_embed_assets)
  set(assembly "    .section .rodata\n")
  set(declarations "")
  set(functions "")
  set(files "")
  foreach(asset IN LISTS arg_ASSETS)
    if(NOT asset MATCHES "^([a-z0-9_]+)=(.+)$")
      message(FATAL_ERROR "temposcope_embed_assets(${arg_NAME}): '${asset}' is not name=file")
    endif()
    set(id ${CMAKE_MATCH_1})
    cmake_path(ABSOLUTE_PATH CMAKE_MATCH_2 BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" NORMALIZE OUTPUT_VARIABLE file)
    if(NOT EXISTS "${file}")
      message(FATAL_ERROR "temposcope_embed_assets(${arg_NAME}): ${file} does not exist")
    endif()
    set(symbol "${arg_NAME}_${id}")
    list(APPEND files "${file}")
    string(APPEND assembly "    .global ${symbol}_begin\n    .global ${symbol}_end\n    .balign 16\n"
      "${symbol}_begin:\n    .incbin \"${file}\"\n${symbol}_end:\n    .byte 0\n")
    string(APPEND declarations "extern \"C\" const char ${symbol}_begin[];\nextern \"C\" const char ${symbol}_end[];\n")
    string(APPEND functions "inline std::string_view ${id}() {\n"
      "    return {${symbol}_begin, static_cast<std::size_t>(${symbol}_end - ${symbol}_begin)};\n}\n")
    if(arg_HASHED)
      file(SHA256 "${file}" hash)
      string(APPEND functions "inline std::string_view ${id}_sha256() { return \"${hash}\"; }\n")
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")  # another file has another hash
    endif()
  endforeach()
  string(APPEND assembly "    .section .note.GNU-stack,\"\",%progbits\n")

  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${arg_NAME}_embedded")
  file(CONFIGURE OUTPUT "${folder}/${arg_NAME}.S" CONTENT "${assembly}" @ONLY)
  file(CONFIGURE OUTPUT "${folder}/include/embedded/${arg_NAME}.h" @ONLY CONTENT
    "#pragma once\n// Files embedded by temposcope_embed_assets.\n\n#include <cstddef>\n#include <string_view>\n\n${declarations}\nnamespace embedded {\n${functions}}  // namespace embedded\n")
  set_source_files_properties("${folder}/${arg_NAME}.S" PROPERTIES OBJECT_DEPENDS "${files}")
  add_library(${arg_NAME} STATIC "${folder}/${arg_NAME}.S")
  target_include_directories(${arg_NAME} SYSTEM PUBLIC "${folder}/include")
endfunction()

# A misspelt keyword stops configure. A macro, because it reads the variables of its caller.
macro(_temposcope_check_arguments function)
  if(NOT arg_NAME)
    message(FATAL_ERROR "${function}: NAME is missing")
  endif()
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${function}(${arg_NAME}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
endmacro()
