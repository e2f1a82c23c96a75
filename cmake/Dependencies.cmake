# Every third-party library. scripts/setup installs them all; CMake downloads nothing.
#
# what                    version        from                           why that one
# ----------------------  -------------  -----------------------------  ---------------------------------------------------
# libtorch                2.11.0+cu130   PyPI torch                     no build that takes hours; runs without a GPU
# CUDA compiler, headers  13.0.2         PyPI cuda-toolkit              the wheel was built with it
# Dear ImGui (docking)    1.93           PyPI sdist imgui-bundle        ImGui, ImPlot, test engine and GLFW in versions
# ImPlot                  1.1 WIP          1.93.0, hash-checked         that fit together
# GLFW                    3.5.1
# ImGui Test Engine       1.93                                          tests only, because of its licence
# SQLite (static)         >= 3.40        Debian libsqlite3-dev          the trace file
# fmt                     >= 9.1         Debian libfmt-dev              g++ 12 has no std::format
# tl::expected            >= 1.0         Debian libexpected-dev         g++ 12 has no std::expected
# nlohmann-json           >= 3.11        Debian nlohmann-json3-dev      requests, recipes and small data files
# CLI11                   >= 2.1         Debian libcli11-dev            the command line
# simdjson                >= 3.0         Debian libsimdjson-dev         traces of the PyTorch profiler: hundreds of MB of JSON
# zlib                    >= 1.2         Debian zlib1g-dev              gzip files of other tools
# Cairo                   >= 1.16        Debian libcairo2-dev           SVG, PDF and PNG from one drawing function
# FreeType                >= 2.12        Debian libfreetype-dev         hinted text in the window and in charts
# Highway                 >= 1.0         Debian libhwy-dev              CPU kernels for the vector width of the machine
# jemalloc                >= 5.2         Debian libjemalloc-dev        the worker's malloc: it keeps pages, so page faults do not
#                                                                       distort comparisons on the CPU
# cpp-httplib             >= 0.11        Debian libcpp-httplib-dev      the browser page of `temposcope view --serve`
# X11 headers                            Debian libx*-dev               the window; it opens X11 and OpenGL when it starts
# GoogleTest              >= 1.12        Debian libgtest-dev libgmock-dev  tests only
# Google Benchmark        >= 1.7         Debian libbenchmark-dev        tests/bench only

include(deps/Folder)   # the folder that scripts/setup fills: TEMPOSCOPE_DEPS
include(deps/Debian)   # the Debian packages of the table
include(deps/Torch)    # temposcope_torch, temposcope_torch_cuda, the CUDA language, temposcope_cuda_headers
include(deps/Gui)      # glfw, imgui, implot, imgui_test_engine
