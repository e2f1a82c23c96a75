# What scripts/setup installs, with pinned versions. cmake/Dependencies.cmake gives the reasons.
# After a change here, run scripts/setup again.
# shellcheck shell=bash disable=SC2034

# The names are the same on Debian 12, Debian 13 and Ubuntu 24.04.
DEBIAN_PACKAGES=(
    g++ ccache pkg-config python3-venv ca-certificates
    # libraries of the program
    libsqlite3-dev libcairo2-dev libfreetype-dev libhwy-dev libjemalloc-dev
    libfmt-dev libexpected-dev nlohmann-json3-dev libcli11-dev libcpp-httplib-dev
    # the window: X11 headers, and Mesa so that it also draws without a GPU
    libx11-dev libxrandr-dev libxinerama-dev libxcursor-dev libxi-dev libxext-dev
    libgl-dev libopengl-dev libegl-dev libgl1-mesa-dri libegl-mesa0
    # tests
    libgtest-dev libgmock-dev libbenchmark-dev xvfb xauth
)
# The tests of the browser page are skipped without it. Ubuntu has no such package.
if grep -qs '^ID=debian$' /etc/os-release; then DEBIAN_PACKAGES+=(chromium); fi

PYTHON_PACKAGES=(
    cmake==3.31.6
    ninja==1.11.1.4
    clang-format==18.1.8
    torch==2.11.0
    "cuda-toolkit[nvcc,crt,nvvm,cccl,cudart,cupti,nvtx,nvml]==13.0.2"
)

# Dear ImGui, ImPlot, GLFW and the test engine as one source package.
IMGUI_BUNDLE_VERSION=1.93.0
IMGUI_BUNDLE_SHA256=10ad1dab8258a6787b4f07bb926b08d0efc648a7906242568c8dd778c5e719bf

# Free space that a first run needs in the private folder: 6 GB stay, the rest is for downloads.
NEEDED_SPACE_GB=14
