// Linked to every GoogleTest program: records the processor time of each case, that of processes
// that it started and waited for included. tests/run_test.py reads it.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <cstdint>

namespace {

int64_t processor_ms(int whose) {
    rusage used{};
    getrusage(whose, &used);
    const auto ms = [](const timeval& time) {
        return static_cast<int64_t>(time.tv_sec) * 1000 + time.tv_usec / 1000;
    };
    return ms(used.ru_utime) + ms(used.ru_stime);
}

int64_t processor_ms() { return processor_ms(RUSAGE_SELF) + processor_ms(RUSAGE_CHILDREN); }

class CaseTimes : public testing::EmptyTestEventListener {
    void OnTestStart(const testing::TestInfo&) override { start_ms_ = processor_ms(); }
    void OnTestEnd(const testing::TestInfo&) override {
        testing::Test::RecordProperty("processor_ms", std::to_string(processor_ms() - start_ms_));
    }
    int64_t start_ms_ = 0;
};

// The list owns its listeners.
const bool is_listening = [] {
    testing::UnitTest::GetInstance()->listeners().Append(new CaseTimes);
    return true;
}();

}  // namespace
