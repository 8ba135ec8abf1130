"""What tables of export_corpus.py are made of: random inputs, modules, and the table itself.

An entry is made lazily: inputs are Spec objects (called after seeding by case name), modules are
factories.  `op(name, function, *inputs)` wraps a function, `mod(name, factory, *inputs)` a module.
"""
import torch
import torch.nn as nn

i8, u8, i16, i32, i64 = torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64
f16, f32, f64, b8 = torch.float16, torch.float32, torch.float64, torch.bool


# --------------------------------------------------------------------- inputs

class Spec:
    def __init__(self, make):
        self.make = make

    def __call__(self):
        return self.make()


def R(*shape, k=1.0, b=0.0, dt=f32, cl=False):
    """Normal numbers times k plus b; cl: channels-last memory."""
    def make():
        t = (torch.randn(shape) * k + b).to(dt)
        return t.to(memory_format=torch.channels_last) if cl else t
    return Spec(make)


def U(lo, hi, *shape, dt=f32):
    """Uniform numbers."""
    return Spec(lambda: (torch.rand(shape) * (hi - lo) + lo).to(dt))


def Z(*shape, k=1.0, dt=f32):
    """Numbers away from zero (divisors)."""
    return Spec(lambda: ((torch.rand(shape) * k + 0.5) * torch.where(torch.rand(shape) < 0.5, -1.0, 1.0)).to(dt))


def I(hi, *shape, lo=0, dt=i64):
    """Integers lo..hi-1."""
    return Spec(lambda: torch.randint(lo, hi, shape).to(dt))


def N(hi, *shape, dt=i64):
    """Integers of either sign, never zero."""
    return Spec(lambda: (torch.randint(1, hi, shape) * torch.where(torch.rand(shape) < 0.5, -1, 1)).to(dt))


def B(*shape, p=0.5):
    return Spec(lambda: torch.rand(shape) < p)


def K(values, dt=None):
    """These values."""
    return Spec(lambda: torch.tensor(values, dtype=dt))


class Fn(nn.Module):
    """A module around a plain function of tensors."""

    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, *args):
        out = self.fn(*args)
        return tuple(out) if type(out).__module__ == "torch.return_types" else out


class Table(dict):
    """name -> dict(build, inputs, options of the case)."""

    def op(self, name, fn, *inputs, **kw):
        self.add(name, lambda: Fn(fn), inputs, kw)

    def mod(self, name, factory, *inputs, **kw):
        self.add(name, factory, inputs, kw)

    def add(self, name, build, inputs, kw):
        assert name not in self, name
        self[name] = dict(build=build, inputs=inputs, **kw)


def derived(entry, **kw):
    """An entry for another group."""
    return {**{k: v for k, v in entry.items() if k not in ("half", "only")}, **kw}


def tag(shape):
    return "x".join(map(str, shape)) if shape else "scalar"


def randomised(m):
    """Norm layers with values that are not 0 and 1."""
    for x in m.modules():
        if isinstance(x, nn.modules.batchnorm._BatchNorm) and x.running_mean is not None:
            x.running_mean.normal_(0, 0.3)
            x.running_var.uniform_(0.5, 2.0)
        if isinstance(x, (nn.modules.batchnorm._BatchNorm, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)) and getattr(x, "weight", None) is not None:
            nn.init.normal_(x.weight, 1, 0.2)
            if getattr(x, "bias", None) is not None:
                nn.init.normal_(x.bias, 0, 0.2)
    return m


class Const(nn.Module):
    """A function that also gets named tensors of the module (buffers)."""

    def __init__(self, fn, **tensors):
        super().__init__()
        for n, t in tensors.items():
            self.register_buffer(n, t)
        self.names = list(tensors)
        self.fn = fn

    def forward(self, *args):
        return self.fn(*args, *[getattr(self, n) for n in self.names])


class RMSNorm(nn.Module):
    """The spelling that becomes one et_vk.rms_norm."""

    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(1 + 0.2 * torch.randn(dim))

    def forward(self, x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.eps) * self.weight


RANKS = [(7,), (2, 3, 5), (), (2, 3, 4, 5), (1, 9, 1), (2, 1, 3, 2, 2), (1, 2, 1, 3, 1, 2), (5, 1), (1,),
         (2, 1, 2, 1, 2, 1, 3), (1, 2, 1, 2, 1, 2, 1, 2), (1, 1, 6, 3), (64,)]
