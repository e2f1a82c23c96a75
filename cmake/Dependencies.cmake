# Every third-party library, one block each. All of it is put in place by scripts/setup; nothing is downloaded here.
#
# what                    version        from                           why that one
# ----------------------  -------------  -----------------------------  ---------------------------------------------------
# libtorch                2.11.0+cu130   PyPI torch                     the wheel: no build of hours, runs without a GPU
# CUDA compiler, headers  13.0.2         PyPI cuda-toolkit              what that wheel was built with
# Dear ImGui (docking)    1.93           PyPI sdist imgui-bundle        one set that is known to fit together, with ImPlot,
# ImPlot                  1.1 WIP          1.93.0, hash-checked         the test engine and GLFW (null platform for tests)
# GLFW                    3.5.1
# ImGui Test Engine       1.93                                          tests only: its licence keeps it out of the product
# SQLite                  >= 3.40        Debian libsqlite3-dev          the trace file
# fmt                     >= 9.1         Debian libfmt-dev              g++ 12 has no std::format
# tl::expected            >= 1.0         Debian libexpected-dev         g++ 12 has no std::expected
# nlohmann-json           >= 3.11        Debian nlohmann-json3-dev      our own small JSON
# CLI11                   >= 2.1         Debian libcli11-dev            the command line
# Cairo                   >= 1.16        Debian libcairo2-dev           SVG, PDF and PNG from one drawing function
# FreeType                >= 2.12        Debian libfreetype-dev         hinted text in the window and in charts
# Highway                 >= 1.0         Debian libhwy-dev              CPU kernels for whatever vector width there is
# jemalloc                >= 5.2         Debian libjemalloc-dev        the worker's malloc: pages stay, so that page faults do
#                                                                       not decide CPU comparisons
# OpenGL, X11 headers                    Debian libopengl-dev, libx*-dev  the window
# GoogleTest              >= 1.12        Debian libgtest-dev libgmock-dev  tests only
# Google Benchmark        >= 1.7         Debian libbenchmark-dev        tests/bench only

include(deps/Folder)   # where scripts/setup put things: TEMPOSCOPE_DEPS
include(deps/Debian)   # the Debian packages of the table
include(deps/Torch)    # temposcope_torch, temposcope_torch_cuda, the CUDA language, temposcope_cuda_headers
include(deps/Gui)      # glfw, imgui, implot, imgui_test_engine
