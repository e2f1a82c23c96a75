#include "profiler/formats/parts/json_text.h"

#include "profiler/trace/text.h"

#include <algorithm>

namespace profiler {

std::string json_text(std::string_view text) {
    std::string json = "\"";
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t bytes = character_bytes(text.substr(i));
        const char c = text[i];
        if (bytes == 0) {
            json += '?';
        } else if (c == '"' || c == '\\') {
            json += {'\\', c};
        } else if (static_cast<unsigned char>(c) < 0x20) {
            fmt::format_to(std::back_inserter(json), "\\u{:04x}", static_cast<int>(c));
        } else {
            json += text.substr(i, bytes);
        }
        i += std::max<std::size_t>(bytes, 1);
    }
    return json + '"';
}

std::string_view JsonTexts::operator[](StringId id) {
    if (!id.valid()) return "\"\"";
    std::string& text = made_[id.index()];
    if (text.empty()) text = json_text(trace_.text(id));
    return text;
}

}  // namespace profiler
