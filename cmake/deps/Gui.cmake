# GLFW, Dear ImGui, ImPlot and the test engine, built from the imgui-bundle source distribution.

set(TEMPOSCOPE_IMGUI_BUNDLE_DIR "${TEMPOSCOPE_DEPS}/imgui_bundle-1.93.0" CACHE PATH "unpacked source of imgui-bundle 1.93.0")
temposcope_require("EXISTS;${TEMPOSCOPE_IMGUI_BUNDLE_DIR}/external/imgui/imgui/imgui.h"
  "TEMPOSCOPE_IMGUI_BUNDLE_DIR='${TEMPOSCOPE_IMGUI_BUNDLE_DIR}' does not hold external/imgui/imgui/imgui.h; run scripts/setup")

set(_external "${TEMPOSCOPE_IMGUI_BUNDLE_DIR}/external")
set(_imgui "${_external}/imgui/imgui")
set(_implot "${_external}/implot/implot")
set(_engine "${_external}/imgui_test_engine/imgui_test_engine")

# --- GLFW for X11, without Wayland; its null platform is always built in ---------------------------------------------------
set(GLFW_BUILD_WAYLAND OFF CACHE BOOL "" FORCE)
set(GLFW_BUILD_X11 ON CACHE BOOL "" FORCE)
set(GLFW_BUILD_DOCS OFF CACHE BOOL "" FORCE)
set(GLFW_BUILD_TESTS OFF CACHE BOOL "" FORCE)
set(GLFW_BUILD_EXAMPLES OFF CACHE BOOL "" FORCE)
set(GLFW_INSTALL OFF CACHE BOOL "" FORCE)
set(GLFW_LIBRARY_TYPE STATIC)
add_subdirectory("${_external}/glfw/glfw" glfw EXCLUDE_FROM_ALL SYSTEM)

# --- imgui, implot --------------------------------------------------------------------------------------------------------
# The product and the tests share one imgui, which calls the four hooks of the Test Engine. The tests link the engine
# (imgui_test_engine). Its licence keeps it out of the product, which links empty hooks instead. Both are object libraries,
# because ImGui and the hooks call each other, and static libraries that need each other do not link.
add_library(imgui STATIC EXCLUDE_FROM_ALL
  ${_imgui}/imgui.cpp ${_imgui}/imgui_draw.cpp ${_imgui}/imgui_tables.cpp ${_imgui}/imgui_widgets.cpp
  ${_imgui}/imgui_demo.cpp
  ${_imgui}/imgui_stacklayout.cpp  # the bundle patches imgui.cpp to call it
  ${_imgui}/misc/freetype/imgui_freetype.cpp ${_imgui}/misc/cpp/imgui_stdlib.cpp
  ${_imgui}/backends/imgui_impl_glfw.cpp ${_imgui}/backends/imgui_impl_opengl3.cpp)
target_include_directories(imgui SYSTEM PUBLIC
  ${_imgui} ${_imgui}/backends ${_imgui}/misc/cpp ${_imgui}/misc/freetype "${PROJECT_SOURCE_DIR}/cmake/imconfig")
target_compile_definitions(imgui PUBLIC IMGUI_USER_CONFIG="temposcope_imconfig.h" GLFW_INCLUDE_NONE)
target_link_libraries(imgui PUBLIC glfw Freetype::Freetype Threads::Threads ${CMAKE_DL_LIBS})  # OpenGL is opened with the window

add_library(implot STATIC EXCLUDE_FROM_ALL ${_implot}/implot.cpp ${_implot}/implot_items.cpp)
target_include_directories(implot SYSTEM PUBLIC ${_implot})
# Plots of doubles only: with all twelve number types, implot_items.cpp takes two minutes to compile.
target_compile_definitions(implot PRIVATE "IMPLOT_CUSTOM_NUMERIC_TYPES=(double)")
target_link_libraries(implot PUBLIC imgui)

add_library(imgui_empty_hooks OBJECT EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/cmake/imconfig/empty_hooks.cpp")
target_link_libraries(imgui_empty_hooks PRIVATE imgui)

if(BUILD_TESTING)
  set(_te ${_engine}/imgui_test_engine)
  add_library(imgui_test_engine OBJECT EXCLUDE_FROM_ALL
    ${_te}/imgui_capture_tool.cpp ${_te}/imgui_te_context.cpp ${_te}/imgui_te_coroutine.cpp ${_te}/imgui_te_engine.cpp
    ${_te}/imgui_te_exporters.cpp ${_te}/imgui_te_perftool.cpp ${_te}/imgui_te_ui.cpp ${_te}/imgui_te_utils.cpp)
  target_include_directories(imgui_test_engine SYSTEM PUBLIC ${_engine} ${_te})
  target_compile_definitions(imgui_test_engine PUBLIC
    IMGUI_TEST_ENGINE_ENABLE_COROUTINE_STDTHREAD_IMPL=1 IMGUI_TEST_ENGINE_ENABLE_STD_FUNCTION=1)
  target_link_libraries(imgui_test_engine PUBLIC imgui implot)
  unset(_te)

  # Reads and writes the golden pictures of the tests.
  add_library(stb_images INTERFACE)
  target_include_directories(stb_images SYSTEM INTERFACE
    "${_external}/hello_imgui/hello_imgui/external/stb_hello_imgui")
endif()

# stb_image_write, which GLFW ships for its examples.
add_library(glfw_deps INTERFACE)
target_include_directories(glfw_deps SYSTEM INTERFACE "${_external}/glfw/glfw/deps")
