# Libraries from Debian packages. The version is the oldest that is known to work, that of Debian 12.

# find_package gets no version: a package's own version file decides what is compatible, and simdjson's accepts only the
# same minor version. A macro, because find_package sets variables in the scope of its caller.
macro(temposcope_find_debian package version deb)
  find_package(${package} QUIET ${ARGN})
  set(_sentence "${package} ${version} or newer was not found; run scripts/setup, or: apt-get install ${deb}")
  temposcope_require(${package}_FOUND "${_sentence}")
  if(NOT "${version}" STREQUAL "")
    string(TOUPPER ${package} _upper)  # CMake's own modules set OPENSSL_VERSION and FREETYPE_VERSION_STRING
    set(_found "")
    foreach(_variable ${package}_VERSION ${_upper}_VERSION ${_upper}_VERSION_STRING)
      if(NOT _found)
        set(_found "${${_variable}}")
      endif()
    endforeach()
    temposcope_require("_found;VERSION_GREATER_EQUAL;${version}" "${_sentence} (found: '${_found}')")
  endif()
endmacro()

# The same for a library whose code is in the programs, from headers or statically linked. A package of the programs carries the
# licences of the packages in TEMPOSCOPE_CARRIED (copy_libraries.cmake).
set(TEMPOSCOPE_CARRIED "")
macro(temposcope_find_carried package version deb)
  temposcope_find_debian(${package} ${version} ${deb})
  list(APPEND TEMPOSCOPE_CARRIED ${deb})
endmacro()

temposcope_find_debian(Threads "" libc6-dev)
temposcope_find_carried(SQLite3 3.40 libsqlite3-dev)
# Static and hidden: Python loads the recorder, and may have a SQLite of another version.
find_library(TEMPOSCOPE_SQLITE libsqlite3.a)
temposcope_require(TEMPOSCOPE_SQLITE "libsqlite3.a was not found; run scripts/setup, or: apt-get install libsqlite3-dev")
add_library(temposcope_sqlite INTERFACE)
target_include_directories(temposcope_sqlite SYSTEM INTERFACE ${SQLite3_INCLUDE_DIRS})
target_link_options(temposcope_sqlite INTERFACE "LINKER:--exclude-libs,libsqlite3.a")
target_link_libraries(temposcope_sqlite INTERFACE "${TEMPOSCOPE_SQLITE}" Threads::Threads m ${CMAKE_DL_LIBS})
temposcope_find_debian(fmt 9.1 libfmt-dev)
temposcope_find_carried(tl-expected 1.0 libexpected-dev)
temposcope_find_carried(nlohmann_json 3.11 nlohmann-json3-dev)
temposcope_find_carried(CLI11 2.1 libcli11-dev)
temposcope_find_debian(Freetype 2.12 libfreetype-dev)
temposcope_find_debian(hwy 1.0 libhwy-dev)
temposcope_find_debian(simdjson 3.0 libsimdjson-dev)
temposcope_find_debian(ZLIB 1.2 zlib1g-dev)
# The whole static library: its malloc then serves the program and every library that the program loads.
find_library(TEMPOSCOPE_JEMALLOC libjemalloc_pic.a)
temposcope_require(TEMPOSCOPE_JEMALLOC "jemalloc 5 was not found; run scripts/setup, or: apt-get install libjemalloc-dev")
list(APPEND TEMPOSCOPE_CARRIED libjemalloc-dev)
add_library(temposcope_jemalloc INTERFACE)
target_link_libraries(temposcope_jemalloc INTERFACE "$<LINK_LIBRARY:WHOLE_ARCHIVE,${TEMPOSCOPE_JEMALLOC}>" Threads::Threads ${CMAKE_DL_LIBS})

temposcope_find_debian(X11 "" "libx11-dev libxrandr-dev libxinerama-dev libxcursor-dev libxi-dev libxext-dev")

temposcope_find_debian(PkgConfig "" pkg-config)
pkg_check_modules(CAIRO QUIET IMPORTED_TARGET cairo>=1.16)
temposcope_require(CAIRO_FOUND "cairo 1.16 or newer was not found; run scripts/setup, or: apt-get install libcairo2-dev")
# Static where Debian has it: 12 does, 13 does not. The shared library needs those of X11. A package would then carry a copy of them,
# which OpenGL drivers of another machine would have to use.
find_library(TEMPOSCOPE_CAIRO libcairo.a)
find_library(TEMPOSCOPE_PIXMAN libpixman-1.a)
add_library(temposcope_cairo INTERFACE)
if(TEMPOSCOPE_CAIRO AND TEMPOSCOPE_PIXMAN)
  list(APPEND TEMPOSCOPE_CARRIED libcairo2-dev libpixman-1-dev)
  pkg_check_modules(CAIRO_NEEDS REQUIRED QUIET IMPORTED_TARGET fontconfig libpng)
  target_include_directories(temposcope_cairo SYSTEM INTERFACE ${CAIRO_INCLUDE_DIRS})
  target_link_libraries(temposcope_cairo INTERFACE
    "${TEMPOSCOPE_CAIRO}" "${TEMPOSCOPE_PIXMAN}" PkgConfig::CAIRO_NEEDS Freetype::Freetype ZLIB::ZLIB m ${CMAKE_DL_LIBS})
else()
  target_link_libraries(temposcope_cairo INTERFACE PkgConfig::CAIRO)
endif()
pkg_check_modules(HTTPLIB QUIET IMPORTED_TARGET cpp-httplib>=0.11)
temposcope_require(HTTPLIB_FOUND "cpp-httplib 0.11 or newer was not found; run scripts/setup, or: apt-get install libcpp-httplib-dev")
list(APPEND TEMPOSCOPE_CARRIED libcpp-httplib-dev)
# Debian's library is built with OpenSSL, so its structs hold a pointer more, and its header must see the same macro. From
# 0.18 on the header's inline functions call OpenSSL, which the library's pkg-config file does not link. Nothing here uses TLS.
temposcope_find_debian(OpenSSL 3.0 libssl-dev)
add_library(temposcope_httplib INTERFACE)
target_link_libraries(temposcope_httplib INTERFACE PkgConfig::HTTPLIB OpenSSL::SSL OpenSSL::Crypto)

if(BUILD_TESTING)
  temposcope_find_debian(GTest 1.12 "libgtest-dev libgmock-dev")
  temposcope_find_debian(benchmark 1.7 libbenchmark-dev)
endif()
