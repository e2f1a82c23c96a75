# Copies the shared libraries that `files` need into the folder `destination`, under the names by which they are found. Not the C
# and C++ libraries, which every machine has, and not those of torch, CUDA and the virtual GPU.
file(GET_RUNTIME_DEPENDENCIES
  LIBRARIES ${files}
  RESOLVED_DEPENDENCIES_VAR libraries
  PRE_EXCLUDE_REGEXES "^(ld-linux|libc|libm|libdl|libpthread|librt|libstdc|libgcc_s)[.+-]" "^lib(torch|c10|tempo|gomp|cu|nv|nccl)")
foreach(library IN LISTS libraries)
  cmake_path(GET library FILENAME name)
  file(REAL_PATH "${library}" file)
  file(COPY_FILE "${file}" "${destination}/${name}" ONLY_IF_DIFFERENT)
endforeach()
