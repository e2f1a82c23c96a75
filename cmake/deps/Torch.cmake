# libtorch from the PyPI wheel as targets of our own, and the CUDA compiler beside it.
#
# find_package(Torch) does not do: it always needs a CUDA toolkit, ignores CMAKE_CUDA_ARCHITECTURES, links a second CUDA
# runtime and edits global flags.

# --- where: -DTEMPOSCOPE_TORCH_DIR=.../torch for another copy -----------------------------------------------------------
file(GLOB _torch "${TEMPOSCOPE_DEPS}/venv/lib/python3*/site-packages/torch")
set(TEMPOSCOPE_TORCH_DIR "${_torch}" CACHE PATH "the folder `torch` of a wheel of torch 2.8 or newer (holds include/ and lib/)")
unset(_torch)
set(_version "")
if(EXISTS "${TEMPOSCOPE_TORCH_DIR}/lib/libtorch_cpu.so" AND EXISTS "${TEMPOSCOPE_TORCH_DIR}/version.py")
  file(READ "${TEMPOSCOPE_TORCH_DIR}/version.py" _version)
endif()
set(TEMPOSCOPE_TORCH_VERSION "")  # 2.11
if(_version MATCHES "__version__ = '([0-9]+\\.[0-9]+)")
  set(TEMPOSCOPE_TORCH_VERSION "${CMAKE_MATCH_1}")
endif()
unset(_version)
temposcope_require("TEMPOSCOPE_TORCH_VERSION;VERSION_GREATER_EQUAL;2.8" "TEMPOSCOPE_TORCH_DIR='${TEMPOSCOPE_TORCH_DIR}' holds no torch 2.8 or newer; \
run scripts/setup, or name another copy with -DTEMPOSCOPE_TORCH_DIR=<folder>/torch")
set(TEMPOSCOPE_TORCH_HAS_CUDA OFF)
if(EXISTS "${TEMPOSCOPE_TORCH_DIR}/lib/libtorch_cuda.so")
  set(TEMPOSCOPE_TORCH_HAS_CUDA ON)
elseif(NOT TEMPOSCOPE_TORCH_FREE)
  temposcope_require(TEMPOSCOPE_TORCH_HAS_CUDA "the torch in TEMPOSCOPE_TORCH_DIR='${TEMPOSCOPE_TORCH_DIR}' has no CUDA, which the whole build needs; \
name a copy with CUDA, then run scripts/build --only-torch for this one")
endif()
# The headers of one version of CUDA, cuDNN and NCCL serve every torch.
file(GLOB _nvidia "${TEMPOSCOPE_DEPS}/venv/lib/python3*/site-packages/nvidia")
set(TEMPOSCOPE_NVIDIA_DIR "${_nvidia}" CACHE PATH "the folder `nvidia` of the CUDA 13.0 wheels (holds cu13/, cudnn/ and nccl/)")
unset(_nvidia)

# --- temposcope_torch: c10 and torch_cpu only ---------------------------------------------------------------------------
# A program that links it starts in 0.24 s and without LD_LIBRARY_PATH. It opens libtorch_cuda later, if it is asked for CUDA.
# The old tag RPATH, unlike RUNPATH, also serves the libraries of the wheel to find each other.
add_library(temposcope_torch INTERFACE)
target_include_directories(temposcope_torch SYSTEM INTERFACE
  "${TEMPOSCOPE_TORCH_DIR}/include" "${TEMPOSCOPE_TORCH_DIR}/include/torch/csrc/api/include")
target_compile_definitions(temposcope_torch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO USE_C10D_NCCL)  # as in the wheel's own CMake files
# torch's include folder has a newer fmt, which comes before Debian's, and the wheel does not export that fmt's functions.
target_compile_definitions(temposcope_torch INTERFACE FMT_HEADER_ONLY=1)
target_link_options(temposcope_torch INTERFACE
  "LINKER:--disable-new-dtags"
  "LINKER:--allow-shlib-undefined"  # a torch of another CUDA names libraries that are not here
  "LINKER:-rpath,${TEMPOSCOPE_TORCH_DIR}/lib:${TEMPOSCOPE_NVIDIA_DIR}/cu13/lib"
  "LINKER:-rpath-link,${TEMPOSCOPE_NVIDIA_DIR}/cu13/lib:${TEMPOSCOPE_NVIDIA_DIR}/cudnn/lib:${TEMPOSCOPE_NVIDIA_DIR}/nccl/lib:${TEMPOSCOPE_NVIDIA_DIR}/cusparselt/lib:${TEMPOSCOPE_NVIDIA_DIR}/nvshmem/lib")
target_link_libraries(temposcope_torch INTERFACE
  "${TEMPOSCOPE_TORCH_DIR}/lib/libc10.so" "${TEMPOSCOPE_TORCH_DIR}/lib/libtorch_cpu.so" Threads::Threads)

# --- the CUDA language --------------------------------------------------------------------------------------------------
# -DCUDAToolkit_ROOT=/usr/local/cuda uses the machine's own toolkit instead of the one in the virtual environment.
set(CUDAToolkit_ROOT "${TEMPOSCOPE_NVIDIA_DIR}/cu13" CACHE PATH "CUDA 13.0 toolkit (holds bin/nvcc)")
temposcope_require("EXISTS;${CUDAToolkit_ROOT}/bin/nvcc" "CUDAToolkit_ROOT='${CUDAToolkit_ROOT}' holds no bin/nvcc; \
run scripts/setup, or name a CUDA 13.0 toolkit with -DCUDAToolkit_ROOT=<folder>")
temposcope_require("EXISTS;${CUDAToolkit_ROOT}/lib64/libcudart.so" "${CUDAToolkit_ROOT}/lib64/libcudart.so is missing; \
run scripts/setup, which makes the links that CMake looks for")
if(NOT CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER "${CUDAToolkit_ROOT}/bin/nvcc")
endif()
# Machine code of 80 also runs on A10, RTX 30 and RTX 40 (86, 89), and the GPUs of this machine join the common ones. Newer GPUs
# compile the PTX when they first load it. All: T4 and RTX 20 (75), too, which nvcc parses each source once more for. No 70 (V100):
# nvcc 13 and torch's CUDA 13 build have left it, and need nvcc and torch of CUDA 12.
set(_common_architectures "80-real;90")
set(_all_architectures "75-real;80-real;90-real;100-real;120")
option(TEMPOSCOPE_ALL_ARCHITECTURES "compile CUDA code for every GPU that torch's build knows, as packages are" OFF)
set(_chosen_architectures "$CACHE{CMAKE_CUDA_ARCHITECTURES}")  # -DCMAKE_CUDA_ARCHITECTURES=... goes before the common ones
if(TEMPOSCOPE_ALL_ARCHITECTURES AND _chosen_architectures AND NOT _chosen_architectures STREQUAL _all_architectures)
  # A package would lack the code of a GPU, and nothing would say so.
  message(FATAL_ERROR "-DCMAKE_CUDA_ARCHITECTURES=${_chosen_architectures} and --all-architectures ask for different GPUs; \
run cmake with -UCMAKE_CUDA_ARCHITECTURES to compile for all of them, or with -DTEMPOSCOPE_ALL_ARCHITECTURES=OFF")
endif()
if(NOT _chosen_architectures)
  set(CMAKE_CUDA_ARCHITECTURES "${_common_architectures}")
  if(TEMPOSCOPE_ALL_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES "${_all_architectures}")
  endif()
endif()
enable_language(CUDA)
# A process must have one CUDA runtime, and torch has loaded its own, of CUDA 12 or 13: nothing names one. Tests link it themselves.
set(CMAKE_CUDA_RUNTIME_LIBRARY None)
if(NOT _chosen_architectures AND NOT TEMPOSCOPE_ALL_ARCHITECTURES)
  set(_native ${CMAKE_CUDA_ARCHITECTURES_NATIVE})  # without a GPU, a sentence
  list(FILTER _native INCLUDE REGEX "^(75|[89][0-9]|1[0-9][0-9])-real$")
  list(PREPEND CMAKE_CUDA_ARCHITECTURES ${_native})
endif()
message(STATUS "GPU architectures: ${CMAKE_CUDA_ARCHITECTURES}")
temposcope_find_debian(CUDAToolkit 13.0 "a CUDA 13.0 toolkit")

# Headers of CUPTI, NVTX and the CUDA runtime, for code that opens these libraries at run time.
add_library(temposcope_cuda_headers INTERFACE)
target_include_directories(temposcope_cuda_headers SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(temposcope_cuda_headers INTERFACE ${CMAKE_DL_LIBS})

# --- temposcope_torch_cuda: for the modules that the worker opens on a machine with CUDA ------------------------------------------
# No symbol of libtorch_cuda is used by name, so the linker would drop it, and no CUDA kernel would be registered.
# --no-as-needed keeps it.
add_library(temposcope_torch_cuda INTERFACE)
target_link_libraries(temposcope_torch_cuda INTERFACE temposcope_torch temposcope_cuda_headers
  "${TEMPOSCOPE_TORCH_DIR}/lib/libc10_cuda.so"
  "-Wl,--push-state,--no-as-needed" "${TEMPOSCOPE_TORCH_DIR}/lib/libtorch_cuda.so" "-Wl,--pop-state")
