#pragma once

#include <filesystem>
#include <string>

/// Golden pictures: what the window looked like when a person last found it good.
///
/// A golden picture is small: each of its pixels is the mean of a block of the full picture. So
/// glyphs that another OpenGL places half a pixel away do not matter, and a label, a colour or a
/// column that moved does.
namespace tests {

/// Compares a picture with the golden one of the same name in tests/gui/golden. Returns what
/// differs, in one sentence; empty: nothing does. Where TEMPOSCOPE_NEW_GOLDEN is set, the picture
/// becomes the golden one instead.
std::string difference_from_golden(const std::filesystem::path& picture);

}  // namespace tests
