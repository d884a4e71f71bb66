// Says which buffer a fault belongs to before the worker process ends by it.
#pragma once

namespace dojo {

// Remember a buffer: its whole mapping and the array inside. `owner` is the key for unwatch.
void watch(const void* owner, const char* name, const void* low, const void* high, const void* first,
           const void* last);
void unwatch(const void* owner);

// On SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGTRAP write one JSON line to `descriptor` and end the process with
// status 128 + signal: {"fault": "SIGSEGV", "buffer": "x", "place": "after", "offset": 64}.
// place: "before" or "after" the array, "inside" (a write to a read-only array) or "elsewhere".
void report_faults(int descriptor);

}  // namespace dojo
