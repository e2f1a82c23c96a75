#pragma once

#include "models/config/result.h"

#include <cstdint>
#include <filesystem>
#include <vector>

/// Pictures of the window, read from the back buffer before it is shown.
namespace app {

struct PixelRect {
    int x = 0;  // from the top left corner of the window, in pixels
    int y = 0;
    int width = 0;
    int height = 0;
};

/// Rows from top to bottom, four bytes per pixel (red first), opaque.
std::vector<uint32_t> read_pixels(const PixelRect& rect);

/// Errors: the file cannot be written. It then keeps its old content.
models::Result<void> save_png(const PixelRect& rect, const std::filesystem::path& path);

}  // namespace app
