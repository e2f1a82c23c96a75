#include "profiler/capture/cuda/cupti_session.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

/// The session against a CUPTI of the test's own, which calls back as the real one does and minds
/// which streams live.
namespace profiler {
namespace {

struct FakeCupti {
    CUpti_CallbackFunc callback = nullptr;
    std::set<CUpti_CallbackId> enabled;           // events of the resource domain
    std::map<CUstream, uint32_t> living_streams;  // with their numbers
    int dead_streams_asked = 0;                   // the real one would read freed memory
} fake;

CuptiApi fake_api() {
    fake = {};
    CuptiApi api;
    // As in CUDA 12: without cuptiSubscribe_v2.
    api.subscribe = [](CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback, void*) {
        static int client = 0;
        *subscriber = reinterpret_cast<CUpti_SubscriberHandle>(&client);
        fake.callback = callback;
        return CUPTI_SUCCESS;
    };
    api.unsubscribe = [](CUpti_SubscriberHandle) { return CUPTI_SUCCESS; };
    api.enable_callback = [](uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain,
                             CUpti_CallbackId event) {
        fake.enabled.insert(event);
        return CUPTI_SUCCESS;
    };
    api.register_callbacks = [](CUpti_BuffersCallbackRequestFunc,
                                CUpti_BuffersCallbackCompleteFunc) { return CUPTI_SUCCESS; };
    api.register_timestamp = [](CUpti_TimestampCallbackFunc) { return CUPTI_SUCCESS; };
    api.set_attribute = [](CUpti_ActivityAttribute, size_t*, void*) { return CUPTI_SUCCESS; };
    api.set_thread_id_type = [](CUpti_ActivityThreadIdType) { return CUPTI_SUCCESS; };
    api.enable_allocation_source = [](uint8_t) { return CUPTI_SUCCESS; };
    api.enable = [](CUpti_ActivityKind) { return CUPTI_SUCCESS; };
    api.disable = [](CUpti_ActivityKind) { return CUPTI_SUCCESS; };
    api.flush = [](uint32_t) { return CUPTI_SUCCESS; };
    api.stream_id = [](CUcontext, CUstream stream, uint8_t, uint32_t* number) {
        const auto found = fake.living_streams.find(stream);
        if (found == fake.living_streams.end()) {
            ++fake.dead_streams_asked;
            return CUPTI_ERROR_INVALID_STREAM;
        }
        *number = found->second;
        return CUPTI_SUCCESS;
    };
    return api;
}

/// CUPTI tells of `event`, if the session asked for such events.
void tell(CUpti_CallbackId event, const CUpti_ResourceData& data) {
    if (!fake.enabled.contains(event)) return;
    fake.callback(nullptr, CUPTI_CB_DOMAIN_RESOURCE, event, &data);
}

CUstream stream_at(int64_t handle) { return reinterpret_cast<CUstream>(handle); }

void make_stream(int64_t handle, uint32_t number) {
    fake.living_streams[stream_at(handle)] = number;
    CUpti_ResourceData data{};
    data.resourceHandle.stream = stream_at(handle);
    tell(CUPTI_CBID_RESOURCE_STREAM_CREATED, data);
}

void destroy_stream(int64_t handle) {
    CUpti_ResourceData data{};
    data.resourceHandle.stream = stream_at(handle);
    tell(CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING, data);
    fake.living_streams.erase(stream_at(handle));
}

void load_module(CUpti_ModuleResourceData* module) {
    CUpti_ResourceData data{};
    data.resourceDescriptor = module;
    tell(CUPTI_CBID_RESOURCE_MODULE_LOADED, data);
}

std::unique_ptr<CuptiSession> started_session() {
    auto session = CuptiSession::start(fake_api());
    EXPECT_TRUE(session.has_value());
    EXPECT_TRUE((*session)->record_memory().has_value());
    return std::move(*session);
}

TEST(SyntheticCuptiSession, AStreamThatIsDestroyedBeforeItsWorkIsJoinedKeepsItsNumber) {
    const auto session = started_session();
    make_stream(0x1000, 7);
    make_stream(0x2000, 8);
    destroy_stream(0x1000);  // cuDNN's, say, while the model was built
    const std::vector<NumberedStream> streams = session->new_streams();
    ASSERT_EQ(streams.size(), 2U);
    EXPECT_EQ(streams[0].handle, 0x1000);
    EXPECT_EQ(streams[0].number, 7U);
    EXPECT_EQ(streams[1].handle, 0x2000);
    EXPECT_EQ(streams[1].number, 8U);
    EXPECT_TRUE(session->new_streams().empty());
    EXPECT_EQ(fake.dead_streams_asked, 0);
}

TEST(SyntheticCuptiSession, AddsUpTheImagesOfModulesAsTheyLoad) {
    const auto session = started_session();
    EXPECT_EQ(session->module_image_bytes(), 0);
    CUpti_ModuleResourceData small{.moduleId = 1, .cubinSize = 5'000, .pCubin = nullptr};
    CUpti_ModuleResourceData large{.moduleId = 2, .cubinSize = 7'000'000, .pCubin = nullptr};
    load_module(&small);
    session->push_op(5);
    session->push_op(6);
    session->pop_op();
    load_module(&large);
    session->pop_op();
    load_module(nullptr);  // of which CUPTI says nothing
    EXPECT_EQ(session->module_image_bytes(), 7'005'000);
    const std::vector<LoadedModule> modules = session->modules();
    ASSERT_EQ(modules.size(), 2U);
    EXPECT_EQ(modules[0].external_id, 0U);
    EXPECT_EQ(modules[1].external_id, 5U);
    EXPECT_EQ(modules[1].image_bytes, 7'000'000);
    EXPECT_GE(modules[1].time_ns, modules[0].time_ns);
}

TEST(SyntheticCuptiSession, ADestroyedStreamsHandleIsNotShownToCuptiAgain) {
    const auto session = started_session();
    make_stream(0x1000, 7);
    EXPECT_EQ(session->number_of_stream(0x1000), 7U);
    destroy_stream(0x1000);
    EXPECT_EQ(session->number_of_stream(0x1000), std::nullopt);
    EXPECT_EQ(fake.dead_streams_asked, 0);
    // CUDA gives the handle to a new stream, which is another for CUPTI.
    make_stream(0x1000, 12);
    EXPECT_EQ(session->number_of_stream(0x1000), 12U);
    EXPECT_EQ(session->new_streams().size(), 2U);
}

}  // namespace
}  // namespace profiler
