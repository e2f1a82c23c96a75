#pragma once

#include "models/config/result.h"
#include "tests/profiler/capture/cuda/activity_buffers.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// Reads the files that profiler/capture/cuda/activity_recording.h describes.
namespace tests {

using namespace profiler;

struct ActivityRecording {
    std::vector<std::vector<uint64_t>> buffers;  // in words, for CUPTI's alignment
    std::deque<std::string> texts;               // to which records in the buffers point

    static std::span<uint8_t> bytes_of(std::vector<uint64_t>& buffer) {
        return {reinterpret_cast<uint8_t*>(buffer.data()), buffer.size() * 8};
    }
};

inline bool read_word(std::ifstream& file, uint64_t& value) {
    std::array<char, 8> bytes{};
    if (!file.read(bytes.data(), bytes.size())) return false;
    std::memcpy(&value, bytes.data(), sizeof value);
    return true;
}

/// Errors: there is no such file; it is not a recording, of another CUPTI version, or truncated.
inline models::Result<ActivityRecording> read_activity_recording(
    const std::filesystem::path& path) {
    const auto fail = [&](std::string_view what) {
        return models::fail("{} {}.", path.string(), what);
    };
    std::ifstream file(path, std::ios::binary);
    if (!file) return fail("cannot be read");
    std::array<char, 8> magic{};
    uint64_t version = 0;
    if (!file.read(magic.data(), magic.size()) ||
        std::string_view(magic.data(), magic.size()) != "tscupti1" || !read_word(file, version)) {
        return fail("is no recording of CUPTI's buffers");
    }
    if (version != CUPTI_API_VERSION) return fail("was recorded by another version of CUPTI");
    ActivityRecording recording;
    std::unordered_map<uint64_t, const char*> texts;  // by address in the recorded process
    while (file.peek() != std::ifstream::traits_type::eof()) {
        uint64_t size = 0, address = 0;
        if (!read_word(file, size) || !read_word(file, address) || size > std::size_t{1} << 30) {
            return fail("ends in the middle");
        }
        std::string bytes(size, '\0');
        if (!file.read(bytes.data(), static_cast<std::streamsize>(size))) {
            return fail("ends in the middle");
        }
        if (address != 0) {
            recording.texts.push_back(std::move(bytes));
            texts[address] = recording.texts.back().c_str();
            continue;
        }
        std::vector<uint64_t>& buffer = recording.buffers.emplace_back(size / 8);
        std::memcpy(buffer.data(), bytes.data(), buffer.size() * 8);
        visit_activity_texts(ActivityRecording::bytes_of(buffer), next_activity_record(),
                             [&](const char*& text) {
                                 const auto known = texts.find(reinterpret_cast<uint64_t>(text));
                                 text = known == texts.end() ? nullptr : known->second;
                             });
    }
    return recording;
}

}  // namespace tests
