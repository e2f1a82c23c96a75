# GLFW, Dear ImGui, ImPlot and what goes with them, built from the imgui-bundle source distribution.

set(TEMPOSCOPE_IMGUI_BUNDLE_DIR "${TEMPOSCOPE_DEPS}/imgui_bundle-1.93.0" CACHE PATH "unpacked source of imgui-bundle 1.93.0")
temposcope_require("EXISTS;${TEMPOSCOPE_IMGUI_BUNDLE_DIR}/external/imgui/imgui/imgui.h"
  "TEMPOSCOPE_IMGUI_BUNDLE_DIR='${TEMPOSCOPE_IMGUI_BUNDLE_DIR}' does not hold external/imgui/imgui/imgui.h; run scripts/setup")

set(_external "${TEMPOSCOPE_IMGUI_BUNDLE_DIR}/external")
set(_imgui "${_external}/imgui/imgui")
set(_implot "${_external}/implot/implot")
set(_palette "${_external}/imgui-command-palette/imgui-command-palette")
set(_engine "${_external}/imgui_test_engine/imgui_test_engine")

# --- GLFW: X11, and the null platform that is always in it; no Wayland ---------------------------------------------------
set(GLFW_BUILD_WAYLAND OFF CACHE BOOL "" FORCE)
set(GLFW_BUILD_X11 ON CACHE BOOL "" FORCE)
set(GLFW_BUILD_DOCS OFF CACHE BOOL "" FORCE)
set(GLFW_BUILD_TESTS OFF CACHE BOOL "" FORCE)
set(GLFW_BUILD_EXAMPLES OFF CACHE BOOL "" FORCE)
set(GLFW_INSTALL OFF CACHE BOOL "" FORCE)
set(GLFW_LIBRARY_TYPE STATIC)
add_subdirectory("${_external}/glfw/glfw" glfw EXCLUDE_FROM_ALL SYSTEM)

# --- imgui, implot, imgui_command_palette: plain for the product, with the suffix _te for the test engine ----------------
function(_temposcope_add_gui_flavour suffix)
  add_library(imgui${suffix} STATIC EXCLUDE_FROM_ALL
    ${_imgui}/imgui.cpp ${_imgui}/imgui_draw.cpp ${_imgui}/imgui_tables.cpp ${_imgui}/imgui_widgets.cpp
    ${_imgui}/imgui_demo.cpp
    ${_imgui}/imgui_stacklayout.cpp  # the bundle patches imgui.cpp to call it
    ${_imgui}/misc/freetype/imgui_freetype.cpp ${_imgui}/misc/cpp/imgui_stdlib.cpp
    ${_imgui}/backends/imgui_impl_glfw.cpp ${_imgui}/backends/imgui_impl_opengl3.cpp)
  target_include_directories(imgui${suffix} SYSTEM PUBLIC
    ${_imgui} ${_imgui}/backends ${_imgui}/misc/cpp ${_imgui}/misc/freetype "${PROJECT_SOURCE_DIR}/cmake/imconfig")
  target_compile_definitions(imgui${suffix} PUBLIC IMGUI_USER_CONFIG="temposcope_imconfig.h" GLFW_INCLUDE_NONE)
  target_link_libraries(imgui${suffix} PUBLIC glfw OpenGL::OpenGL Freetype::Freetype Threads::Threads ${CMAKE_DL_LIBS})

  add_library(implot${suffix} STATIC EXCLUDE_FROM_ALL ${_implot}/implot.cpp ${_implot}/implot_items.cpp)
  target_include_directories(implot${suffix} SYSTEM PUBLIC ${_implot})
  # Plots of these number types only: for all twelve, implot_items.cpp alone compiles for two minutes.
  target_compile_definitions(implot${suffix} PRIVATE "IMPLOT_CUSTOM_NUMERIC_TYPES=(float)(double)")
  target_link_libraries(implot${suffix} PUBLIC imgui${suffix})

  add_library(imgui_command_palette${suffix} STATIC EXCLUDE_FROM_ALL
    ${_palette}/imcmd_command_palette.cpp ${_palette}/imcmd_fuzzy_search.cpp)
  target_include_directories(imgui_command_palette${suffix} SYSTEM PUBLIC ${_palette})
  target_link_libraries(imgui_command_palette${suffix} PUBLIC imgui${suffix})
endfunction()
_temposcope_add_gui_flavour("")

if(BUILD_TESTING)
  _temposcope_add_gui_flavour(_te)
  # PUBLIC: every file that sees imgui.h in this flavour must agree.
  target_compile_definitions(imgui_te PUBLIC TEMPOSCOPE_TEST_ENGINE=1)
  target_include_directories(imgui_te SYSTEM PUBLIC ${_engine} ${_engine}/imgui_test_engine)
  set(_te ${_engine}/imgui_test_engine)
  add_library(imgui_test_engine STATIC EXCLUDE_FROM_ALL
    ${_te}/imgui_capture_tool.cpp ${_te}/imgui_te_context.cpp ${_te}/imgui_te_coroutine.cpp ${_te}/imgui_te_engine.cpp
    ${_te}/imgui_te_exporters.cpp ${_te}/imgui_te_perftool.cpp ${_te}/imgui_te_ui.cpp ${_te}/imgui_te_utils.cpp)
  target_link_libraries(imgui_test_engine PUBLIC imgui_te implot_te)
  unset(_te)
endif()

# --- file dialogs: one header -------------------------------------------------------------------------------------------
add_library(portable_file_dialogs INTERFACE)
target_include_directories(portable_file_dialogs SYSTEM INTERFACE "${_external}/portable_file_dialogs/portable_file_dialogs")

# stb_image_write and the like, which GLFW ships for its examples, are private to the tests that write pictures.
add_library(glfw_deps INTERFACE)
target_include_directories(glfw_deps SYSTEM INTERFACE "${_external}/glfw/glfw/deps")
