# Copies the shared libraries that `files` need into the folder `destination`, under the names by which they are found. Not the C
# and C++ libraries, which every machine has, and not those of torch, CUDA and the virtual GPU. The licences of Debian's libraries
# and of the Debian packages `carried`, whose code is in the programs, go into the folder `licences`: a package that carries the
# code must carry those, too.
file(GET_RUNTIME_DEPENDENCIES
  LIBRARIES ${files}
  RESOLVED_DEPENDENCIES_VAR libraries
  PRE_EXCLUDE_REGEXES "^(ld-linux|libc|libm|libdl|libpthread|librt|libstdc|libgcc_s)[.+-]" "^lib(torch|c10|tempo|gomp|cu|nv|nccl)")
foreach(library IN LISTS libraries)
  cmake_path(GET library FILENAME name)
  file(REAL_PATH "${library}" file)
  file(COPY_FILE "${file}" "${destination}/${name}" ONLY_IF_DIFFERENT)
  # By pattern: dpkg may know /usr/lib as /lib. The answer is "libfmt9:amd64: /usr/lib/...".
  cmake_path(GET file FILENAME name)
  execute_process(COMMAND dpkg-query -S "*/${name}" OUTPUT_VARIABLE owner ERROR_QUIET RESULT_VARIABLE failed)
  string(REGEX MATCH "^[^:, ]+" package "${owner}")
  if(NOT failed EQUAL 0 OR package STREQUAL "")
    message(FATAL_ERROR "no licence of ${file} was found: it is of no Debian package; install the package that has this library")
  endif()
  list(APPEND carried "${package}")
endforeach()

file(MAKE_DIRECTORY "${licences}")
list(REMOVE_DUPLICATES carried)
foreach(package IN LISTS carried)
  set(text "/usr/share/doc/${package}/copyright")
  if(NOT EXISTS "${text}")
    message(FATAL_ERROR "no licence of ${package} was found: ${text} is missing; run apt-get install --reinstall ${package}")
  endif()
  file(REAL_PATH "${text}" text)
  file(COPY_FILE "${text}" "${licences}/${package}.txt" ONLY_IF_DIFFERENT)
endforeach()
