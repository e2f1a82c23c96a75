#pragma once

#include "app/window/pixels.h"
#include "app/window/ui.h"
#include "models/config/result.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

struct GLFWwindow;

/// The window with its contexts and its frame loop. `Ui` is its content.
namespace app {

struct GlfwWindowOptions {
    int width = 1600;  // in screen coordinates at scale 1
    int height = 1000;
    std::string title = "temposcope";
};

struct DestroyGlfwWindow {
    void operator()(GLFWwindow* window) const;
};
using GlfwWindow = std::unique_ptr<GLFWwindow, DestroyGlfwWindow>;

struct ShellOptions {
    GlfwWindowOptions window;
    std::filesystem::path settings_folder;  // empty: nothing is remembered
    /// Starts work that goes on while the window is made, such as reading files.
    std::function<void(Ui&)> before_window;
};

class Shell {
public:
    static models::Result<std::unique_ptr<Shell>> open(const ShellOptions& options);
    ~Shell();  // saves the settings
    Shell(const Shell&) = delete;
    Shell& operator=(const Shell&) = delete;

    /// Draws frames until the window is closed, or `is_over`, which is asked before each frame.
    /// Sleeps while nothing happens.
    void run(const std::function<bool()>& is_over = {});

    /// One frame without waiting. `before_swap` sees the finished picture in the back buffer. If it
    /// is not shown, the frame only makes its draw lists.
    void draw_frame(const std::function<void()>& before_swap = {}, bool is_shown = true);

    /// Saves the settings and destroys the contexts of ImGui before the window. Tests call it,
    /// because their engine outlives the contexts. Nothing may be drawn afterwards.
    void close_contexts();

    Ui& ui() { return ui_; }
    GLFWwindow* window() const { return window_.get(); }
    void set_scale(float scale) { scale_ = scale; }
    /// Mouse, keyboard or desktop sent an event, so a few frames are due.
    void note_input() { input_seen_ = true; }

    /// Processor time of this thread to make the draw lists of the last frame, without OpenGL.
    double ui_cpu_ms() const { return ui_cpu_ms_; }
    int64_t frame_count() const { return frame_count_; }

private:
    Shell() = default;
    void adopt(GlfwWindow window);
    void start_imgui();
    void apply_pending_theme();
    /// Of the screen, times what the user chose.
    float wanted_scale() const { return scale_ * ui_.settings.text_scale; }
    void load_pending_layout();
    std::optional<PixelRect> pixels_of_panel(const std::string& id) const;
    void take_picture(const std::filesystem::path& file);
    /// Makes the draw lists of a frame.
    void build_frame();
    /// Draws them and shows the result.
    void show_frame(const std::function<void()>& before_swap);
    /// How many more frames must follow the newest frame.
    int frames_still_due();
    /// Sleeps until an event or a timeout. Returns false if there is still nothing to draw.
    bool wait_for_something();
    void save_changed_settings();

    GlfwWindow window_;  // declared first: contexts and workers are destroyed before it
    std::filesystem::path folder_;
    std::string layout_file_;
    Settings saved_settings_;
    float scale_ = 1;
    float applied_scale_ = 0;
    bool applied_dark_ = false;
    bool input_seen_ = false;
    std::optional<std::filesystem::path> picture_;  // to write when the frame is shown
    std::string picture_panel_;                     // of that picture; empty: the whole window
    double ui_cpu_ms_ = 0;
    int64_t frame_count_ = 0;
    Ui ui_;
};

}  // namespace app
