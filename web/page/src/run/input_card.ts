// One input of a method: a picture, a file, numbers, or a filling. SPDX-License-Identifier: BSD-3-Clause

import type { InputValue, Tensor, ValueInfo } from "../../../src/types.ts";
import { el, option, select } from "../dom.ts";
import { formatDims } from "../format.ts";
import { pickFiles } from "../shell/drop.ts";
import { type Fit, fitRect, type ImageOptions, imageShape, kNormalisations, type Normalisation, pixelsToTensor } from "./image_tensor.ts";
import { parseNumbers, readNpy } from "./npy.ts";
import { convertTensor, elementCount, tensorOf } from "./tensor.ts";

const kSources = { image: "Picture", npy: ".npy file", numbers: "Numbers", zeros: "Zeros", ones: "Ones", random: "Random, 0 to 1", count: "0, 1, 2, …" } as const;
type SourceName = keyof typeof kSources;

/** Fillings by the index of an element. */
const kFillings: Readonly<Partial<Record<SourceName, (i: number) => number>>> = { zeros: () => 0, ones: () => 1, random: () => Math.random(), count: (i) => i };

export class InputCard {
  readonly element: HTMLElement;
  private readonly source: HTMLSelectElement;
  private readonly dims: HTMLInputElement | null = null;
  private readonly body = el("div", { class: "input-body" });
  private readonly numbers = el("textarea", { rows: 3, spellcheck: "false", placeholder: "1, 2, 3 … or one number for all" });
  private readonly normalisation = select("", kNormalisations);
  private readonly order = select("", { rgb: "RGB", bgr: "BGR" });
  private readonly fit = select("", { cover: "Cut to fit", contain: "Bars", stretch: "Stretch" });
  private readonly preview = el("canvas", { class: "preview", hidden: true, role: "img", "aria-label": "The picture as the program sees it" });
  private picture: ImageBitmap | null = null;
  private file: Tensor | null = null;
  private fileName = "";

  constructor(readonly info: ValueInfo, position: number) {
    const id = `input-${position}`;
    const shape = info.dims ?? [];
    const sources = Object.fromEntries(Object.entries(kSources).filter(([name]) => name !== "image" || imageShape(shape)));
    this.source = select(id, sources);
    this.source.value = imageShape(shape) ? "image" : info.kind === "tensor" && elementCount(shape) <= 16 ? "numbers" : "npy";
    this.source.addEventListener("change", () => this.draw());
    if (info.dynamic) this.dims = el("input", { id: `${id}-dims`, value: shape.join(", "), autocomplete: "off" });
    if (this.dims) this.dims.addEventListener("change", () => this.draw());
    this.numbers.setAttribute("aria-label", `Numbers of ${info.name}`);
    const labels = { normalisation: "Values", order: "Channels", fit: "Fit" } as const;
    for (const key of ["normalisation", "order", "fit"] as const) {
      this[key].setAttribute("aria-label", labels[key]);
      this[key].addEventListener("change", () => this.draw());
    }
    this.normalisation.value = info.dtype === "u8" ? "bytes" : "imagenet";
    const kind = info.kind === "tensor" ? `${info.dtype} ${formatDims(shape, info.dynamic)}` : info.kind;
    this.element = el("fieldset", { class: "card input" },
      el("legend", {}, info.name, " ", el("small", {}, kind)),
      info.kind === "tensor" && option(id, "From", this.source),
      this.dims && option(`${id}-dims`, "Shape", this.dims),
      this.body);
    this.draw();
  }

  get wantsPicture(): boolean {
    return this.info.kind === "tensor" && imageShape(this.info.dims ?? []) !== null;
  }

  get isEmpty(): boolean {
    const nothing: Readonly<Record<string, boolean>> = { image: !this.picture, npy: !this.file, numbers: this.numbers.value.trim() === "" };
    return nothing[this.source.value] ?? false;
  }

  /** Takes a dropped file: a picture, or a .npy file. Throws a sentence where it cannot be read. */
  async take(file: File): Promise<void> {
    if (/\.npy$/i.test(file.name)) {
      this.file = readNpy(new Uint8Array(await file.arrayBuffer()));
      this.fileName = file.name;
      this.source.value = "npy";
      if (this.dims) this.dims.value = this.file.dims.join(", ");
    } else {
      this.picture = await createImageBitmap(file).catch(() => Promise.reject(new Error(`${file.name} is not an image this browser can read`)));
      this.source.value = "image";
    }
    this.draw();
  }

  /** What is passed to the method. Throws a sentence that names the input where it cannot be made. */
  value(): InputValue {
    if (this.info.kind !== "tensor") return this.info.value ?? null;
    try {
      return this.tensor();
    } catch (error) {
      throw new Error(`${this.info.name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  private tensor(): Tensor {
    const dtype = this.info.dtype!;
    const dims = this.shape();
    const filling = kFillings[this.source.value as SourceName];
    if (filling) return tensorOf(dtype, dims, filling);
    if (this.source.value === "numbers") return parseNumbers(this.numbers.value, dtype, dims);
    if (this.source.value === "image") return this.pictureTensor(dims);
    if (!this.file) throw new Error("no .npy file is chosen");
    if (elementCount(this.file.dims) !== elementCount(dims)) throw new Error(`${this.fileName} has the shape ${formatDims(this.file.dims)}, ${formatDims(dims)} is expected`);
    return { ...convertTensor(this.file, dtype), dims };
  }

  private shape(): number[] {
    const bounds = this.info.dims ?? [];
    if (!this.dims) return [...bounds];
    const dims = this.dims.value.split(/[\s,x×[\]]+/).filter(Boolean).map(Number);
    const fits = dims.length === bounds.length && dims.every((dim, i) => Number.isInteger(dim) && dim >= 0 && dim <= bounds[i]!);
    if (!fits) throw new Error(`Shape must be ${bounds.length} whole numbers of at most ${formatDims(bounds)}`);
    return dims;
  }

  private pictureTensor(dims: readonly number[]): Tensor {
    if (!this.picture) throw new Error("no image is chosen");
    const shape = imageShape(dims);
    if (!shape) throw new Error(`${formatDims(dims)} is not the shape of a picture`);
    const { width, height } = shape;
    this.preview.width = width;
    this.preview.classList.toggle("small", width < 160);
    this.preview.height = height;
    const context = this.preview.getContext("2d", { willReadFrequently: true })!;
    // What is transparent becomes white, as on a page; bars are black, as training pads.
    context.fillStyle = this.fit.value === "contain" ? "#000" : "#fff";
    context.fillRect(0, 0, width, height);
    context.imageSmoothingQuality = "high";
    const rect = fitRect(this.picture, { width, height }, this.fit.value as Fit);
    context.drawImage(this.picture, rect.x, rect.y, rect.width, rect.height);
    const options: ImageOptions = { normalisation: this.normalisation.value as Normalisation, order: this.order.value as "rgb" | "bgr", fit: this.fit.value as Fit };
    return pixelsToTensor(context.getImageData(0, 0, width, height).data, dims, this.info.dtype!, options);
  }

  private draw(): void {
    if (this.info.kind !== "tensor") return this.body.replaceChildren(el("p", {}, `Always ${String(this.info.value ?? "none")}.`));
    const choose = (accept: string): HTMLElement =>
      el("button", { type: "button", onclick: () => pickFiles({ accept }, ([file]) => file && void this.take(file).catch((error: Error) => this.problem(error.message))) }, "Choose a file");
    let wrong = "";
    try {
      const dims = this.shape();
      if (this.source.value === "image" && this.picture) this.pictureTensor(dims);
    } catch (error) {
      wrong = (error as Error).message;
    }
    if (this.source.value === "image") {
      this.preview.hidden = !this.picture || wrong !== "";
      this.body.replaceChildren(
        el("p", {}, choose("image/*"), " or drop or paste one."),
        this.preview, el("div", { class: "options" }, this.normalisation, this.order, this.fit));
    } else if (this.source.value === "npy") {
      this.body.replaceChildren(el("p", {}, choose(".npy"), " ", this.file ? `${this.fileName}: ${this.file.dtype} ${formatDims(this.file.dims)}` : "or drop one."));
    } else if (this.source.value === "numbers") this.body.replaceChildren(this.numbers);
    else this.body.replaceChildren();
    if (wrong) this.problem(wrong);
  }

  problem(text: string): void {
    const note = el("p", { class: "problem", role: "alert" }, text);
    this.body.prepend(note);
    note.scrollIntoView({ block: "nearest" });
  }
}
