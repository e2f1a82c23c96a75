#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

namespace app {

/// The worker is the fake one of the tests.
class FakeWorkerTest : public testing::Test {
protected:
    void SetUp() override {
        setenv("TEMPOSCOPE_WORKER", TEMPOSCOPE_FAKE_WORKER_PATH, 1);
        setenv("TEMPOSCOPE_VIRTUAL_GPU_FOLDER", TEMPOSCOPE_BINARY_DIR "/virtual_gpu", 1);
    }
    void TearDown() override {
        unsetenv("TEMPOSCOPE_WORKER");
        unsetenv("TEMPOSCOPE_VIRTUAL_GPU_FOLDER");
    }
};

}  // namespace app
