#pragma once

#include "profiler/capture/torch_adapter/cupti.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string_view>
#include <unordered_set>

/// A file of unchanged CUPTI activity buffers: input for tests on machines without a GPU.
///
///     "tscupti1"  version (8 bytes)  chunk  chunk ...
///     chunk:  size (8)  address (8)  bytes        a text that records point to
///             size (8)  0 (8)        bytes        a buffer
///
/// Records hold pointers to names, which are invalid in another process. The texts are therefore
/// written before the buffer, and the reader (tests/profiler/capture/cuda/recorded_buffers.h)
/// replaces the pointers by those of its own copies.
/// Little-endian.
namespace profiler {

class ActivityRecordingWriter {
public:
    ActivityRecordingWriter(const std::filesystem::path& path, NextActivityRecord next);

    void add(std::span<uint8_t> buffer);
    /// Whether everything that was added is in the file.
    bool good() const { return file_.good(); }

private:
    void add_chunk(uint64_t address, std::string_view bytes);

    std::ofstream file_;
    NextActivityRecord next_;
    std::unordered_set<const char*> written_texts_;
};

}  // namespace profiler
