#pragma once

#include "models/config/result.h"
#include "profiler/capture/cuda/activity_collector.h"
#include "profiler/capture/torch_adapter/cupti.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

/// CUPTI as this process's recorder of GPU work. One session at a time in a process: CUPTI serves
/// one subscriber, and its buffer callbacks have no user data.
namespace profiler {

/// A CUDA stream and its CUPTI number. CUDA reuses the handles of destroyed streams; CUPTI never
/// reuses a number.
struct NumberedStream {
    int64_t handle = 0;
    uint32_t number = 0;
};

/// Machine code that the driver loaded.
struct LoadedModule {
    int64_t time_ns = 0;  // of std::chrono::steady_clock
    int64_t image_bytes = 0;
    uint64_t external_id = 0;  // of the op that ran on the thread; 0: none
};

class CuptiSession {
public:
    /// Opens CUPTI's library and starts a session. Errors: one sentence.
    static models::Result<std::unique_ptr<CuptiSession>> open();
    /// Becomes CUPTI's client, before the CUDA context, so that CUPTI takes its settings. Nothing
    /// is recorded yet.
    /// Errors: one sentence; the process is as before, and can train.
    static models::Result<std::unique_ptr<CuptiSession>> start(const CuptiApi& api);
    ~CuptiSession();
    CuptiSession(const CuptiSession&) = delete;
    CuptiSession& operator=(const CuptiSession&) = delete;

    /// Records what the process takes from the driver, and the sizes of modules as they load.
    /// Errors: one sentence.
    models::Result<void> record_memory();
    /// Kernels, copies, API calls, overhead and op ids too, from here on.
    /// Errors: one sentence; nothing of it is recorded then.
    models::Result<void> record_work();
    /// Events of streams and waits for them too, until the work is no longer recorded.
    void record_order();

    /// The calls that this thread makes until pop_op() belong to `external_id`.
    void push_op(uint64_t external_id) noexcept;
    void pop_op() noexcept;

    /// All records of work that is complete; the caller has waited for the device. Blocks until
    /// CUPTI has handed its buffers over and they are read.
    ActivityRecords flush();
    /// Ends record_work(), and returns what CUPTI still held, of buffers that are not full too.
    ActivityRecords finish();

    /// What is to be added to CUPTI's times to make them std::chrono::steady_clock's.
    int64_t steady_clock_offset_ns() const;

    /// CUPTI's number of a stream of CUDA's, in the current context; none when CUPTI has none, or
    /// the stream was destroyed.
    std::optional<uint32_t> number_of_stream(int64_t handle);
    /// The streams that were made since the last call, destroyed meanwhile or not: work of theirs
    /// may still be to come.
    std::vector<NumberedStream> new_streams();
    std::string api_name(ApiDomain domain, uint32_t function) const;
    /// "cuptiSetThreadIdType: CUPTI_ERROR_NOT_SUPPORTED": calls that a recording can do without.
    const std::vector<std::string>& refusals() const { return refusals_; }

    /// The modules that were loaded since record_memory().
    std::vector<LoadedModule> modules() const;
    int64_t module_image_bytes() const;
    uint32_t version() const { return api_.version; }  // of CUPTI's API
    int64_t most_host_bytes() const { return collector_.most_host_bytes(); }

private:
    explicit CuptiSession(const CuptiApi& api);
    models::Result<void> subscribe();
    models::Result<void> set_up_clock_and_buffers();
    void end_work();
    /// Notes a call that failed, and returns whether it succeeded.
    bool note(std::string_view call, CUptiResult result);
    void set_flag(std::string_view name, CUpti_ActivityAttribute attribute);
    ActivityRecords hand_over(uint32_t flush_flag);
    static void CUPTIAPI on_callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                     const void* data);
    void on_resource(CUpti_CallbackId id, const CUpti_ResourceData& resource) noexcept;
    std::optional<uint32_t> ask_stream_number(CUcontext context, CUstream stream) const;
    void on_module_loaded(const CUpti_ResourceData& resource);
    void on_stream_made(const CUpti_ResourceData& resource);
    void on_stream_ends(CUstream stream);

    const CuptiApi api_;
    ActivityCollector collector_;
    CUpti_SubscriberHandle subscriber_ = nullptr;
    bool records_work_ = false;
    bool uses_steady_clock_ = false;
    std::vector<std::string> refusals_;
    mutable std::mutex modules_mutex_;
    std::vector<LoadedModule> modules_;  // guarded by modules_mutex_
    std::mutex streams_mutex_;
    std::vector<NumberedStream> new_streams_;         // guarded by streams_mutex_
    std::unordered_set<CUstream> destroyed_streams_;  // likewise: handles not to be used
};

}  // namespace profiler
