#pragma once
// Compile-time configuration of Dear ImGui, which imgui.h includes (IMGUI_USER_CONFIG).

#define IMGUI_DISABLE_OBSOLETE_FUNCTIONS
#define IMGUI_DEFINE_MATH_OPERATORS
#define IMGUI_DISABLE_DEMO_WINDOWS
#define IMGUI_ENABLE_FREETYPE   // crisper, hinted text
#define IMGUI_USE_WCHAR32       // icon fonts and all of Unicode
#define ImDrawIdx unsigned int  // a dense plot exceeds 65,535 vertices in one draw list

#define IMGUI_ENABLE_TEST_ENGINE              // ImGui calls the hooks (cmake/deps/Gui.cmake)
#ifdef IMGUI_TEST_ENGINE_ENABLE_STD_FUNCTION  // in programs that link the engine itself
#include <imgui_te_imconfig.h>
#endif
