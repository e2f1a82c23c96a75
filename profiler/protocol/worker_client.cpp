#include "profiler/protocol/worker_client.h"

#include "profiler/protocol/frame.h"
#include "profiler/protocol/worker_process.h"
#include "profiler/trace/trace_file.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <optional>

namespace profiler {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kTermAfter{2000};
constexpr milliseconds kKillAfter{5000};
constexpr milliseconds kGreetingPatience{60'000};  // libtorch from a cold, slow disk takes a while
constexpr milliseconds kExitPatience{2000};  // from the end of its channel to the end of the worker

/// JSON carries texts in UTF-8 only.
bool is_utf8(const std::string& text) {
    try {
        return !nlohmann::json(text).dump().empty();
    } catch (const nlohmann::json::exception&) {
        return false;
    }
}

/// Where a worker that ended leaves what it had committed; a file without any goes with it.
std::string kept_in(const std::string& output_path) {
    const std::string partial = output_path + ".partial";
    std::error_code error;
    if (output_path.empty() || !std::filesystem::exists(partial, error)) return {};
    if (!holds_committed_rows(partial)) {
        remove_partial(partial);  // unless it is another capture's, which warms up
        return {};
    }
    return fmt::format(" What was recorded before is in {}.", partial);
}

tl::unexpected<ErrorFrame> cancelled(const std::string& output_path) {
    const std::string kept = kept_in(output_path);
    const std::string text = kept.empty() && !output_path.empty()
                                 ? "The capture was cancelled; nothing was kept."
                                 : "The capture was cancelled." + kept;
    return tl::unexpected(ErrorFrame{text, 1, true});
}

}  // namespace

struct WorkerClient::Impl {
    explicit Impl(WorkerProcess&& started)
        : process(std::move(started)),
          socket(process.release_socket()),
          wakeup(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
    ~Impl() {
        socket.close();  // an idle worker ends by itself
        process.wait(milliseconds(500));
        if (wakeup >= 0) close(wakeup);
    }

    WorkerProcess process;
    FrameSocket socket;
    FrameDecoder decoder;
    WorkerLog log;
    int wakeup;  // an eventfd: cancel() ends the poll
    std::atomic<bool> cancel_requested = false;
    bool greeted = false;
    int64_t last_id = 0;

    // How far a cancelled request has been pressed.
    enum class CancelEscalation : uint8_t {
        kNone,
        kAsked,
        kTerminated,
        kKilled
    } pressure = CancelEscalation::kNone;
    Clock::time_point asked_at;
    Clock::time_point started_at = Clock::now();
    std::string output_path;  // of the request that runs
    milliseconds timeout{0};
    Clock::time_point heard_at = Clock::now();

    void wait_for_something();
    bool is_silent() const { return timeout.count() > 0 && Clock::now() >= heard_at + timeout; }
    void press();
    std::optional<WorkerOutcome> handle_messages(int64_t id, const WorkerEvents& events);
    std::optional<WorkerOutcome> handle(const Message& message, const WorkerEvents& events);
    WorkerOutcome broken(std::string message);
    WorkerOutcome ended();
};

WorkerClient::WorkerClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
WorkerClient::WorkerClient(WorkerClient&&) noexcept = default;
WorkerClient& WorkerClient::operator=(WorkerClient&&) noexcept = default;
WorkerClient::~WorkerClient() = default;

models::Result<WorkerClient> WorkerClient::start() {
    auto program = find_worker();
    if (!program) return tl::unexpected(program.error());
    return start(*program);
}

models::Result<WorkerClient> WorkerClient::start(const std::filesystem::path& program) {
    auto process = WorkerProcess::start(program);
    if (!process) return tl::unexpected(process.error());
    return WorkerClient(std::make_unique<Impl>(std::move(*process)));
}

void WorkerClient::cancel() {
    impl_->cancel_requested = true;
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(impl_->wakeup, &one, sizeof one);
}

std::string WorkerClient::log() const { return impl_->log.text(); }

WorkerOutcome WorkerClient::run(const Request& request, const WorkerEvents& events) {
    Impl& impl = *impl_;
    if (impl.cancel_requested) return cancelled({});
    const int64_t id = ++impl.last_id;
    if (!is_utf8(request.output_path)) {
        return tl::unexpected(ErrorFrame{
            fmt::format("{} is no UTF-8 text; choose another name.", request.output_path)});
    }
    impl.output_path = request.output_path;
    impl.timeout = events.timeout;
    impl.heard_at = Clock::now();
    impl.socket.send(to_header(request, id));  // a worker that is gone shows as the end below
    for (;;) {
        impl.wait_for_something();
        impl.press();
        const auto received = impl.socket.receive(impl.decoder, false);
        if (received == FrameSocket::Received::kBytes) impl.heard_at = Clock::now();
        if (auto outcome = impl.handle_messages(id, events)) return *outcome;
        if (received == FrameSocket::Received::kEnd) return impl.ended();
        if (!impl.greeted && Clock::now() >= impl.started_at + kGreetingPatience) {
            return impl.broken(fmt::format(
                "The worker {} does not answer; build again, or correct TEMPOSCOPE_WORKER.",
                impl.process.program().string()));
        }
        if (impl.is_silent()) {
            return impl.broken(fmt::format(
                "The worker has said nothing for {} s and was ended; try again, or a smaller "
                "model.",
                std::chrono::duration_cast<std::chrono::seconds>(impl.timeout).count()));
        }
    }
}

/// Sleeps until a frame, a line of the log, a wish to cancel, or a deadline of press().
void WorkerClient::Impl::wait_for_something() {
    int timeout_ms = greeted ? -1 : 1000;
    if (pressure == CancelEscalation::kAsked || pressure == CancelEscalation::kTerminated) {
        const auto due =
            asked_at + (pressure == CancelEscalation::kAsked ? kTermAfter : kKillAfter);
        const auto left = std::chrono::duration_cast<milliseconds>(due - Clock::now());
        timeout_ms = static_cast<int>(std::max<int64_t>(left.count() + 1, 0));
    }
    if (timeout.count() > 0) {
        const auto left = std::chrono::ceil<milliseconds>(heard_at + timeout - Clock::now());
        const auto left_ms = static_cast<int>(std::max<int64_t>(left.count(), 0));
        timeout_ms = timeout_ms < 0 ? left_ms : std::min(timeout_ms, left_ms);
    }
    std::array<pollfd, 3> waiting{{{socket.descriptor(), POLLIN, 0},
                                   {wakeup, POLLIN, 0},
                                   {process.log_descriptor(), POLLIN, 0}}};
    poll(waiting.data(), waiting.size(), timeout_ms);
    if (waiting[1].revents != 0) {
        uint64_t count = 0;
        [[maybe_unused]] const ssize_t bytes = read(wakeup, &count, sizeof count);
    }
    if (waiting[2].revents != 0 && !process.drain_log(log)) process.close_log();
}

/// Cancelling: first asks, then insists.
void WorkerClient::Impl::press() {
    if (!cancel_requested) return;
    const auto now = Clock::now();
    if (pressure == CancelEscalation::kNone) {
        socket.send(to_header(Cancel{}, last_id));
        asked_at = now;
        pressure = CancelEscalation::kAsked;
    } else if (pressure == CancelEscalation::kAsked && now >= asked_at + kTermAfter) {
        process.signal(SIGTERM);
        pressure = CancelEscalation::kTerminated;
    } else if (pressure == CancelEscalation::kTerminated && now >= asked_at + kKillAfter) {
        process.signal(SIGKILL);
        pressure = CancelEscalation::kKilled;
    }
}

std::optional<WorkerOutcome> WorkerClient::Impl::handle_messages(int64_t id,
                                                                 const WorkerEvents& events) {
    for (;;) {
        auto frame = decoder.next();
        if (!frame) return broken(frame.error().message);
        if (!*frame) return std::nullopt;
        auto message = from_header((*frame)->header);
        if (!message) return broken(message.error().message);
        if (auto* result = std::get_if<ResultFrame>(&message->message)) {
            result->payload = std::move((*frame)->payload);
        }
        // What still arrives of an earlier request is not for this one.
        const bool hello = std::holds_alternative<Hello>(message->message);
        if (!hello && message->id != id) continue;
        if (auto outcome = handle(message->message, events)) return outcome;
    }
}

std::optional<WorkerOutcome> WorkerClient::Impl::handle(const Message& message,
                                                        const WorkerEvents& events) {
    if (const auto* hello = std::get_if<Hello>(&message)) {
        if (hello->protocol != kProtocolVersion || hello->version != build_version()) {
            return broken(fmt::format(
                "{} is of version {} (protocol {}) and this program of version {} (protocol {}); "
                "build both again, or correct TEMPOSCOPE_WORKER.",
                process.program().string(), hello->version, hello->protocol, build_version(),
                kProtocolVersion));
        }
        greeted = true;
        return std::nullopt;
    }
    if (!greeted) return broken("The worker did not say its version; build both programs again.");
    if (const auto* progress = std::get_if<Progress>(&message)) {
        if (events.progress) events.progress(*progress);
        return std::nullopt;
    }
    if (const auto* sample = std::get_if<Sample>(&message)) {
        if (events.sample) events.sample(*sample);
        return std::nullopt;
    }
    if (const auto* result = std::get_if<ResultFrame>(&message)) return WorkerOutcome(*result);
    if (const auto* error = std::get_if<ErrorFrame>(&message)) {
        return WorkerOutcome(tl::unexpected(*error));
    }
    return broken("The worker sent a message that only a program sends; build both again.");
}

/// The two do not understand each other: the worker is of no more use.
WorkerOutcome WorkerClient::Impl::broken(std::string message) {
    process.signal(SIGKILL);
    socket.close();
    return tl::unexpected(ErrorFrame{std::move(message)});
}

WorkerOutcome WorkerClient::Impl::ended() {
    if (!process.wait(kExitPatience)) {
        process.signal(SIGKILL);
        process.wait(kExitPatience);
    }
    if (process.log_descriptor() >= 0) process.drain_log(log);
    socket.close();
    if (cancel_requested) return cancelled(output_path);
    const int exit_code = process.out_of_memory() ? 3 : 1;
    return tl::unexpected(ErrorFrame{process.describe_end(log) + kept_in(output_path), exit_code});
}

}  // namespace profiler
