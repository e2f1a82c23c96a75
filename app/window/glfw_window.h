#pragma once

#include "models/config/result.h"

#include <memory>
#include <string>

struct GLFWwindow;

/// The operating system's window and its OpenGL 3.3 context.
namespace app {

struct GlfwWindowOptions {
    int width = 1600;  // screen coordinates at scale 1
    int height = 1000;
    std::string title = "temposcope";
};

struct DestroyGlfwWindow {
    void operator()(GLFWwindow* window) const;
};
using GlfwWindow = std::unique_ptr<GLFWwindow, DestroyGlfwWindow>;

/// Opens the window hidden (it is shown with its first picture) and makes its context current.
/// Errors: no display, display not answering, no OpenGL 3.3; the remedy is in the sentence.
models::Result<GlfwWindow> open_glfw_window(const GlfwWindowOptions& options);

/// Pixels per unit of the design: the monitor's scale, or TEMPOSCOPE_SCALE where it is set.
float content_scale(GLFWwindow* window);

}  // namespace app
