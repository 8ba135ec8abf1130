"""The group of programs with state, control flow, and operators inside and outside of delegates."""
import torch
import torch.nn as nn
from executorch.exir import ExecutorchBackendConfig
from executorch.exir.passes import MemoryPlanningPass
from torch.export import Dim

from corpus_tables import *


class Counter(nn.Module):
    def __init__(self, dt=torch.int64):
        super().__init__()
        self.register_buffer("n", torch.zeros(1, dtype=dt))

    def forward(self, x):
        self.n.add_(1)
        return x + self.n


class Ema(nn.Module):
    def __init__(self, init=None):
        super().__init__()
        self.register_buffer("s", torch.zeros(4) if init is None else init)

    def forward(self, x):
        self.s.mul_(0.5).add_(x)
        return self.s * 2


class Accumulate(nn.Module):
    """Two buffers, one read before it is written."""

    def __init__(self):
        super().__init__()
        self.register_buffer("prev", torch.zeros(3, 4))
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x):
        d = x - self.prev
        self.prev.copy_(x)
        self.total.add_(torch.cumsum(d, 0)[-1])
        return d, self.total.clone()


class Cache(nn.Module):
    """A key cache written by position, read whole."""

    def __init__(self, how):
        super().__init__()
        self.register_buffer("k", torch.zeros(6, 4))
        self.how = how

    def forward(self, x, pos):
        if self.how == "index_put":
            self.k[pos] = x
        elif self.how == "index_copy":
            self.k.index_copy_(0, pos, x)
        elif self.how == "where":
            m = (torch.arange(6) == pos)[:, None]
            self.k.copy_(torch.where(m, x, self.k))
        return torch.softmax(x @ self.k.t(), -1) @ self.k


class Ring(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("h", torch.zeros(1, 5, 3))

    def forward(self, x):
        self.h.copy_(torch.cat([self.h[:, 1:], x], 1))
        return self.h.mean(1)


class GruState(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 6)
        self.register_buffer("h", torch.zeros(1, 6))

    def forward(self, x):
        self.h.copy_(self.cell(x, self.h))
        return self.h + 0


class Cond(nn.Module):
    def __init__(self, pred):
        super().__init__()
        self.pred = pred

    def forward(self, x, y):
        return torch.cond(self.pred(x), lambda a, b: torch.sin(a) + b, lambda a, b: a * b - 1.0, (x, y))


class CondNested(nn.Module):
    def forward(self, x):
        def inner_true(a):
            return a * 2.0

        def inner_false(a):
            return a - 3.0

        def true(a):
            return torch.cond(a.sum() > 2, inner_true, inner_false, (a,))

        def false(a):
            return torch.relu(a) + 1.0
        return torch.cond(x[0, 0] > 0, true, false, (x,)) + 0.5


class CondTwo(nn.Module):
    def forward(self, x):
        a, b = torch.cond(x.mean() > 0, lambda t: (t + 1.0, t * 2.0), lambda t: (t - 1.0, t / 2.0), (x,))
        return a * b, a - b


class Map(nn.Module):
    def forward(self, xs, y):
        from torch._higher_order_ops.map import map as tmap
        return tmap(lambda x, q: torch.relu(x) * q + 1.0, xs, y)


class MapLinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 3))

    def forward(self, xs):
        from torch._higher_order_ops.map import map as tmap
        return tmap(lambda x, w: torch.tanh(x @ w), xs * 2, self.w) + 1


class Scan(nn.Module):
    def forward(self, init, xs):
        from torch._higher_order_ops.scan import scan
        return scan(lambda c, x: (c + x, c * x), init, xs)


class While(nn.Module):
    def forward(self, x):
        from torch._higher_order_ops.while_loop import while_loop
        return while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, a * 1.5 + 1.0), (torch.tensor(0), x))


def mixed():
    t = Table()
    op, mod = t.op, t.mod
    # several delegates with kernels between
    op("two_delegates", lambda x: torch.relu(torch.cumsum(x * 2, 1)) + 1, R(3, 7))
    op("three_delegates", lambda x: torch.cumsum(torch.relu(torch.cumsum(x * 2, 1)) + 1, 0) * x, R(3, 7))
    op("five_delegates", lambda x: (lambda f: f(f(f(f(x)))))(lambda y: torch.cumsum(torch.tanh(y) * 0.5, 0) + x), R(3, 7))
    op("maximum_between", lambda a, b: torch.maximum(a * 2, b + 1).exp() * 0.1, R(3, 7), R(7))
    op("log_between", lambda a: torch.log(torch.sigmoid(a)) * 2, R(3, 7))
    op("erf_between", lambda a: torch.erf(a * 0.5) + a, R(3, 7))
    op("ne_between", lambda a, b: torch.where(torch.ne(a, b), a * 2, b - 1), R(3, 7), R(3, 7))
    op("sum_first", lambda a: (a * 2).sum(0) + 1, R(4, 5))
    op("mean_hw", lambda a: torch.relu(a).mean((2, 3)) * 2, R(1, 4, 5, 6))
    op("any_between", lambda a: torch.where((a > 1).any(1, keepdim=True), a, -a) * 2, R(4, 5))
    op("tril_between", lambda a: torch.softmax(torch.tril(a * 2) + 1, -1), R(5, 5))
    op("topk_between", lambda a: torch.topk(a * 2, 3)[0] + 1, R(3, 7))
    op("sort_between", lambda a: torch.sort(a * 2, -1)[0].exp(), R(3, 7))
    op("index_put_between", lambda a, v: (a + 1).index_put((torch.tensor([0, 2]),), v * 2) * 3, R(4, 5), R(2, 5))
    op("scatter_between", lambda a, i, v: (a + 1).scatter(1, i, v * 2) * 3, R(3, 6), K([[1, 3], [0, 2], [5, 4]]), R(3, 2))
    op("remainder_between", lambda a: torch.remainder(a * 3, 2.0) + 1, R(3, 7))
    op("floor_between", lambda a: torch.floor(a * 3) + a, R(3, 7))
    op("add_scalar_between", lambda a: torch.ops.aten.add.Scalar(a * 2, 1.5).exp(), R(3, 7))
    op("int_between", lambda i: torch.remainder(i * 3, 5) + 1, I(9, 3, 7))
    op("bool_between", lambda a, b: torch.logical_not(torch.logical_xor(a > 0, b > 0)), R(3, 7), R(7))
    op("f64_between", lambda a: (a * 2).double().cumsum(1).float() + 1, R(3, 7))
    op("argmax_gather", lambda a: (a * 2).gather(1, a.argmax(0, keepdim=True)) + 1, R(3, 7))
    op("high_dim", lambda a: torch.relu(a * 2).flip(3) + 1, R(2, 1, 2, 3, 2))
    op("const_to_both", lambda a: torch.cumsum(a * torch.arange(7.0), 1) + torch.arange(7.0), R(3, 7))
    mod("param_to_both", lambda: Const(lambda x, w: torch.cumsum(x * w, 1) * w, w=torch.randn(7)), R(3, 7))
    mod("nn_rms_norm", lambda: randomised(nn.RMSNorm(12)), R(2, 3, 12))
    mod("conv3d_between", lambda: nn.Sequential(nn.ReLU(), nn.Conv3d(2, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(36, 4)), R(1, 2, 3, 4, 3))
    mod("conv_batch2", lambda: nn.Sequential(nn.ReLU(), nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(27, 4)), R(2, 2, 5, 5))
    op("outputs_from_all", lambda x: (lambda a: (a, torch.cumsum(a, 1), torch.relu(torch.cumsum(a, 1)) + a))(x * 2), R(3, 7))
    op("kernel_first_last", lambda x: torch.cumsum(torch.relu(torch.cumsum(x, 0)) + 1, 1), R(3, 7))
    op("unused_delegate_in", lambda x, y: torch.cumsum(x, 0) * 2 + y, R(3, 7), R(7))
    # no delegate takes part
    op("only_kernels", lambda x: torch.cumsum(x, 0), R(3, 7), portable=True)
    # mutable buffers
    for p in (False, True):
        s = "_p" if p else ""
        kw = dict(portable=p, repeat=4)
        mod("counter" + s, lambda: Counter(), R(4), **kw)
        mod("counter_f32" + s, lambda: Counter(torch.float32), R(4), **kw)
        mod("ema" + s, lambda: Ema(), R(4), **kw)
        mod("accumulate" + s, lambda: Accumulate(), R(3, 4), **kw)
        for how in ("index_put", "index_copy", "where"):
            mod(f"cache_{how}" + s, lambda how=how: Cache(how), R(1, 4), K([0]), runs=[(R(1, 4), K([j])) for j in (0, 1, 2, 5, 1)], portable=p)
        mod("ring" + s, lambda: Ring(), R(1, 1, 3), portable=p, repeat=7)
        mod("gru_state" + s, lambda: GruState(), R(1, 4), **kw)
    for n, m in (("counter_f32", lambda: Counter(torch.float32)), ("ema", lambda: Ema()), ("ring", lambda: Ring()), ("gru_state", lambda: GruState()), ("cache_where", lambda: Cache("where"))):
        ins = (R(1, 1, 3),) if n == "ring" else (R(1, 4),) if n == "gru_state" else (R(1, 4), K([0])) if "cache" in n else (R(4),)
        runs = dict(runs=[(R(1, 4), K([j])) for j in (0, 1, 2, 5, 1)]) if "cache" in n else dict(repeat=5)
        mod(n + "_alias", m, *ins, options={"alias_buffer_mutations": True}, **runs)

    def init(*names):
        def cfg():
            from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
            return ExecutorchBackendConfig(passes=[InitializedMutableBufferPass(list(names))])
        return cfg
    start = lambda: torch.tensor([1.0, -2.0, 3.0, 0.5])
    mod("ema_init_p", lambda: Ema(start()), R(4), repeat=4, portable=True, config=init("b_s"), note="mutable buffer with initial values")
    mod("ema_init", lambda: Ema(start()), R(4), repeat=4, config=init("b_s"), note="mutable buffer with initial values")
    mod("ema_init_alias", lambda: Ema(start()), R(4), repeat=4, options={"alias_buffer_mutations": True}, note="initial values inside the delegate")
    mod("ema_names_p", lambda: Ema(), R(4), repeat=3, portable=True, config=lambda: ExecutorchBackendConfig(emit_mutable_buffer_names=True))
    # mutated user inputs
    class AddIn(nn.Module):
        def forward(self, x, y):
            x.add_(y)
            return x * 2

    class MulIn(nn.Module):
        def forward(self, x, y):
            y.mul_(2)
            x.copy_(torch.cumsum(y, 0))
            return x + y

    for p in (False, True):
        s = "_p" if p else ""
        mod("mutate_input" + s, AddIn, R(3, 4), R(4), mutates=(0,), portable=p, repeat=2)
        mod("mutate_two" + s, MulIn, R(3, 4), R(3, 4), mutates=(0, 1), portable=p, repeat=2)
    # control flow
    for p in (False, True):
        s = "_p" if p else ""
        both = [(K([[1.0, 2.0], [3.0, 4.0]]), R(2, 2)), (K([[-1.0, -2.0], [3.0, -4.0]]), R(2, 2)), (K([[5.0, 2.0], [3.0, 4.0]]), R(2, 2))]
        mod("cond_sum" + s, lambda: Cond(lambda x: x.sum() > 0), R(2, 2), R(2, 2), runs=both, portable=p)
        mod("cond_elem" + s, lambda: Cond(lambda x: x[0, 1] > 0), R(2, 2), R(2, 2), runs=both, portable=p)
        mod("cond_nested" + s, CondNested, R(2, 2), runs=[(b[0],) for b in both] + [(K([[1.0, -9.0], [0.0, 0.0]]),)], portable=p)
        mod("cond_two" + s, CondTwo, R(2, 2), runs=[(b[0],) for b in both], portable=p)
        mod("map" + s, Map, R(4, 3), R(3), repeat=2, portable=p)
        mod("map_linear" + s, MapLinear, R(5, 2, 4), repeat=2, portable=p)
        mod("scan" + s, Scan, R(3), R(4, 3), repeat=2, portable=p)
        mod("while" + s, While, R(3), repeat=2, portable=p)
    # several methods
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 4)

        def forward(self, x):
            return self.fc(x)

    class Back(nn.Module):
        def __init__(self, other):
            super().__init__()
            self.fc = other.fc
            self.emb = nn.Embedding(5, 4)

        def forward(self, y, i):
            return torch.relu(y + self.emb(i)) @ self.fc.weight

    def pair():
        a = Two()
        return {"encode": a, "decode": Back(a)}
    for p in (False, True):
        s = "_p" if p else ""
        t.add("methods" + s, pair, {"encode": (R(2, 6),), "decode": (R(2, 4), I(5, 2))}, dict(portable=p, dynamic={}))
        t.add("methods_meta" + s, pair, {"encode": (R(2, 6),), "decode": (R(2, 4), I(5, 2))},
              dict(portable=p, dynamic={}, constant_methods={"get_vocab_size": 32000, "get_name": "abc", "use_kv_cache": True, "get_scale": 0.25, "get_eos_ids": [1, 2, 3]}))
        mod("meta" + s, lambda: nn.Linear(4, 3), R(2, 4), portable=p, constant_methods={"get_max_seq_len": 128, "get_flag": False, "get_table": torch.arange(4)} if False else {"get_max_seq_len": 128, "get_flag": False})

    # external data
    net = lambda: nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 5))
    for size in (200, 1000, 1000000):
        mod(f"ptd_vulkan_{size}", net, R(3, 8), options={"external_constants_max_data_bytes": size}, suite="ptd", need_ptd=True)
    mod("ptd_vulkan_conv", lambda: randomised(nn.Sequential(nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.ReLU())), R(1, 2, 6, 6), options={"external_constants_max_data_bytes": 300}, suite="ptd", need_ptd=True)
    mod("ptd_vulkan_mixed", lambda: Const(lambda x, a, b: torch.cumsum(x * a, 1) @ b, a=torch.randn(7), b=torch.randn(7, 4)), R(3, 7), options={"external_constants_max_data_bytes": 128}, suite="ptd", need_ptd=True)
    mod("ptd_portable", net, R(3, 8), portable=True, suite="ptd", need_ptd=True, config=lambda: ExecutorchBackendConfig(external_constants=True))
    mod("ptd_portable_tagged", net, R(3, 8), portable=True, suite="ptd", need_ptd=True, config=lambda: ExecutorchBackendConfig(external_constants=lambda node: "first" if node.name.startswith("p_0") else None))
    mod("ptd_portable_two", net, R(3, 8), portable=True, suite="ptd", need_ptd=True, config=lambda: ExecutorchBackendConfig(external_constants=lambda node: "first" if node.name.startswith("p_0") else "second"))
    mod("ptd_portable_mutable", net, R(3, 8), portable=True, suite="ptd", need_ptd=True, config=lambda: ExecutorchBackendConfig(external_mutable_weights=True))
    mod("ptd_both", lambda: Const(lambda x, a, b: torch.cumsum(x * a, 1) + torch.ops.aten.add.Scalar(b, 1.0), a=torch.randn(7), b=torch.randn(7)), R(3, 7), suite="ptd", need_ptd=True,
        options={"external_constants_max_data_bytes": 64}, config=lambda: ExecutorchBackendConfig(external_constants=True))
    mod("ptd_conv_cl", lambda: nn.Conv2d(2, 3, 3).to(memory_format=torch.channels_last), R(1, 2, 5, 5, cl=True), portable=True, suite="ptd", need_ptd=True, config=lambda: ExecutorchBackendConfig(external_constants=True))

    # exporter settings
    plan = lambda **kw: (lambda: ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(**kw)))
    settings = {
        "no_in": plan(alloc_graph_input=False), "no_out": plan(alloc_graph_output=False), "no_io": plan(alloc_graph_input=False, alloc_graph_output=False),
        "align1": plan(alignment=1), "align64": plan(alignment=64), "overlap": plan(allow_lifetime_and_storage_overlap=True),
        "inline": lambda: ExecutorchBackendConfig(extract_delegate_segments=False), "seg4": lambda: ExecutorchBackendConfig(segment_alignment=4), "seg4096": lambda: ExecutorchBackendConfig(segment_alignment=4096),
        "const64": lambda: ExecutorchBackendConfig(constant_tensor_alignment=64), "deleg16": lambda: ExecutorchBackendConfig(delegate_alignment=16), "stack": lambda: ExecutorchBackendConfig(emit_stacktrace=True),
        "noview": lambda: ExecutorchBackendConfig(remove_view_copy=False),
    }
    body = lambda: Const(lambda x, w: torch.relu(torch.cumsum(x @ w, 1)).view(5, 3) * 2 + 1, w=torch.randn(4, 5))
    for n, cfg in settings.items():
        mod(f"cfg_{n}", body, R(3, 4), config=cfg, repeat=2)
        mod(f"cfg_{n}_p", body, R(3, 4), config=cfg, repeat=2, portable=True)
    n = Dim("n", min=1, max=16)
    for key in ("no_io", "no_out", "inline"):
        op(f"cfg_{key}_dyn", lambda x: torch.cumsum(x * 2, 0) + 1, R(16, 3), config=settings[key], dynamic=({0: n},), runs=[(R(k, 3),) for k in (16, 1, 5)], suite="dynamic")
    mod("cfg_no_io_state", Ema, R(4), config=settings["no_io"], repeat=3)
    mod("cfg_inline_net", net, R(3, 8), config=settings["inline"])
    # channels last with delegates
    mod("cl_conv", lambda: nn.Conv2d(3, 4, 3), R(1, 3, 5, 6, cl=True))
    mod("cl_conv_relu", lambda: randomised(nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())).to(memory_format=torch.channels_last), R(1, 3, 5, 6, cl=True))
    op("cl_add", lambda a, b: a + b, R(1, 3, 4, 5, cl=True), R(1, 3, 4, 5))
    op("cl_mixed", lambda a: torch.cumsum(a * 2, 1) + 1, R(1, 3, 4, 5, cl=True))
    op("cl_out", lambda a: (a * 2).to(memory_format=torch.channels_last), R(1, 3, 4, 5))
    # numbers travelling between delegates
    op("int_values", lambda x: torch.cumsum(x * 2, 0).view(x.shape[0] * 2, 3) + 1, R(16, 6), dynamic=({0: n},), runs=[(R(k, 6),) for k in (16, 1, 5)], suite="dynamic")
    op("int_values_expand", lambda x, y: y.expand(x.shape[0], 4) * 2 + x.sum(0)[0], R(16, 6), R(1, 4), dynamic=({0: n}, {}), runs=[(R(k, 6), R(1, 4)) for k in (16, 2, 5)], suite="dynamic")
    op("int_values_matmul", lambda x: torch.softmax(x @ x.transpose(-1, -2), -1) @ x, R(1, 2, 16, 4), dynamic=({2: n},), runs=[(R(1, 2, k, 4),) for k in (16, 1, 5)], suite="dynamic")
    op("int_values_arange", lambda x: torch.cumsum(x + torch.arange(x.shape[0])[:, None], 0) * 2, R(16, 3), dynamic=({0: n},), runs=[(R(k, 3),) for k in (16, 2, 5)], suite="dynamic")
    op("int_values_full", lambda x: x + torch.full((x.shape[0], 3), 2.0), R(16, 3), dynamic=({0: n},), runs=[(R(k, 3),) for k in (16, 2, 5)], suite="dynamic")
    op("int_values_prims", lambda x: torch.cumsum(x, 0)[: x.shape[0] - 1] * 2, R(16, 3), dynamic=({0: Dim("m", min=3, max=16)},), runs=[(R(k, 3),) for k in (16, 3, 5)], suite="dynamic")
    op("size_output", lambda x: (x * 2, x.shape[0]), R(16, 3), dynamic=({0: n},), runs=[(R(k, 3),) for k in (16, 2, 5)], suite="dynamic", note="a symbolic number among the outputs")
    return t
