#include "profiler/capture/values/rank_messages.h"

#include "profiler/capture/values/tensor_values.h"

#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

namespace profiler {
namespace {

namespace fs = std::filesystem;

/// What a message says, by bytes. Those that the sender does not know are zeros.
struct Said {
    std::vector<char> bytes;
    std::vector<char> is_known;  // 1 or 0 for each byte
};

/// Of whole numbers, and of bytes, which are objects of Python.
constexpr std::size_t kMostBytesSent = std::size_t{64} << 10;
constexpr std::size_t kMostObjectBytes = std::size_t{1} << 20;
/// Of floating numbers: a loss, not an activation.
constexpr int64_t kMostFloatsSent = 64;
constexpr auto kPause = std::chrono::milliseconds(20);
/// All ranks wait that long before they go on without the message.
constexpr auto kPatience = std::chrono::seconds(3);

bool is_small(const at::Tensor& tensor) {
    const at::ScalarType type = tensor.scalar_type();
    if (type == at::kByte) return tensor.nbytes() <= kMostObjectBytes;
    const bool is_whole = at::isIntegralType(type, /*includeBool=*/true);
    return is_whole ? tensor.nbytes() <= kMostBytesSent : tensor.numel() <= kMostFloatsSent;
}

// ---- the folder ---------------------------------------------------------------------------------

/// The files through which ranks and their launcher (_virtual_launch.py) talk.
///
///     messages/FORM.ORDINAL.FIRST.KIND.SOURCE.TARGET.NUMBER    of the group that begins with FIRST
///     planned.RANK  started.RANK  ended.RANK  absent.RANK      by the launcher
///     wanted.RANK  waits.RANK                                  by ranks
class Folder {
public:
    explicit Folder(fs::path path) : path_(std::move(path)) {
        std::error_code error;
        fs::create_directories(path_ / "messages", error);
    }

    bool has(const char* what, int64_t rank) const { return fs::exists(mark(what, rank)); }
    void set(const char* what, int64_t rank) const { std::ofstream(mark(what, rank)); }
    void clear(const char* what, int64_t rank) const {
        std::error_code error;
        fs::remove(mark(what, rank), error);
    }

    /// Under another name until it is whole: a rank may be killed meanwhile.
    void write(const std::string& name, const Said& said) const {
        const fs::path file = path_ / "messages" / name;
        const fs::path unfinished = file.string() + ".unfinished";
        std::ofstream stream(unfinished, std::ios::binary);
        for (const std::vector<char>* part : {&said.bytes, &said.is_known}) {
            stream.write(part->data(), static_cast<std::streamsize>(part->size()));
        }
        stream.close();
        std::error_code error;
        fs::rename(unfinished, file, error);
    }

    /// A message of `size` bytes; another one says nothing. None: it is not there.
    std::optional<Said> read(const std::string& name, std::size_t size) const {
        std::ifstream stream(path_ / "messages" / name, std::ios::binary);
        if (!stream) return std::nullopt;
        std::vector<char> bytes((std::istreambuf_iterator<char>(stream)),
                                std::istreambuf_iterator<char>());
        if (bytes.size() != 2 * size) bytes.assign(2 * size, 0);
        const auto middle = bytes.begin() + static_cast<std::ptrdiff_t>(size);
        return Said{{bytes.begin(), middle}, {middle, bytes.end()}};
    }

    /// The name of a message that begins and ends so; empty: there is none.
    std::string find(const std::string& start, const std::string& end) const {
        std::error_code error;
        for (const auto& entry : fs::directory_iterator(path_ / "messages", error)) {
            std::string name = entry.path().filename().string();
            if (name.starts_with(start) && name.ends_with(end)) return name;
        }
        return {};
    }

    /// Whether no rank goes on: each that runs waits.
    bool all_wait() const {
        std::error_code error;
        for (const auto& entry : fs::directory_iterator(path_, error)) {
            const std::string name = entry.path().filename().string();
            if (!name.starts_with("started.")) continue;
            const std::string rank = name.substr(name.find('.') + 1);
            const bool goes_on =
                !fs::exists(path_ / ("ended." + rank)) && !fs::exists(path_ / ("waits." + rank));
            if (goes_on) return false;
        }
        return true;
    }

private:
    fs::path mark(const char* what, int64_t rank) const {
        return path_ / fmt::format("{}.{}", what, rank);
    }

    fs::path path_;
};

// ---- groups and messages ------------------------------------------------------------------------

/// A process group as messages name it.
struct MessageGroup {
    std::string form;     // how far its ranks are from the first one: "0-4"
    int64_t ordinal = 0;  // which of the groups of this form that this rank has used
    std::vector<int64_t> ranks;
};

struct MessageName {
    std::string start, first, end;  // "0-4.0.", "3", ".broadcast.0.-1.7"

    std::string text() const { return start + first + end; }
};

struct Promise {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;  // of the tensor that waits
    const char* address = nullptr;
    std::size_t size = 0;
    MessageName name;
    int64_t source = 0;       // rank of the run
    bool may_start = false;   // the source is one of this rank's pipeline
    std::optional<Said> own;  // what counts if nobody has the message
};

class RankMessages {
public:
    RankMessages(const fs::path& folder, int64_t rank, int64_t world_size)
        : folder_(folder), rank_(rank), world_size_(world_size) {}

    void carry(const CollectiveCall& call, const at::Tensor& tensor, int64_t place) {
        std::unique_lock lock(mutex_);
        // Of a group on gloo that is not all ranks, nobody knows which ranks are in it.
        if (!tensor.is_cuda() && call.num_ranks < world_size_) return;
        const MessageGroup& group = group_of(call);
        const int64_t own = place_of(rank_, group);
        if (own < 0 || place < 0 || place >= static_cast<int64_t>(group.ranks.size())) return;
        if (call.kind == CollectiveKind::kSend) {
            partners_.insert(rank_at(place, group));
            send(tensor, name_of(group, "p2p", own, place));
        } else if (call.kind == CollectiveKind::kRecv) {
            partners_.insert(rank_at(place, group));
            expect(tensor, name_of(group, "p2p", place, own), rank_at(place, group), true, lock);
        } else if (own == place) {
            send(tensor, name_of(group, "broadcast", own, kAll));
        } else {
            expect(tensor, name_of(group, "broadcast", place, kAll), rank_at(place, group), false,
                   lock);
        }
    }

    bool keep(const char* address, std::size_t size) {
        std::unique_lock lock(mutex_);
        const auto promise = find(address, size);
        if (promise == promises_.end()) return false;
        const Promise kept = std::move(*promise);
        promises_.erase(promise);
        lock.unlock();
        if (kept.storage.expired()) return false;
        const std::optional<Said> said = wait_for(kept);
        if (said) take(*said, kept.address);
        return said.has_value();
    }

    void drop(const char* address, std::size_t size) {
        const std::lock_guard lock(mutex_);
        if (promises_.empty()) return;
        std::erase_if(promises_, [&](const Promise& one) { return overlaps(one, address, size); });
    }

    std::vector<int64_t> partners() {
        const std::lock_guard lock(mutex_);
        return {partners_.begin(), partners_.end()};
    }

private:
    static constexpr int64_t kAll = -1;  // a target

    static bool overlaps(const Promise& promise, const char* address, std::size_t size) {
        return promise.address < address + size && address < promise.address + promise.size;
    }

    static int64_t place_of(int64_t rank, const MessageGroup& group) {
        const auto found = std::ranges::find(group.ranks, rank);
        return found == group.ranks.end() ? -1 : std::distance(group.ranks.begin(), found);
    }
    static int64_t rank_at(int64_t place, const MessageGroup& group) {
        return group.ranks[static_cast<std::size_t>(place)];
    }

    const MessageGroup& group_of(const CollectiveCall& call) {
        const auto [found, is_new] = groups_.try_emplace(call.group_name);
        MessageGroup& group = found->second;
        if (!is_new || call.ranks.empty()) return group;
        group.ranks = call.ranks;
        std::vector<int64_t> distances;
        for (const int64_t rank : call.ranks) distances.push_back(rank - call.ranks.front());
        // A file's name holds 255 bytes.
        constexpr std::size_t kLongestForm = 100;
        group.form = fmt::format("{}", fmt::join(distances, "-"));
        if (group.form.size() > kLongestForm) {
            group.form =
                fmt::format("{}x{:x}", distances.size(), std::hash<std::string>()(group.form));
        }
        group.ordinal = num_of_form_[group.form]++;
        return group;
    }

    MessageName name_of(const MessageGroup& group, const char* kind, int64_t source,
                        int64_t target) {
        MessageName name{.start = fmt::format("{}.{}.", group.form, group.ordinal),
                         .first = fmt::format("{}", group.ranks.front()),
                         .end = fmt::format(".{}.{}.{}", kind, source, target)};
        name.end += fmt::format(".{}", num_sent_[name.text()]++);
        return name;
    }

    void send(const at::Tensor& tensor, const MessageName& name) const {
        if (!is_small(tensor)) return;
        const bool is_on_gpu = is_plain_on_gpu(tensor);
        if (!is_on_gpu && !tensor.is_cpu()) return;
        if (is_on_gpu && !tensor.is_non_overlapping_and_dense()) return;
        const at::Tensor on_cpu = (is_on_gpu ? values_on_cpu(tensor) : tensor).contiguous();
        const auto* const data = static_cast<const char*>(on_cpu.const_data_ptr());
        Said said{{data, data + tensor.nbytes()}, std::vector<char>(tensor.nbytes(), 1)};
        if (is_on_gpu && !has_known_values(tensor)) said.is_known = known_bytes(tensor);
        folder_.write(name.text(), said);
    }

    static std::vector<char> known_bytes(const at::Tensor& tensor) {
        const auto* const start = static_cast<const char*>(tensor.const_data_ptr());
        const auto element = static_cast<std::size_t>(tensor.element_size());
        std::vector<char> is_known(tensor.nbytes());
        for (std::size_t at = 0; at < is_known.size(); at += element) {
            const bool knows = device_values()->knows(start + at, element);
            std::fill_n(is_known.begin() + static_cast<std::ptrdiff_t>(at), element, knows);
        }
        return is_known;
    }

    /// Gives the memory at `address` what is known of the message.
    static void take(const Said& said, const char* address) {
        const auto end = said.is_known.end();
        for (auto from = said.is_known.begin(); from != end;) {
            from = std::find(from, end, 1);
            const auto to = std::find(from, end, 0);
            const auto at = static_cast<std::size_t>(from - said.is_known.begin());
            if (from != to) {
                device_values()->write(address + at, said.bytes.data() + at,
                                       static_cast<std::size_t>(to - from));
            }
            from = to;
        }
    }

    /// A tensor of the CPU is waited for at once: nobody hears when it is read.
    void expect(const at::Tensor& tensor, MessageName name, int64_t source, bool may_start,
                std::unique_lock<std::mutex>& lock) {
        const bool is_on_gpu = is_plain_on_gpu(tensor);
        if (!(is_on_gpu || tensor.is_cpu()) || !tensor.is_contiguous() || tensor.numel() == 0) {
            return;
        }
        Promise promise{.storage = tensor.storage().getWeakStorageImpl(),
                        .address = static_cast<const char*>(tensor.const_data_ptr()),
                        .size = tensor.nbytes(),
                        .name = std::move(name),
                        .source = source,
                        .may_start = may_start,
                        .own = {}};
        std::erase_if(promises_, [&](const Promise& one) {
            return one.storage.expired() || overlaps(one, promise.address, promise.size);
        });
        if (!is_small(tensor)) return;
        if (!is_on_gpu) {
            lock.unlock();
            const auto said = wait_for(promise);
            auto* const target = static_cast<char*>(tensor.mutable_data_ptr());
            for (std::size_t i = 0; said && i < promise.size; ++i) {
                if (said->is_known[i] == 1) target[i] = said->bytes[i];
            }
            return;
        }
        Said own{std::vector<char>(promise.size), std::vector<char>(promise.size, 1)};
        if (!may_start && device_values()->read(promise.address, own.bytes.data(), promise.size)) {
            promise.own = std::move(own);
        }
        device_values()->forget(promise.address, promise.size);
        promises_.push_back(std::move(promise));
    }

    std::list<Promise>::iterator find(const char* address, std::size_t size) {
        return std::ranges::find_if(
            promises_, [&](const Promise& one) { return overlaps(one, address, size); });
    }

    /// None: nobody knows the values.
    std::optional<Said> wait_for(const Promise& promise) const {
        const bool may_start = promise.may_start || folder_.has("planned", promise.source);
        if (may_start && !folder_.has("started", promise.source)) {
            folder_.set("wanted", promise.source);
        }
        const WaitMark mark(folder_, rank_);
        return poll(promise);
    }

    /// Tells the other ranks that this one waits.
    struct WaitMark {
        WaitMark(const Folder& in, int64_t of) : folder(in), rank(of) { folder.set("waits", rank); }
        ~WaitMark() { folder.clear("waits", rank); }
        const Folder& folder;
        int64_t rank;
    };

    std::optional<Said> poll(const Promise& promise) const {
        auto stuck_since = std::chrono::steady_clock::now();
        while (true) {
            std::optional<Said> said = folder_.read(promise.name.text(), promise.size);
            if (!said && never_comes(promise)) {
                const std::string other = folder_.find(promise.name.start, promise.name.end);
                if (!other.empty()) said = folder_.read(other, promise.size);
            }
            if (said) return said;
            const auto now = std::chrono::steady_clock::now();
            if (!folder_.all_wait()) stuck_since = now;
            const bool is_stuck = now - stuck_since > kPatience;
            if (is_stuck || (silent_.contains(promise.source) && folder_.all_wait())) {
                if (silent_.insert(promise.source).second) tell_stuck(promise);
                return promise.own;
            }
            std::this_thread::sleep_for(kPause);
        }
    }

    bool never_comes(const Promise& promise) const {
        const bool has_started = folder_.has("started", promise.source);
        const bool will_start = promise.may_start || folder_.has("planned", promise.source);
        return folder_.has("absent", promise.source) || folder_.has("ended", promise.source) ||
               (!will_start && !has_started);
    }

    void tell_stuck(const Promise& promise) const {
        if (promise.own) return;
        std::fprintf(stderr,
                     "temposcope: rank %ld waits for a message of rank %ld, %s: it goes on with "
                     "zeros.\n",
                     rank_, promise.source,
                     never_comes(promise) ? "which does not run" : "and all ranks that run wait");
    }

    const Folder folder_;
    const int64_t rank_;
    const int64_t world_size_;
    std::mutex mutex_;
    std::map<std::string, MessageGroup> groups_;  // by torch's name
    std::map<std::string, int64_t> num_of_form_;
    std::map<std::string, int64_t> num_sent_;
    std::list<Promise> promises_;
    std::set<int64_t> partners_;
    mutable std::set<int64_t> silent_;  // sources of whom nothing came
};

std::unique_ptr<RankMessages>& messages() {
    static auto* const messages = new std::unique_ptr<RankMessages>;
    return *messages;
}

/// The place in the group of the root, the source or the target; -1: any.
int64_t place_in(const CollectiveCall& call, std::span<const c10::IValue> arguments) {
    if (call.kind != CollectiveKind::kBroadcast) return call.peer;
    const auto group =
        std::ranges::find_if(arguments, [](const c10::IValue& value) { return value.isObject(); });
    const bool has_root = group != arguments.end() && std::next(group) != arguments.end();
    return has_root && std::next(group)->isInt() ? std::next(group)->toInt() : -1;
}

/// All ranks count as holding the same values, so their sum is a multiple.
void add_up(const CollectiveCall& call, std::span<const c10::IValue> arguments) {
    if (!call.is_sum) return;
    for (const at::Tensor& tensor : tensors_of({arguments.data(), 1})) {
        if (!is_small(tensor)) continue;
        if (tensor.is_cpu()) tensor.mul_(call.num_ranks);
        if (!is_plain_on_gpu(tensor) || !has_known_values(tensor)) continue;
        set_values(tensor, values_on_cpu(tensor).mul_(call.num_ranks));
    }
}

}  // namespace

void join_ranks(const fs::path& folder, int64_t rank, int64_t world_size) {
    if (!messages()) messages() = std::make_unique<RankMessages>(folder, rank, world_size);
}

void carry_message(const CollectiveCall& call, std::span<const c10::IValue> arguments) {
    if (!messages()) return;
    if (call.kind == CollectiveKind::kAllReduce) return add_up(call, arguments);
    const bool is_message = call.kind == CollectiveKind::kSend ||
                            call.kind == CollectiveKind::kRecv ||
                            call.kind == CollectiveKind::kBroadcast;
    const std::vector<at::Tensor> tensors = tensors_of({arguments.data(), 1});
    if (!is_message || tensors.size() != 1) return;
    messages()->carry(call, tensors.front(), place_in(call, arguments));
}

bool keep_promise(const void* address, std::size_t size) {
    return messages() && messages()->keep(static_cast<const char*>(address), size);
}

void drop_promises(const void* address, std::size_t size) {
    if (messages()) messages()->drop(static_cast<const char*>(address), size);
}

std::vector<int64_t> partners() {
    return messages() ? messages()->partners() : std::vector<int64_t>();
}

}  // namespace profiler
