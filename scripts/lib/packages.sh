# What scripts/setup installs, with pinned versions. cmake/Dependencies.cmake gives the reasons.
# After a change here, run scripts/setup again.
# shellcheck shell=bash disable=SC2034

# The names are the same on Debian 12, Debian 13 and Ubuntu 24.04.
DEBIAN_PACKAGES=(
    g++ ccache pkg-config python3-venv ca-certificates
    # libraries of the program
    libsqlite3-dev libcairo2-dev libfreetype-dev libhwy-dev libjemalloc-dev
    libfmt-dev libexpected-dev nlohmann-json3-dev libcli11-dev libcpp-httplib-dev
    libsimdjson-dev zlib1g-dev
    # the window: X11 headers, OpenGL, and Mesa so that it also draws without a GPU
    libx11-dev libxrandr-dev libxinerama-dev libxcursor-dev libxi-dev libxext-dev
    libgl1 libopengl0 libegl1 libgl1-mesa-dri libegl-mesa0
    # tests
    libgtest-dev libgmock-dev libbenchmark-dev xvfb xauth
)
# The tests of the browser page are skipped without it. Ubuntu has no such package.
if grep -qs '^ID=debian$' /etc/os-release; then DEBIAN_PACKAGES+=(chromium); fi

PYTHON_PACKAGES=(
    cmake==3.31.6
    ninja==1.11.1.4
    clang-format==18.1.8
    scikit-build-core==1.1.2 pathspec==1.1.1 packaging==26.3
    torch==2.11.0
    "cuda-toolkit[nvcc,crt,nvvm,cccl,cudart,cupti,nvtx,nvml]==13.0.2"
)

# Models of others that the tests of app/python record, pytest, and their other needs, in a folder of their own: torch must not see them in a build. All that
# they need is listed, since pip would also bring another torch.
PROGRAM_PACKAGES=(
    transformers==5.23.0 torchvision==0.26.0 accelerate==1.15.0
    pytorch-lightning==2.6.6 lightning-utilities==0.15.3 torchmetrics==1.9.0
    annotated-doc==0.0.7 annotated-types==0.8.0 anyio==4.16.0 click==8.5.1 h11==0.16.0 hf-xet==1.8.0 httpcore2==2.16.2
    httpx2==2.16.2 huggingface_hub==2.4.0 idna==3.20 markdown-it-py==4.3.0 mdurl==0.1.2 numpy==2.4.6 packaging==26.3
    pillow==13.0.0 psutil==7.2.2 pydantic==2.14.3 pydantic_core==2.50.4 Pygments==2.21.0 PyYAML==6.0.3 regex==2026.11.15
    rich==15.0.0 safetensors==0.8.0 shellingham==1.5.4 tokenizers==0.23.3 tqdm==4.70.1 truststore==0.10.5 typer==0.29.2
    typing-inspection==0.4.5
    pytest==9.2.0 pluggy==1.7.0 iniconfig==2.3.1
    # the protocol of `temposcope mcp`
    mcp==2.3.0 mcp-types==2.3.0 attrs==26.1.0 cffi==2.1.1 cryptography==50.0.2 jsonschema==4.26.0
    jsonschema-specifications==2025.9.1 opentelemetry-api==1.45.2 pycparser==3.12 PyJWT==2.15.1 python-multipart==0.0.34
    referencing==0.37.0 rpds-py==2026.9.1 sse-starlette==3.7.0 starlette==1.10.0 uvicorn==0.54.0
)

# Dear ImGui, ImPlot, GLFW and the test engine as one source package.
IMGUI_BUNDLE_VERSION=1.93.0
IMGUI_BUNDLE_SHA256=10ad1dab8258a6787b4f07bb926b08d0efc648a7906242568c8dd778c5e719bf

# Free space that a first run needs in the private folder: 6 GB stay, the rest is for downloads.
NEEDED_SPACE_GB=14
