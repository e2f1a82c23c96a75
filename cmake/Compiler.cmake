# What every target shares: language standard, build type, warnings and the compiler cache.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)       # modules opened at run time contain static libraries too
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)           # no C++ modules here, so g++ 14 does not look for them
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)         # for editors and for tests/tidy
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")  # programs find the modules that they open beside themselves
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, RelWithDebInfo or Debug" FORCE)
endif()

# -O2 compiles faster than CMake's -O3. kernels/CMakeLists.txt asks for -O3.
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")

find_program(TEMPOSCOPE_CCACHE ccache DOC "compiler cache; empty for none")
if(TEMPOSCOPE_CCACHE)
  foreach(language C CXX CUDA)
    if(NOT CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER "${PROJECT_SOURCE_DIR}/cmake/ccache-launcher;${TEMPOSCOPE_CCACHE}")
    endif()
  endforeach()
  message(STATUS "Compiler cache: ${TEMPOSCOPE_CCACHE}")
else()
  message(STATUS "Compiler cache: none (apt-get install ccache makes rebuilds faster)")
endif()

# Only our own targets link this (Temposcope.cmake); third-party code is built without these options.
add_library(temposcope_options INTERFACE)
target_compile_options(temposcope_options INTERFACE
  # Programs and libraries share precompiled headers, so both need -fPIC. CMake gives programs -fPIE.
  $<$<COMPILE_LANGUAGE:CXX>:-fPIC;-fpch-preprocess>
  # By default GCC collects garbage at 128 MiB. From 1 GB on, it takes 7 % less time and hardly more memory.
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1000000;--param=ggc-min-expand=200>
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Wno-missing-field-initializers>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wshadow>
  $<$<AND:$<BOOL:${TEMPOSCOPE_WARNINGS_AS_ERRORS}>,$<COMPILE_LANGUAGE:CXX>>:-Werror>)

if(TEMPOSCOPE_SANITIZE)
  # Without the second option, undefined behaviour is printed and the test passes.
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${TEMPOSCOPE_SANITIZE}>
    $<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize-recover=undefined>
    $<$<COMPILE_LANGUAGE:C,CXX>:-fno-omit-frame-pointer>)
  add_link_options(-fsanitize=${TEMPOSCOPE_SANITIZE})
endif()
