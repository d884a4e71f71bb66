"""Compiles one CUDA source with NVRTC: ``nvrtc.py LIBRARY BUILTINS SOURCE CUBIN OPTION...``.

A process of its own, under a watchdog, so that what a compiler does ends nothing but itself. Run by path,
without the package, so that it starts in some milliseconds. The compiler's log goes to standard error.
"""

import ctypes
import sys


def main(arguments: list[str]) -> int:
    library, builtins, source, cubin = arguments[:4]
    if builtins:
        ctypes.CDLL(builtins, ctypes.RTLD_GLOBAL)  # NVRTC looks for it by name, which only this finds
    nvrtc = ctypes.CDLL(library)
    with open(source, "rb") as file:
        text = file.read()
    program = ctypes.c_void_p()
    status = nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"kernels.cu", 0, None, None)
    if status:
        sys.stderr.write(f"NVRTC could not start (status {status}).\n")
        return 2
    options = [o.encode() for o in arguments[4:]]
    status = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    sys.stderr.write(log.value.decode(errors="replace"))
    if status:
        return 1
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    image = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetCUBIN(program, image)
    with open(cubin, "wb") as file:
        file.write(image.raw)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
