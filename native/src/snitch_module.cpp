// Python's view of the Snitch model.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <stdexcept>

#include "snitch.hpp"

namespace py = pybind11;

namespace {

py::dict run(const std::vector<std::uint32_t>& code, std::uint32_t base, const py::list& memory,
             const std::array<std::uint32_t, 8>& arguments, std::uint64_t limit) {
  std::vector<dojo::snitch::Region> regions;
  std::vector<py::buffer_info> held;  // keeps the memory while the program runs
  for (const auto& each : memory) {
    const auto [name, address, buffer, writable] = each.cast<std::tuple<std::string, std::uint32_t, py::buffer, bool>>();
    held.push_back(buffer.request(writable));
    const auto bytes = static_cast<std::size_t>(held.back().size * held.back().itemsize);
    regions.push_back({name, address, static_cast<std::uint8_t*>(held.back().ptr), bytes, writable});
  }
  dojo::snitch::Result found;
  {
    py::gil_scoped_release released;
    found = dojo::snitch::run(code, base, regions, arguments, limit);
  }
  py::dict result;
  result["cycles"] = found.cycles;
  result["instructions"] = found.instructions;
  result["computed"] = found.computed;
  result["issued"] = found.issued;
  result["idle"] = found.idle;
  result["latency"] = found.latency;
  result["starved"] = found.starved;
  result["fault"] = found.fault;
  result["pc"] = found.pc;
  return result;
}

}  // namespace

PYBIND11_MODULE(dojo_snitch, module) {
  module.doc() = "A cycle model of one Snitch core.";
  module.def("run", &run, py::arg("code"), py::arg("base"), py::arg("memory"), py::arg("arguments"), py::arg("limit"),
             "Runs 32-bit instructions at `base` until they return, a0 to a7 set to `arguments`, for `limit` cycles at "
             "most. `memory`: (name, address, contiguous buffer, writable) each; touching anything else is a fault. "
             "Gives cycles, instructions, computed (arithmetic that the FPU issued), the FPU's cycles issued, idle, "
             "latency and starved, fault (a sentence, or empty) and pc.");
}
