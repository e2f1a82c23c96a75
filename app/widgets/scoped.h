#pragma once

#include <imgui.h>

/// Guards that close what ImGui has opened, even on an early return.
namespace app {

class ScopedWindow {
public:
    ScopedWindow(const char* name, bool* open, ImGuiWindowFlags flags = 0)
        : visible_(ImGui::Begin(name, open, flags)) {}
    ~ScopedWindow() { ImGui::End(); }
    ScopedWindow(const ScopedWindow&) = delete;
    ScopedWindow& operator=(const ScopedWindow&) = delete;
    explicit operator bool() const { return visible_; }

private:
    bool visible_;
};

class ScopedChild {
public:
    explicit ScopedChild(const char* name, ImVec2 size = {}, ImGuiChildFlags flags = 0,
                         ImGuiWindowFlags window_flags = 0)
        : visible_(ImGui::BeginChild(name, size, flags, window_flags)) {}
    ~ScopedChild() { ImGui::EndChild(); }
    ScopedChild(const ScopedChild&) = delete;
    ScopedChild& operator=(const ScopedChild&) = delete;
    explicit operator bool() const { return visible_; }

private:
    bool visible_;
};

class ScopedId {
public:
    explicit ScopedId(int id) { ImGui::PushID(id); }
    explicit ScopedId(const char* id) { ImGui::PushID(id); }
    ~ScopedId() { ImGui::PopID(); }
    ScopedId(const ScopedId&) = delete;
    ScopedId& operator=(const ScopedId&) = delete;
};

class ScopedDisabled {
public:
    explicit ScopedDisabled(bool disabled) { ImGui::BeginDisabled(disabled); }
    ~ScopedDisabled() { ImGui::EndDisabled(); }
    ScopedDisabled(const ScopedDisabled&) = delete;
    ScopedDisabled& operator=(const ScopedDisabled&) = delete;
};

class ScopedFont {
public:
    explicit ScopedFont(ImFont* font, float size = 0) { ImGui::PushFont(font, size); }
    ~ScopedFont() { ImGui::PopFont(); }
    ScopedFont(const ScopedFont&) = delete;
    ScopedFont& operator=(const ScopedFont&) = delete;
};

class ScopedColor {
public:
    ScopedColor(ImGuiCol slot, ImU32 color) { ImGui::PushStyleColor(slot, color); }
    ~ScopedColor() { ImGui::PopStyleColor(); }
    ScopedColor(const ScopedColor&) = delete;
    ScopedColor& operator=(const ScopedColor&) = delete;
};

class ScopedStyle {
public:
    ScopedStyle(ImGuiStyleVar variable, ImVec2 value) { ImGui::PushStyleVar(variable, value); }
    ScopedStyle(ImGuiStyleVar variable, float value) { ImGui::PushStyleVar(variable, value); }
    ~ScopedStyle() { ImGui::PopStyleVar(); }
    ScopedStyle(const ScopedStyle&) = delete;
    ScopedStyle& operator=(const ScopedStyle&) = delete;
};

}  // namespace app
