#pragma once
// Compile-time configuration of Dear ImGui; whoever includes imgui.h sees it (IMGUI_USER_CONFIG).

#define IMGUI_DISABLE_OBSOLETE_FUNCTIONS
#define IMGUI_DEFINE_MATH_OPERATORS
#define IMGUI_ENABLE_FREETYPE   // crisper, hinted text
#define IMGUI_USE_WCHAR32       // icon fonts and all of Unicode
#define ImDrawIdx unsigned int  // a dense plot exceeds 65,535 vertices in one draw list

#ifdef TEMPOSCOPE_TEST_ENGINE
#define IMGUI_TEST_ENGINE_ENABLE_COROUTINE_STDTHREAD_IMPL 1
#define IMGUI_TEST_ENGINE_ENABLE_STD_FUNCTION 1
#include "imgui_te_imconfig.h"  // defines IMGUI_ENABLE_TEST_ENGINE
#endif
