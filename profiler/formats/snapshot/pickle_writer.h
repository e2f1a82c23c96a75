#pragma once

#include "profiler/formats/parts/output_file.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// Writes a pickle of protocol 4, instruction by instruction, with the instructions that PyTorch's
/// memory viewer knows. Lists of any length are written in batches, because the viewer's stack
/// holds about 100,000 values.
namespace profiler {

/// A value that is written once and named again later.
struct PickleMemo {
    int64_t key = -1;  // -1: not written yet
};

/// A text of this program, such as a key of a dictionary.
struct PickleText {
    std::string_view text;
    PickleMemo memo = {};
};

class PickleWriter {
public:
    explicit PickleWriter(OutputFile& file);

    void integer(int64_t value);
    void real(double value);
    void boolean(bool value) { byte(value ? '\x88' : '\x89'); }
    void text(std::string_view value);
    void text(PickleText& value);
    void text(std::string_view value, PickleMemo& memo);

    void begin_dict() { code("}("); }  // then keys and values in turn
    void end_dict() { byte('u'); }
    void begin_list();  // then each value after a call of next_item
    void next_item();
    void end_list();
    void pair(int64_t first, int64_t second);

    /// Names the value that was written last, so that `again` can stand for it.
    void memoize(PickleMemo& memo);
    /// Writes a value that has a memo. False: it was not written yet.
    bool again(const PickleMemo& memo);

    void finish() {
        byte('.');
        flush();
    }

private:
    static constexpr std::size_t kBatch = 1000;  // as CPython
    static constexpr std::size_t kDeepest = 8;

    void byte(char value) { buffer_ += value; }
    void code(std::string_view bytes) { buffer_ += bytes; }
    void little_endian(uint64_t value, int count);
    void flush();

    OutputFile& file_;
    std::string buffer_;
    int64_t next_memo_ = 0;
    std::size_t items_[kDeepest] = {};  // in the open batch of each open list
    std::size_t depth_ = 0;
};

}  // namespace profiler
