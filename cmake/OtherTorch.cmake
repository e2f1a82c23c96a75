# Builds for one more torch what sees torch, beside the libraries and programs of a whole build:
#
#   cmake -S . -B build/torch-2.15 -DTEMPOSCOPE_TORCH_FREE=$PWD/build -DTEMPOSCOPE_TORCH_DIR=.../torch
#         -DTEMPOSCOPE_TORCH_OUTPUT=$PWD/build/bin/torch-2.15
#   build/bin/torch-2.15/    libtempo_ops.so, libtempo_ops_cuda.so, libtemposcope_python.so, libtemposcope_cuda.so,
#                            temposcope-worker
#
# scripts/build --torch 2.15 does this, and names the torch in torch_version when all is built. The whole build must be complete: its libraries without torch are taken as they are.

temposcope_require("EXISTS;${TEMPOSCOPE_TORCH_FREE}/torch_free.cmake" "TEMPOSCOPE_TORCH_FREE='${TEMPOSCOPE_TORCH_FREE}' is no build \
folder of Temposcope; run scripts/build, then name its folder")
include("${TEMPOSCOPE_TORCH_FREE}/torch_free.cmake")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${TEMPOSCOPE_TORCH_OUTPUT}")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${TEMPOSCOPE_TORCH_OUTPUT}")
set(CMAKE_BUILD_RPATH "$ORIGIN;$ORIGIN/..")  # the whole build has the CUDA kernels
set(folders models profiler/capture profiler/capture/cuda profiler/capture/python app/worker)
if(NOT TEMPOSCOPE_TORCH_HAS_CUDA)
  list(REMOVE_ITEM folders profiler/capture/cuda)
endif()
foreach(folder IN LISTS folders)
  add_subdirectory(${folder})
endforeach()
cmake_path(GET TEMPOSCOPE_TORCH_OUTPUT PARENT_PATH bin)
temposcope_install_product("${bin}")
