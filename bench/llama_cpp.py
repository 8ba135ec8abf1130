"""llama.cpp's CPU backend, as the libraries of the npm package @node-llama-cpp/linux-x64, through the C interface of llama.h. Structures
are passed on as they come: their sizes and most fields differ from version to version."""
# SPDX-License-Identifier: BSD-3-Clause
import ctypes
import hashlib
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import time

PACKAGE = "@node-llama-cpp/linux-x64@3.22.1"
SHA256 = "0d953e1503d5ab4608d8ed5b739132308c81ac05ffeb760d2a7f30e08a9f90e0"


def fetch(folder):
    """Leaves the libraries of the package in a folder, unless they are there."""
    if not list(folder.glob("libllama.*so")):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as scratch:
            subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=scratch, check=True, stdout=subprocess.DEVNULL)
            package = next(pathlib.Path(scratch).glob("*.tgz"))
            got = hashlib.sha256(package.read_bytes()).hexdigest()
            if got != SHA256:
                sys.exit(f"'{PACKAGE}' is not the pinned file: expected SHA-256 {SHA256}, got {got}")
            with tarfile.open(package) as archive:
                for member in archive.getmembers():
                    if member.name.endswith(".so") and member.isfile():
                        (folder / pathlib.PurePosixPath(member.name).name).write_bytes(archive.extractfile(member).read())
    return folder


class Params(ctypes.Structure):
    _fields_ = [("words", ctypes.c_uint32 * 256)]  # as many as any version has, and more


class Batch(ctypes.Structure):
    _fields_ = [("words", ctypes.c_uint64 * 16)]


class Llama:
    def __init__(self, folder, model, context, threads):
        def load(pattern):
            return ctypes.CDLL(str(next(folder.glob(pattern))), mode=ctypes.RTLD_GLOBAL)
        load("libggml-base.so")
        ggml, self.api = load("libggml.*so"), load("libllama.*so")
        quiet = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
        self.silent = quiet(lambda level, text, data: None)
        self.api.llama_log_set(self.silent, None)
        ggml.ggml_backend_load_all_from_path(str(folder).encode())
        self.declare()
        self.api.llama_backend_init()
        self.model = self.api.llama_model_load_from_file(str(model).encode(), self.api.llama_model_default_params())
        params = self.api.llama_context_default_params()
        # n_ctx, n_batch and n_ubatch come first in every version.
        assert list(params.words[:3]) == [512, 2048, 512], f"unknown context parameters: {list(params.words[:3])}"
        params.words[0] = context
        self.context = self.api.llama_init_from_model(self.model, params)
        assert self.model and self.context, f"llama.cpp cannot load {model}"
        self.api.llama_set_n_threads(self.context, threads, threads)

    def declare(self):
        pointer = ctypes.c_void_p
        for name, result, args in (
                ("version", ctypes.c_char_p, []), ("print_system_info", ctypes.c_char_p, []), ("model_default_params", Params, []),
                ("context_default_params", Params, []), ("model_load_from_file", pointer, [ctypes.c_char_p, Params]),
                ("init_from_model", pointer, [pointer, Params]), ("set_n_threads", None, [pointer, ctypes.c_int32, ctypes.c_int32]),
                ("batch_get_one", Batch, [pointer, ctypes.c_int32]), ("decode", ctypes.c_int32, [pointer, Batch]),
                ("synchronize", None, [pointer]), ("get_memory", pointer, [pointer]), ("memory_clear", None, [pointer, ctypes.c_bool])):
            function = getattr(self.api, f"llama_{name}")
            function.restype, function.argtypes = result, args

    def forget(self):
        self.api.llama_memory_clear(self.api.llama_get_memory(self.context), True)

    def feed(self, ids):
        """Logits of the last token only, as Pteryx makes them."""
        tokens = (ctypes.c_int32 * len(ids))(*ids)
        status = self.api.llama_decode(self.context, self.api.llama_batch_get_one(tokens, len(ids)))
        assert status == 0, f"llama_decode: {status}"
        self.api.llama_synchronize(self.context)

    def measure(self, prompt, context, tokens, repeats):
        """Tokens per second of a prompt, and of text behind a context; the first of each is warming up."""
        ids = [(i * 7) % 1000 + 5 for i in range(max(prompt, context, tokens))]
        speeds = {"prompt": [], "text": []}
        for _ in range(repeats + 1):
            self.forget()
            start = time.perf_counter()
            self.feed(ids[:prompt])
            speeds["prompt"].append(prompt / (time.perf_counter() - start))
        for _ in range(repeats + 1):
            self.forget()
            self.feed(ids[:context])
            start = time.perf_counter()
            for i in range(tokens):
                self.feed(ids[i:i + 1])
            speeds["text"].append(tokens / (time.perf_counter() - start))
        return {test: s[1:] for test, s in speeds.items()}


def main():
    """llama_cpp.py LIBRARIES MODEL THREADS PROMPT CONTEXT TOKENS REPEATS: prints what it measures as JSON."""
    folder, model = pathlib.Path(sys.argv[1]), sys.argv[2]
    threads, prompt, context, tokens, repeats = map(int, sys.argv[3:])
    llama = Llama(folder, model, max(prompt, context + tokens) + 64, threads)
    report = llama.measure(prompt, context, tokens, repeats)
    print(json.dumps({**report, "version": llama.api.llama_version().decode(), "system": llama.api.llama_print_system_info().decode()}))


if __name__ == "__main__":
    main()
