#pragma once

#include <imgui.h>

/// Guards that close what ImGui has opened, even on an early return.
namespace app {

class Scoped {
protected:
    Scoped() = default;
    ~Scoped() = default;
    Scoped(const Scoped&) = delete;
    Scoped& operator=(const Scoped&) = delete;
};

class ScopedWindow : Scoped {
public:
    ScopedWindow(const char* name, bool* open, ImGuiWindowFlags flags = 0)
        : visible_(ImGui::Begin(name, open, flags)) {}
    ~ScopedWindow() { ImGui::End(); }
    explicit operator bool() const { return visible_; }

private:
    bool visible_;
};

/// The keyboard moves into it and out of it again as if it were no window of its own.
class ScopedChild : Scoped {
public:
    explicit ScopedChild(const char* name, ImVec2 size = {}, ImGuiChildFlags flags = 0,
                         ImGuiWindowFlags window_flags = 0)
        : visible_(
              ImGui::BeginChild(name, size, flags | ImGuiChildFlags_NavFlattened, window_flags)) {}
    ~ScopedChild() { ImGui::EndChild(); }
    explicit operator bool() const { return visible_; }

private:
    bool visible_;
};

class ScopedId : Scoped {
public:
    explicit ScopedId(int id) { ImGui::PushID(id); }
    explicit ScopedId(const char* id) { ImGui::PushID(id); }
    ~ScopedId() { ImGui::PopID(); }
};

class ScopedDisabled : Scoped {
public:
    explicit ScopedDisabled(bool disabled) { ImGui::BeginDisabled(disabled); }
    ~ScopedDisabled() { ImGui::EndDisabled(); }
};

class ScopedFont : Scoped {
public:
    explicit ScopedFont(ImFont* font, float size = 0) { ImGui::PushFont(font, size); }
    ~ScopedFont() { ImGui::PopFont(); }
};

class ScopedColor : Scoped {
public:
    ScopedColor(ImGuiCol slot, ImU32 color) { ImGui::PushStyleColor(slot, color); }
    ~ScopedColor() { ImGui::PopStyleColor(); }
};

class ScopedStyle : Scoped {
public:
    ScopedStyle(ImGuiStyleVar variable, ImVec2 value) { ImGui::PushStyleVar(variable, value); }
    ScopedStyle(ImGuiStyleVar variable, float value) { ImGui::PushStyleVar(variable, value); }
    ~ScopedStyle() { ImGui::PopStyleVar(); }
};

}  // namespace app
