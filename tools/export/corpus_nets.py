"""Small networks for export_corpus.py."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.export import Dim

from corpus_tables import B, I, K, R, RMSNorm, Table, randomised


class ResBlock(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.a, self.b = nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.na, self.nb = nn.BatchNorm2d(cout), nn.BatchNorm2d(cout)
        self.skip = nn.Identity() if stride == 1 and cin == cout else nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        y = self.nb(self.b(F.relu(self.na(self.a(x)))))
        return F.relu(y + self.skip(x))


class SqueezeExcite(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.b = nn.Conv2d(c, c // 2, 1), nn.Conv2d(c // 2, c, 1)

    def forward(self, x):
        return x * F.hardsigmoid(self.b(F.relu(self.a(F.adaptive_avg_pool2d(x, 1)))))


class MobileV3(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.Hardswish())
        self.block = nn.Sequential(nn.Conv2d(8, 16, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish(), nn.Conv2d(16, 16, 5, 1, 2, groups=16, bias=False), nn.BatchNorm2d(16), nn.Hardswish(),
                                   SqueezeExcite(16), nn.Conv2d(16, 8, 1, bias=False), nn.BatchNorm2d(8))
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 12), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(12, 5))

    def forward(self, x):
        x = self.stem(x)
        return self.head(x + self.block(x))


class ConvNextBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.dw, self.norm = nn.Conv2d(c, c, 7, padding=3, groups=c), nn.LayerNorm(c, eps=1e-6)
        self.up, self.down = nn.Linear(c, 4 * c), nn.Linear(4 * c, c)
        self.gamma = nn.Parameter(torch.full((c,), 0.3))

    def forward(self, x):
        y = self.dw(x).permute(0, 2, 3, 1)
        y = self.gamma * self.down(F.gelu(self.up(self.norm(y))))
        return x + y.permute(0, 3, 1, 2)


class ConvNext(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.block, self.head = nn.Conv2d(3, 8, 4, 4), ConvNextBlock(8), nn.Linear(8, 5)

    def forward(self, x):
        return self.head(self.block(self.stem(x)).mean([-2, -1]))


class UNet(nn.Module):
    def __init__(self, up="transposed"):
        super().__init__()
        c = lambda i, o: nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.ReLU())
        self.d1, self.d2, self.mid = c(2, 4), c(4, 8), c(8, 8)
        self.up1 = nn.ConvTranspose2d(8, 4, 2, stride=2) if up == "transposed" else nn.Sequential(nn.Upsample(scale_factor=2, mode=up), nn.Conv2d(8, 4, 1))
        self.u1, self.out = c(12, 4), nn.Conv2d(4, 2, 1)
        self.up = up

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        m = self.mid(b)
        u = self.up1(m)
        return self.out(self.u1(torch.cat([u, a, F.interpolate(b[:, :4], scale_factor=2)], 1)))


class Attention(nn.Module):
    def __init__(self, d, h, how="bmm"):
        super().__init__()
        self.h, self.how = h, how
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x, mask=None):
        b, s, d = x.shape
        q, k, v = self.qkv(x).view(b, s, 3, self.h, d // self.h).unbind(2)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        if self.how == "sdpa":
            a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        else:
            q, k, v = (t.flatten(0, 1) for t in (q, k, v))
            w = torch.bmm(q, k.transpose(1, 2)) * (d // self.h) ** -0.5
            if mask is not None:
                w = w + mask
            a = torch.bmm(torch.softmax(w, -1), v).view(b, self.h, s, d // self.h)
        return self.o(a.transpose(1, 2).reshape(b, s, d))


class Block(nn.Module):
    def __init__(self, d, h, how="bmm", norm=nn.LayerNorm):
        super().__init__()
        self.n1, self.n2, self.att = norm(d), norm(d), Attention(d, h, how)
        self.up, self.down = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x):
        x = x + self.att(self.n1(x))
        return x + self.down(F.gelu(self.up(self.n2(x)), approximate="tanh"))


class Swiglu(nn.Module):
    """Causal decoder block: RMS norm, gated feed-forward, mask made from arange."""

    def __init__(self, d=8, h=2):
        super().__init__()
        self.emb, self.n1, self.n2, self.att = nn.Embedding(17, d), RMSNorm(d), RMSNorm(d), Attention(d, h)
        self.g, self.u, self.d = nn.Linear(d, 12, bias=False), nn.Linear(d, 12, bias=False), nn.Linear(12, d, bias=False)

    def forward(self, ids):
        x = self.emb(ids)
        i = torch.arange(6)
        mask = torch.where(i[:, None] >= i[None], 0.0, -1e9)
        x = x + self.att(self.n1(x), mask)
        y = self.n2(x)
        x = x + self.d(F.silu(self.g(y)) * self.u(y))
        return F.linear(x, self.emb.weight)


class Vit(nn.Module):
    def __init__(self, how="bmm"):
        super().__init__()
        self.patch = nn.Conv2d(3, 8, 4, 4)
        self.cls, self.pos = nn.Parameter(torch.randn(1, 1, 8)), nn.Parameter(torch.randn(1, 5, 8))
        self.block, self.norm, self.head = Block(8, 2, how), nn.LayerNorm(8), nn.Linear(8, 5)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.pos
        return self.head(self.norm(self.block(x))[:, 0])


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos, self.seg = nn.Embedding(30, 8), nn.Embedding(16, 8), nn.Embedding(2, 8)
        self.norm, self.att, self.n2 = nn.LayerNorm(8, eps=1e-12), Attention(8, 2), nn.LayerNorm(8)
        self.up, self.down, self.pool = nn.Linear(8, 16), nn.Linear(16, 8), nn.Linear(8, 8)

    def forward(self, ids, mask):
        s = ids.shape[1]
        x = self.norm(self.tok(ids) + self.pos(torch.arange(s)) + self.seg(torch.zeros_like(ids)))
        bias = (1.0 - mask.to(x.dtype))[:, None, :] * -10000.0
        x = self.n2(x + self.att(x, bias))
        x = x + self.down(F.gelu(self.up(x)))
        return x, torch.tanh(self.pool(x[:, 0]))


class Lstm(nn.Module):
    """nn.LSTM over a fixed number of steps."""

    def __init__(self, kind, **kw):
        super().__init__()
        self.rnn, self.out = kind(4, 5, batch_first=True, **kw), nn.Linear(10 if kw.get("bidirectional") else 5, 3)

    def forward(self, x):
        y, _ = self.rnn(x)
        return self.out(y)


class CellLoop(nn.Module):
    def __init__(self, cell, steps=4):
        super().__init__()
        self.cell, self.steps = cell, steps

    def forward(self, x):
        h = torch.zeros(x.shape[1], 5)
        c = torch.zeros(x.shape[1], 5)
        outs = []
        for t in range(self.steps):
            if isinstance(self.cell, nn.LSTMCell):
                h, c = self.cell(x[t], (h, c))
            else:
                h = self.cell(x[t], h)
            outs.append(h)
        return torch.stack(outs)


class Wavenet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Conv1d(1, 4, 1)
        self.f = nn.ModuleList([nn.Conv1d(4, 4, 2, dilation=d) for d in (1, 2, 4)])
        self.g = nn.ModuleList([nn.Conv1d(4, 4, 2, dilation=d) for d in (1, 2, 4)])
        self.r = nn.ModuleList([nn.Conv1d(4, 4, 1) for _ in range(3)])
        self.out = nn.Conv1d(4, 2, 1)

    def forward(self, x):
        x = self.inp(x)
        skip = 0
        for d, f, g, r in zip((1, 2, 4), self.f, self.g, self.r):
            p = F.pad(x, (d, 0))
            y = r(torch.tanh(f(p)) * torch.sigmoid(g(p)))
            x, skip = x + y, skip + y
        return self.out(F.relu(skip))


class Fcn(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3, padding=1), nn.Hardswish(), nn.Conv2d(4, 2, 1))

    def forward(self, x):
        return self.body(x)


class Detector(nn.Module):
    """Two heads and a decoded grid."""

    def __init__(self):
        super().__init__()
        self.body, self.cls, self.box = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 4, 1), nn.Conv2d(8, 4, 1)

    def forward(self, x):
        f = F.leaky_relu(self.body(x), 0.1)
        cls, box = self.cls(f), self.box(f)
        cls = cls.flatten(2).transpose(1, 2)
        box = box.flatten(2).transpose(1, 2)
        return torch.sigmoid(cls), torch.cat([box[..., :2] * 2 - 0.5, torch.exp(box[..., 2:])], -1), cls.argmax(-1)


class Superres(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(1, 8, 5, padding=2), nn.Conv2d(8, 4, 3, padding=1)

    def forward(self, x):
        return F.pixel_shuffle(self.b(torch.tanh(self.a(x))), 2).clamp(0, 1)


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(6), nn.LayerNorm(6)
        self.t = nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.Linear(8, 5))
        self.c = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 6))

    def forward(self, x):
        x = x + self.t(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.c(self.n2(x))


class Shuffle(nn.Module):
    """Channel shuffle with grouped convolutions."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(8, 8, 1, groups=2), nn.Conv2d(8, 8, 3, padding=1, groups=8)

    def forward(self, x):
        y = F.relu(self.a(x))
        n, c, h, w = y.shape
        y = y.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)
        return self.b(y) + x


class Spectral(nn.Module):
    """Frames, window, a fixed transform and log power."""

    def __init__(self):
        super().__init__()
        k = torch.arange(5)[:, None] * torch.arange(8)[None] * (2 * torch.pi / 8)
        self.register_buffer("c", torch.cos(k))
        self.register_buffer("s", torch.sin(k))
        self.register_buffer("win", torch.hann_window(8))

    def forward(self, x):
        f = x.unfold(-1, 8, 4) * self.win
        p = F.linear(f, self.c) ** 2 + F.linear(f, self.s) ** 2
        return torch.log10(p.clamp(min=1e-5))


class Moe(nn.Module):
    """Soft mixture of two experts."""

    def __init__(self):
        super().__init__()
        self.gate, self.e = nn.Linear(6, 2), nn.ModuleList([nn.Linear(6, 6), nn.Linear(6, 6)])

    def forward(self, x):
        w = torch.softmax(self.gate(x), -1)
        return w[:, :1] * F.relu(self.e[0](x)) + w[:, 1:] * F.silu(self.e[1](x))


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(1, 4, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(64, 6))
        self.dec, self.up = nn.Linear(3, 64), nn.ConvTranspose2d(4, 1, 3, 2, 1, output_padding=1)

    def forward(self, x, eps):
        mu, logv = self.enc(x).chunk(2, -1)
        z = mu + torch.exp(0.5 * logv) * eps
        return torch.sigmoid(self.up(F.relu(self.dec(z)).view(-1, 4, 4, 4))), mu, logv


def nets():
    t = Table()
    n, n2 = Dim("n", min=1, max=16), Dim("n2", min=4, max=16)
    mod = t.mod
    mod("mlp", lambda: nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 12), nn.GELU(), nn.Linear(12, 4), nn.Softmax(-1)), R(3, 10),
        dyn=dict(inputs=(R(16, 10),), dynamic=({0: n},), runs=[(R(k, 10),) for k in (16, 1, 6)]))
    mod("mlp_norm", lambda: randomised(nn.Sequential(nn.Linear(10, 16), nn.BatchNorm1d(16), nn.SiLU(), nn.Linear(16, 12), nn.LayerNorm(12), nn.Tanh(), nn.Linear(12, 4))), R(3, 10))
    mod("cnn", lambda: randomised(nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(8, 10), nn.LogSoftmax(-1))), R(1, 1, 8, 8))
    mod("resnet_block", lambda: randomised(nn.Sequential(ResBlock(3, 4), ResBlock(4, 8, 2))), R(1, 3, 8, 8))
    mod("mobilenet_v3", lambda: randomised(MobileV3()), R(1, 3, 10, 10))
    mod("convnext", lambda: randomised(ConvNext()), R(1, 3, 16, 16))
    mod("unet", UNet, R(1, 2, 8, 8))
    mod("unet_bilinear", lambda: UNet("bilinear"), R(1, 2, 8, 8))
    mod("unet_nearest", lambda: UNet("nearest"), R(1, 2, 8, 6))
    mod("transformer_block", lambda: randomised(Block(8, 2)), R(1, 6, 8), dyn=dict(inputs=(R(1, 16, 8),), dynamic=({1: n},), runs=[(R(1, k, 8),) for k in (16, 1, 6)]))
    mod("transformer_sdpa", lambda: randomised(Block(8, 2, "sdpa")), R(1, 6, 8))
    mod("transformer_batch", lambda: randomised(Block(8, 2)), R(3, 5, 8))
    mod("transformer_rms", lambda: Block(8, 2, norm=RMSNorm), R(1, 6, 8))
    mod("encoder_layer", lambda: randomised(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)), R(1, 6, 8))
    mod("multihead", lambda: MultiHead(), R(1, 4, 8), R(1, 6, 8))
    mod("decoder_swiglu", Swiglu, I(17, 1, 6))
    mod("vit", lambda: randomised(Vit()), R(1, 3, 8, 8))
    mod("vit_sdpa", lambda: randomised(Vit("sdpa")), R(1, 3, 8, 8))
    mod("bert", lambda: randomised(Bert()), I(30, 1, 7), K([[1, 1, 1, 1, 1, 0, 0]]),
        dyn=dict(inputs=(I(30, 1, 16), I(2, 1, 16)), dynamic=({1: n}, {1: n}), runs=[(I(30, 1, k), I(2, 1, k)) for k in (16, 2, 7)]))
    mod("lstm", lambda: Lstm(nn.LSTM), R(1, 4, 4))
    mod("lstm_2layer_bi", lambda: Lstm(nn.LSTM, num_layers=2, bidirectional=True), R(1, 3, 4))
    mod("gru", lambda: Lstm(nn.GRU), R(1, 4, 4))
    mod("rnn", lambda: Lstm(nn.RNN), R(1, 4, 4))
    mod("lstm_cell", lambda: CellLoop(nn.LSTMCell(4, 5)), R(4, 2, 4), dyn=dict(inputs=(R(4, 16, 4),), dynamic=({1: n},), runs=[(R(4, k, 4),) for k in (16, 1, 6)]))
    mod("gru_cell", lambda: CellLoop(nn.GRUCell(4, 5)), R(4, 2, 4))
    mod("wavenet", Wavenet, R(1, 1, 16), dyn=dict(inputs=(R(1, 1, 16),), dynamic=({2: n},), runs=[(R(1, 1, k),) for k in (16, 2, 9)]))
    mod("autoencoder", lambda: nn.Sequential(nn.Linear(12, 6), nn.ReLU(), nn.Linear(6, 3), nn.ReLU(), nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 12), nn.Sigmoid()), R(2, 12))
    mod("conv_autoencoder", lambda: nn.Sequential(nn.Conv2d(1, 4, 3, 2, 1), nn.ReLU(), nn.Conv2d(4, 8, 3, 2, 1), nn.ReLU(), nn.ConvTranspose2d(8, 4, 2, 2), nn.ReLU(), nn.ConvTranspose2d(4, 1, 2, 2), nn.Sigmoid()), R(1, 1, 8, 8))
    mod("vae", Vae, R(1, 1, 8, 8), R(1, 3))
    mod("fcn", lambda: randomised(Fcn()), R(1, 3, 8, 8), dyn=dict(inputs=(R(1, 3, 16, 8),), dynamic=({2: n2},), runs=[(R(1, 3, k, 8),) for k in (16, 4, 9)]))
    mod("detector", Detector, R(1, 3, 8, 8))
    mod("superres", Superres, R(1, 1, 6, 7))
    mod("mixer", lambda: randomised(Mixer()), R(1, 5, 6))
    mod("shuffle", Shuffle, R(1, 8, 4, 4))
    mod("spectral", Spectral, R(1, 32))
    mod("moe", Moe, R(3, 6))
    mod("prelu_net", lambda: nn.Sequential(nn.Linear(6, 6), nn.PReLU(), nn.Linear(6, 3), nn.Softplus()), R(2, 6))
    mod("instance_norm_net", lambda: nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.InstanceNorm2d(4), nn.LeakyReLU(0.2), nn.Conv2d(4, 2, 3, padding=1, padding_mode="reflect"), nn.Tanh()), R(1, 2, 6, 6))
    mod("dense_block", DenseBlock, R(1, 3, 6, 6))
    mod("pointnet", lambda: PointNet(), R(1, 3, 9))
    return t


class MultiHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, q, kv):
        return self.m(q, kv, kv, need_weights=False)[0]


class DenseBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.ModuleList([nn.Conv2d(3 + 2 * i, 2, 3, padding=1) for i in range(3)])

    def forward(self, x):
        for c in self.c:
            x = torch.cat([x, F.relu(c(x))], 1)
        return x


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv1d(3, 8, 1), nn.Conv1d(8, 8, 1), nn.Linear(8, 4)

    def forward(self, x):
        return self.c(F.relu(self.b(F.relu(self.a(x)))).amax(-1))
